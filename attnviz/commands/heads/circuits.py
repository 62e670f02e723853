"""What the weights of a model say of its heads.

model ─► one token's run, held fixed ─► each head's weights ─► copying, composition
"""

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import DIVERGING, SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import draw_bar, sheet, write_line
from attnviz.draw.picture.paint import EMPTY
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.errors import ModelError, readable
from attnviz.records.capture import FloatArray
from attnviz.records.metrics import descending
from attnviz.records.parts import Circuits, Through

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attnviz.models.loaded import LoadedModel


def circuits_of(model: "LoadedModel") -> Circuits:
    """Which heads copy what they attend to, and which read each other.

    Where positions turn queries and keys, only the composition through values is told.

    Raises:
        UsageError: the model has no one residual stream.
        ModelError: this architecture cannot be taken apart, or has nothing of it.
    """
    from attnviz.models.frozen.circuits import compositions, copying, weights_of

    run = model.freeze([model.tokenizer.ordinary_ids()[0]])
    heads = weights_of(run)
    ways: tuple[Through, ...] = ("value",) if run.rotary else ("query", "key", "value")
    composed, expected = dict[Through, FloatArray](), dict[Through, float]()
    if len({head.layer for head in heads}) > 1:
        for through in ways:
            composed[through], expected[through] = compositions(heads, through)
    copied = sorted(copying(run, heads), key=lambda each: descending(each.eigenvalues))
    if not copied and not composed:
        raise ModelError(
            f"{model.identity.name} has one layer and no output layer, so no circuits",
            "use another model",
        )
    return Circuits(model.identity, tuple(heads), copied, composed, expected)


# Circuits that were read off the weights, as a person reads them.


def circuits_title(circuits: Circuits) -> str:
    """What was read off the weights of which model."""
    return f"{readable(circuits.model.name)}, circuits from the weights alone"


def render(circuits: Circuits, display: Display, top: int) -> Iterator[Text]:
    """The heads that copy most, and the pairs that compose most."""
    yield from folded(Text(circuits_title(circuits), "dim"), display.width)
    if circuits.copying:
        yield Text()
        tokens = circuits.copying[0].tokens
        said = (
            f"copying: does a head raise the token that it attends to? (top-1 of {tokens:,} tokens)"
        )
        yield from folded(Text(said, "bold"), display.width)
        columns = [Column("head"), Column("eigenvalues", right=True), Column("top-1", right=True)]
        rows = [
            (str(each.head), _number(each.eigenvalues, "+.2f"), _number(each.top, ".2f"))
            for each in circuits.copying[:top]
        ]
        yield from listing(columns, rows, display.width)
    if circuits.composed:
        yield Text()
        said = "composition: which head reads what another one writes?"
        yield from folded(Text(said, "bold"), display.width)
        pairs = [
            (
                *map(str, (each.writer, each.reader, each.through)),
                _number(each.score, ".3f"),
                f"{circuits.expected[each.through]:.3f}",
            )
            for each in circuits.compositions[:top]
        ]
        columns = [Column(name) for name in ("writer", "reader", "through its")]
        columns += [Column(name, right=True) for name in ("score", "by chance")]
        yield from listing(columns, pairs, display.width)
    yield Text()
    yield from folded(Text(_conventions(circuits), "dim"), display.width)


def _number(value: float, form: str) -> str:
    return "–" if isnan(value) else format(value, form)


def _conventions(circuits: Circuits) -> str:
    """What the numbers above are, as far as their names do not say it."""
    said = ["the weights of the norms are part of each circuit"]
    if circuits.copying:
        said.insert(0, "eigenvalues: their sum over the sum of their sizes, from -1 to 1")
    if circuits.composed and "query" not in circuits.composed:
        said.append("positions turn queries and keys here (rotary), so only values are compared")
    return "; ".join(said)


# Circuits as a picture: copying by head, and a matrix of writers and readers for each way.


SIDE, GAP = 2.4, 1.35  # inches
APART, BAR = 0.08, 0.12
LABELS = 24  # heads along a side that are named at most


def draw(circuits: Circuits, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The panes side by side: copying first, then the compositions over what chance would give."""
    title = circuits_title(circuits)
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        left = 0.0
        if circuits.copying:
            _draw_copying(*_pane(figure, left), circuits)
            left += SIDE + GAP
        for through, scores in circuits.composed.items():
            axes, bar = _pane(figure, left)
            _draw_composition(axes, bar, circuits, scores / circuits.expected[through], cmap)
            axes.set_title(f"read through the {through}, × chance", fontsize=9, loc="left")
            left += SIDE + GAP
        write_line(figure, SIDE + 0.45, fonts.spell(title))
    return Drawn(figure, fonts.notes)


def _pane(figure: "Figure", left: float) -> "tuple[Axes, Axes]":
    beside = place(figure, left + SIDE + APART, 0, BAR, SIDE)
    return place(figure, left, 0, SIDE, SIDE), beside


def _draw_copying(axes: "Axes", bar: "Axes", circuits: Circuits) -> None:
    values = by_head((each.head, each.eigenvalues) for each in circuits.copying)
    axes.set_facecolor(EMPTY)
    shown = axes.imshow(values, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    draw_bar(bar, shown)
    axes.set_title("copying: Σλ / Σ|λ|", fontsize=9, loc="left")
    axes.set_xticks(range(values.shape[1]), [f"H{i}" for i in range(values.shape[1])], fontsize=7)
    axes.set_yticks(range(values.shape[0]), [f"L{i}" for i in range(values.shape[0])], fontsize=7)


def _draw_composition(
    axes: "Axes", bar: "Axes", circuits: Circuits, scores: FloatArray, cmap: str
) -> None:
    axes.set_facecolor(EMPTY)
    shown = axes.imshow(
        scores, cmap=cmap, vmin=0, vmax=float(np.nan_to_num(scores).max()) or 1.0, aspect="auto"
    )
    draw_bar(bar, shown)
    every = max(1, len(circuits.heads) // LABELS + (len(circuits.heads) % LABELS > 0))
    at = range(0, len(circuits.heads), every)
    names = [str(circuits.heads[i]) for i in at]
    axes.set_xticks(list(at), names, fontsize=6, rotation=90)
    axes.set_yticks(list(at), names, fontsize=6)
    axes.set_xlabel("reader", fontsize=8)
    axes.set_ylabel("writer", fontsize=8)
