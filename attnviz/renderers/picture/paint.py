"""Weights to colours in pictures: one scale for all heads of a picture, and its colour bar."""

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import ColorScale, Exhibit
from attnviz.records.transforms import NormBased
from attnviz.renderers.colors import DIVERGING
from attnviz.renderers.matrix import farthest
from attnviz.renderers.picture.words import PictureOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar

# What lies below a thousandth of the strongest weight is drawn alike on a log scale.
LOG_RANGE = 1000.0
# Grey, and hatched in white, as some map has any grey among its colours.
EMPTY, HATCH, LINES = "#e8e8e8", "#f4f4f4", "#d9dce0"


@dataclass(frozen=True)
class Scale:
    """How weights become colours: the map by name, the weights at its ends, and what they are."""

    cmap: str
    kind: ColorScale
    low: float
    high: float
    label: str

    def mappable(self) -> "ScalarMappable":
        """What matplotlib colours and draws colour bars with."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm, Normalize

        norm = LogNorm if self.kind == "log" else Normalize
        return ScalarMappable(norm(self.low, self.high), self.cmap)

    def paint(self, values: FloatArray) -> NDArray[np.uint8]:
        """(rows, columns) weights to (rows, columns, 4) colours; transparent where NaN."""
        if self.kind == "log":
            values = np.fmax(values, np.where(np.isnan(values), np.nan, np.float32(self.low)))
        mappable = self.mappable()
        colors = mappable.cmap(mappable.norm(np.nan_to_num(values, nan=self.high)), bytes=True)
        painted: NDArray[np.uint8] = np.array(colors, np.uint8)
        painted[np.isnan(values), 3] = 0
        return painted


def signed_scale(cmap: str, matrices: list[FloatArray], label: str) -> Scale:
    """One scale for all these matrices, as far below zero as above."""
    most = farthest(matrices)
    return Scale(cmap, "linear", -most, most, label)


def scale_for(cmap: str, kind: ColorScale, matrices: list[FloatArray], captured: Capture) -> Scale:
    """One scale for all these matrices: from 0 (or what is less) to the strongest weight."""
    high = max((float(np.fmax.reduce(m, axis=None, initial=0.0)) for m in matrices), default=0.0)
    low = min((float(np.fmin.reduce(m, axis=None, initial=0.0)) for m in matrices), default=0.0)
    high = high if high > 0 else 1.0
    what = "weight × norm" if captured.transformed_by(NormBased) else "weight"
    label = what + {"linear": "", "log": ", logarithmic", "row": " ÷ strongest"}[kind]
    return Scale(cmap, kind, high / LOG_RANGE if kind == "log" else low, high, label)


def scale_of(exhibit: Exhibit, options: PictureOptions, matrices: list[FloatArray]) -> Scale:
    """One scale for all maps of the exhibit; a diverging one for what has a sign."""
    if exhibit.capture.signed:
        cmap = DIVERGING if options.cmap == PictureOptions.cmap else options.cmap
        several = len(exhibit.maps) > 1
        return signed_scale(cmap, matrices, "score ÷ the head's largest" if several else "score")
    return scale_for(options.cmap, options.color_scale, matrices, exhibit.capture)


def known_cmaps() -> list[str]:
    """The names of matplotlib's colour maps."""
    import matplotlib

    return list(matplotlib.colormaps)


def check_cmap(name: str) -> None:
    """Refuse a colour map that matplotlib doesn't have, and name the nearest that it has."""
    known = known_cmaps()
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"the nearest is {near[0]}" if near else "try Blues, Greys, viridis or magma"
        raise UsageError(f"{option('cmap', repr(name))} is not a colour map", hint)


def number_ends(bar: "Colorbar") -> None:
    """Give a colour bar numbers at both ends, too, and those between that leave them room."""
    low, high = bar.ax.get_ylim()
    inner = [float(tick) for tick in bar.get_ticks() if low < tick < high]
    apart = min((b - a for a, b in pairwise(inner)), default=high - low) / 2
    between = [tick for tick in inner if min(tick - low, high - tick) > apart]
    ticks = [low, *between, high]
    bar.set_ticks(
        ticks, labels=[f"{tick:.3g}" if abs(tick) < 1e3 else f"{tick:.0f}" for tick in ticks]
    )


def draw_color_bar(axes: "Axes", scale: Scale) -> None:
    """Fill the axes with the scale's colour bar."""
    figure = axes.figure
    bar = figure.colorbar(
        scale.mappable(), cax=axes, extend="min" if scale.kind == "log" else "neither"
    )
    if scale.kind != "log":
        number_ends(bar)
    bar.set_label(scale.label, fontsize=8)
    bar.ax.tick_params(labelsize=7, width=0.6, length=3)
    bar.outline.set_linewidth(0.6)
