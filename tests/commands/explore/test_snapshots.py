"""The app as it was looked at and found good, as pictures (SVG).

If a change is meant: `python -m tests.commands.explore.test_snapshots`, and look at the difference.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.explore.scene import Opened
from attnviz.console import Display
from attnviz.records.heads import Head, NamedHead
from tests.commands.explore.app import Visit, explore
from tests.factories import make_capture

SNAPSHOTS = Path(__file__).with_name("snapshots")


@dataclass(frozen=True)
class Shot:
    """A picture: how large, after which keys, in how many colours, of how many layers and heads."""

    size: tuple[int, int] = (80, 24)
    keys: Sequence[str] = ()
    color: bool = True
    sixteen: bool = False
    heads: tuple[int, int] = (4, 4)


SHOTS = {
    "small": Shot(),
    "wide": Shot((140, 40), ["s"]),
    "narrow": Shot((40, 24), ["tab", "tab"]),
    "no-colour": Shot(color=False),
    "sixteen-colours": Shot(sixteen=True),
    "many-heads": Shot(heads=(12, 12), keys=["tab", "down"]),
    "keys": Shot(keys=["question_mark"]),
    "find": Shot(keys=["slash", "b"]),
    "rollout": Shot(keys=["w", "r"]),
    "miniatures": Shot((100, 40), ["g"]),
    "no-room": Shot(heads=(12, 12), keys=["g"]),
}


def taken(shot: Shot) -> str:
    """The picture, in letters whatever fonts there are."""
    pattern = np.eye(10, dtype=np.float32)
    pattern[4] = [0.02, 0.03, 0.48, 0.45, 0.02, 0, 0, 0, 0, 0]
    pattern[8] = [0.05, 0, 0, 0, 0, 0, 0.05, 0.9, 0, 0]
    card = (NamedHead("adjectives", Head(2, 3), "nouns attend to their adjectives"),)
    layers, across = shot.heads
    capture = make_capture(
        ["a", " fluffy", " blue", " creature", " roamed", " the", " ver", "dant", " forest"],
        heads_per_layer=(across,) * layers,
        patterns={Head(2, 3): pattern},
        named_heads=card,
        bos=True,
    )
    pictures: list[str] = []

    async def does(there: Visit) -> None:
        await there.press(*shot.keys)
        pictures.append(there.app.export_screenshot())

    if not shot.color:
        os.environ["NO_COLOR"] = "1"
    try:
        display = Display(80, shot.color, True, shot.sixteen)
        explore(Opened(capture=capture), does, size=shot.size, display=display)
    finally:
        os.environ.pop("NO_COLOR", None)
    # each has a name of its own, made of its whole content, and fonts of a server
    named = re.sub(r"terminal-\d+", "terminal", pictures[0])
    return re.sub(r"\s*@font-face \{.*?\}", "", named, flags=re.DOTALL)


@pytest.mark.parametrize("name", SHOTS)
def test_it_looks_as_it_did(name: str) -> None:
    assert taken(SHOTS[name]) == (SNAPSHOTS / f"{name}.svg").read_text()


def test_every_snapshot_is_tested() -> None:
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(SHOTS)


if __name__ == "__main__":
    for name, shot in SHOTS.items():
        (SNAPSHOTS / f"{name}.svg").write_text(taken(shot))
