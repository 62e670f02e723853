"""Colours of weights over an image: each can be told by the colour bar, whatever is below it."""

import matplotlib
import numpy as np
import pytest
from matplotlib.cbook import get_sample_data
from numpy.typing import NDArray
from PIL import Image

from attnviz.draw.overlay import veiled
from attnviz.draw.picture.overlay import OVERLAY_MAP

WEAK, STRONG = 0.3, 0.5


def plain(color: tuple[int, int, int]) -> NDArray[np.float32]:
    return np.full((120, 120, 3), color, np.float32)


def photograph() -> NDArray[np.float32]:
    with get_sample_data("grace_hopper.jpg") as file:
        return np.asarray(Image.open(file).convert("RGB").resize((120, 120)), np.float32)


def halves() -> NDArray[np.float32]:
    return np.concatenate([plain((255, 0, 0))[:, :60], plain((0, 160, 0))[:, 60:]], axis=1)


IMAGES = {
    "red": plain((255, 0, 0)),
    "green": plain((0, 255, 0)),
    "red and green": halves(),
    "white": plain((255, 255, 255)),
    "black": plain((0, 0, 0)),
    "a photograph": photograph(),
}


@pytest.mark.parametrize("name", IMAGES)
def test_two_patches_of_different_weights_are_told_apart_by_the_colour_bar(name: str) -> None:
    image = IMAGES[name]
    weights = np.zeros(image.shape[:2], np.float32)
    weights[20:50, 20:50], weights[60:90, 60:90] = WEAK, STRONG
    colors, share = matplotlib.colormaps[OVERLAY_MAP], weights / np.float32(STRONG)
    seen = veiled(image, share, np.asarray(colors(share, bytes=True))[..., :3])
    steps = np.linspace(0, 1, 101, dtype=np.float32)
    mean = image.mean(axis=(0, 1)).astype(np.float32)
    bar = veiled(mean, steps, np.asarray(colors(steps, bytes=True))[..., :3])  # (101, 3)

    def read(weight: float) -> float:
        """The weight that a reader finds on the colour bar for a patch's mean colour."""
        patch = seen[weights == np.float32(weight)].mean(axis=0)
        return STRONG * float(steps[np.abs(bar - patch).sum(axis=1).argmin()])

    assert read(WEAK) == pytest.approx(WEAK, abs=0.07)
    assert read(STRONG) == pytest.approx(STRONG, abs=0.07)
