"""How alike the heads of two models are, as a matrix: those of the first down."""

from collections.abc import Sequence

from attnviz.data.compare import ModelComparison
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import draw_bar, sheet, write_heading
from attnviz.draw.picture.paint import EMPTY
from attnviz.records.heads import Head
from attnviz.renderers.compare_titles import similarity_title

GRID_SIDE = 5.0  # inches, of the longer side
LEAST = 0.8  # inches, of the shorter one
LABELS = 32  # heads along a side that are named at most


def draw_models(comparison: ModelComparison, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The similarity of every pair of heads; a circle marks the pairs that the rows list.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    title, about = similarity_title(comparison)
    names = [captured.model.name for captured in comparison.captures]
    with sheet([title, about, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        rows, columns = comparison.similarity.shape
        height, width = (max(LEAST, GRID_SIDE * n / max(rows, columns)) for n in (rows, columns))
        axes = place(figure, 0, 0, width, height)
        axes.set_facecolor(EMPTY)
        shown = axes.imshow(comparison.similarity, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        draw_bar(place(figure, width + 0.15, 0, 0.15, height), shown, "similarity")
        across = [comparison.others.index(match.other) for match in comparison.matches]
        down = [comparison.heads.index(match.head) for match in comparison.matches]
        size = min(40.0, (GRID_SIDE * 72 / max(rows, columns) / 2) ** 2)
        axes.scatter(across, down, s=size, facecolors="none", edgecolors="#d62728")
        for label, axis, heads in (
            (names[0], axes.yaxis, comparison.heads),
            (names[1], axes.xaxis, comparison.others),
        ):
            ticks, said = _named(heads)
            axis.set_ticks(ticks, said, fontsize=6)
            axis.set_label_text(fonts.spell(label), fontsize=8)
        axes.tick_params(axis="x", rotation=90)
        write_heading(figure, height + 0.15, width, title, about, fonts)
    return Drawn(figure, fonts.notes)


def _named(heads: Sequence[Head]) -> tuple[list[int], list[str]]:
    """The heads that are named: all, or one of several."""
    every = -(-len(heads) // LABELS)
    ticks = list(range(0, len(heads), every))
    return ticks, [str(heads[tick]) for tick in ticks]
