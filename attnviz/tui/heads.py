"""The grid of heads, a row for each layer, with the key that the query attends to most."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size

from attnviz.draw.labels import fenced
from attnviz.draw.matrix import head_name, layer_name
from attnviz.draw.terminal.colors import cell_style, cut, pad, shade_of, widest
from attnviz.tui.messages import Chosen
from attnviz.tui.pane import MOVES, ScenePane
from attnviz.tui.scene import Scene, Slot

NARROWEST, WIDEST = 2, 16
# cells with the weight, with the key's label instead, with both
WITH_NUMBER, WITH_KEY, WITH_BOTH = 3, 6, 11
TELLING = 0.05  # a weaker link has no label


class HeadsPane(ScenePane):
    """A cell for each head: the key that the query attends to most, and the weight.

    The query itself, the first token and special tokens are left out, because they take the
    attention that has nowhere else to go: a dark cell is a head that tells nothing here.
    """

    BINDINGS: ClassVar[list[BindingType]] = MOVES

    def lay_out(self, scene: Scene) -> Size:
        grid = scene.grid
        self._label = widest([layer_name(layer) for layer in grid.layers])
        room = (self.room.width - self._label - 1) // max(1, len(grid.heads))
        self._cell = min(WIDEST, max(NARROWEST, room))
        self._peaks = scene.peaks()
        return Size(self._label + self._cell * len(grid.heads) + 1, len(grid.layers) + 1)

    def title_of(self, scene: Scene) -> str:
        return f"heads: top keys of “{fenced(scene.queries[scene.query])}”"

    def place_of(self, scene: Scene) -> Region:
        row, column = scene.slot
        region = Region(self._label + self._cell * column, row + 1, self._cell + 1, 1)
        # the first line names the heads, the first column the layers
        return region.union(Region(0, 0, 1, 1)) if row < self.room.height - 1 else region

    def line(self, scene: Scene, y: int) -> Text:
        text = Text(no_wrap=True)
        if y == 0:
            return text.append(self._names(scene), Style(dim=True))
        row = y - 1
        if row >= len(scene.grid.layers):
            return text
        chosen = scene.slot[1] if scene.slot[0] == row else None
        style = Style(bold=chosen is not None, dim=chosen is None)
        text.append(pad(layer_name(scene.grid.layers[row]), self._label), style)
        for column in range(len(scene.grid.heads)):
            text.append(edge_of(column, chosen), Style(bold=True))
            text.append(*self._content(scene, (row, column)))
        return text.append(edge_of(len(scene.grid.heads), chosen), Style(bold=True))

    def _names(self, scene: Scene) -> str:
        room = self._cell - 1
        names = [head_name(head) for head in scene.grid.heads]
        if widest(names) > room:
            names = ["" if head is None else str(head)[-room:] for head in scene.grid.heads]
        return " " * self._label + "".join(f" {pad(name, room)}" for name in names)

    def _content(self, scene: Scene, slot: Slot) -> tuple[str, Style]:
        room, display = self._cell - 1, self.display_here
        if slot not in scene.computed:
            return pad("…" if slot in scene.slots else "", room), Style(dim=True)
        key, weight = self._peaks.get(slot, (None, 0.0))
        said = self._said("" if key is None else scene.keys[key], weight, room)
        if display.color:
            return pad(said, room), cell_style(weight, display)
        return pad(said or shade_of(weight, unicode=display.unicode), room), Style()

    def _said(self, key: str, weight: float, room: int) -> str:
        """As much as fits: the key's label and its weight, the label, or the weight."""
        if not key or room < WITH_NUMBER:
            return ""
        number = f"{weight:.2f}".removeprefix("0")
        if room < WITH_KEY:
            return pad("1.0" if weight >= 0.995 else number, room, right=True)
        if weight < TELLING:
            return ""
        number = number.rjust(4) if room >= WITH_BOTH else ""
        longest = room - len(number) - bool(number)
        label = pad(fenced(cut(key, longest)), longest)
        return f"{label} {number}".rstrip()

    def step(self, down: int, across: int) -> Chosen | None:
        """To the next head."""
        return Chosen(slot=self.scene.moved(down, across).slot) if self.scene else None

    def on_click(self, event: Click) -> None:
        place = self.pointed(event)
        if self.scene is None or place is None:
            return
        slot = self.slot_at(*place)
        if slot in self.scene.slots:
            self.post_message(Chosen(slot=slot))

    def slot_at(self, x: int, y: int) -> Slot:
        """The slot at a column and a line of the whole content, which may be none of the grid."""
        return y - 1, (x - self._label) // self._cell


def edge_of(column: int, chosen: int | None) -> str:
    """What stands before a column of heads: `[` and `]` around the chosen one."""
    if chosen is None:
        return " "
    return {chosen: "[", chosen + 1: "]"}.get(column, " ")
