"""The links of the query: the keys it attends to, and the queries that attend to it."""

from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size

from attnviz.draw.labels import fenced
from attnviz.draw.terminal.colors import bar_style, cut, pad, widest
from attnviz.draw.titles import bar_of
from attnviz.tui.messages import Chosen, Step
from attnviz.tui.pane import MOVES, ScenePane
from attnviz.tui.scene import Scene

FAINT = 0.01  # weaker links are left out


@dataclass(frozen=True)
class _Row:
    """A line: one end of a link with its weight, or a heading without a token."""

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
