"""The base of all panes: a border with a title, and lines made when they come into sight."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from attnviz.commands.explore.running import Chosen, Step
from attnviz.commands.explore.scene import Scene, Slot
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import head_name, layer_name
from attnviz.draw.terminal.colors import bar_style, cell_style, cut, pad, shade_of, widest
from attnviz.draw.titles import bar_of

MOVES: list[BindingType] = [
    Binding("up,k", "move(-1, 0)", "Up", show=False),
    Binding("down,j", "move(1, 0)", "Down", show=False),
    Binding("left,h", "move(0, -1)", "Left", show=False),
    Binding("right,l", "move(0, 1)", "Right", show=False),
]
"""The keys that move within a pane, by its `step`."""


class ScenePane(ScrollView, can_focus=True):
    """Shows one side of a scene; posts `Chosen` when the user goes elsewhere."""

    def __init__(self, id: str, display: Display) -> None:
        super().__init__(id=id, classes="pane")
        self._display = display
        self.scene: Scene | None = None

    @property
    def room(self) -> Size:
        """The visible size, without border and scrollbars."""
        return self.scrollable_content_region.size

    @property
    def display_here(self) -> Display:
        """The display, with the width of this pane."""
        return replace(self._display, width=max(1, self.room.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Textual adds a line for a horizontal scrollbar whether there is one or not
        height = super().get_content_height(container, viewport, width)
        return height - self.styles.scrollbar_size_horizontal

    def show(self, scene: Scene | None) -> None:
        self.scene = scene
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        scene = self.scene
        self.border_title = Content(self.title_of(scene) if scene else str(self.id))
        self.virtual_size = self.lay_out(scene) if scene else Size(0, 0)
        if scene:
            self._go_to_place()
            self.call_after_refresh(self._go_to_place)  # once scrollbars have taken their room
        self.refresh()

    def _go_to_place(self) -> None:
        if self.scene:
            region, spacing = self.place_of(self.scene), Spacing(*self.covered)
            # by force: at first no scrollbar is there yet
            self.scroll_to_region(
                region, spacing=spacing, animate=False, immediate=True, force=True
            )

    def action_move(self, down: int, across: int) -> None:
        self.post_message(Step(partial(self.step, down, across)))

    covered = (0, 0, 0, 0)
    """Cells at the top, right, bottom and left that do not scroll, and cover cells that do."""

    def lay_out(self, scene: Scene) -> Size:
        """Prepare this scene for the pane's size; the size of the whole content."""
        raise NotImplementedError

    def title_of(self, scene: Scene) -> str:
        """The title in the border."""
        raise NotImplementedError

    def place_of(self, scene: Scene) -> Region:
        """The region that must be in sight."""
        raise NotImplementedError

    def line(self, scene: Scene, y: int) -> Text:
        """Line `y` of the whole content."""
        raise NotImplementedError

    def step(self, down: int, across: int) -> Chosen | None:
        """The place one step from the scene in this direction; None at the edge."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        if self.scene is None:
            return Strip.blank(self.room.width, self.rich_style)
        return self.strip(self.line(self.scene, y + self.scroll_offset.y), self.scroll_offset.x)

    def strip(self, text: Text, x: int = 0) -> Strip:
        """The visible part of a line, from column `x` on."""
        width, style = self.room.width, self.rich_style
        segments = list(text.render(self.app.console, end=""))
        return Strip(segments).crop_extend(x, x + width, style).apply_style(style)

    def pointed(self, event: Click) -> tuple[int, int] | None:
        """The clicked column and line of the whole content; None on the border."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        return offset.x + self.scroll_offset.x, offset.y + self.scroll_offset.y


# The grid of heads, a row for each layer, with the key that the query attends to most.

NARROWEST, WIDEST = 2, 16
# cells with the weight, with the key's label instead, with both
WITH_NUMBER, WITH_KEY, WITH_BOTH = 3, 6, 11
TELLING = 0.05  # a weaker link has no label


class HeadsPane(ScenePane):
    """A cell for each head: the key that the query attends to most, and the weight.

    The query itself, the first token and special tokens are left out, because they take the
    attention that has nowhere else to go; a dark cell is a head without a clear link here.
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
        slot = self.slot_at(place[0], place[1])
        if slot in self.scene.slots:
            self.post_message(Chosen(slot=slot))

    def slot_at(self, x: int, y: int) -> Slot:
        """The slot at a column and a line of the whole content, which may be none of the grid."""
        return y - 1, (x - self._label) // self._cell


def edge_of(column: int, chosen: int | None) -> str:
    """The mark before a column of heads: `[` and `]` around the chosen one."""
    if chosen is None:
        return " "
    return {chosen: "[", chosen + 1: "]"}.get(column, " ")


# The links of the query: the keys it attends to, and the queries that attend to it.

FAINT = 0.01  # weaker links are left out


@dataclass(frozen=True)
class _Row:
    said: str
    key: int | None = None
    query: int | None = None
    weight: float = 0.0


class LinksPane(ScenePane):
    """The keys that the query attends to, strongest first, then the queries that attend to it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("enter", "follow", "Go to it", show=False),
    ]

    def lay_out(self, scene: Scene) -> Size:
        queries, keys = scene.queries, scene.keys
        looks, looked = _telling(scene.looks_at()), _telling(scene.looked_at_by())
        none = "not computed yet" if scene.waits else "nothing"
        self._lines = [_Row(keys[key], key=key, weight=weight) for key, weight in looks]
        self._lines += [] if looks else [_Row(none)]
        self._lines += [_Row(""), _Row(f"“{keys[scene.target]}” is attended to by")]
        self._lines += [] if looked else [_Row(none)]
        self._lines += [
            _Row(queries[query], query=query, weight=weight) for query, weight in looked
        ]
        named = [row.said for row in self._lines if row.key is not None or row.query is not None]
        self._label = min(widest(named), max(6, self.room.width // 2))
        return Size(self.room.width, len(self._lines))

    def title_of(self, scene: Scene) -> str:
        return f"“{fenced(scene.queries[scene.query])}” attends to"

    def place_of(self, scene: Scene) -> Region:
        return Region(0, self._at(scene), 1, 1)

    def _at(self, scene: Scene) -> int:
        """The line of the chosen key; 0 where its link is too weak to be listed."""
        keys = [row.key for row in self._lines]
        return keys.index(scene.key) if scene.key in keys else 0

    def line(self, scene: Scene, y: int) -> Text:
        if y >= len(self._lines):
            return Text()
        row, display = self._lines[y], self.display_here
        if row.key is None and row.query is None:
            return Text(fenced(cut(row.said, display.width)), Style(dim=True), no_wrap=True)
        label = pad(fenced(cut(row.said, self._label, unicode=display.unicode)), self._label)
        chosen = row.key is not None and row.key == scene.key
        text = Text(no_wrap=True)
        text.append(label, Style(bold=True, reverse=True) if chosen else Style())
        text.append(f" {row.weight:.2f} ", Style())
        room = display.width - self._label - len(" 0.00 ")
        bar = bar_of(row.weight, room, display.unicode)
        return text.append(bar, bar_style(row.weight, display))

    def step(self, down: int, across: int) -> Chosen | None:
        """To the next link of the query."""
        if self.scene is None:
            return None
        at = self._at(self.scene) + down
        if 0 <= at < len(self._lines) and self._lines[at].key is not None:
            return Chosen(query=self.scene.query, key=self._lines[at].key)
        return None

    def action_follow(self) -> None:
        """Make the chosen key the query."""
        self.post_message(Step(self._followed))

    def _followed(self) -> Chosen | None:
        one_text = self.scene is not None and self.scene.capture.one_sequence
        return Chosen(query=self.scene.key) if self.scene and one_text else None

    def on_click(self, event: Click) -> None:
        place = self.pointed(event)
        if self.scene is None or place is None or place[1] >= len(self._lines):
            return
        row = self._lines[place[1]]
        if row.key is not None:
            self.post_message(Chosen(query=self.scene.query, key=row.key))
        elif row.query is not None:
            self.post_message(Chosen(query=row.query))


def _telling(links: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return [link for link in links if link[1] >= FAINT]
