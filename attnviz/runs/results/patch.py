"""Patched texts as results."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attnviz.analyses.patch import mean_of
from attnviz.console import Display
from attnviz.data.patch import PatchReport
from attnviz.draw.titles import facts
from attnviz.kit.result import Result
from attnviz.renderers.rows import patch as rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn

SHOWN = 10
"""Parts that the terminal names."""


def of_patching(
    report: PatchReport, top: int | None = None, line: int | None = 1
) -> Result[PatchReport]:
    """The effects of patched vectors, of the `top` largest; None: all, as rows.

    `line`: the number of the input line; None: the mean over all.
    """

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import patch as table

        return table.render(report, report.strongest[: top or SHOWN], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import patch as picture

        return picture.draw(report, **look)

    def page() -> Iterable[str]:
        from attnviz.renderers.webpage import patch as webpage

        return webpage.page(report)

    return Result(
        "patch",
        report,
        facts(report.capture),
        (rows.PatchRow,),
        lambda: rows.patch_rows(report, report.strongest[:top], line),
        shown,
        draw,
        _page=page,
        captures=(report.capture, report.source),
    )


def of_mean(reports: Sequence[PatchReport], top: int | None = None) -> Result[PatchReport]:
    """The mean over several pairs of texts.

    Raises:
        InputError: their positions have no mean.
    """
    return of_patching(mean_of(reports), top, None)
