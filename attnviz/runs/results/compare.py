"""Comparisons as results."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attnviz.console import Display
from attnviz.data.compare import ModelComparison, TextComparison
from attnviz.draw.titles import amount
from attnviz.kit.result import Result
from attnviz.renderers.compare_titles import about_models, about_texts, texts_title
from attnviz.renderers.rows import compare as rows
from attnviz.runs.compare import models_beside, texts_beside

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn

SHOWN = 8
"""Heads that the terminal shows."""


def of_texts(comparison: TextComparison, top: int | None = None) -> Result[TextComparison]:
    """Several texts through one model; of the `top` heads that differ most."""
    head = comparison.heads[0].head

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import compare as table

        alone = texts_beside(comparison, head) if len(comparison.heads) == 1 else None
        return table.render_texts(comparison, comparison.heads[: top or SHOWN], alone, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture.beside import draw_beside

        said = texts_title(comparison), about_texts(comparison)
        return draw_beside(texts_beside(comparison, head), *said, **look)

    model = comparison.captures[0].model.name
    about = f"{model}, {amount(len(comparison.captures), 'text')}"
    return Result(
        "compare",
        comparison,
        about,
        (rows.DifferenceRow, rows.SightRow),
        lambda: rows.difference_rows(comparison, top),
        shown,
        draw,
        captures=comparison.captures,
    )


def of_models(comparison: ModelComparison, top: int | None = None) -> Result[ModelComparison]:
    """One text through two models; of the `top` pairs of heads."""
    best = comparison.matches[0]

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import compare as table

        alone = models_beside(comparison, best) if len(comparison.matches) == 1 else None
        return table.render_models(comparison, comparison.matches[: top or SHOWN], alone, display)

    def draw(**look: Any) -> "Drawn":
        if len(comparison.heads) > 1:
            from attnviz.renderers.picture import similarity

            return similarity.draw_models(comparison, **look)
        from attnviz.renderers.picture.beside import draw_beside

        title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
        return draw_beside(models_beside(comparison, best), title, about_models(comparison), **look)

    ours, theirs = (captured.model.name for captured in comparison.captures)
    return Result(
        "compare",
        comparison,
        f"{ours} and {theirs}",
        (rows.MatchRow,),
        lambda: rows.match_rows(comparison, comparison.matches[:top]),
        shown,
        draw,
        _archive=lambda: (rows.comparison_facts(comparison), {"similarity": comparison.similarity}),
        captures=comparison.captures,
    )
