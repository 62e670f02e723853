"""`attnviz explain`: one head's calculation, number by number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from attnviz.commands import explain_options as x
from attnviz.commands import options as o
from attnviz.commands.answers import note_what_is_left_out
from attnviz.commands.calculation import Calculation, calculation_format, deliver_calculation
from attnviz.commands.session import Session, session_of
from attnviz.console import make_consoles
from attnviz.data.explain import EmbeddingTrace, HeadTrace
from attnviz.data.serial import embedding_trace_to_dict, trace_to_dict, worked_to_dict
from attnviz.data.tokens import readable
from attnviz.data.worked import Similarity, Way
from attnviz.errors import UsageError
from attnviz.inputs.examples import Example
from attnviz.inputs.matrices import read_matrices
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.models.known import EMBEDDINGS
from attnviz.models.placement import Placement
from attnviz.renderers.calculation import embeddings as embeddings_page
from attnviz.renderers.calculation import explain as explained
from attnviz.renderers.calculation import lookup
from attnviz.renderers.calculation import worked as examples
from attnviz.renderers.calculation.page import Page
from attnviz.runs.explain import (
    Drawing,
    Subject,
    Traced,
    explain_embeddings,
    work_example,
    work_matrices,
)
from attnviz.runs.explain import explain as trace_head
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import load_model
from attnviz.writers.formats import Format

if TYPE_CHECKING:
    from attnviz.models.scratch.embeddings import EmbeddingModel

EPILOG = """
[bold]Examples[/]

attnviz explain "a fluffy blue creature"

attnviz explain "Bark is very cute and he is a dog" --head L2H1 --query he --only 3,5

attnviz explain --example three-inputs --rounded

attnviz explain "a fluffy blue creature" -f json | jq '.arrays.pattern[-1]'
"""


@dataclass(frozen=True)
class Steps:
    """What of a calculation is told, and how."""

    only: str | None
    digits: int | None
    columns: bool

    def among(self, steps: Sequence[int]) -> tuple[int, ...]:
        """The steps that are asked for.

        Raises:
            UsageError: one that there is not.
        """
        if self.only is None:
            return tuple(steps)
        chosen: set[int] = set()
        for item in self.only.split(","):
            found = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", item.strip())
            named = range(int(found[1]), int(found[2] or found[1]) + 1) if found else ()
            if not named or not set(named) <= set(steps):
                raise UsageError(
                    f"--only {self.only!r} names no steps of this calculation",
                    f"they are {steps[0]} to {steps[-1]}: --only 3, 2,3 or 2-4",
                )
            chosen |= set(named)
        return tuple(sorted(chosen))

    def page(self, session: Session, digits: int = 4) -> Page:
        """The page to write on; `digits` where the user said nothing."""
        chosen = digits if self.digits is None else self.digits
        in_sums = 2 if self.digits is None else self.digits
        return Page(session.consoles.display, chosen, self.columns, in_sums)


def explain(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    truncate: o.TruncateOption = None,
    bos: o.BosOption = None,
    special: o.SpecialOption = False,
    model: o.ModelOption = "builtin",
    revision: o.RevisionOption = None,
    offline: o.OfflineOption = False,
    kind: o.KindOption = None,
    causal: o.CausalOption = False,
    head: x.HeadOption = None,
    query: x.OneQueryOption = None,
    only: x.OnlyOption = None,
    digits: x.DigitsOption = None,
    columns: x.ColumnsOption = False,
    similarity: x.SimilarityOption = None,
    as_lookup: x.AsLookupOption = False,
    example: x.ExampleOption = None,
    matrices: x.MatricesOption = None,
    rounded: x.RoundedOption = False,
    init: x.InitOption = "normal",
    seed: x.SeedOption = 0,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: x.FormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Write out one head's calculation for one query, step by step, with its true numbers.

    From the tokens to queries, keys and values, scores, mask and softmax, the weighted
    sum, what the head adds, and the prediction. With --example or --matrices no model is
    needed.
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = calculation_format(session, output, form)
    _check_for_numbers(context, chosen)
    steps = Steps(only, digits, columns)
    if example is not None or matrices is not None:
        _check_without_a_model(context, example, matrices)
        plain: Similarity = "dot" if example == "three-inputs" else "scaled-dot"
        way = Way(similarity or plain, causal, rounded)
        drawing = Drawing(init, seed)
        calculation = _worked(session, example, matrices, way, drawing, steps)
    else:
        _check_with_a_model(context)
        given = read_text(text, file, session.stdin)
        if isinstance(given, SavedCapture):
            raise UsageError(
                "a saved capture holds no queries, keys and values", "give the text again"
            )
        if given.note:
            session.note(given.note)
        # on the processor: here every intermediate number is looked at
        here = Placement(device="cpu")
        loaded = load_model(Source(model, revision, offline, quiet, kind, causal, placement=here))
        options = TextOptions(bos, special, truncate)
        if model == EMBEDDINGS:
            embeddings = cast("EmbeddingModel", loaded)
            compared, left_out = explain_embeddings(embeddings, given.text, query, options)
            note_what_is_left_out(session, left_out)
            calculation = _compared(session, compared, steps)
        else:
            traced = trace_head(loaded, given.text, Subject(head, query, similarity), options)
            note_what_is_left_out(session, traced.left_out)
            _note_a_piece(session, traced.trace)
            calculation = _explained(session, traced, steps, as_lookup=as_lookup)
    deliver_calculation(session, calculation, chosen, output)


def _explained(session: Session, traced: Traced, steps: Steps, *, as_lookup: bool) -> Calculation:
    """One head of a model over a text."""
    page = steps.page(session)
    trace, about = traced.trace, traced.about
    if as_lookup:
        shown = lookup.render(trace, page, about=about)
    else:
        only = steps.among(explained.STEPS)
        shown = explained.render(trace, page, about=about, only=only, other=traced.other)
    facts, arrays = trace_to_dict(trace), trace.arrays()
    if traced.other:
        facts["other_similarity"] = traced.other.kind
        arrays |= {"other_scores": traced.other.scores, "other_weights": traced.other.weights}
    return Calculation(shown, facts, arrays)


def _note_a_piece(session: Session, trace: HeadTrace) -> None:
    """One line where the query is a part of a character only."""
    token = trace.tokens[trace.query]
    if token.part is not None:
        session.note(
            f"“{token.label}” is a piece of the character {token.text.strip()}: explain follows "
            "one token; attnviz show --chars puts pieces together"
        )


def _compared(session: Session, trace: EmbeddingTrace, steps: Steps) -> Calculation:
    """Token embeddings compared with each other."""
    only = steps.among(embeddings_page.STEPS)
    shown = embeddings_page.render(trace, steps.page(session), only=only)
    return Calculation(shown, embedding_trace_to_dict(trace), trace.arrays())


def _worked(
    session: Session,
    example: Example | None,
    matrices: Path | None,
    way: Way,
    drawing: Drawing,
    steps: Steps,
) -> Calculation:
    """One of the examples, or a user's own matrices."""
    if example is not None:
        worked, title = work_example(example, way, drawing), TITLES[example]
    else:
        assert matrices is not None
        name = readable(str(matrices))
        worked, title = work_matrices(read_matrices(matrices), way), f"Attention on {name}"
    only = steps.among(examples.STEPS)
    page = steps.page(session, digits=1 if way.rounded else 4)
    shown = examples.render(worked, page, title=title, only=only)
    return Calculation(shown, worked_to_dict(worked), worked.arrays())


TITLES: dict[Example, str] = {
    "three-inputs": "Self-attention by hand: three inputs of four numbers",
    "multi-head": "楚留香 through three heads: three characters, random embeddings and weights",
}
ONLY_EXAMPLES = ("rounded", "init", "seed")
NO_EXAMPLE = ("file", "head", "query", "as_lookup", *(n for n in o.RUN if n != "causal"))
NOT_COMPARED = ("head", "similarity", "as_lookup")
FOR_READING = ("only", "digits", "columns", "as_lookup")


def _check_for_numbers(context: typer.Context, form: Format) -> None:
    """Nothing asked for that only a page can show."""
    for option in o.given(context, FOR_READING) if form.name != "txt" else ():
        raise UsageError(
            f"{option} is for the text that a person reads",
            f"leave it out: {form.name} holds every step's numbers in full",
        )


def _check_with_a_model(context: typer.Context) -> None:
    for option in o.given(context, ONLY_EXAMPLES):
        raise UsageError(f"{option} is for the examples", "add --example or --matrices")
    if context.params["model"] == EMBEDDINGS:
        for option in o.given(context, NOT_COMPARED):
            raise UsageError(f"{option} does nothing for --model {EMBEDDINGS}", "leave it out")
    if context.params["as_lookup"]:
        for option in o.given(context, ("only", "similarity", "columns")):
            raise UsageError(f"{option} does nothing with --as-lookup", "leave it out")


def _check_without_a_model(
    context: typer.Context, example: Example | None, matrices: Path | None
) -> None:
    """No text and no model, and only options that mean something here."""
    what = "--matrices" if example is None else "--example"
    if example is not None and matrices is not None:
        raise UsageError("--example and --matrices are two calculations", "give one of them")
    if context.params["text"] is not None:
        raise UsageError(f"{what} needs no text", "leave the text out")
    for option in o.given(context, NO_EXAMPLE):
        raise UsageError(f"{option} does nothing for {what}", "leave it out")
    for option in o.given(context, ("init", "seed")):
        if example != "multi-head":
            raise UsageError(f"{option} does nothing here", "it is for --example multi-head")
