"""Sentences about a contrast, and about the parts that it adds up to."""

from collections.abc import Sequence

import numpy as np

from attnviz.draw.effects import part_name
from attnviz.draw.titles import amount, beginning
from attnviz.errors import readable
from attnviz.records.parts import Removal, Side, Why, Write

ACCOUNTING = (
    "an accounting with norms and attention held fixed: it says what adds up to the score, not "
    "what would happen without it"
)


def about_why(why: Why, names: Sequence[str]) -> str:
    """The question, the model, and the size of the text."""
    size = amount(len(why.tokens), "token")
    return f"{asked_why(why, names)} · {readable(why.model.name)}, {size}"


def asked_why(why: Why, names: Sequence[str]) -> str:
    """`L3H2: why “creature” attends to “blue” (0.50) rather than to “fluffy” (0.31)`."""
    row = why.row
    query, key = in_marks(names[why.query]), in_marks(names[why.key])
    said = f"why {query} attends to {key} ({row.weights[why.key]:.2f})"
    if why.versus is None:
        rather = "more than its row expects" if why.full > 0 else "less than its row expects"
    else:
        rather = f"rather than to {in_marks(names[why.versus])} ({row.weights[why.versus]:.2f})"
    return f"{why.head}: {said} {rather}"


def in_marks(name: str) -> str:
    """A token's name within a sentence; one that has quotes needs no others."""
    return name if name[:1] in "\"'" else f"“{name}”"


def identity(why: Why, names: Sequence[str]) -> str:
    """The contrast as an equation, and its check against the weights."""
    row, key = why.row, why.key
    beside = f" {why.added:+.3f} ({_beside(why)})" if abs(why.added) >= 5e-4 else ""
    if why.versus is None:
        expected = float(row.scores[key]) - why.full
        log = float(np.log(row.weights[key]))
        return (
            f"score {row.scores[key]:.3f} - {expected:.3f}, the mean of the row's scores by its "
            f"weights = {why.contrast:+.3f}{beside}; ln A + H = {log:.3f} + {row.entropy:.3f} = "
            f"{log + row.entropy:+.3f}"
        )
    other = why.versus
    ratio = float(np.log(row.weights[key] / row.weights[other]))
    return (
        f"scores {row.scores[key]:.3f} - {row.scores[other]:.3f} = {why.contrast:+.3f}{beside}; "
        f"ln of the weights' ratio = {ratio:+.3f}"
    )


def _beside(why: Why) -> str:
    row = why.row
    found = {
        "position bias": row.added.any(),
        "soft cap": (np.abs(row.scores - row.added - row.raw) > 1e-6).any(),
        "sink": row.sink is not None,
    }
    return ", ".join(name for name, there in found.items() if there)


def side_title(why: Why, side: Side, names: Sequence[str]) -> str:
    """The title of a column of parts."""
    if side == "query":
        return f"what the query asks with: the parts at {names[why.query]}"
    keys = names[why.key] if why.versus is None else f"{names[why.key]} and {names[why.versus]}"
    return f"what the keys answer with: the parts at {keys}" + (
        ", and at the other keys" if why.versus is None else ""
    )


KEPT = (
    "taken away from what this head reads on that side alone: the other side, and what earlier "
    "parts made of it, stay as they were"
)
"""The parts of a run that a removal leaves as they were."""


def removed(why: Why, removal: Removal, names: Sequence[str]) -> str:
    """The effect of the removal of a part."""
    side = "query" if removal.side == "query" else "keys"
    said = (
        f"without {part_name(removal.part, names)} at the {side}: {removal.predicted:+.3f} by the "
        f"sum, {removal.fixed:+.3f} computed with norms held fixed"
    )
    if removal.free is None or removal.weight is None:
        return f"{said}; no norm stands before this head's attention that could be recomputed"
    return (
        f"{said}, {removal.free:+.3f} with norms recomputed (weight "
        f"{why.row.weights[why.key]:.2f} to {removal.weight:.2f})"
    )


def about_write(write: Write, names: Sequence[str]) -> str:
    """`L3H1 at was: what it writes · builtin, 9 tokens`."""
    size = amount(len(write.tokens), "token")
    where = f"{write.head}: what it writes at {names[write.query]}"
    return f"{where} · {readable(write.model.name)}, {size}: “{beginning(write.text)}”"
