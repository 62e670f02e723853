"""Saving the chosen head as a picture, or all heads as a page."""

from pathlib import Path
from threading import Lock

from attnviz.commands.show.page import Start, page_of
from attnviz.commands.show.run import pieces_of
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.transforms import Unit
from attnviz.tui.scene import Scene, Toggles

_ONE_AT_A_TIME = Lock()
"""A free name is free only until the next file is written."""


def save_picture(scene: Scene, folder: Path) -> Path:
    """Draw the chosen head into a file with a free name.

    Raises:
        OutputError: the file cannot be written.
        UsageError: nothing is left to draw.
    """
    with _ONE_AT_A_TIME:
        pieces = pieces_of(scene.one, "png")
        path = _free_name(folder, f"attnviz-{scene.map.label.replace(' ', '-')}", ".png")
        write_bytes(path, encoded(pieces))
    return path


def save_page(captured: Capture, scene: Scene, toggles: Toggles, folder: Path) -> Path:
    """Write the page of all heads, which opens with the chosen head; it shows no rollout.

    Raises:
        OutputError: the file cannot be written.
    """
    unit: Unit | None = "words" if toggles.words else None
    start = Start(scene.head or captured.heads[0], toggles.sink, unit, scene.query)
    everything = whole_exhibit(captured)
    with _ONE_AT_A_TIME:
        path = _free_name(folder, "attnviz", ".html")
        write_bytes(path, encoded(page_of(everything, start)))
    return path


def _free_name(folder: Path, stem: str, suffix: str) -> Path:
    """A path that does not exist yet: `attnviz.html`, `attnviz-2.html` and so on."""
    path, number = folder / f"{stem}{suffix}", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}{suffix}"
    return path
