"""Pictures for the page of a paper: as wide as its column, without words above them.

The words above a picture on a screen go into the file, with the making of the picture.
"""

import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from attnviz.records.tokens import set_within

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure

INCH = 2.54  # cm
POINTS, DPI = 72, 300
LEAST = 5.0
"""The smallest letters that journals accept, in points."""


@dataclass(frozen=True)
class Page:
    """The place for a picture: `width` in cm.

    `made`: the making of the picture, as JSON; `words`: the lines that it would have above it.
    """

    width: float
    made: str = ""
    words: list[str] = field(default_factory=list)

    def metadata(self, format: str) -> Mapping[str, str | None]:
        """The file's metadata; each format has its own names."""
        words = " ".join(" · ".join(dict.fromkeys(self.words)).split())
        return {"Title": words, "Subject" if format == "pdf" else "Description": self.made}


_PAGE: ContextVar[Page | None] = ContextVar("page", default=None)


def current_page() -> Page | None:
    """The page that pictures are drawn for, or None for a screen."""
    return _PAGE.get()


def draw_for(page: Page) -> None:
    """Draw all pictures of this context for a page."""
    _PAGE.set(page)


def told_apart(*words: str) -> bool:
    """Whether a page takes these lines into its file, so that none is drawn above the picture."""
    page = current_page()
    if page is None:
        return False
    page.words.extend(filter(None, words))
    return True


def drawn_for(page: Page) -> AbstractContextManager[None]:
    """Draw the pictures within for a page."""
    return set_within(_PAGE, page)


def smallest(figure: "Figure", page: Page) -> float:
    """The size of the smallest letters of a figure on a page, in points."""
    from matplotlib.text import Text

    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return _share(figure, page) * min((float(t.get_fontsize()) for t in shown), default=12.0)


def page_notes(figure: "Figure") -> tuple[str, ...]:
    """Notes about a figure on the page that it is drawn for."""
    page = current_page()
    if page is None or (points := smallest(figure, page)) >= LEAST:
        return ()
    return (f"at {page.width:g} cm the smallest letters are {points:.1f} points high",)


def _share(figure: "Figure", page: Page) -> float:
    return page.width / INCH / float(figure.get_figwidth())


def write_page(
    figure: "Figure", to: BinaryIO, format: str, page: Page, metadata: Mapping[str, str | None]
) -> None:
    """Write a figure scaled to the width of its place on the page."""
    share = _share(figure, page)
    if format == "png":
        dots = max(DPI, figure.dpi)
        printed = {"dpi": (dots, dots)}
        figure.savefig(to, format=format, dpi=dots * share, metadata=metadata, pil_kwargs=printed)
    elif format == "svg":
        drawn = io.BytesIO()
        figure.savefig(drawn, format=format, metadata=metadata)
        sides = [f"{side * INCH * share:.4f}cm" for side in figure.get_size_inches()]
        sized = 'width="{}" height="{}"'.format(*sides).encode()
        to.write(re.sub(rb'width="[0-9.]+pt" height="[0-9.]+pt"', sized, drawn.getvalue(), count=1))
    else:
        _write_pdf(figure, to, share, metadata)


def _write_pdf(
    figure: "Figure", to: BinaryIO, share: float, metadata: Mapping[str, str | None]
) -> None:
    """Write a PDF as matplotlib does, but with a scaled page."""
    backend: Any = import_module("matplotlib.backends.backend_pdf")  # without types
    width, height = figure.get_size_inches()
    dots, figure.dpi = figure.dpi, POINTS
    file = backend.PdfFile(to, metadata=dict(metadata))
    try:
        file.newPage(width * share, height * share)
        file.width, file.height = width, height  # where paths are cut off before they are scaled
        file.output(share, 0, 0, share, 0, 0, backend.Op.concat_matrix)
        inner = backend.RendererPdf(file, dots, height, width)
        renderer = backend.MixedModeRenderer(figure, width, height, dots, inner)
        figure.draw(renderer)
        renderer.finalize()
        file.finalize()
    finally:
        file.close()
        figure.dpi = dots


# Several pictures in one figure, each with a letter.


GAP, LETTER = 0.35, 0.22  # inches


@dataclass
class PanelGrid:
    """A figure on which pictures are drawn one after the other, `across` of them in a row.

    The axes of each stay where they were placed until it ends; then they move to its place.
    """

    figure: "Figure"
    across: int
    _drawn: int = 0
    _ended: int = 0
    _left: float = 0.0
    _top: float = 0.0
    _low: float = 0.0

    def begin(self) -> "Figure":
        """The figure, for the next picture."""
        self._ended = len(self.figure.axes)
        return self.figure

    def end(self, renderer: "RendererBase") -> None:
        """Move the picture to the right of the last one, or below it, with its letter."""
        from matplotlib.transforms import Affine2D, Bbox

        own, dpi = self.figure.axes[self._ended :], self.figure.dpi
        boxes = [box for axes in own if (box := axes.get_tightbbox(renderer)) is not None]
        box = Bbox.union(boxes).transformed(Affine2D().scale(1 / dpi))
        if self._drawn and self._drawn % self.across == 0:
            self._left, self._top = 0.0, self._low - GAP
        sides = self.figure.get_size_inches()
        move = (self._left - box.x0, self._top - LETTER - box.y1) / sides
        for axes in own:
            axes.set_position(axes.get_position(original=True).translated(*move))
        letter = self.figure.add_axes((self._left / sides[0], self._top / sides[1], 1e-3, 1e-3))
        letter.set_axis_off()
        letter.text(0, 0, "abcdefghijklmnopqrstuvwxyz"[self._drawn], weight="bold", va="top")
        self._left += box.width + GAP
        self._low = min(self._low, self._top - LETTER - box.height)
        self._drawn += 1


_PANELS: ContextVar[PanelGrid | None] = ContextVar("panels", default=None)


def current_panels() -> PanelGrid | None:
    """The figure on which pictures are drawn as panels, or None if each gets its own."""
    return _PANELS.get()


def panels_on(figure: "Figure", across: int) -> AbstractContextManager[None]:
    """Draw the pictures within as panels of one figure."""
    return set_within(_PANELS, PanelGrid(figure, across))
