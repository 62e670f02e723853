"""Of each row of an answer's attention the shares of the prompt's segments, which sum to 1.

The sink is a column of its own: the first token, which models use for attention that must go
somewhere (Xiao et al. 2024, arXiv 2309.17453), and what a learned sink takes. So are the answer
and special tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.data.shares import Column, Part, Row, Shares
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Choice
from attnviz.records.prompt import Segment, segment_of
from attnviz.records.tokens import Token
from attnviz.records.transforms import How


def shares_of(
    capture: Capture,
    weights: FloatArray,
    rows: Sequence[Row],
    choice: Choice,
    how: How,
    columns: tuple[Column, ...] | None = None,
) -> Shares:
    """The shares of an answer's rows.

    Args:
        capture: of an answer, or of the attention from an answer to its source.
        weights: (n_queries, n_keys), those of a head or the mean over several.
        rows: the parts of the answer.
        choice: the heads.
        how: how their rows were joined.
        columns: those of the capture, where they are known.
    """
    columns = columns or columns_of(capture)
    of_rows = [_share(weights[row.first : row.after], columns, capture) for row in rows]
    shares = np.array(of_rows, np.float32)
    return Shares(capture, choice, how, columns, tuple(rows), shares, weights)


def _share(weights: FloatArray, columns: Sequence[Column], capture: Capture) -> list[float]:
    """The mean over some tokens (tokens, n_keys) of the weight on each column."""
    mean = weights.mean(axis=0, dtype=np.float64)  # (n_keys,)
    shares = [float(mean[column.keys].sum()) for column in columns]
    if capture.sinks and columns[0].part == "sink":
        shares[0] += max(0.0, 1 - float(mean.sum()))
    return shares


def shares_of_heads(capture: Capture, choice: Choice, how: How) -> Shares:
    """The shares of the whole answer in each head of its capture, and each head's lookback ratio.

    The lookback ratio is the mean weight on a key of the prompt, as a share of that mean and the
    mean weight on a key of the answer so far; the mean over the new tokens but the first, which
    sees nothing of the answer. Chuang et al. 2024, "Lookback Lens", arXiv 2407.07071, section 2.
    """
    rows = [Row(str(head), 0, len(capture.query_tokens), head) for head in capture.heads]
    of_heads = [
        shares_of(capture, capture.weights(head), [row], choice, how)
        for head, row in zip(capture.heads, rows, strict=True)
    ]
    ratios = np.array([_lookback(capture, capture.weights(h)) for h in capture.heads], np.float32)
    joined = np.concatenate([each.shares for each in of_heads])
    return replace(of_heads[0], rows=tuple(rows), shares=joined, lookback=ratios)


def _lookback(capture: Capture, weights: FloatArray) -> float:
    if capture.kind == "cross" or len(weights) < 2:
        return float("nan")
    n = len(capture.key_tokens) + 1 - len(weights)
    ratios = []
    for new, row in enumerate(weights[1:], start=1):
        prompt, answer = row[:n].mean(dtype=np.float64), row[n : n + new].mean(dtype=np.float64)
        if prompt + answer > 0:  # a learned sink may take all of a row
            ratios.append(prompt / (prompt + answer))
    return float(np.mean(ratios)) if ratios else float("nan")


def columns_of(capture: Capture) -> tuple[Column, ...]:
    """The sink, the segments in order, special tokens, the answer; of these, what there is.

    Every key belongs to one column.
    """
    crossed, n = capture.kind == "cross", len(capture.key_tokens)
    prompt = n if crossed else n + 1 - len(capture.query_tokens)
    tokens, text = capture.key_tokens[:prompt], capture.text
    columns = columns_of_prompt(
        tokens, capture.segments, text, crossed=crossed, sinks=capture.sinks
    )
    return columns if crossed else (*columns, column_of_answer(prompt, n))


def column_of_answer(first: int, after: int) -> Column:
    """The column of an answer, whose keys stand behind those of its prompt."""
    return Column("answer", "answer", np.arange(first, after))


def columns_of_prompt(
    tokens: Sequence[Token],
    segments: Sequence[Segment],
    text: str,
    *,
    crossed: bool,
    sinks: bool,
) -> tuple[Column, ...]:
    """The columns without the answer's, or those of segments that were cut off.

    Args:
        tokens: of the prompt.
        segments: of its text.
        text: the prompt, or what begins with it.
        crossed: the answer attends to its source; its first token is no sink.
        sinks: the model has a learned sink.
    """
    first = 0 if crossed else 1
    keys: dict[int | None, list[int]] = {}
    for key, segment in enumerate(segment_of(tokens[first:], segments, text), start=first):
        keys.setdefault(segment, []).append(key)
    named: list[tuple[str, Part, Sequence[int], int | None]] = [
        (s.name, "segment", keys[i], i) for i, s in enumerate(segments) if i in keys
    ]
    if sinks or first:
        named.insert(0, ("sink", "sink", range(first), None))
    if None in keys:
        named.append(("special", "special", keys[None], None))
    return tuple(
        Column(name, part, np.fromiter(own, np.int64), segment)
        for name, part, own, segment in named
    )
