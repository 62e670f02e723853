"""The chosen head's pattern: a row for each query, a column for each key."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.strip import Strip

from attnviz.draw.headlines import map_titles
from attnviz.draw.labels import fenced
from attnviz.draw.terminal.around import fullest
from attnviz.draw.terminal.colors import cut, pad, widest
from attnviz.draw.terminal.heatmap import NUMBER_CELLS, TALLEST_LABEL, cell_of, column_labels
from attnviz.tui.messages import Chosen
from attnviz.tui.pane import MOVES, ScenePane
from attnviz.tui.scene import Scene

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
        """The row and column of the chosen weight."""
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
        """The lines of these columns' labels; their number is the same for all columns."""
        labels, indices = self._columns[first:last], range(first, last)
        if widest(self._columns) < self._cell:
            return column_labels(labels, indices, self._cell, self.display_here)
        if not self._tallest:
            return []
        lines = column_labels(labels, indices, self._cell, self.display_here, self._tallest)
        return [""] * (self._tallest - len(lines)) + lines

    def step(self, down: int, across: int) -> Chosen | None:
        """To the next query, or to the next key."""
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
