"""Matplotlib, tamed: the same look and the same bytes everywhere, and nothing on stderr."""

import io
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from attnviz.errors import UsageError, harmless, option

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure

PictureFormat: TypeAlias = Literal["png", "svg", "pdf"]

LARGEST_SIDE = 12_000  # pixels; a larger picture fills the memory, and no viewer opens it
LEAST_DPI, MOST_DPI = 30, 2400
MARGIN = 0.12  # inches around everything that is drawn

# SVG keeps text as text (it can be searched and edited; the viewer's fonts draw it). PDF
# brings the letters it uses along as TrueType, so that text can be selected and looks the
# same everywhere. The salt makes the ids inside an SVG the same in every run.
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attnviz",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.6,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": False,  # as in the numbers of cells
}
_METADATA: dict[PictureFormat, dict[str, str | None]] = {
    "png": {"Software": "attnviz"},
    "svg": {"Date": None, "Creator": "attnviz"},
    "pdf": {"CreationDate": None, "Creator": "attnviz", "Producer": None},
}


@dataclass(frozen=True)
class Drawn:
    """A figure, and notes about it for stderr: one sentence each."""

    figure: "Figure"
    notes: tuple[str, ...] = ()


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib with its own defaults instead of the user's, its warnings kept to itself."""
    loggers = {name: logging.getLogger(name) for name in ("matplotlib", "fontTools")}
    levels = {name: logger.level for name, logger in loggers.items()}
    for logger in loggers.values():
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import matplotlib

            # The backend is not ours to choose: a notebook's stays as it is.
            defaults = dict(matplotlib.rcParamsDefault)
            plain = {name: defaults[name] for name in defaults if "backend" not in name}
            with matplotlib.rc_context({**plain, **_SETTINGS}):  # type: ignore[dict-item]
                yield
    finally:
        for name, logger in loggers.items():
            logger.setLevel(levels[name])


def use_fonts(families: Sequence[str]) -> None:
    """Draw with these font families, each for the letters that those before it lack.

    Only inside `drawing`, which puts the setting back.
    """
    import matplotlib

    # An SVG names its fonts; a viewer that has none of them is to take its own sans-serif.
    matplotlib.rcParams["font.sans-serif"] = list(families)
    matplotlib.rcParams["font.family"] = [*families, "sans-serif"]


def figure_bytes(figure: "Figure", format: str, dpi: int | None = None) -> bytes:
    """The figure as a file's content; the same figure gives the same bytes.

    `dpi`: pixels per inch; None for those that it was drawn for.
    """
    check_size(figure, dpi or round(figure.dpi))
    buffer = io.BytesIO()
    with drawing():
        _make_harmless(figure)
        figure.savefig(
            buffer,
            format=format,
            dpi=dpi or figure.dpi,
            metadata=_METADATA[cast("PictureFormat", format)],
        )
    return buffer.getvalue()


def _make_harmless(figure: "Figure") -> None:
    """Write out, in every text, what has no place in XML or would reorder letters."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(harmless(text.get_text()))


def check_dpi(dpi: int) -> None:
    """Refuse what is no resolution at all, before anything is drawn."""
    wrong = option("dpi", dpi)
    if dpi < LEAST_DPI:
        raise UsageError(f"{wrong} is too few pixels", f"give {LEAST_DPI} or more, such as 150")
    if dpi > MOST_DPI:
        raise UsageError(f"{wrong} is too many pixels", f"give {MOST_DPI} or less, such as 300")


def check_size(figure: "Figure", dpi: int) -> None:
    """Refuse a picture of more than 12,000 pixels on a side."""
    side = max(figure.get_size_inches())
    if side * dpi > LARGEST_SIDE:
        raise UsageError(
            f"{option('dpi', dpi)} makes this picture {side * dpi:,.0f} pixels large",
            f"give {int(LARGEST_SIDE / side)} or less",
        )


def new_figure(dpi: int) -> "Figure":
    """An empty figure on which axes are placed by `place`.

    It is small, as measuring text on it takes memory for all of its pixels; `fit` makes it
    as large as it has to be.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, whether pyplot was imported there or not."""

        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png")

    figure = Picture(figsize=(0.5, 0.5), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def place(figure: "Figure", left: float, bottom: float, width: float, height: float) -> "Axes":
    """New axes at a place given in inches; they may lie outside until `fit` is called."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def renderer_of(figure: "Figure") -> "RendererBase":
    """The renderer that measures text on a figure of `new_figure`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    return cast("RendererBase", canvas.get_renderer())  # type: ignore[no-untyped-call]


def fit(figure: "Figure") -> None:
    """Make the figure as large as what is on it, so that no label is cut, on whole pixels."""
    across, up = figure.get_size_inches()
    box = figure.get_tightbbox(renderer_of(figure))  # in inches
    dpi = figure.dpi
    left = math.floor((box.x0 - MARGIN) * dpi) / dpi
    bottom = math.floor((box.y0 - MARGIN) * dpi) / dpi
    width = math.ceil((box.x1 + MARGIN - left) * dpi) / dpi
    height = math.ceil((box.y1 + MARGIN - bottom) * dpi) / dpi
    for axes in figure.axes:
        x, y, w, h = axes.get_position(original=True).bounds
        axes.set_position(
            (
                (x * across - left) / width,
                (y * up - bottom) / height,
                w * across / width,
                h * up / height,
            )
        )
    figure.set_size_inches(width, height)
