"""The four panes, and the editor that replaces the text's words."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import ContentSwitcher, TextArea

from attnviz.commands.explore.pane import HeadsPane, LinksPane
from attnviz.commands.explore.pattern import MiniaturesPane, PatternPane, WordsPane
from attnviz.commands.explore.scene import Scene
from attnviz.console import Display


class Panes(Vertical):
    """Shows a scene in all panes.

    The panes are attributes, because a thread may end while an overlay hides them from queries.
    """

    def __init__(self, text: str, display: Display) -> None:
        super().__init__(id="panes")
        self._words, self.editor = WordsPane("words", display), TextArea(text, id="editor")
        self._scene: Scene | None = None
        self._text = ContentSwitcher(self._words, self.editor, initial="words", id="text")
        self._list, self._miniatures = (
            HeadsPane("heads", display),
            MiniaturesPane("miniatures", display),
        )
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
        self._make_room()
        for pane in (self._words, self._heads_shown, self._links, self._pattern):
            pane.show(scene)
        self._pattern.border_subtitle = Content(scene.reading if scene else "")

    @property
    def _heads_shown(self) -> HeadsPane:
        return self._miniatures if self._heads.current == "miniatures" else self._list

    def switch_heads(self) -> None:
        listed = self._heads_shown is self._list
        self._heads.current = "miniatures" if listed else "heads"
        self.show(self._scene)

    def on_resize(self) -> None:
        self._make_room()

    def _make_room(self) -> None:
        scene, miniatures = self._scene, self._miniatures
        on = scene is not None and self._heads_shown is miniatures
        self.set_class(on, "-miniatures")
        width, wider = (self.size.width * share // 100 for share in (45, 62))  # as in app.tcss
        widen = scene is not None and on and miniatures.wants(scene, width, wider)
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
