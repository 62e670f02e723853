"""Colours that several rooms share: maps by name and as tables, how light a colour is."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEQUENTIAL, DIVERGING, LAYERS = "Blues", "RdBu_r", "viridis"
"""Matplotlib's maps in pictures: of values from 0 up (white to dark, as paper is white and ink is
dark), of values with a sign (blue below zero, red above), and of layers, which have no zero."""

_TABLE = bytes.fromhex(
    "440154 470d60 48186a 482374 472e7c 453882 424186 3e4a89 "
    "3a548c 365d8d 32658e 2e6d8e 2b758e 287d8e 25848e 228c8d "
    "1f948c 1e9c89 20a386 25ab82 2eb37c 3aba76 48c16e 58c765 "
    "6ccd5a 7fd34e 93d741 a8db34 c0df25 d5e21a eae51a fde725"
)
_BLUES = bytes.fromhex("f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b")


def _colors(table: bytes) -> tuple[tuple[int, int, int], ...]:
    return tuple((table[i], table[i + 1], table[i + 2]) for i in range(0, len(table), 3))


VIRIDIS = _colors(_TABLE)
BLUES = _colors(_BLUES)
"""Matplotlib's Blues (ColorBrewer), which is linear between these nine."""
BLUES_ON_DARK = ((22, 24, 28), *BLUES[:0:-1])
"""The same blues on a dark ground, from nearly its colour to nearly white."""


_BELOW, _ABOVE, _ZERO = (33, 102, 172), (178, 24, 43), (247, 247, 247)
PALE = 0.55
"""Up to this share of a value with a sign, black letters stand out."""


def signed_color(share: float) -> tuple[int, int, int]:
    """Red, green and blue of a value from -1 (blue) to 1 (red), near the ends of RdBu."""
    end = _BELOW if share < 0 else _ABOVE
    return tuple(  # type: ignore[return-value]
        round(zero + (far - zero) * abs(share)) for zero, far in zip(_ZERO, end, strict=True)
    )


def is_light(color: ArrayLike, least: float = 110) -> NDArray[np.bool_]:
    """Whether black letters stand out on a colour better than white ones.

    Args:
        color: red, green and blue from 0 to 255, (..., 3).
        least: the luma, from 0 to 255, above which a colour is light.

    Returns:
        (...), by luma (ITU-R BT.601).
    """
    light: NDArray[np.bool_] = np.asarray(color, np.float32) @ LUMA > least
    return light


LUMA = np.array([0.299, 0.587, 0.114], np.float32)
