"""The copying and composition of a model's heads, from its weights and no text.

model ─► one token's run, held fixed ─► each head's weights ─► copying, composition
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, isnan
from typing import TYPE_CHECKING, Literal

import numpy as np
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import DIVERGING, SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write_line
from attnviz.draw.picture.paint import EMPTY, draw_bar
from attnviz.draw.terminal.cells import Column, folded, footnotes, listing
from attnviz.errors import ModelError, UsageError, readable
from attnviz.kit.result import Form
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.metrics import descending
from attnviz.records.parts import Circuits, Through
from attnviz.records.rows import Field, Fields, at, measured, model_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attnviz.models.loaded import LoadedModel


def circuits_of(model: "LoadedModel") -> Circuits:
    """The heads that copy the tokens that they attend to, and those that read each other.

    Where positions turn queries and keys, only the composition through values is measured.

    Raises:
        UsageError: the model has no one residual stream.
        ModelError: this architecture cannot be taken apart, or has nothing of it.
    """
    from attnviz.models.frozen.qk_ov import compositions, copying, weights_of

    if model.reads != "text":
        raise UsageError(
            f"{model.identity.name} reads no text, so no head could copy a token",
            "use a model that reads text",
        )
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


# Circuits as rows.


@dataclass(frozen=True)
class CircuitRow:
    """A head that copies, or a pair that composes: its reader, and what chance would give."""

    model: str
    circuit: Literal["copying", "query", "key", "value"]
    head: Head
    reader: Head | None
    score: float
    expected: float = 0.0
    top: float | None = None
    tokens: int | None = None


def _rows(circuits: Circuits, top: int | None, line: int | None) -> Iterator[CircuitRow]:
    name = circuits.model.name
    for one in circuits.copying[:top]:
        yield CircuitRow(
            name, "copying", one.head, None, one.eigenvalues, top=one.top, tokens=one.tokens
        )
    for pair in circuits.compositions[:top]:
        chance = circuits.expected[pair.through]
        yield CircuitRow(name, pair.through, pair.writer, pair.reader, pair.score, chance)


CIRCUIT_ROW = Fields[CircuitRow](
    "CircuitRow",
    "A head that may copy, or a pair of heads that may compose.",
    (
        model_name(at("model")),
        Field(
            "circuit",
            Literal["copying", "query", "key", "value"],
            "Copying, or the path by which the reader reads the writer.",
        ),
        Field("layer", int, "The layer of the head; of a pair, of the writer.", at("head.layer")),
        Field("head", int, "The head's number in it.", at("head.head")),
        Field("reader_layer", int | None, "The layer of a pair's reader.", at("reader.layer")),
        Field("reader_head", int | None, "The reader's number in it.", at("reader.head")),
        Field(
            "score",
            float | None,
            "Copying: the sum of the eigenvalues over the sum of their sizes, from -1 to 1; else "
            "the composition score. Null where a circuit is 0.",
            lambda row: measured(row.score),
        ),
        Field("expected", float, "The mean score of random matrices of these shapes."),
        Field(
            "top",
            float | None,
            "Copying: the share of tokens that raise themselves most.",
            lambda row: measured(row.top),
        ),
        Field("tokens", int | None, "Copying: the number of tokens that were tried."),
    ),
)


# Circuits that were read off the weights, as a person reads them.


def _title(circuits: Circuits) -> str:
    """The subject: the weights of which model."""
    return f"{readable(circuits.model.name)}, circuits from the weights alone"


def _render(circuits: Circuits, display: Display, top: int) -> Iterator[Text]:
    """Render the heads that copy most, and the pairs that compose most."""
    yield from folded(Text(_title(circuits), "dim"), display.width)
    conventions = ["the weights of the norms are part of each circuit"]
    if circuits.copying:
        yield Text()
        tokens = circuits.copying[0].tokens
        title = (
            f"copying: does a head raise the token that it attends to? (top-1 of {tokens:,} tokens)"
        )
        yield from folded(Text(title, "bold"), display.width)
        columns = [Column("head"), Column("eigenvalues", right=True), Column("top-1", right=True)]
        heads = [
            (str(each.head), _number(each.eigenvalues, "+.2f"), _number(each.top, ".2f"))
            for each in circuits.copying[:top]
        ]
        yield from listing(columns, heads, display.width)
        conventions.insert(0, "eigenvalues: their sum over the sum of their sizes, from -1 to 1")
    if circuits.composed:
        yield Text()
        title = "composition: which head reads what another one writes?"
        yield from folded(Text(title, "bold"), display.width)
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
        if "query" not in circuits.composed:
            rotary = "positions turn queries and keys here (rotary), so only values are compared"
            conventions.append(rotary)
    yield from footnotes(["; ".join(conventions)], display.width)


def _number(value: float, form: str) -> str:
    return "–" if isnan(value) else format(value, form)


# Circuits as a picture: copying by head, and a matrix of writers and readers for each way.


SIDE, GAP = 2.4, 1.35  # inches
APART, BAR = 0.08, 0.12
LABELS = 24  # heads along a side that are named at most


def _draw(circuits: Circuits, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """Draw the panes side by side: copying first, then compositions over the level of chance."""
    title = _title(circuits)
    shown = {way: scores / circuits.expected[way] for way, scores in circuits.composed.items()}
    high = max((float(np.nan_to_num(each).max()) for each in shown.values()), default=0.0) or 1.0
    title += "; 1 × chance: random matrices; grey: not before the reader" if shown else ""
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        left = 0.0
        if circuits.copying:
            values = by_head((each.head, each.eigenvalues) for each in circuits.copying)
            axes = _pane(figure, left, values, DIVERGING, -1, 1)
            axes.set_title("copying: Σλ / Σ|λ|, λ: eigenvalues", fontsize=9, loc="left")
            layers, heads = map(range, values.shape)
            axes.set_xticks(heads, [f"H{i}" for i in heads], fontsize=7)
            axes.set_yticks(layers, [f"L{i}" for i in layers], fontsize=7)
            left += SIDE + GAP
        for through, values in shown.items():
            axes = _pane(figure, left, values, cmap, 0, high)
            axes.set_title(f"read through the {through}, × chance", fontsize=9, loc="left")
            at = range(0, len(circuits.heads), max(1, ceil(len(circuits.heads) / LABELS)))
            names = [str(circuits.heads[i]) for i in at]
            axes.set_xticks(at, names, fontsize=6, rotation=90)
            axes.set_yticks(at, names, fontsize=6)
            axes.set_xlabel("reader", fontsize=8)
            axes.set_ylabel("writer", fontsize=8)
            left += SIDE + GAP
        write_line(figure, SIDE + 0.45, fonts.spell(title))
    return Drawn(figure, fonts.notes)


def _pane(
    figure: "Figure", left: float, values: FloatArray, cmap: str, low: float, high: float
) -> "Axes":
    """A matrix from `low` to `high`, with its bar beside it."""
    axes = place(figure, left, 0, SIDE, SIDE)
    axes.set_facecolor(EMPTY)
    shown = axes.imshow(values, cmap=cmap, vmin=low, vmax=high, aspect="auto")
    draw_bar(place(figure, left + SIDE + APART, 0, BAR, SIDE), shown)
    return axes


OF_CIRCUITS = Form[Circuits](
    "heads",
    CIRCUIT_ROW,
    _rows,
    lambda circuits: f"{circuits.model.name}, circuits",
    terminal=_render,
    picture=_draw,
    top=10,
)
