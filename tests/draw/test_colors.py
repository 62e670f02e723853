"""Colours tell things apart for every reader, also for those who see fewer of them.

What they see is that of Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for
Simulation of Color Vision Deficiency", of full severity, in linear light.
"""

import matplotlib
import numpy as np
import pytest

from attnviz.draw.labels import DIVERGING, LAYERS, SEQUENTIAL

SEEN = {
    "all colours": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colors: np.ndarray, seen: str) -> np.ndarray:
    """sRGB (n, 3) as CIELAB of D65, as they are seen."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ np.array(SEEN[seen]).T, 0, 1) @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize("seen", SEEN)
def test_more_is_always_darker_or_always_lighter(seen: str) -> None:
    for name in (SEQUENTIAL, LAYERS):
        shades = matplotlib.colormaps[name](np.linspace(0, 1, 40))[:, :3]
        steps = np.diff(lab(shades, seen)[:, 0])
        assert (steps < 0).all() or (steps > 0).all(), name


@pytest.mark.parametrize("seen", SEEN)
def test_both_signs_are_told_apart_and_zero_is_the_lightest(seen: str) -> None:
    shades = lab(matplotlib.colormaps[DIVERGING](np.linspace(0, 1, 41))[:, :3], seen)
    assert abs(int(shades[:, 0].argmax()) - 20) <= 2
    for away in (10, 15, 20):
        assert float(np.linalg.norm(shades[20 - away] - shades[20 + away])) > 30
