"""The heads as miniatures: a small heatmap for each, all on one scale."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from attnviz.console import Display
from attnviz.draw.matrix import block_maximum, cells_of, head_name, layer_name, strongest
from attnviz.draw.terminal.colors import folded, pad, widest
from attnviz.draw.terminal.grid import append_points, points_a_line
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit
from attnviz.records.patterns import Between, each, go_on
from attnviz.tui.heads import HeadsPane, edge_of
from attnviz.tui.runs import GaveWay, check
from attnviz.tui.scene import Scene, Slot

LARGEST, READABLE, SMALLEST = 16, 10, 4  # cells across; readable ones may scroll
TALLEST = 0.75  # of the height beside the pattern, as in app.tcss
AT_ONCE = 200_000  # weights; more of them are reduced in a thread


@dataclass(frozen=True, eq=False)
class Miniatures:
    """An exhibit's maps reduced to at most `side` cells across.

    `points` (points a line * lines, cells across) are shares of the strongest weight of all heads,
    NaN where there is nothing to show.
    """

    exhibit: Exhibit | None = None
    side: int = 0
    points: Mapping[Slot, FloatArray] = field(default_factory=dict)


class MiniaturesPane(HeadsPane):
    """A miniature for each head, where they have room; else the room that they need."""

    @dataclass
    class Reduced(Message):
        """A thread has reduced the patterns."""

        made: Miniatures

    _made = Miniatures()
    _lacking: list[Text] = []  # noqa: RUF012  # replaced, never changed

    def lay_out(self, scene: Scene) -> Size:
        layers, heads = scene.grid.layers, scene.grid.heads
        self._label = _label_of(scene)
        self._lacking = [] if _widest(scene, self.room.width) else self._said_of_room(scene)
        if self._lacking:
            return Size(self.room.width, len(self._lacking))
        side = self._side(scene)
        rows, columns = shape_of(_shape(scene), side)
        self._cell, self._high = max(columns, _least(scene)) + 1, ceil(rows / 2)
        self._reduce(scene, side)
        width = self._label + self._cell * len(heads) + 1
        return Size(width, (self._high + 1) * len(layers))

    def wants(self, scene: Scene, width: int, wider: int) -> bool:
        """Whether a pane of the other width shows more of the patterns."""

        def points(pane: int) -> int:
            side = min(_readable(scene), _widest(scene, pane - self.gutter.width))
            return shape_of(_shape(scene), side)[1] if side else 0

        return points(wider) > points(width)

    def _side(self, scene: Scene) -> int:
        """Cells across: as many as fit; the height counts as long as they stay readable."""
        around = self.query_ancestor("#left", Widget).size.height
        high = 2 * (int(around * TALLEST - 2) // max(1, len(scene.grid.layers)) - 1)
        return min(LARGEST, _widest(scene, self.room.width), max(high, _readable(scene)))

    def _said_of_room(self, scene: Scene) -> list[Text]:
        heads = len(scene.grid.heads)
        needed = self._label + (_least(scene) + 1) * heads + 1  # with the edges
        said = (
            f"{heads} miniatures side by side need {needed} columns, and this pane has "
            f"{self.room.width}: widen the terminal, or press g for the list"
        )
        return folded(Text(said, Style(dim=True)), self.display_here.width)

    def _reduce(self, scene: Scene, side: int) -> None:
        """Have the patterns reduced: before the next frame, if they are small."""
        exhibit, display = scene.exhibit, self._display
        if self._made.exhibit is exhibit and self._made.side == side:
            return
        self._made = Miniatures(exhibit, side)
        if sum(slot.weights.size for slot in scene.slots.values()) <= AT_ONCE:
            self._made = miniatures_of(scene, side, display)
            return
        if len(scene.computed) < len(scene.slots):
            return  # the run needs the processor more

        def reduce() -> None:
            worker = get_current_worker()
            try:
                made = miniatures_of(
                    scene, side, display, lambda: check(lambda: worker.is_cancelled)
                )
            except GaveWay:
                return
            self.post_message(self.Reduced(made))

        self.run_worker(reduce, thread=True, group="miniatures", exclusive=True)

    def on_miniatures_pane_reduced(self, event: Reduced) -> None:
        if (event.made.exhibit, event.made.side) == (self._made.exhibit, self._made.side):
            self._made = event.made
            self.refresh()

    def title_of(self, scene: Scene) -> str:
        return "heads: their patterns, on one scale"

    def place_of(self, scene: Scene) -> Region:
        if self._lacking:
            return Region(0, 0, 1, 1)
        row, column = scene.slot
        place = Region(self._label + self._cell * column, 0, self._cell + 1, self._high + 1)
        return place.translate((0, (self._high + 1) * row))

    def line(self, scene: Scene, y: int) -> Text:
        if self._lacking:
            return self._lacking[y] if y < len(self._lacking) else Text()
        row, inner = divmod(y, self._high + 1)
        if row >= len(scene.grid.layers):
            return Text()
        chosen = scene.slot[1] if scene.slot[0] == row else None
        style = Style(bold=chosen is not None, dim=chosen is None)
        text = Text(no_wrap=True)
        layer = layer_name(scene.grid.layers[row])
        text.append(pad("" if inner else layer, self._label), style)
        for column, head in enumerate(scene.grid.heads):
            text.append(edge_of(column, chosen) if inner else " ", Style(bold=True))
            if inner:
                self._append_points(text, scene, (row, column), inner - 1)
            else:
                style = Style(bold=column == chosen, dim=column != chosen)
                text.append(pad(head_name(head), self._cell - 1), style)
        last = edge_of(len(scene.grid.heads), chosen) if inner else ""
        return text.append(last, Style(bold=True))

    def _append_points(self, text: Text, scene: Scene, slot: Slot, line: int) -> None:
        points, step = self._made.points.get(slot), points_a_line(self._display)
        if points is None or slot not in scene.computed:
            there = slot in scene.slots and line == 0
            text.append(pad("…" if there else "", self._cell - 1), Style(dim=True))
            return
        append_points(text, points[line * step : (line + 1) * step], self._display)
        text.append(" " * (self._cell - 1 - points.shape[1]))

    def slot_at(self, x: int, y: int) -> Slot:
        return y // (self._high + 1), (x - self._label) // self._cell


def _widest(scene: Scene, width: int) -> int:
    """The widest miniature where all heads share this width; 0 where the least has no room."""
    side = (width - _label_of(scene) - 1) // max(1, len(scene.grid.heads)) - 1
    return side if side >= _least(scene) else 0


def _readable(scene: Scene) -> int:
    """A point for each weight, if there are few."""
    most = max(_shape(scene))
    return most if most <= LARGEST else READABLE


def _shape(scene: Scene) -> tuple[int, int]:
    return max(1, len(scene.exhibit.queries)), max(1, len(scene.exhibit.keys))


def _least(scene: Scene) -> int:
    """The narrowest miniature, under the head's name."""
    names = widest([head_name(head) for head in scene.grid.heads])
    return max(min(SMALLEST, *_shape(scene)), names)


def _label_of(scene: Scene) -> int:
    return widest([layer_name(layer) for layer in scene.grid.layers])


def shape_of(shape: tuple[int, int], side: int) -> tuple[int, int]:
    """Into how many points, two a line, (queries, keys) are reduced; few of them get several."""
    rows, columns = (ceil(n / ceil(n / side)) for n in shape)
    repeats = max(1, side // max(rows, columns))
    return rows * repeats, columns * repeats


def miniatures_of(
    scene: Scene, side: int, display: Display, between: Between = go_on
) -> Miniatures:
    """All heads of a scene in at most `side` cells across; `between` is called between heads."""
    exhibit = scene.exhibit
    small = {
        slot: cells_of(exhibit, head_map, side, by_row=exhibit.by_row).values
        for slot, head_map in each(scene.slots.items(), between)
    }
    most, points = strongest(list(small.values())), {}
    for slot, cells in small.items():
        repeats = max(1, side // max(cells.shape))
        large = np.kron(cells / most, np.ones((repeats, repeats), np.float32))
        high = ceil(large.shape[0] / 2) * points_a_line(display)
        points[slot] = block_maximum(large, high, large.shape[1])
    return Miniatures(exhibit, side, points)
