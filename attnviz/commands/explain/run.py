"""A calculation written out: of one head over a text, of token embeddings, of an example.

text ─► tokens ─► one head, one query ─► run, every step recorded ─► trace

Without a named head, a capture comes first, from which the default one is picked.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

import numpy as np

from attnviz.commands.explain.examples import CHARACTERS, HEADS, WIDTH, ExampleName, three_inputs
from attnviz.console import Display
from attnviz.draw.headlines import headline
from attnviz.draw.titles import facts as run_facts
from attnviz.errors import InputError, UsageError, option, readable
from attnviz.kit.choose import found, one_row, position_of
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.kit.result import Calculation
from attnviz.models.loaded import tracing
from attnviz.records.capture import Capture, Kind
from attnviz.records.exhibit import Choice, Finding
from attnviz.records.rows import (
    Arrays,
    Exact,
    HeadNumber,
    LayerNumber,
    MadeObject,
    ModelObject,
    TokenObject,
    Unknown,
    Versions,
    embedding_trace_to_dict,
    trace_to_dict,
    worked_to_dict,
)
from attnviz.records.trace import (
    EmbeddingTrace,
    HeadTrace,
    Initialisation,
    Matrices,
    OtherRow,
    Similarity,
    Way,
    Worked,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.commands.explain.sheet import Sheet
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.scratch.tracing import EmbeddingModel


@dataclass(frozen=True)
class Subject:
    """What to explain: `head` and `query` as on the command line, and another similarity to
    compare with the model's own.

    Without `head`, the one that `show` would pick; without `query`, the first query of that head's
    headline, or the last word.
    """

    head: str | None = None
    query: str | None = None
    similarity: Similarity | None = None


@dataclass(frozen=True)
class Traced:
    """A head's calculation, the choice of the head and what it does on the text; the text's
    capture, and the row by another similarity."""

    trace: HeadTrace
    choice: Choice
    capture: Capture
    finding: Finding | None = None
    other: OtherRow | None = None


def explain(model: "LoadedModel", text: str, subject: Subject, options: TextOptions) -> Traced:
    """Run a text and record all that one head computes for one query."""
    from attnviz.models.reducing import other_row

    tracing(model)  # refused before anything is run
    prepared = prepare(model, text, options)
    choice, query, shown = one_row(prepared, subject.head, subject.query)
    finding = None
    if shown:
        finding = found(replace(shown, queries=(query,)), choice.heads[0]).finding
    trace = prepared.trace(choice.heads[0], query)
    other = other_row(trace, subject.similarity) if subject.similarity else None
    return Traced(trace, choice, prepared.empty, finding, other)


def explain_embeddings(
    model: "EmbeddingModel", text: str, query: str | None, options: TextOptions
) -> tuple[EmbeddingTrace, Capture]:
    """Compare the token embeddings of a text with each other; also the text's capture."""
    prepared = prepare(model, text, options)
    trace = model.compare(text, prepared.source, position_of(prepared.source, query))
    return replace(trace, versions=prepared.empty.versions), prepared.empty


@dataclass(frozen=True)
class RandomInit:
    """How the random numbers of an example are drawn."""

    init: Initialisation = "normal"
    seed: int = 0


def work_example(name: ExampleName, way: Way, random: RandomInit) -> Worked:
    """One of the worked examples; no model is loaded."""
    from attnviz.models.scratch.tracing import random_matrices, work_out

    if name == "three-inputs":
        return work_out(three_inputs(), way)
    return work_out(random_matrices(CHARACTERS, WIDTH, HEADS, random.init, random.seed), way)


def work_matrices(matrices: Matrices, way: Way) -> Worked:
    """A user's own matrices, worked out.

    Raises:
        InputError: they are so large that a product or a softmax is not finite.
    """
    from attnviz.models.scratch.tracing import work_out

    worked = work_out(matrices, way)
    if not all(np.isfinite(array).all() for array in (worked.pattern, worked.output)):
        raise InputError("the numbers of these matrices are too large", "scale them down")
    return worked


TITLES: dict[ExampleName, str] = {
    "three-inputs": "Self-attention by hand: three inputs of four numbers",
    "multi-head": "楚留香 through three heads: three characters, random embeddings and weights",
}


@dataclass(frozen=True)
class Telling:
    """How a calculation is written out.

    `only`: these steps, `"3"`, `"2,3"` or `"2-4"`; `digits`: decimals, None as suits; `columns`:
    also with tokens as columns; `as_lookup`: as a look-up in a database.
    """

    only: str | None = None
    digits: int | None = None
    columns: bool = False
    as_lookup: bool = False

    def among(self, steps: Sequence[int]) -> tuple[int, ...]:
        """The chosen ones of these steps."""
        if self.only is None:
            return tuple(steps)
        chosen: set[int] = set()
        for item in self.only.split(","):
            ends = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", item.strip())
            named = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends else ()
            if not named or not set(named) <= set(steps):
                raise UsageError(
                    f"{option('only', repr(self.only))} names no steps of this calculation",
                    f"they are {steps[0]} to {steps[-1]}: {option('only', 3)}, 2,3 or 2-4",
                )
            chosen |= set(named)
        return tuple(sorted(chosen))

    def sheet(self, display: Display, digits: int = 4) -> "Sheet":
        """The sheet to write on; `digits`: by default."""
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
        title = headline(traced.choice, traced.finding, traced.capture)
        about, sheet = f"{title} · {run_facts(traced.capture)}", telling.sheet(display)
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
