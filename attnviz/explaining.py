"""A calculation written out: of one head over a text, of token embeddings, of an example.

text ─► capture ─► one head, one query ─► run again, every step recorded ─► trace
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.positions import last_word, one_position
from attnviz.data.trace import EmbeddingTrace, HeadTrace, OtherRow
from attnviz.data.worked import Initialisation, Matrices, Similarity, Way, Worked
from attnviz.errors import InputError, UsageError
from attnviz.inputs.examples import CHARACTERS, HEADS, WIDTH, Example, three_inputs
from attnviz.pipeline import (
    HeadOptions,
    TextOptions,
    capture,
    encode,
    fit,
    heads_to_record,
    pick_heads,
)

if TYPE_CHECKING:
    from attnviz.models.embeddings import EmbeddingModel
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Subject:
    """What to explain: `head` and `query` as on the command line (None: what `show` would pick,
    and the last word), and another similarity to compare with the model's own."""

    head: str | None = None
    query: str | None = None
    similarity: Similarity | None = None


@dataclass(frozen=True)
class Traced:
    """A head's calculation, why just this head where nobody chose it, what the text lost to
    fit, and the row by another similarity."""

    trace: HeadTrace
    about: str
    left_out: tuple[int, int] = (0, 0)
    other: OtherRow | None = None


def explain(model: "LoadedModel", text: str, subject: Subject, options: TextOptions) -> Traced:
    """Run a text and record all that one head computes for one query.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: more than one head or position, or one that is not there.
    """
    from attnviz.models.similarity import other_row

    chosen = HeadOptions(heads=subject.head)
    captured = capture(model, text, heads_to_record(model, chosen), options)
    picked = pick_heads(captured, chosen)
    if len(picked.capture.heads) != 1:
        raise UsageError(
            f"--head {subject.head} names {len(picked.capture.heads)} heads",
            "one is explained: --head L1H2",
        )
    tokens = captured.query_tokens
    position = last_word(tokens)
    if subject.query is not None:
        position = one_position(tokens, subject.query, "--query")
    trace = model.trace(text, tokens, picked.capture.heads[0], position)
    other = other_row(trace, subject.similarity) if subject.similarity else None
    about = f"{picked.title} ({picked.why})" if picked.why else picked.title
    return Traced(trace, about, captured.left_out, other)


def explain_embeddings(
    model: "EmbeddingModel", text: str, query: str | None, options: TextOptions
) -> tuple[EmbeddingTrace, tuple[int, int]]:
    """Compare the token embeddings of a text with each other; and what the text lost to fit.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: a query that is not in the text.
    """
    fitted = fit(encode(model.tokenizer, text, options), model.tokenizer.context, options.truncate)
    position = last_word(fitted.tokens)
    if query is not None:
        position = one_position(fitted.tokens, query, "--query")
    return model.compare(text, fitted.tokens, position), fitted.left_out


@dataclass(frozen=True)
class Drawing:
    """How the random numbers of an example are drawn."""

    init: Initialisation = "normal"
    seed: int = 0


def work_example(name: Example, way: Way, drawing: Drawing) -> Worked:
    """One of the worked examples; no model is loaded."""
    from attnviz.models.worked import random_matrices, work_out

    if name == "three-inputs":
        return work_out(three_inputs(), way)
    given = random_matrices(CHARACTERS, WIDTH, HEADS, drawing.init, drawing.seed)
    return work_out(given, way)


def work_matrices(given: Matrices, way: Way) -> Worked:
    """A user's own matrices, worked out.

    Raises:
        InputError: they are so large that a product or a softmax is not finite.
    """
    from attnviz.models.worked import work_out

    worked = work_out(given, way)
    if not all(np.isfinite(array).all() for array in (worked.pattern, worked.output)):
        raise InputError("the numbers of these matrices are too large", "scale them down")
    return worked
