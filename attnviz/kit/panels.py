"""Several pictures as the panels of one figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.draw.picture.paper import Page, drawn_for, page_notes, panels_on
from attnviz.errors import UsageError
from attnviz.kit.write import choose_format, write_bytes
from attnviz.records.rows import to_json, versions_now

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 26
"""Panels, a letter for each."""


class Panels:
    """Pictures of results side by side, each with a letter; made by `attnviz.panels`.

    >>> text = "a fluffy blue creature"
    >>> attnviz.panels([attnviz.show(text, heads="L3H2"), attnviz.ablate(text)], width=17.8)
    <Panels a and b, 17.8 cm>
    """

    def __init__(self, results: Sequence[Any], width: float, across: int) -> None:
        self._results, self._width, self._across = tuple(results), width, across
        made = [each.made for each in results]
        self._page = Page(width, to_json({"made": made, "versions": versions_now()}))

    def __repr__(self) -> str:
        n = len(self._results)
        last = "" if n < 2 else f" {'and' if n == 2 else 'to'} {chr(ord('a') + n - 1)}"
        return f"<Panels a{last}, {self._width:g} cm>"

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if letters become too small for a journal."""
        figure = self.figure()
        with drawn_for(self._page):
            return page_notes(figure)

    def figure(self) -> "Figure":
        """The figure, as large as it was drawn; `save` scales it to the wanted width."""
        from attnviz.draw.picture.canvas import drawing, fit, new_figure

        with drawn_for(self._page), drawing():
            figure = new_figure(150)
            with panels_on(figure, self._across):
                for each in self._results:
                    each.figure()
            fit(figure)
        return figure

    def save(self, path: str | Path) -> None:
        """Write it to a file: png, svg or pdf, with the making of each panel.

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        from attnviz.draw.picture.canvas import figure_bytes

        form = choose_format(Path(path), None, False)
        if not form.picture:
            raise UsageError(f"{form.name} is not a picture", "write png, svg or pdf")
        figure = self.figure()
        with drawn_for(self._page):
            write_bytes(Path(path), [figure_bytes(figure, form.name)])


def panels(results: Sequence[Any], *, width: float = 17.8, across: int | None = None) -> Panels:
    """Pictures for a paper: panels a, b, c of one figure, without the titles of each.

    >>> attnviz.panels([attnviz.ablate("a fluffy blue creature")], width=8.5).save("figure.pdf")

    Args:
        results: results of functions that have a picture: `Result`, `Shown`.
        width: of the file, in cm; a column of a journal is about 8.5, its page 17.8.
        across: the number of panels in a row; None for two, or three if they fill it.

    Raises:
        UsageError: a result has no picture, or there are none or more than 26.
    """
    if not isinstance(results, Sequence):
        raise UsageError("the results are not a list", "give [result, …]")
    if across is None:
        across = 3 if len(results) % 3 == 0 else 2
    if not 0 < len(results) <= MOST:
        raise UsageError(f"a figure cannot have {len(results)} pictures", f"give 1 to {MOST}")
    for each in results:
        if not (hasattr(each, "figure") and hasattr(each, "made")):
            raise UsageError(f"{type(each).__name__} has no picture", "give results")
    if not 2 <= width <= 200 or across < 1:
        raise UsageError(
            f"a figure {width:g} cm wide with {across} panels in a row cannot be drawn",
            "give 2 to 200 cm, and 1 or more panels",
        )
    return Panels(results, width, across)
