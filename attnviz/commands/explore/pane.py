"""Panes of a scene: their base, the heads, the links, the text, and the line that finds a token.

Lines are made when they come into sight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input
from textual.worker import get_current_worker

from attnviz.commands.explore.scene import Scene, Slot, matches_of
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import head_name, layer_name
from attnviz.draw.terminal.cells import bar_style, cell_style, cut, pad, shade_of, widest
from attnviz.draw.terminal.text import lines_of
from attnviz.draw.titles import bar_of, facts
from attnviz.kit.intervene import GaveWay


@dataclass
class Go(Message):
    """The user goes elsewhere, from wherever they are by then: keys may come faster than frames.

    `to` returns the scene itself where there is nowhere to go.
    """

    to: Callable[[Scene], Scene]


def give_way() -> None:
    """Raise GaveWay in a thread of Textual's that was cancelled."""
    if get_current_worker().is_cancelled:
        raise GaveWay


class ScenePane(ScrollView, can_focus=True):
    """Shows one side of a scene, in a border with a title; posts `Go` when the user moves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1, 0)", "Up", show=False),
        Binding("down,j", "move(1, 0)", "Down", show=False),
        Binding("left,h", "move(0, -1)", "Left", show=False),
        Binding("right,l", "move(0, 1)", "Right", show=False),
    ]
    covered = (0, 0, 0, 0)
    """Cells at the top, right, bottom and left that do not scroll, and cover cells that do."""

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
        self.on_resize()

    def on_resize(self) -> None:
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
        self.post_message(Go(partial(self.step, down=down, across=across)))

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:  # None on the border
            x, y = offset + self.scroll_offset
            self.post_message(Go(partial(self.pointed, x=x, y=y)))

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

    def step(self, scene: Scene, down: int, across: int) -> Scene:
        """The scene one step in this direction; at the edge, the scene itself."""
        raise NotImplementedError

    def pointed(self, scene: Scene, x: int, y: int) -> Scene:
        """The scene at a column and a line of the whole content; else the scene itself."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        scene = self.scene if y < self.virtual_size.height else None
        return self.strip(self.line(scene, y) if scene else Text(), self.scroll_offset.x)

    def strip(self, text: Text, x: int = 0) -> Strip:
        """The visible part of a line, from column `x` on."""
        width, style = self.room.width, self.rich_style
        segments = list(text.render(self.app.console, end=""))
        return Strip(segments).crop_extend(x, x + width, style).apply_style(style)


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
        text, row = Text(no_wrap=True), y - 1
        if y == 0:
            return text.append(self._names(scene), Style(dim=True))
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
        written = "" if key is None else self._written(scene.keys[key], weight, room)
        if display.color:
            return pad(written, room), cell_style(weight, display)
        return pad(written or shade_of(weight, unicode=display.unicode), room), Style()

    def _written(self, key: str, weight: float, room: int) -> str:
        """The parts of a link that fit: the key's label and its weight, or one of them."""
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

    def step(self, scene: Scene, down: int, across: int) -> Scene:
        return scene.in_slot(scene.moved(down, across).slot)

    def pointed(self, scene: Scene, x: int, y: int) -> Scene:
        return scene.in_slot(self.slot_at(x, y))

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
    written: str
    key: int | None = None
    query: int | None = None
    weight: float = 0.0


class LinksPane(ScenePane):
    """The keys that the query attends to, strongest first, then the queries that attend to it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "follow", "Go to it", show=False)]

    def lay_out(self, scene: Scene) -> Size:
        queries, keys = scene.queries, scene.keys
        nothing = [_Row("not computed yet" if scene.waits else f"all under {FAINT:.2f}")]
        ahead = [_Row(keys[key], key=key, weight=w) for key, w in scene.looks_at() if w >= FAINT]
        back = [
            _Row(queries[query], query=query, weight=weight)
            for query, weight in scene.looked_at_by()
            if weight >= FAINT
        ]
        between = [_Row(""), _Row(f"“{keys[scene.target]}” is attended to by")]
        self._lines = [*(ahead or nothing), *between, *(back or nothing)]
        self._label = min(
            widest([row.written for row in ahead + back]), max(6, self.room.width // 2)
        )
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
        row, display = self._lines[y], self.display_here
        if row.key is None and row.query is None:
            return Text(fenced(cut(row.written, display.width)), Style(dim=True), no_wrap=True)
        label = pad(fenced(cut(row.written, self._label, unicode=display.unicode)), self._label)
        chosen = row.key is not None and row.key == scene.key
        text = Text(no_wrap=True)
        text.append(label, Style(bold=True, reverse=True) if chosen else Style())
        text.append(f" {row.weight:.2f} ", Style())
        room = display.width - self._label - len(" 0.00 ")
        bar = bar_of(row.weight, room, display.unicode)
        return text.append(bar, bar_style(row.weight, display))

    def step(self, scene: Scene, down: int, across: int) -> Scene:
        """To the next link of the query."""
        at = self._at(scene) + down
        if 0 <= at < len(self._lines) and self._lines[at].key is not None:
            return scene.at(scene.query, self._lines[at].key)
        return scene

    def action_follow(self) -> None:
        """Make the chosen key the query."""
        self.post_message(Go(lambda now: now.at(now.key) if now.capture.one_sequence else now))

    def pointed(self, scene: Scene, x: int, y: int) -> Scene:
        row = self._lines[y] if y < len(self._lines) else _Row("")
        if row.key is not None:
            return scene.at(scene.query, row.key)
        return scene if row.query is None else scene.at(row.query)


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

    def lay_out(self, scene: Scene) -> Size:
        self._lines: list[tuple[Text, Sequence[_Place]]] = []
        same = scene.capture.one_sequence
        if not same:
            self._lay_out_target(scene)
        for line in lines_of(replace(scene.one, queries=(scene.query,)), self.display_here):
            places = []
            for start, piece in line.pieces:
                if piece.keys:
                    end = start + cell_len(piece.written)
                    places.append(_Place(start, end, piece.keys if same else (), piece.keys))
            self._lines += [(shown, places) for shown in line.shown]
        return Size(self.room.width, len(self._lines))

    def _lay_out_target(self, scene: Scene) -> None:
        line, places = Text(no_wrap=True), list[_Place]()
        for query in scene.exhibit.queries:
            label = fenced(cut(scene.capture.query_tokens[query].label, self.room.width))
            if line.cell_len and line.cell_len + cell_len(label) > self.room.width:
                self._lines.append((line, places))
                line, places = Text(no_wrap=True), []
            start = line.cell_len
            chosen = query == scene.query
            line.append(label, Style(bold=chosen, underline=chosen, italic=True)).append(" ")
            places.append(_Place(start, start + cell_len(label), (query,)))
        self._lines.append((line, places))

    def title_of(self, scene: Scene) -> str:
        order = "" if scene.capture.one_sequence else " · written above, read below"
        return facts(scene.capture) + order

    def place_of(self, scene: Scene) -> Region:
        for y, (_, places) in enumerate(self._lines):
            for place in places:
                if scene.query in place.queries:
                    return Region(place.start, y, max(1, place.end - place.start), 1)
        return Region(0, 0, 1, 1)

    def line(self, scene: Scene, y: int) -> Text:
        return self._lines[y][0]

    def step(self, scene: Scene, down: int, across: int) -> Scene:
        queries = scene.exhibit.queries
        if across:
            at = queries.index(scene.query) + across if scene.query in queries else 0
            return scene.at(queries[at]) if 0 <= at < len(queries) else scene
        here = self.place_of(scene)
        y = here.y + down
        while 0 <= y < len(self._lines):
            places = self._lines[y][1]
            others = [each for each in places if each.queries and scene.query not in each.queries]
            # without colour, the numbers below a line belong to it
            if others and places is not self._lines[here.y][1]:
                near = min(others, key=lambda place: abs(place.start - here.x))
                return scene.at(near.queries[-1])
            y += down
        return scene

    def pointed(self, scene: Scene, x: int, y: int) -> Scene:
        places = self._lines[y][1] if y < len(self._lines) else []
        place = next((place for place in places if place.start <= x < place.end), None)
        if place is None:
            return scene
        if place.queries:
            return scene.at(place.queries[-1])
        return scene.at(scene.query, place.keys[-1])


class Find(Input):
    """Asks for a token, and goes to the first match while it is typed."""

    def __init__(self) -> None:
        super().__init__(id="find", placeholder="a token, an index, or /a pattern/")
        self.border_title = Content("find")
        self.display = False
        self._places: tuple[int, ...] = ()
        self._of_keys = False

    def open(self) -> None:
        self.value = ""
        self.border_subtitle = ""
        self.display = True
        self.focus()

    def forget(self) -> None:
        """Forget the matches, because positions have changed."""
        self._places = ()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.border_subtitle = ""
        if event.value.strip():
            self.post_message(Go(partial(self._first, name=event.value)))

    def _first(self, scene: Scene, name: str) -> Scene:
        self._places, self._of_keys = matches_of(scene, name)
        if not self._places:
            self.border_subtitle = Content("not in this text")
            return scene
        self.border_subtitle = Content(f"{len(self._places)} found; n: next")
        return self._at(scene, self._places[0])

    def next(self, scene: Scene) -> Scene:
        """The scene at the next match, after the last at the first; itself where there is none."""
        if not self._places:
            return scene
        here = scene.key if self._of_keys else scene.query
        later = (place for place in self._places if place > here)
        return self._at(scene, next(later, self._places[0]))

    def _at(self, scene: Scene, place: int) -> Scene:
        return scene.at(key=place) if self._of_keys else scene.at(place)
