"""Ablations as results."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attnviz.analyses.ablate import mean_of
from attnviz.console import Display
from attnviz.data.ablate import AblationReport, BeforeAfter, Found
from attnviz.draw.titles import facts
from attnviz.kit.result import Result
from attnviz.records.predict import NextTokens
from attnviz.renderers.rows import ablate as rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn

SHOWN = 10
"""Parts that the terminal names."""


def of_ablation(
    report: AblationReport, top: int | None = None, line: int | None = 1
) -> Result[AblationReport]:
    """The effects of single parts, of the `top` that matter most; None: all, as rows.

    `line`: the number of the input line; None: the mean over all.
    """

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import ablate as table

        return table.render(report, report.strongest[: top or SHOWN], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import ablate as picture

        return picture.draw(report, **look)

    about = facts(report.capture)
    return Result(
        "ablate",
        report,
        about,
        (rows.EffectRow,),
        lambda: rows.effect_rows(report, report.strongest[:top], line),
        shown,
        draw,
        captures=(report.capture,),
    )


def of_together(both: BeforeAfter, line: int | None = 1) -> Result[BeforeAfter]:
    """The next tokens with some parts and without them; `line` as for `of_ablation`."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import ablate as table

        return table.render_together(both, display)

    about = facts(both.report.capture)
    return Result(
        "ablate",
        both,
        about,
        (rows.TogetherRow,),
        lambda: rows.together_rows(both, line),
        shown,
        captures=(both.report.capture,),
    )


def of_found(found: Found, top: int | None = None, line: int | None = 1) -> Result[Any]:
    """Whichever of the two it is."""
    if isinstance(found, BeforeAfter):
        return of_together(found, line)
    return of_ablation(found, top, line)


def of_mean(found: Sequence[Found], top: int | None = None) -> Result[Any]:
    """The mean over several texts, of single parts or of all of them together."""
    report = mean_of([f.report if isinstance(f, BeforeAfter) else f for f in found])
    if isinstance(found[0], BeforeAfter):
        nothing = NextTokens(0, None, ())
        return of_together(BeforeAfter(report, nothing, nothing), None)
    return of_ablation(report, top, None)
