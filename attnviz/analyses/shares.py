"""Of each row of an answer's attention the shares of the prompt's segments, which sum to 1.

The sink is a column of its own: the first token, which models use for attention that must go
somewhere (Xiao et al. 2024, arXiv 2309.17453), and what a learned sink takes. So are the answer
and special tokens.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from attnviz.data.blocks import FloatArray, IntArray
from attnviz.data.capture import Capture
from attnviz.data.exhibit import Choice
from attnviz.data.segments import segment_of
from attnviz.data.shares import Column, Part, Row, Shares
from attnviz.data.transforms import How


def shares_of(
    capture: Capture, weights: FloatArray, rows: Sequence[Row], choice: Choice, how: How
) -> Shares:
    """The shares of an answer's rows.

    Args:
        capture: of an answer, or of the attention from an answer to its source.
        weights: (n_queries, n_keys), those of a head or the mean over several.
        rows: the parts of the answer.
        choice: the heads.
        how: how their rows were joined.
    """
    columns = columns_of(capture)
    shares = np.stack([weights[:, column.keys].sum(axis=1) for column in columns], axis=1)
    if columns[0].part == "sink":
        shares[:, 0] += np.maximum(0, 1 - weights.sum(axis=1)) if capture.sinks else 0
    means = [shares[row.first : row.after].mean(axis=0) for row in rows]
    of_rows = np.array(means, np.float32)
    return Shares(capture, choice, how, columns, tuple(rows), of_rows, weights)


def columns_of(capture: Capture) -> tuple[Column, ...]:
    """The sink, the segments in order, special tokens, the answer; of these, what there is.

    Every key belongs to one column.
    """
    crossed, n = capture.kind == "cross", len(capture.key_tokens)
    prompt = n if crossed else n + 1 - len(capture.query_tokens)
    first = 0 if crossed else 1
    of = segment_of(capture.key_tokens[first:prompt], capture.segments, capture.text)
    found = [
        Column("sink", "sink", _positions(range(first))),
        *(_column(s.name, "segment", of, i, first) for i, s in enumerate(capture.segments)),
        _column("special", "special", of, None, first),
        Column("answer", "answer", _positions(range(prompt, n))),
    ]
    sink = capture.sinks or first > 0
    return tuple(
        c
        for c in found
        if c.keys.size
        or c.part == "segment"
        or (c.part == "sink" and sink)
        or (c.part == "answer" and not crossed)
    )


def _column(
    name: str, part: Part, of: Sequence[int | None], segment: int | None, first: int
) -> Column:
    return Column(name, part, _positions(first + i for i, s in enumerate(of) if s == segment))


def _positions(keys: Iterable[int]) -> IntArray:
    return np.fromiter(keys, np.int64)
