"""The line that asks for a token, and goes to it while it is typed."""

from textual.content import Content
from textual.widgets import Input

from attnviz.tui.messages import Chosen
from attnviz.tui.scene import Scene


class Find(Input):
    """Finds a token of a scene, and the next one; `Chosen` tells where to go."""

    def __init__(self) -> None:
        super().__init__(id="find", placeholder="a token, an index, or /a pattern/")
        self.border_title = Content("find")
        self._scene: Scene | None = None
        self._places: tuple[int, ...] = ()
        self._of_keys = False

    def open(self, scene: Scene) -> None:
        """Ask for a token of this scene."""
        self._scene = scene
        self.value = ""
        self.border_subtitle = ""
        self.add_class("open")
        self.focus()

    def close(self) -> None:
        self.remove_class("open")

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def forget(self) -> None:
        """Positions have changed: what was found is there no more."""
        self._places = ()

    def next_after(self, scene: Scene) -> None:
        """Go to the next match, and from the last to the first."""
        here = scene.key if self._of_keys else scene.query
        if self._places:
            self._go_to(next((place for place in self._places if place > here), self._places[0]))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Go to the first match."""
        event.stop()
        if self._scene is None or not event.value.strip():
            self.border_subtitle = ""
            return
        self._places, self._of_keys = self._scene.find(event.value)
        if not self._places:
            self.border_subtitle = Content("not in this text")
            return
        self.border_subtitle = Content(f"{len(self._places)} found; n: the next")
        self._go_to(self._places[0])

    def _go_to(self, place: int) -> None:
        self.post_message(Chosen(key=place) if self._of_keys else Chosen(query=place))
