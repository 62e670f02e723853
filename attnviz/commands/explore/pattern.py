"""The chosen head's pattern: a row for each query, a column for each key."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import get_current_worker

from attnviz.commands.explore.pane import MOVES, HeadsPane, ScenePane, edge_of
from attnviz.commands.explore.running import Chosen, GaveWay, check
from attnviz.commands.explore.scene import Scene, Slot
from attnviz.console import Display
from attnviz.draw.headlines import map_titles
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import block_maximum, cells_of, head_name, layer_name, strongest
from attnviz.draw.terminal.around import fullest
from attnviz.draw.terminal.colors import cut, folded, pad, widest
from attnviz.draw.terminal.grid import append_points, points_a_line
from attnviz.draw.terminal.heatmap import NUMBER_CELLS, TALLEST_LABEL, cell_of, column_labels
from attnviz.draw.terminal.text import lines_of
from attnviz.draw.titles import facts
from attnviz.records.apply import Between, each, go_on
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit

BORDER = 6  # cells beside a title in it
SHORTEST = 3  # letters of a label that stands upright
NARROW = 2  # cells of a column where numbers do not fit


class PatternPane(ScenePane):
    """A heatmap whose labels stay in sight; the chosen weight is reversed, or `[]` where cells
    are too narrow for numbers.

    Only the cells in sight are drawn, so that a long text is as fast as a short one.
    """

    BINDINGS: ClassVar[list[BindingType]] = MOVES

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

    def step(self, down: int, across: int) -> Chosen | None:
        if self.scene is None:
            return None
        row, column = self._place(self.scene)
        return self._chosen(row + down, column + across)

    def on_click(self, event: Click) -> None:
        place = self.pointed(event)
        if place is None or self.scene is None or place[1] - self.scroll_offset.y < self._top:
            return
        row, column = place[1] - self._top, (place[0] - self._label) // self._cell
        if place[0] - self.scroll_offset.x >= self._label:
            chosen = self._chosen(row, column)
            if chosen:
                self.post_message(chosen)
        elif 0 <= row < len(self._rows):  # a label
            self.post_message(Chosen(query=self.scene.exhibit.queries[row]))

    def _chosen(self, row: int, column: int) -> Chosen | None:
        if self.scene and 0 <= row < len(self._rows) and 0 <= column < len(self._columns):
            exhibit = self.scene.exhibit
            return Chosen(query=exhibit.queries[row], key=exhibit.keys[column])
        return None


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

    @dataclass
    class PatternsReduced(Message):
        """A thread has reduced the patterns."""

        made: Miniatures

    _made = Miniatures()
    _lacking: list[Text] = []  # noqa: RUF012  # replaced, never changed

    def lay_out(self, scene: Scene) -> Size:
        layers, heads = scene.grid.layers, scene.grid.heads
        self._label = _label_of(scene)
        self._lacking = []
        if not _widest(scene, self.room.width):
            needed = self._label + (_least(scene) + 1) * len(heads) + 1  # with the edges
            said = (
                f"{len(heads)} miniatures side by side need {needed} columns, and this pane has "
                f"{self.room.width}: widen the terminal, or press g for the list"
            )
            self._lacking = folded(Text(said, Style(dim=True)), self.display_here.width)
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
            self.post_message(self.PatternsReduced(made))

        self.run_worker(reduce, thread=True, group="miniatures", exclusive=True)

    def on_miniatures_pane_patterns_reduced(self, event: PatternsReduced) -> None:
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


# The text, with words shaded by the weight that the query gives them.


@dataclass(frozen=True)
class _Place:
    """The cells of a token on a line; tokens that share a letter share one place."""

    start: int
    end: int
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()


class WordsPane(ScenePane):
    """The text as running words, with the query underlined. For an encoder-decoder, the target
    stands above the source."""

    BINDINGS: ClassVar[list[BindingType]] = MOVES

    def lay_out(self, scene: Scene) -> Size:
        self._lines: list[Text] = []
        self._places: list[list[_Place]] = []
        same = scene.capture.one_sequence
        if not same:
            self._lay_out_target(scene)
        for line in lines_of(replace(scene.one, queries=(scene.query,)), self.display_here):
            places = []
            for start, piece in line.pieces:
                if piece.keys:
                    end = start + cell_len(piece.written)
                    places.append(_Place(start, end, piece.keys if same else (), piece.keys))
            for shown in line.shown:
                self._lines.append(shown)
                self._places.append(places)
        return Size(self.room.width, len(self._lines))

    def _lay_out_target(self, scene: Scene) -> None:
        line, places = Text(no_wrap=True), list[_Place]()
        for query in scene.exhibit.queries:
            label = fenced(cut(scene.capture.query_tokens[query].label, self.room.width))
            if line.cell_len and line.cell_len + cell_len(label) > self.room.width:
                self._lines.append(line)
                self._places.append(places)
                line, places = Text(no_wrap=True), []
            start = line.cell_len
            chosen = query == scene.query
            line.append(label, Style(bold=chosen, underline=chosen, italic=True)).append(" ")
            places.append(_Place(start, start + cell_len(label), (query,)))
        self._lines.append(line)
        self._places.append(places)

    def title_of(self, scene: Scene) -> str:
        order = "" if scene.capture.one_sequence else " · written above, read below"
        return facts(scene.capture) + order

    def place_of(self, scene: Scene) -> Region:
        for y, places in enumerate(self._places):
            for place in places:
                if scene.query in place.queries:
                    return Region(place.start, y, max(1, place.end - place.start), 1)
        return Region(0, 0, 1, 1)

    def line(self, scene: Scene, y: int) -> Text:
        return self._lines[y] if y < len(self._lines) else Text()

    def step(self, down: int, across: int) -> Chosen | None:
        if self.scene is None:
            return None
        if across:
            queries = self.scene.exhibit.queries
            at = queries.index(self.scene.query) + across if self.scene.query in queries else 0
            return Chosen(query=queries[at]) if 0 <= at < len(queries) else None
        here = self.place_of(self.scene)
        y = here.y + down
        while 0 <= y < len(self._places):
            there = [place for place in self._places[y] if place.queries]
            others = [place for place in there if self.scene.query not in place.queries]
            # without colour, the numbers below a line belong to it
            if others and self._places[y] is not self._places[here.y]:
                near = min(others, key=lambda place: abs(place.start - here.x))
                return Chosen(query=near.queries[-1])
            y += down
        return None

    def on_click(self, event: Click) -> None:
        clicked = self.pointed(event)
        if clicked is None or self.scene is None or clicked[1] >= len(self._places):
            return
        for place in self._places[clicked[1]]:
            if place.start <= clicked[0] < place.end:
                if place.queries:
                    self.post_message(Chosen(query=place.queries[-1]))
                else:
                    self.post_message(Chosen(query=self.scene.query, key=place.keys[-1]))
