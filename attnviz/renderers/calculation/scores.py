"""The third step of a head's calculation: scores, mask, softmax, and what the row sums to."""

from collections.abc import Iterator

import numpy as np
from rich.text import Text

from attnviz.records.trace import HeadTrace, OtherRow
from attnviz.renderers.calculation.explained import TOLERANCE, Explained, left_out
from attnviz.renderers.calculation.sheet import FORMULAS, MOST_KEYS

SINK = 1e-3  # a row that sums to less than 1 by this leaves something to a sink


def scores(e: Explained) -> Iterator[Text]:
    """Step 3: how the keys compare with the query, and the weights that come of it."""
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(3, f"Scores, {'mask' if t.masks else 'no mask'}, softmax")
    d_k = t.q.shape[1]
    scaled = _scaling(t.scale, d_k)
    biased = " + bias" if t.bias is not None else ""
    n, m = e.n_queries, e.n_keys
    yield from sheet.formula(
        f"scores = q·kᵀ{scaled}{biased}   ({n}, {d_k})·({d_k}, {m}) = ({n}, {m})",
        f"scoresᵀ = k·qᵀ{scaled}{biased}   ({m}, {d_k})·({d_k}, {n}) = ({m}, {n})",
    )
    yield from sheet.say(_meaning(e))
    yield from sheet.say_columns(f"the row of “{e.query}” below is a column there.")
    hidden = [i for i in range(m) if not np.isfinite(t.scores[t.query, i])]
    shown = sorted([*e.seen, *hidden[:MOST_KEYS]])
    more = [*([] if t.bias is None else ["bias"]), *(["masked"] if t.masks else [])]
    header = ["key", "q·k", scaled.strip() or "unscaled", *more, "softmax"]
    rows = [(e.key_labels[i], _score_row(t, i)) for i in shown]
    yield from sheet.table(header, rows)
    yield from left_out(e)
    if hidden[MOST_KEYS:]:
        yield from sheet.say(f"… and {len(hidden) - MOST_KEYS} more masked keys.")
    yield from _sum(e)
    if e.other:
        yield from _compared(e, e.other)


def _meaning(e: Explained) -> str:
    """What a score says, and what the mask does to it, where there is one."""
    if e.trace.masks:
        return (
            "How well each key matches the query. The mask sets later keys to −∞, which softmax "
            "turns into 0."
        )
    whom = "every token of the text that is read" if e.cross else "every token, before and after"
    return f"How well each key matches the query. There is no mask: a query attends to {whom}."


def _scaling(scale: float, d_k: int) -> str:
    if np.isclose(scale, 1.0):
        return ""
    return f" / √{d_k}" if np.isclose(scale, d_k**-0.5) else f" · {scale:.6g}"


def _score_row(t: HeadTrace, key: int) -> list[float]:
    product, scaled = float(t.products[t.query, key]), float(t.scaled[t.query, key])
    bias = [] if t.bias is None else [float(t.bias[t.query, key])]
    masked = [float(t.scores[t.query, key])] if t.masks else []
    return [product, scaled, *bias, *masked, float(t.pattern[t.query, key])]


def _compared(e: Explained, other: OtherRow) -> Iterator[Text]:
    """The row by another similarity beside the model's own."""
    t, sheet = e.trace, e.sheet
    formula = FORMULAS[other.kind]
    if other.kind == "general":  # what the projections read
        formula = f"{e.queried}·(W_Q·W_Kᵀ)·{e.read}ᵀ"
    yield from sheet.formula(f"the same vectors by {other.kind}: softmax({formula})")
    if other.kind == "general":
        yield from sheet.say("This leaves out the model's biases and scaling, if it has them.")
    own = t.pattern[t.query]
    rows = [
        (e.key_labels[i], [float(other.scores[i]), float(own[i]), float(other.weights[i])])
        for i in e.seen
    ]
    yield from sheet.table(["key", "score", "the model", other.kind], rows)
    away = float(np.abs(own - other.weights).max())
    if away > TOLERANCE:
        yield from sheet.say(
            f"The last column is not what the model computes (largest difference {away:.2g})."
        )
    else:
        yield from sheet.say("The last column equals the model's own row.")


def _sum(e: Explained) -> Iterator[Text]:
    """What the row sums to; where the model does more than the formula, that is said."""
    pattern = e.trace.pattern[e.trace.query].astype(np.float64)
    total = float(pattern.sum())
    yield from e.sheet.say(f"Sum of the row: {e.sheet.number(total)}.")
    if total < 1 - SINK:
        yield from e.sheet.say(
            f"The other {e.sheet.number(1 - total)} goes to a sink: an additional score in this "
            "model's softmax that has no value vector."
        )
    row = e.trace.scores[e.trace.query].astype(np.float64)
    exponentials = np.exp(row - row.max())
    expected = exponentials / exponentials.sum() * total
    away = np.abs(expected - pattern).max()
    if away > TOLERANCE:
        yield from e.sheet.say(
            f"The model's own row differs from this softmax by up to {away:.2g}: it computes more "
            "than the formula above, such as a soft cap."
        )
