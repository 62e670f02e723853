"""`attnviz explain`: one head's calculation, number by number.

The file is long because it has three subjects (a head, bare embeddings, an example), and the
options of each.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import RenderableType

from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver, destination_of
from attnviz.commands.flags import as_flag
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, say, text_alone
from attnviz.console import Display
from attnviz.data.explain import EmbeddingTrace, HeadTrace
from attnviz.data.serial import embedding_trace_to_dict, trace_to_dict, worked_to_dict
from attnviz.data.worked import Initialisation, Similarity, Way
from attnviz.errors import UsageError, option
from attnviz.harmless import readable
from attnviz.inputs.examples import Example
from attnviz.inputs.matrices import read_matrices
from attnviz.models.known import EMBEDDINGS
from attnviz.renderers.calculation import embeddings as embeddings_sheet
from attnviz.renderers.calculation import explain as explained
from attnviz.renderers.calculation import lookup
from attnviz.renderers.calculation import worked as examples
from attnviz.renderers.calculation.sheet import Sheet
from attnviz.renderers.headlines import headline
from attnviz.renderers.titles import facts as run_facts
from attnviz.runs.explain import (
    RandomInit,
    Subject,
    Traced,
    explain_embeddings,
    work_example,
    work_matrices,
)
from attnviz.runs.explain import explain as trace_head
from attnviz.runs.outputs import Piece
from attnviz.runs.prepare import load_model
from attnviz.writers.explain import Numbers, calculation_json, calculation_npz

if TYPE_CHECKING:
    from attnviz.models.scratch.embeddings import EmbeddingModel

EPILOG = """
[bold]Examples[/]

attnviz explain "a fluffy blue creature"

attnviz explain "Bark is very cute and he is a dog" --head L3H2 --query he --only 3,5

attnviz explain --example three-inputs --rounded

attnviz explain "a fluffy blue creature" -f json | jq '.arrays.pattern[-1]'
"""
COMMON = "file model head query only digits example matrices format output quiet".split()
"""The options that the short help lists."""


STEPS, EXAMPLES = "The steps", "Examples without a model"


@dataclass(frozen=True)
class HowTold:
    """What of a calculation is told, and how, to a person."""

    only: str | None = option_field(
        STEPS, None, "--only", metavar="STEPS", help="Show only these steps: 3, 2,3 or 2-4."
    )
    digits: int | None = option_field(
        STEPS,
        None,
        "--digits",
        metavar="N",
        min=0,
        max=9,
        help="Decimals to show. The calculation itself is not rounded.",
        show_default="4",
    )
    columns: bool = option_field(
        STEPS,
        False,
        "--columns",
        help="Also show tokens as columns (Wᵀ·xᵀ), as some lessons do.",
    )
    as_lookup: bool = option_field(
        STEPS,
        False,
        "--as-lookup",
        help="Show the row as a look-up in a database: query, keys, values.",
    )

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
                    f"{option('only', repr(self.only))} names no steps of this calculation",
                    f"they are {steps[0]} to {steps[-1]}: {option('only', 3)}, 2,3 or 2-4",
                )
            chosen |= set(named)
        return tuple(sorted(chosen))

    def sheet(self, display: Display, digits: int = 4) -> Sheet:
        """The sheet to write on; `digits` where the user said nothing."""
        chosen = digits if self.digits is None else self.digits
        in_sums = 2 if self.digits is None else self.digits
        return Sheet(display, chosen, self.columns, in_sums)


@dataclass(frozen=True)
class Likeness:
    """How query and key are compared."""

    similarity: Similarity | None = option_field(
        STEPS,
        None,
        "--similarity",
        help="How query and key are compared: q·k, q·k/√d_k, x·(W_Q·W_Kᵀ)·xᵀ, or a kernel of "
        "their distance. For a model, x is taken after its norm, without biases or scaling.",
    )


@dataclass(frozen=True)
class WhichExample:
    """A calculation that needs no model."""

    example: Example | None = option_field(
        EXAMPLES,
        None,
        "--example",
        help="three-inputs: attention by hand, in whole numbers. multi-head: 楚留香 through "
        "three heads with random weights.",
    )
    matrices: Path | None = option_field(
        EXAMPLES,
        None,
        "--matrices",
        metavar="FILE.json",
        help="Your own x, w_query, w_key and w_value; optionally w_output, heads and labels "
        "(docs/lessons.md has an example).",
    )


@dataclass(frozen=True)
class RandomWeights:
    """How the multi-head example draws its numbers."""

    init: Initialisation = option_field(
        EXAMPLES, "normal", "--init", help="The distribution of multi-head's random weights."
    )
    seed: int = option_field(
        EXAMPLES,
        0,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The seed of multi-head's random numbers.",
    )


@dataclass(frozen=True)
class Rounding:
    """Whether the example rounds as one does on paper."""

    rounded: bool = option_field(
        EXAMPLES, False, "--rounded", help="Round the softmax to one decimal, as one does on paper."
    )


@dataclass(frozen=True, eq=False)
class Calculation:
    """What is shown, and the facts and arrays that a program gets."""

    shown: Iterable[RenderableType]
    facts: Mapping[str, object]
    arrays: Mapping[str, Numbers]

    def pieces(self, form: str) -> Iterable[Piece]:
        """The calculation as it goes out in this format."""
        if form == "txt":
            return self.shown
        write = calculation_json if form == "json" else calculation_npz
        return write(self.facts, self.arrays)


@command
def explain(
    session: Session,
    *,
    text: g.TextIn,
    tokens: g.Tokens,
    model: g.WhichModel,
    target: g.Target,
    kind: g.Kind,
    causal: g.Causal,
    followed: g.OneRow,
    reading: HowTold,
    likeness: Likeness,
    which: WhichExample,
    rounding: Rounding,
    drawn: RandomWeights,
    screen: g.Screen,
    output: g.CalculationOutput,
    noise: g.Noise,
) -> None:
    """Write out one head's calculation for one query, step by step, in numbers.

    The steps lead from the tokens to queries, keys and values, scores, mask and softmax, the
    weighted sum, the head's output and the prediction. --example and --matrices need no model.
    """
    to = destination_of(session, output)
    if to.format.name != "txt":
        hint = f"leave it out: {to.format.name} holds all numbers of every step"
        session.refuse(HowTold, wrong="applies only to text output", hint=hint)
    display = to.display(session)
    if which.example is not None or which.matrices is not None:
        _check_without_a_model(session, text, which)
        plain: Similarity = "dot" if which.example == "three-inputs" else "scaled-dot"
        way = Way(likeness.similarity or plain, causal.causal, rounding.rounded)
        calculation = _worked(display, which, way, drawn, reading)
    else:
        _check_with_a_model(session, model, reading)
        refusal = "a saved capture holds no queries, keys and values"
        given = text_alone(session, text, refusal)
        # on the processor: here every intermediate number is looked at
        source = g.source_of(session, model, g.ModelRun(device="cpu"), kind, causal)
        loaded = load_model(source)
        if model.model == EMBEDDINGS:
            embeddings = cast("EmbeddingModel", loaded)
            options = tokens.options(target=target.target)
            trace, notes = explain_embeddings(embeddings, given, followed.query, options)
            say(session, notes)
            calculation = _compared(display, trace, reading)
        else:
            subject = Subject(followed.head, followed.query, likeness.similarity)
            traced = trace_head(loaded, given, subject, tokens.options(target=target.target))
            note_texts(session, [traced.capture])
            _note_a_piece(session, traced.trace)
            calculation = _explained(display, traced, reading)
    deliver(session, to, [(None, calculation.pieces(to.format.name))])


def _explained(display: Display, traced: Traced, reading: HowTold) -> Calculation:
    """One head of a model over a text."""
    sheet, trace = reading.sheet(display), traced.trace
    said = headline(traced.choice, traced.finding, traced.capture)
    about = f"{said} · {run_facts(traced.capture)}"
    if reading.as_lookup:
        shown = lookup.render(trace, sheet, about=about)
    else:
        only = reading.among(explained.STEPS)
        shown = explained.render(trace, sheet, about=about, only=only, other=traced.other)
    facts, arrays = trace_to_dict(trace), trace.arrays()
    if traced.other:
        facts["other_similarity"] = traced.other.kind
        arrays |= {"other_scores": traced.other.scores, "other_weights": traced.other.weights}
    return Calculation(shown, facts, arrays)


def _note_a_piece(session: Session, trace: HeadTrace) -> None:
    """One line where the query is a part of a character only."""
    token = trace.query_tokens[trace.query]
    if token.part is not None:
        session.note(
            f"“{token.label}” is a part of the character {token.text.strip()}, and explain follows "
            f"one token; attnviz show {as_flag('chars')} merges the parts"
        )


def _compared(display: Display, trace: EmbeddingTrace, reading: HowTold) -> Calculation:
    """Token embeddings compared with each other."""
    only = reading.among(embeddings_sheet.STEPS)
    shown = embeddings_sheet.render(trace, reading.sheet(display), only=only)
    return Calculation(shown, embedding_trace_to_dict(trace), trace.arrays())


def _worked(
    display: Display, which: WhichExample, way: Way, drawn: RandomWeights, reading: HowTold
) -> Calculation:
    """One of the examples, or a user's own matrices."""
    if which.example is not None:
        random = RandomInit(drawn.init, drawn.seed)
        worked, title = work_example(which.example, way, random), TITLES[which.example]
    else:
        assert which.matrices is not None
        name = readable(str(which.matrices))
        worked, title = work_matrices(read_matrices(which.matrices), way), f"Attention on {name}"
    sheet = reading.sheet(display, digits=1 if way.rounded else 4)
    shown = examples.render(worked, sheet, title=title, only=reading.among(examples.STEPS))
    return Calculation(shown, worked_to_dict(worked), worked.arrays())


TITLES: dict[Example, str] = {
    "three-inputs": "Self-attention by hand: three inputs of four numbers",
    "multi-head": "楚留香 through three heads: three characters, random embeddings and weights",
}


def _check_with_a_model(session: Session, model: g.WhichModel, reading: HowTold) -> None:
    hint = f"add {option('example')} or {option('matrices')}"
    session.refuse(Rounding, RandomWeights, wrong="is for the examples", hint=hint)
    if model.model == EMBEDDINGS:
        wrong = f"does nothing for {option('model', EMBEDDINGS)}"
        session.refuse("head", Likeness, "as_lookup", wrong=wrong)
    if reading.as_lookup:
        wrong = f"does nothing with {option('as_lookup')}"
        session.refuse("only", Likeness, "columns", wrong=wrong)


def _check_without_a_model(session: Session, text: g.TextIn, which: WhichExample) -> None:
    """No text and no model, and only options that mean something here."""
    what = option("matrices" if which.example is None else "example")
    if which.example is not None and which.matrices is not None:
        both = f"{option('example')} and {option('matrices')} are two calculations"
        raise UsageError(both, "give one of them")
    if text.text is not None:
        raise UsageError(f"{what} needs no text", "leave the text out")
    wrong = f"does nothing for {what}"
    session.refuse(
        "file", g.OneRow, "as_lookup", g.WhichModel, g.Target, g.Kind, g.Tokens, wrong=wrong
    )
    if which.example != "multi-head":
        hint = f"it is for {option('example', 'multi-head')}"
        session.refuse(RandomWeights, wrong="does nothing here", hint=hint)
