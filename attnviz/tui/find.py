"""The line that asks for a token, and goes to it while it is typed."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Input

from attnviz.errors import UsageError
from attnviz.records.positions import find_positions
from attnviz.records.tokens import Token
from attnviz.tui.messages import Chosen
from attnviz.tui.scene import Scene


class Find(Input):
    """Finds a token of a scene, and the next one; posts `Chosen` to go there."""

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
        """Forget the matches, because positions have changed."""
        self._places = ()

    def next_after(self, scene: Scene) -> Chosen | None:
        """The next match, and after the last the first; None where there is none."""
        here = scene.key if self._of_keys else scene.query
        if not self._places:
            return None
        return self._at(next((place for place in self._places if place > here), self._places[0]))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Go to the first match."""
        event.stop()
        if self._scene is None or not event.value.strip():
            self.border_subtitle = ""
            return
        self._places, self._of_keys = matches_of(self._scene, event.value)
        if not self._places:
            self.border_subtitle = Content("not in this text")
            return
        self.border_subtitle = Content(f"{len(self._places)} found; n: next")
        self.post_message(self._at(self._places[0]))

    def _at(self, place: int) -> Chosen:
        return Chosen(key=place) if self._of_keys else Chosen(query=place)


def matches_of(scene: Scene, name: str) -> tuple[tuple[int, ...], bool]:
    """The positions that a name matches, and whether they are keys.

    Names are those of `find_positions`; where no token is called so, the tokens match in which
    the name occurs. Tokens that are left out of the scene do not match.
    """
    sides = [(scene.capture.query_tokens, scene.exhibit.queries)]
    sides += [] if scene.capture.one_sequence else [(scene.capture.key_tokens, scene.exhibit.keys)]
    for matching in (_named, _containing):
        for of_keys, (tokens, shown) in enumerate(sides):
            matches = tuple(place for place in matching(tokens, name) if place in set(shown))
            if matches:
                return matches, bool(of_keys)
    return (), False


def _named(tokens: Sequence[Token], name: str) -> tuple[int, ...]:
    try:
        return find_positions(tokens, (name,), "query")
    except UsageError:
        return ()


def _containing(tokens: Sequence[Token], name: str) -> tuple[int, ...]:
    folded = name.strip().casefold()
    return tuple(token.index for token in tokens if folded in token.label.casefold())
