"""The text, with words shaded by the weight that the query gives them."""

from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size

from attnviz.draw.labels import fenced
from attnviz.draw.terminal.colors import cut
from attnviz.draw.terminal.text import lines_of
from attnviz.draw.titles import facts
from attnviz.tui.messages import Chosen
from attnviz.tui.pane import MOVES, ScenePane
from attnviz.tui.scene import Scene


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
        """The target, a word for each query, folded to the width."""
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
        """To the next token, or to the one above or below."""
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
