"""What the app is told: where the user goes, and what comes of a thread."""

from dataclasses import dataclass

from textual.message import Message

from attnviz.data.ablate import BeforeAfter
from attnviz.data.capture import Capture
from attnviz.tui.scene import Scene, Slot, Toggles


@dataclass
class Chosen(Message):
    """The user went elsewhere; what is None stays, or follows."""

    slot: Slot | None = None
    query: int | None = None
    key: int | None = None


@dataclass
class Captured(Message):
    """A run has come to its end."""

    text: str
    capture: Capture


@dataclass
class Failed(Message):
    """A text cannot be run."""

    text: str
    why: str


@dataclass
class Presented(Message):
    """Patterns have been transformed, and can be looked at."""

    capture: Capture
    """What they were before."""
    scene: Scene
    toggles: Toggles


@dataclass
class Ablated(Message):
    """The model was run without a head."""

    found: BeforeAfter


@dataclass
class Refused(Message):
    """A transform cannot be."""

    why: str


@dataclass
class Said(Message):
    """Something to tell the user; `wrong` where it did not work."""

    what: str
    wrong: bool = False
