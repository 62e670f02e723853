"""Traces as calculations: of one head, of bare embeddings, of an example."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

from attnviz.commands.explain.examples import ExampleName
from attnviz.commands.explain.run import Traced
from attnviz.console import Display
from attnviz.draw.headlines import headline
from attnviz.draw.titles import facts as run_facts
from attnviz.errors import UsageError, option, readable
from attnviz.kit.result import Calculation
from attnviz.records.capture import Capture, Kind
from attnviz.records.rows import (
    Arrays,
    Exact,
    HeadNumber,
    JsonOutput,
    LayerNumber,
    MadeObject,
    ModelObject,
    TokenObject,
    Unknown,
    Versions,
    declared,
    embedding_trace_to_dict,
    trace_to_dict,
    worked_to_dict,
)
from attnviz.records.trace import (
    EmbeddingTrace,
    Similarity,
    Worked,
)

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

    facts, arrays = trace_to_dict(trace), trace.arrays()
    if traced.other:
        facts["other_similarity"] = traced.other.kind
        arrays |= {"other_scores": traced.other.scores, "other_weights": traced.other.weights}
    query = trace.query_tokens[trace.query].label
    about = f"{traced.choice.heads[0]} at {query}, {trace.model.name}"
    return Calculation(traced, about, facts, arrays, shown, (traced.capture,))


def of_embeddings(
    trace: EmbeddingTrace, capture: Capture, telling: Telling = PLAINLY
) -> Calculation[EmbeddingTrace]:
    """Token embeddings compared with each other, over the text of this capture."""
    from attnviz.commands.explain.others import EMBEDDING_STEPS, render_embeddings

    only = telling.among(EMBEDDING_STEPS)

    def shown(display: Display) -> "Iterable[RenderableType]":
        return render_embeddings(trace, telling.sheet(display), only=only)

    facts, about = embedding_trace_to_dict(trace), f"embeddings, {trace.model.name}"
    return Calculation(trace, about, facts, trace.arrays(), shown, (capture,))


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

    return Calculation(worked, title, worked_to_dict(worked), worked.arrays(), shown)


# What `attnviz explain` writes as one JSON object.


class Nearest(TypedDict):
    """A token close to what the head adds."""

    token: str
    cosine: float
    exact: Exact


class Following(TypedDict):
    """A token that may come next."""

    token: str
    probability: float
    exact: Exact


class TraceObject(TypedDict):
    """`attnviz explain TEXT -f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["head"]
    model: ModelObject
    versions: Versions
    text: str
    kind: Kind
    target: NotRequired[str]
    tokens: NotRequired[list[TokenObject]]
    query_tokens: NotRequired[list[TokenObject]]
    key_tokens: NotRequired[list[TokenObject]]
    unknown_words: NotRequired[Unknown]
    layer: LayerNumber
    head: HeadNumber
    query: int
    norm: str
    positions: str
    query_heads_per_key_value_head: int
    scale: float
    nearest: list[Nearest]
    next_tokens: list[Following]
    other_similarity: NotRequired[Similarity]
    arrays: Arrays


class EmbeddingsObject(TypedDict):
    """`attnviz explain TEXT --model embeddings -f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["embeddings"]
    model: ModelObject
    versions: Versions
    text: str
    tokens: list[TokenObject]
    query: int
    causal: bool
    arrays: Arrays


class WorkedObject(TypedDict):
    """`attnviz explain --example` or `--matrices` `-f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["example"]
    labels: list[str]
    heads: Annotated[int, "How many heads there are."]
    similarity: Similarity
    causal: bool
    rounded: bool
    arrays: Arrays


JSON = JsonOutput(
    objects=(declared(TraceObject), declared(EmbeddingsObject), declared(WorkedObject))
)
