"""Matplotlib with fixed settings: the same look and bytes everywhere, and nothing on stderr."""

import io
import logging
import math
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from attnviz.draw.picture.paper import current_page, current_panels, write_page
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
# embeds the letters that it uses as TrueType, so that text can be selected and looks the
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
    """Run with Matplotlib's own defaults instead of the user's, and without its warnings."""
    loggers = {name: logging.getLogger(name) for name in ("matplotlib", "fontTools")}
    levels = {name: logger.level for name, logger in loggers.items()}
    for logger in loggers.values():
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import matplotlib

            # The backend is left to the user, such as a notebook's.
            defaults = dict(matplotlib.rcParamsDefault)
            plain = {name: defaults[name] for name in defaults if "backend" not in name}
            with matplotlib.rc_context({**plain, **_SETTINGS}):  # type: ignore[dict-item]
                yield
    finally:
        for name, logger in loggers.items():
            logger.setLevel(levels[name])


def use_fonts(texts: Iterable[str]) -> "Lettering":
    """Draw with fonts that have the letters of these texts; `drawing` restores the setting."""
    import matplotlib

    fonts = lettering(texts)
    # An SVG names its fonts; a viewer without any of them should take its own sans-serif.
    matplotlib.rcParams["font.sans-serif"] = list(fonts.families)
    matplotlib.rcParams["font.family"] = [*fonts.families, "sans-serif"]
    return fonts


ZLIB = 4
"""The level of compression of a PNG: about the size of the usual 6, in half the time."""


def figure_bytes(figure: "Figure", format: str) -> bytes:
    """The content of a file; the same figure gives the same bytes."""
    page = current_page()
    if page is None:
        check_size(figure, round(figure.dpi))
    from matplotlib.text import Text

    buffer = io.BytesIO()
    with drawing():
        for text in figure.findobj(Text):  # no character that XML lacks, or that reorders
            text.set_text(harmless(text.get_text()))
        metadata = _METADATA[cast("PictureFormat", format)]
        if page is None:
            save = partial(figure.savefig, buffer, format=format, metadata=metadata)
            if format == "png":
                save = partial(save, pil_kwargs={"compress_level": ZLIB})
            save(dpi=figure.dpi)
        else:
            write_page(figure, buffer, format, page, {**metadata, **page.metadata(format)})
    return buffer.getvalue()


def check_dpi(dpi: int) -> None:
    """Refuse an impossible resolution, before anything is drawn."""
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
    """An empty figure for `place`; small, as measuring text takes memory for all its pixels."""
    panels = current_panels()
    if panels is not None:
        return panels.begin()
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
    """Add axes at a place given in inches; they may be outside until `fit` is called."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def renderer_of(figure: "Figure") -> "RendererBase":
    """The renderer that measures text on a figure of `new_figure`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    return cast("RendererBase", canvas.get_renderer())  # type: ignore[no-untyped-call]


def fit(figure: "Figure") -> None:
    """Make the figure as large as its content, so that no label is cut, on whole pixels."""
    panels = current_panels()
    if panels is not None and panels.figure is figure:
        panels.end(renderer_of(figure))
        return
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


# Letters


FIRST = "DejaVu Sans"
# They have a placeholder for every letter, or bitmaps that cannot be scaled.
_UNSUITABLE = ("last resort", "lastresort", "color emoji", "colour emoji")


@dataclass(frozen=True)
class Lettering:
    """The font families to draw with, in order, and the letters that none of them has."""

    families: tuple[str, ...] = (FIRST,)
    missing: frozenset[str] = frozenset()

    def spell(self, text: str) -> str:
        """The text with each missing letter as its code point."""
        if not self.missing.intersection(text):
            return text
        parts = [f" U+{ord(c):04X} " if c in self.missing else c for c in text]
        return " ".join("".join(parts).split())

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about letters that could not be drawn; none if all could."""
        if not self.missing:
            return ()
        some = sorted(self.missing)
        codes = ", ".join(f"U+{ord(letter):04X}" for letter in some[:3])
        more = f" and {len(some) - 3:,} more" if len(some) > 3 else ""
        sentence = f"no installed font has {codes}{more}, so the picture shows code points"
        east = {unicodedata.name(letter, "").startswith(_EAST_ASIAN) for letter in some}
        packages = [_NOTO["CJK" if which else ""] for which in sorted(east, reverse=True)]
        return (f"{sentence}; install one that has them: {' and '.join(packages)}",)


_NOTO = {"CJK": "Noto Sans CJK (Debian, Ubuntu: fonts-noto-cjk)", "": "Noto (fonts-noto-core)"}
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")


def lettering(texts: Iterable[str]) -> Lettering:
    wanted = frozenset(letter for text in texts for letter in text if letter.isprintable())
    fonts = _lettering(wanted)
    if fonts.missing:
        _lettering.cache_clear()  # a font that has them may be installed meanwhile
        fonts = _lettering(wanted) if _add_new_fonts() else fonts
    return fonts


@lru_cache(maxsize=8)
def _lettering(wanted: frozenset[str]) -> Lettering:
    from matplotlib.font_manager import findfont

    missing = wanted - _letters_of(findfont(FIRST), wanted)
    families = [FIRST]
    for name, path in _other_fonts(_region(missing)) if missing else ():
        letters = _letters_of(path, missing)
        if letters and findfont(name) != path:  # the family's regular face, which will be used
            letters = _letters_of(findfont(name), missing)
        if letters:
            families.append(name)
            missing -= letters
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def _region(letters: Iterable[str]) -> str:
    """The region whose forms of Chinese characters are wanted, as in font names: JP, KR or SC."""
    names = [unicodedata.name(letter, "") for letter in letters]
    if any(name.startswith(("HIRAGANA", "KATAKANA")) for name in names):
        return "JP"
    return "KR" if any(name.startswith("HANGUL") for name in names) else "SC"


def _add_new_fonts() -> int:
    """Add the fonts that matplotlib's stored list lacks, and return their number."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known, before = {entry.fname for entry in fontManager.ttflist}, len(fontManager.ttflist)
    for path in sorted({*findSystemFonts()} - known):
        with suppress(OSError, RuntimeError, ValueError):  # one that cannot be read
            fontManager.addfont(path)
    return len(fontManager.ttflist) - before


def _other_fonts(region: str) -> list[tuple[str, str]]:
    """The family and file of each upright font: sans-serif, regular and regional ones first."""
    from matplotlib.font_manager import fontManager

    entries = [
        entry
        for entry in fontManager.ttflist
        if entry.style == "normal" and not any(word in entry.name.lower() for word in _UNSUITABLE)
    ]

    def rank(entry: object) -> tuple[bool, bool, bool, str, str]:
        name, weight = str(getattr(entry, "name", "")), getattr(entry, "weight", 400)
        plain = weight in (400, "normal", "regular", "book")
        where = region not in name.split()
        return "sans" not in name.lower(), not plain, where, name, str(getattr(entry, "fname", ""))

    return [(entry.name, entry.fname) for entry in sorted(entries, key=rank)]


def _letters_of(path: str, wanted: frozenset[str]) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
        if not font.scalable:
            return frozenset()
        return frozenset(letter for letter in wanted if font.get_char_index(ord(letter)))
    except (OSError, RuntimeError):  # a font file that is gone, or that cannot be read
        return frozenset()
