"""Of each row of an answer's attention the shares of the prompt's segments, which sum to 1.

The sink is a column of its own: the first token, which models use for attention that must go
somewhere (Xiao et al. 2024, arXiv 2309.17453), and what a learned sink takes. So are the answer
and special tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.data.blocks import FloatArray
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


def shares_of_heads(capture: Capture, choice: Choice, how: How) -> Shares:
    """The shares of the whole answer in each head of its capture, and each head's lookback ratio.

    The lookback ratio is the mean weight on a key of the prompt, as a share of that mean and the
    mean weight on a key of the answer so far; the mean over the new tokens but the first, which
    sees nothing of the answer. Chuang et al. 2024, "Lookback Lens", arXiv 2407.07071, section 2.
    """
    rows = [Row(str(head), 0, len(capture.query_tokens)) for head in capture.heads]
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
        ratios.append(prompt / (prompt + answer))
    return float(np.mean(ratios))


def columns_of(capture: Capture) -> tuple[Column, ...]:
    """The sink, the segments in order, special tokens, the answer; of these, what there is.

    Every key belongs to one column.
    """
    crossed, n = capture.kind == "cross", len(capture.key_tokens)
    prompt = n if crossed else n + 1 - len(capture.query_tokens)
    first = 0 if crossed else 1
    of = segment_of(capture.key_tokens[first:prompt], capture.segments, capture.text)
    keys: dict[int | None, list[int]] = {}
    for key, segment in enumerate(of, start=first):
        keys.setdefault(segment, []).append(key)
    segments: list[tuple[str, Part, Sequence[int], int | None]] = [
        (s.name, "segment", keys.get(i, []), i) for i, s in enumerate(capture.segments)
    ]
    found: list[tuple[str, Part, Sequence[int], int | None]] = [
        ("sink", "sink", range(first), None),
        *segments,
        ("special", "special", keys.get(None, []), None),
        ("answer", "answer", range(prompt, n), None),
    ]
    always = {"segment"} | ({"sink"} if capture.sinks or first else set())
    always |= set() if crossed else {"answer"}
    return tuple(
        Column(name, part, np.fromiter(own, np.int64), segment)
        for name, part, own, segment in found
        if len(own) or part in always
    )
