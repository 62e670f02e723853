"""The chosen head's pattern, all heads as miniatures, and the places of the panes on the screen."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import ContentSwitcher, TextArea

from attnviz.commands.explore.pane import (
    HeadsPane,
    LinksPane,
    ScenePane,
    WordsPane,
    edge_of,
    give_way,
)
from attnviz.commands.explore.scene import Scene, Slot
from attnviz.console import Display
from attnviz.draw.headlines import map_titles
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import block_maximum, cells_of, head_name, layer_name, strongest
from attnviz.draw.terminal.around import fullest
from attnviz.draw.terminal.cells import cut, folded, pad, widest
from attnviz.draw.terminal.grid import append_points, points_a_line
from attnviz.draw.terminal.heatmap import NUMBER_CELLS, TALLEST_LABEL, cell_of, column_labels
from attnviz.kit.intervene import GaveWay
from attnviz.records.apply import Between, each, go_on
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit

# The pattern: a row for each query, a column for each key.

BORDER = 6  # cells beside a title in it
SHORTEST = 3  # letters of a label that stands upright
NARROW = 2  # cells of a column where numbers do not fit


class PatternPane(ScenePane):
    """A heatmap whose labels stay in sight; the chosen weight is reversed, or `[]` where cells
    are too narrow for numbers.

    Only the cells in sight are drawn, so that a long text is as fast as a short one.
    """

    def lay_out(self, scene: Scene) -> Size:
        exhibit = scene.exhibit
        self._rows = [scene.queries[query] for query in exhibit.queries]
        self._columns = [scene.keys[key] for key in exhibit.keys]
        whole, columns = widest(self._rows) + 1, NARROW * len(self._columns)
        fits = whole + columns <= self.room.width
        self._label = whole if fits else min(whole, max(6, self.room.width // 5) + 1)
        room = self.room.width - self._label
        fitting = (cell for cell in NUMBER_CELLS if cell * len(self._columns) <= room)
        self._cell = next(fitting, NARROW)
        height = self.room.height
        tallest = min(TALLEST_LABEL, max(height // 3, height - len(self._rows)))
        # the chosen key's name stands in the border, too
        self._tallest = min(tallest, widest(self._columns)) if tallest >= SHORTEST else 0
        self._top = len(self._header(0, len(self._columns)))
        self.covered = (self._top, 0, 0, self._label)
        width = self._label + self._cell * len(self._columns)
        return Size(width, self._top + len(self._rows))

    def title_of(self, scene: Scene) -> str:
        room = self.outer_size.width - BORDER
        return fullest(map_titles(scene.exhibit, scene.map), room)

    def place_of(self, scene: Scene) -> Region:
        row, column = self._place(scene)
        return Region(self._label + column * self._cell, self._top + row, self._cell, 1)

    def _place(self, scene: Scene) -> tuple[int, int]:
        exhibit = scene.exhibit
        row = exhibit.queries.index(scene.query) if scene.query in exhibit.queries else 0
        return row, exhibit.keys.index(scene.key) if scene.key in exhibit.keys else 0

    def render_line(self, y: int) -> Strip:
        """A visible line: the label at its edge, and the cells scrolled into sight."""
        scene = self.scene
        if scene is None:
            return super().render_line(y)
        x = self.scroll_offset.x
        first, last = x // self._cell, (x + self.room.width) // self._cell + 1
        label, cells = self._line(scene, y, first, min(last, len(self._columns)))
        shown = self.strip(cells, x - first * self._cell).crop(0, self.room.width - self._label)
        return Strip.join([self.strip(label).crop(0, self._label), shown])

    def _line(self, scene: Scene, y: int, first: int, last: int) -> tuple[Text, Text]:
        """The label and the cells from one column to another."""
        chosen_row, chosen_column = self._place(scene)
        cells = Text(no_wrap=True)
        if y < self._top:
            cells.append(self._header(first, last)[y])
            here = (chosen_column - first) * self._cell
            if first <= chosen_column < last:
                cells.stylize(Style(bold=True, reverse=True), here, here + self._cell - 1)
            return Text(" " * self._label), cells
        row = y - self._top + self.scroll_offset.y
        if row >= len(self._rows):
            return Text(), cells
        room = self._label - 1
        name = pad(fenced(cut(self._rows[row], room)), room, right=True)
        label = Text(name, Style(bold=True, reverse=True) if row == chosen_row else Style())
        display = self.display_here
        weights = scene.pattern[row, first:last].tolist()
        for column, weight in enumerate(weights, start=first):
            content, style = cell_of(weight / scene.strongest, weight, self._cell, display)
            if (row, column) == (chosen_row, chosen_column):
                content = content if self._cell > NARROW else "[]"
                style = (style or Style()) + Style(bold=True, reverse=self._cell > NARROW)
            cells.append(content, style)
        return label.append(" "), cells

    def _header(self, first: int, last: int) -> list[str]:
        labels, indices = self._columns[first:last], range(first, last)
        if widest(self._columns) < self._cell:
            return column_labels(labels, indices, self._cell, self.display_here)
        if not self._tallest:
            return []
        lines = column_labels(labels, indices, self._cell, self.display_here, self._tallest)
        return [""] * (self._tallest - len(lines)) + lines

    def step(self, scene: Scene, down: int, across: int) -> Scene:
        row, column = self._place(scene)
        return self._at(scene, row + down, column + across)

    def pointed(self, scene: Scene, x: int, y: int) -> Scene:
        row, column = y - self._top, (x - self._label) // self._cell
        if y - self.scroll_offset.y < self._top:
            return scene
        if x - self.scroll_offset.x >= self._label:
            return self._at(scene, row, column)
        return scene.at(scene.exhibit.queries[row]) if row < len(self._rows) else scene

    def _at(self, scene: Scene, row: int, column: int) -> Scene:
        if 0 <= row < len(self._rows) and 0 <= column < len(self._columns):
            return scene.at(scene.exhibit.queries[row], scene.exhibit.keys[column])
        return scene


# The heads as miniatures: a small heatmap for each, all on one scale.

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

    _reduced = Miniatures()
    _lacking: list[Text] = []  # noqa: RUF012  # replaced, never changed

    def lay_out(self, scene: Scene) -> Size:
        layers, heads = scene.grid.layers, scene.grid.heads
        self._label = _label_of(scene)
        self._lacking = []
        if not _widest(scene, self.room.width):
            needed = self._label + (_least(scene) + 1) * len(heads) + 1  # with the edges
            lacking = (
                f"{len(heads)} miniatures side by side need {needed} columns, and this pane has "
                f"{self.room.width}: widen the terminal, or press g for the list"
            )
            self._lacking = folded(Text(lacking, Style(dim=True)), self.display_here.width)
            return Size(self.room.width, len(self._lacking))
        around = self.query_ancestor("#left", Widget).size.height
        high = 2 * (int(around * TALLEST - 2) // max(1, len(layers)) - 1)
        # as many cells as fit; the height counts as long as they stay readable
        side = min(LARGEST, _widest(scene, self.room.width), max(high, _readable(scene)))
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

    def _reduce(self, scene: Scene, side: int) -> None:
        """Have the patterns reduced: before the next frame, if they are small."""
        exhibit, display = scene.exhibit, self._display
        if self._reduced.exhibit is exhibit and self._reduced.side == side:
            return
        self._reduced = Miniatures(exhibit, side)
        if sum(slot.weights.size for slot in scene.slots.values()) <= AT_ONCE:
            self._reduced = miniatures_of(scene, side, display)
            return
        if len(scene.computed) < len(scene.slots):
            return  # the run needs the processor more

        def reduce() -> None:
            with suppress(GaveWay):
                reduced = miniatures_of(scene, side, display, give_way)
                self.call_later(self._take, reduced)

        self.run_worker(reduce, thread=True, group="miniatures", exclusive=True)

    def _take(self, reduced: Miniatures) -> None:
        if (reduced.exhibit, reduced.side) == (self._reduced.exhibit, self._reduced.side):
            self._reduced = reduced
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
            return self._lacking[y]
        row, inner = divmod(y, self._high + 1)
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
        points, step = self._reduced.points.get(slot), points_a_line(self._display)
        if points is None or slot not in scene.computed:
            there = slot in scene.slots and line == 0
            text.append(pad("…" if there else "", self._cell - 1), Style(dim=True))
            return
        append_points(text, points[line * step : (line + 1) * step], self._display)
        text.append(" " * (self._cell - 1 - points.shape[1]))

    def slot_at(self, x: int, y: int) -> Slot:
        if self._lacking:
            return -1, -1
        return y // (self._high + 1), (x - self._label) // self._cell


def _widest(scene: Scene, width: int) -> int:
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
    """The points, two a line, that (queries, keys) are reduced to; few tokens get several each."""
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


# All panes, and the editor that replaces the words of the text.


class Panes(Vertical):
    """Shows a scene in all panes.

    The panes are attributes, because a thread may end while an overlay hides them from queries.
    """

    def __init__(self, text: str, display: Display) -> None:
        super().__init__(id="panes")
        self._words, self.editor = WordsPane("words", display), TextArea(text, id="editor")
        self._scene: Scene | None = None
        self._text = ContentSwitcher(self._words, self.editor, initial="words", id="text")
        self._list = HeadsPane("heads", display)
        self._miniatures = MiniaturesPane("miniatures", display)
        self._heads = ContentSwitcher(self._list, self._miniatures, initial="heads", id="switcher")
        self._links = LinksPane("links", display)
        self._pattern = PatternPane("pattern", display)

    def compose(self) -> ComposeResult:
        yield self._text
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield self._heads
                yield self._links
            yield self._pattern

    def on_mount(self) -> None:
        self.editor.border_title = Content("text")
        self._list.focus()

    def show(self, scene: Scene | None) -> None:
        self._scene = scene
        self.on_resize()
        heads = self._miniatures if self._grid else self._list
        for pane in (self._words, heads, self._links, self._pattern):
            pane.show(scene)
        self._pattern.border_subtitle = Content(scene.reading if scene else "")

    @property
    def _grid(self) -> bool:
        return self._heads.current == "miniatures"

    def switch_heads(self) -> None:
        self._heads.current = "heads" if self._grid else "miniatures"
        self.show(self._scene)

    def on_resize(self) -> None:
        """Give the heads the room that they need."""
        scene = self._scene if self._grid else None
        self.set_class(scene is not None, "-miniatures")
        width, wider = (self.size.width * share // 100 for share in (45, 62))  # as in app.tcss
        widen = scene is not None and self._miniatures.wants(scene, width, wider)
        self.set_class(widen, "-wider")

    @property
    def editing(self) -> bool:
        return self._text.current == "editor"

    def edit(self) -> None:
        self._text.current = "editor"
        self.editor.focus()
        self.editor.move_cursor(self.editor.document.end)

    def read(self) -> None:
        self._text.current = "words"
        self._words.focus()

    def focus_text(self) -> None:
        (self.editor if self.editing else self._words).focus()

    def say(self, text: str) -> None:
        for widget in (self._words, self.editor):
            widget.border_subtitle = Content(text)
