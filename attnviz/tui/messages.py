"""The messages to the app: where the user goes, and the results of threads."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.records.capture import Capture
from attnviz.tui.scene import Scene, Slot, Toggles


@dataclass
class Chosen(Message):
    """The user went elsewhere; a part that is None stays, or follows from the others."""

    slot: Slot | None = None
    query: int | None = None
    key: int | None = None


@dataclass
class Step(Message):
    """A key that moves, from wherever the user is by then: keys may come faster than frames."""

    take: Callable[[], Chosen | None]


@dataclass
class Growing(Message):
    """A run goes on: what there is of its patterns, and how many layers of how many they are."""

    text: str
    scene: Scene
    layers: int
    of: int


@dataclass
class Captured(Message):
    """A run has ended."""

    text: str
    capture: Capture


@dataclass
class Failed(Message):
    """A text cannot be run."""

    text: str
    why: str


@dataclass
class Presented(Message):
    """Patterns have been transformed and can be shown; `capture` holds them as they were.

    `chosen`: the scene is at the head that tells most about the text.
    """

    capture: Capture
    scene: Scene
    toggles: Toggles
    chosen: bool


@dataclass
class Refused(Message):
    """A transform is impossible; `instead` are the toggles before it."""

    why: str
    instead: Toggles


@dataclass
class AblationDone(Message):
    """The model was run without a head."""

    effect: BeforeAfter


@dataclass
class Said(Message):
    """A sentence for the user; `wrong` where something did not work."""

    text: str
    wrong: bool = False
