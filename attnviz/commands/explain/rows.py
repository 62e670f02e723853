"""Traces as calculations: of one head, of bare embeddings, of an example."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from attnviz.commands.explain.examples import ExampleName
from attnviz.commands.explain.run import Traced
from attnviz.console import Display
from attnviz.draw.headlines import headline
from attnviz.draw.titles import facts as run_facts
from attnviz.errors import UsageError, option, readable
from attnviz.kit.result import Calculation, Form, Numbers
from attnviz.records.capture import Capture, Kind
from attnviz.records.rows import (
    ABSENT,
    EXACT,
    HEAD,
    LAYER,
    RUN_FIELDS,
    TARGET,
    TOKEN,
    UNKNOWN,
    Field,
    Fields,
    JsonOutput,
    list_of,
    object_fields,
)
from attnviz.records.trace import EmbeddingTrace, HeadTrace, Predicted, Similarity, Worked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.commands.explain.sheet import Sheet


TITLES: dict[ExampleName, str] = {
    "three-inputs": "Self-attention by hand: three inputs of four numbers",
    "multi-head": "楚留香 through three heads: three characters, random embeddings and weights",
}


@dataclass(frozen=True)
class Telling:
    """What of a calculation is told, and how, to a person.

    `only`: these steps, `"3"`, `"2,3"` or `"2-4"`; `digits`: decimals, None as suits; `columns`:
    tokens as columns, too; `as_lookup`: as a look-up in a database.
    """

    only: str | None = None
    digits: int | None = None
    columns: bool = False
    as_lookup: bool = False

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

    def sheet(self, display: Display, digits: int = 4) -> "Sheet":
        """The sheet to write on; `digits` where nobody said how many."""
        from attnviz.commands.explain.sheet import Sheet

        chosen = digits if self.digits is None else self.digits
        in_sums = 2 if self.digits is None else self.digits
        return Sheet(display, chosen, self.columns, in_sums)


PLAINLY = Telling()
T = TypeVar("T")


# What `attnviz explain` writes as one JSON object.


def calculation_fields(subject: str, run: tuple[Field[Any], ...] = ()) -> tuple[Field[Any], ...]:
    """The first fields: what the calculation is of, and the run; written in another order."""
    return (
        *object_fields("explain"),
        Field(
            "subject", Literal[subject], "", lambda record: ABSENT
        ),  # the schema names it before the run
        *run,
        Field("subject", Literal[subject], "", lambda record: subject, optional=True),
    )


def tokens_of(name: str, two: bool) -> Field[HeadTrace]:
    """The tokens: one list where queries and keys are the same ones, else two."""
    side = "query_tokens" if name == "tokens" else name
    return Field(
        name,
        list_of(TOKEN),
        "",
        lambda t: getattr(t, side) if two == (t.kind in ("cross", "decoder")) else ABSENT,
        optional=True,
    )


ARRAYS: Field[Any] = Field(
    "arrays",
    dict[str, Any],
    "Every array as nested lists, by name; null stands for −∞.",
    lambda record: ABSENT,  # whoever writes the object streams them
)
NEAREST = Fields[Predicted](
    "Nearest",
    "A token close to what the head adds.",
    (
        Field("token", str, "", lambda token: token.label),
        Field("cosine", float, "", lambda token: token.score),
        Field("exact", str, EXACT),
    ),
)
FOLLOWING = Fields[Predicted](
    "Following",
    "A token that may come next.",
    (
        Field("token", str, "", lambda token: token.label),
        Field("probability", float, "", lambda token: token.score),
        Field("exact", str, EXACT),
    ),
)
HEAD_TRACE = Fields[HeadTrace](
    "",
    "",
    (
        *calculation_fields("head", RUN_FIELDS),
        Field("kind", Kind),
        TARGET,
        tokens_of("tokens", two=False),
        tokens_of("query_tokens", two=True),
        tokens_of("key_tokens", two=True),
        UNKNOWN,
        Field("layer", int, LAYER),
        Field("head", int, HEAD),
        Field("query", int),
        Field("norm", str, "", lambda trace: trace.kinds.norm),
        Field("positions", str, "", lambda trace: trace.kinds.positions),
        Field("query_heads_per_key_value_head", int, "", lambda trace: trace.kinds.group),
        Field("scale", float),
        Field("nearest", list_of(NEAREST)),
        Field("next_tokens", list_of(FOLLOWING)),
    ),
)
TRACE = Fields[Traced](
    "TraceObject",
    "`attnviz explain TEXT -f json`.",
    (
        *HEAD_TRACE.within(lambda traced: traced.trace),
        Field(
            "other_similarity",
            Similarity,
            "",
            lambda traced: traced.other.kind if traced.other else ABSENT,
            optional=True,
        ),
        ARRAYS,
    ),
)
EMBEDDED = Fields[EmbeddingTrace](
    "EmbeddingsObject",
    "`attnviz explain TEXT --model embeddings -f json`.",
    (
        *calculation_fields("embeddings", RUN_FIELDS),
        Field("tokens", list_of(TOKEN)),
        Field("query", int),
        Field("causal", bool),
        ARRAYS,
    ),
)
WORKED = Fields[Worked](
    "WorkedObject",
    "`attnviz explain --example` or `--matrices` `-f json`.",
    (
        *calculation_fields("example"),
        Field("labels", list[str], "", lambda worked: worked.given.labels),
        Field("heads", int, "How many heads there are.", lambda worked: worked.given.heads),
        Field("similarity", Similarity, "", lambda worked: worked.way.similarity),
        Field("causal", bool, "", lambda worked: worked.way.causal),
        Field("rounded", bool, "", lambda worked: worked.way.rounded),
        ARRAYS,
    ),
)
JSON = JsonOutput(objects=(TRACE, EMBEDDED, WORKED))


# Traces as calculations.


def of_head(traced: Traced, telling: Telling = PLAINLY) -> Calculation[Traced]:
    """One head of a model over a text."""
    from attnviz.commands.explain import sheet as explain_sheet
    from attnviz.commands.explain import steps

    trace = traced.trace
    only = telling.among(steps.STEPS)

    def shown(display: Display) -> "Iterable[RenderableType]":
        said = headline(traced.choice, traced.finding, traced.capture)
        about, sheet = f"{said} · {run_facts(traced.capture)}", telling.sheet(display)
        if telling.as_lookup:
            return explain_sheet.render(trace, sheet, about=about)
        return steps.render(trace, sheet, about=about, only=only, other=traced.other)

    arrays = trace.arrays()
    if traced.other:
        arrays |= {"other_scores": traced.other.scores, "other_weights": traced.other.weights}
    query = trace.query_tokens[trace.query].label
    about = f"{traced.choice.heads[0]} at {query}, {trace.model.name}"
    return Calculation(calculation_form(about, TRACE, arrays, shown), traced, (traced.capture,))


def of_embeddings(
    trace: EmbeddingTrace, capture: Capture, telling: Telling = PLAINLY
) -> Calculation[EmbeddingTrace]:
    """Token embeddings compared with each other, over the text of this capture."""
    from attnviz.commands.explain.others import EMBEDDING_STEPS, render_embeddings

    only = telling.among(EMBEDDING_STEPS)

    def shown(display: Display) -> "Iterable[RenderableType]":
        return render_embeddings(trace, telling.sheet(display), only=only)

    form = calculation_form(f"embeddings, {trace.model.name}", EMBEDDED, trace.arrays(), shown)
    return Calculation(form, trace, (capture,))


def of_example(
    worked: Worked, name: ExampleName, telling: Telling = PLAINLY
) -> Calculation[Worked]:
    """One of the examples."""
    return _of_worked(worked, TITLES[name], telling)


def of_matrices(worked: Worked, path: str, telling: Telling = PLAINLY) -> Calculation[Worked]:
    """A user's own matrices, from this file."""
    return _of_worked(worked, f"Attention on {readable(path)}", telling)


def _of_worked(worked: Worked, title: str, telling: Telling) -> Calculation[Worked]:
    from attnviz.commands.explain import others as steps

    only = telling.among(steps.WORKED_STEPS)

    def shown(display: Display) -> "Iterable[RenderableType]":
        sheet = telling.sheet(display, digits=1 if worked.way.rounded else 4)
        return steps.render_worked(worked, sheet, title=title, only=only)

    return Calculation(calculation_form(title, WORKED, worked.arrays(), shown), worked)


def calculation_form(
    about: str,
    facts: Fields[T],
    arrays: Mapping[str, Numbers],
    shown: Callable[[Display], "Iterable[RenderableType]"],
) -> Form[T]:
    """How a calculation goes out: as steps, or as facts with every array."""
    return Form(
        "explain",
        None,
        lambda record, top, line: (),
        lambda record: about,
        terminal=lambda record, display: shown(display),
        archive=lambda record: (facts.row(record), arrays),
    )
