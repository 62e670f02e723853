"""A calculation written out: of one head over a text, of token embeddings, of an example.

text ─► tokens ─► one head, one query ─► run, every step recorded ─► trace

Without a named head, a capture comes first, from which the default one is picked.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.commands.explain.examples import CHARACTERS, HEADS, WIDTH, ExampleName, three_inputs
from attnviz.errors import InputError
from attnviz.kit.choose import found, one_row, position_of
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Finding
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
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.scratch.lessons import EmbeddingModel


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
    from attnviz.models.scratch.lessons import other_row

    model.require("trace")  # refused before anything is run
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
    from attnviz.models.scratch.lessons import random_matrices, work_out

    if name == "three-inputs":
        return work_out(three_inputs(), way)
    return work_out(random_matrices(CHARACTERS, WIDTH, HEADS, random.init, random.seed), way)


def work_matrices(matrices: Matrices, way: Way) -> Worked:
    """A user's own matrices, worked out.

    Raises:
        InputError: they are so large that a product or a softmax is not finite.
    """
    from attnviz.models.scratch.lessons import work_out

    worked = work_out(matrices, way)
    if not all(np.isfinite(array).all() for array in (worked.pattern, worked.output)):
        raise InputError("the numbers of these matrices are too large", "scale them down")
    return worked
