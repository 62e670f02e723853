"""Weights to colours in pictures: one scale for all heads of a picture, and its colour bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.headlines import map_title, sink_said
from attnviz.draw.labels import DIVERGING, SEQUENTIAL, distinct_labels
from attnviz.draw.matrix import farthest, strongest
from attnviz.draw.picture.canvas import Lettering
from attnviz.draw.titles import caption, facts, pane_titles, written
from attnviz.errors import UsageError, option, readable
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import ColorScale, Exhibit, Orient, PictureLook
from attnviz.records.transforms import ErrorsOverTexts, NormBased

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap


# The options of a picture, and the words on it.


@dataclass(frozen=True)
class PictureOptions:
    """The look of a picture; `title` None means the head, `""` neither title nor caption."""

    cmap: str = SEQUENTIAL
    dpi: int = 150
    title: str | None = None
    color_scale: ColorScale = "linear"
    orient: Orient = "query-rows"


def options_of(look: PictureLook, orient: Orient | None, *, by_row: bool = False) -> PictureOptions:
    """The options of a picture, with their defaults; `by_row` colours each row by itself."""
    plain = PictureOptions()
    return PictureOptions(
        cmap=look.cmap or plain.cmap,
        dpi=plain.dpi if look.dpi is None else look.dpi,
        title=look.title,
        color_scale=look.color_scale or ("row" if by_row else plain.color_scale),
        orient=orient or plain.orient,
    )


@dataclass(frozen=True)
class PictureWords:
    """The words of a picture; `panes`: the possible titles of each map, the fullest first."""

    title: str
    subtitle: str
    queries: Sequence[str]
    keys: Sequence[str]
    panes: Sequence[Sequence[str]]

    @property
    def all(self) -> Sequence[str]:
        titles = (titles[0] for titles in self.panes)
        return [self.title, self.subtitle, *self.queries, *self.keys, *titles]

    def spelled(self, fonts: Lettering) -> "PictureWords":
        """The same words in letters that these fonts have."""

        def spell(words: Sequence[str]) -> Sequence[str]:
            return [fonts.spell(word) for word in words]

        titles = spell([self.title, self.subtitle])
        panes = [spell(pane) for pane in self.panes]
        return PictureWords(titles[0], titles[1], spell(self.queries), spell(self.keys), panes)


def words_for(exhibit: Exhibit, options: PictureOptions) -> PictureWords:
    """The words of this exhibit's picture."""
    title, subtitle = _titles(exhibit, options)
    return PictureWords(
        title,
        subtitle,
        distinct_labels(exhibit.capture.query_tokens),
        distinct_labels(exhibit.capture.key_tokens),
        [pane_titles(exhibit, head_map) for head_map in exhibit.maps],
    )


def _titles(exhibit: Exhibit, options: PictureOptions) -> tuple[str, str]:
    """The title, and the caption below it, which a user's own title does not change."""
    if options.title == "":
        return "", ""
    maps = exhibit.maps
    if exhibit.subtitle:
        title, subtitle = exhibit.caption, exhibit.subtitle
    else:
        title = map_title(exhibit, maps[0])
        if len(maps) > 1:  # `L0H0 to L1H3, 8 attention heads`
            joined = " and " if len(maps) == 2 else " to "
            kind = "maps of attention" if any(m.reduced for m in maps) else "attention heads"
            title = f"{maps[0].label}{joined}{maps[-1].label}, {len(maps)} {kind}"
        subtitle, capture = caption(exhibit.capture), exhibit.capture
        if capture.target:
            output = written(capture, row="column" if options.orient == "key-rows" else "row")
            read = f"read: “{readable(capture.text)}”, " if capture.text else ""
            subtitle = f"{facts(capture)}; {read}{output}"
        subtitle += sink_said(exhibit)
    if options.title is None:
        return title, subtitle
    which = maps[0].label if len(maps) == 1 else title
    return readable(options.title), subtitle if exhibit.subtitle else f"{which} · {subtitle}"


# Weights below a thousandth of the strongest are drawn alike on a log scale.
LOG_RANGE = 1000.0
BAR_LABEL = 8.0  # points
# Grey with white hatching, as any grey may be a colour of some map.
EMPTY, HATCH, LINES = "#e8e8e8", "#f4f4f4", "#d9dce0"


@dataclass(frozen=True)
class Scale:
    """A mapping of weights to colours: its map by name, the weights at its ends, and their name."""

    cmap: "str | Colormap"
    kind: ColorScale
    low: float
    high: float
    label: str

    def mappable(self) -> "ScalarMappable":
        """The mappable with which matplotlib colours cells and draws colour bars."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm, Normalize

        norm = LogNorm if self.kind == "log" else Normalize
        return ScalarMappable(norm(self.low, self.high), self.cmap)

    def paint(self, values: FloatArray) -> NDArray[np.uint8]:
        """Map weights (rows, columns) to colours (rows, columns, 4); transparent for NaN."""
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
    """One scale for all these matrices: from 0 (or the lowest) to the strongest weight."""
    high = strongest(matrices)
    low = min((float(np.fmin.reduce(m, axis=None, initial=0.0)) for m in matrices), default=0.0)
    what = "weight × norm" if captured.transformed_by(NormBased) else "weight"
    what = "standard error" if captured.transformed_by(ErrorsOverTexts) else what
    label = what + {"linear": "", "log": ", logarithmic", "row": " ÷ strongest"}[kind]
    return Scale(cmap, kind, high / LOG_RANGE if kind == "log" else low, high, label)


def scale_of(exhibit: Exhibit, options: PictureOptions, matrices: list[FloatArray]) -> Scale:
    """One scale for all maps of the exhibit; a diverging one for values with a sign."""
    if exhibit.capture.signed:
        cmap = DIVERGING if options.cmap == PictureOptions.cmap else options.cmap
        several = len(exhibit.maps) > 1
        what = exhibit.capture.values.removesuffix("s")
        return signed_scale(cmap, matrices, f"{what} ÷ the head's largest" if several else what)
    return scale_for(options.cmap, options.color_scale, matrices, exhibit.capture)


def known_cmaps() -> list[str]:
    import matplotlib

    return list(matplotlib.colormaps)


def check_cmap(name: str) -> None:
    """Refuse a colour map that matplotlib doesn't have, and name the nearest that it has."""
    known = known_cmaps()
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"the nearest is {near[0]}" if near else "try Blues, Greys, viridis or magma"
        raise UsageError(f"{option('cmap', repr(name))} is not a colour map", hint)


def number_ends(bar: "Colorbar", size: float) -> None:
    """Number a colour bar also at both ends, without numbers of `size` points that touch those."""
    low, high = bar.ax.get_ylim()
    inner = [float(tick) for tick in bar.get_ticks() if low < tick < high]
    inches = bar.ax.get_window_extent().height / bar.ax.figure.dpi
    apart = (high - low) * 1.4 * size / 72 / inches
    between = [tick for tick in inner if min(tick - low, high - tick) > apart]
    ticks = [low, *between, high]
    bar.set_ticks(
        ticks, labels=[f"{tick:.3g}" if abs(tick) < 1e3 else f"{tick:.0f}" for tick in ticks]
    )


def draw_bar(
    axes: "Axes",
    shown: "ScalarMappable",
    label: str = "",
    *,
    log: bool = False,
    size: float = 6.5,
    length: float = 2,
) -> None:
    """Fill narrow axes with a colour bar; `size` and `length` of its ticks."""
    bar = axes.figure.colorbar(shown, cax=axes, extend="min" if log else "neither")
    if not log:
        number_ends(bar, size)
    bar.set_label(label, fontsize=BAR_LABEL)
    bar.ax.tick_params(labelsize=size, width=0.6, length=length)
    bar.outline.set_linewidth(0.6)


def draw_color_bar(axes: "Axes", scale: Scale) -> None:
    """Fill narrow axes with the colour bar of a scale."""
    log = scale.kind == "log"
    draw_bar(axes, scale.mappable(), scale.label, log=log, size=7, length=3)
