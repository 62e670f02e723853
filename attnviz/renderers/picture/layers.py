"""Layers as colours: one for each, in order, and a bar that names them."""

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

DARKEST, LIGHTEST = 0.0, 0.92  # of the map; what is lighter vanishes on white
ALONE = 0.3  # the shade of a single layer
NAMED = 16  # layers that the bar names at most


def layer_scale(layers: Iterable[int], cmap: str) -> "ScalarMappable":
    """A colour for each layer from 0 up to the last; inside `drawing` only."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    known = set(layers)
    n = max(known) + 1
    steps = [DARKEST + (LIGHTEST - DARKEST) * i / max(1, n - 1) for i in range(n)]
    shades = steps if len(known) > 1 else [ALONE] * n
    colors = ListedColormap([matplotlib.colormaps[cmap](shade) for shade in shades])
    return ScalarMappable(BoundaryNorm([i - 0.5 for i in range(n + 1)], n), colors)


def layer_color(scale: "ScalarMappable", layer: int) -> tuple[float, ...]:
    """Red, green, blue and opacity from 0 to 1."""
    return tuple(map(float, scale.to_rgba(np.array([layer], float))[0]))


def draw_layers(axes: "Axes", scale: "ScalarMappable", layers: Iterable[int]) -> None:
    """Fill the axes with a bar of the layers' colours."""
    n = max(layers) + 1
    every = ceil(n / NAMED)
    at = list(range(0, n, every))
    bar = axes.figure.colorbar(scale, cax=axes, ticks=at)
    bar.ax.set_yticklabels([f"L{i}" for i in at])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7, width=0.6, length=0)
    bar.set_label("layer", fontsize=8)
    bar.outline.set_linewidth(0.6)
