"""How alike the heads of two models are, as a matrix: those of the first down."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnviz.data.compare import ModelComparison
from attnviz.data.head import Head
from attnviz.renderers.picture.canvas import place
from attnviz.renderers.picture.sheet import sheet, write_line
from attnviz.renderers.titles import similarity_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 5.0  # inches, of the longer side
LEAST = 0.8  # inches, of the shorter one
LABELS = 32  # heads along a side that are named at most


def draw(comparison: ModelComparison, *, dpi: int = 150, cmap: str = "viridis") -> "Figure":
    """The similarity of every pair of heads; a ring marks the pairs that the rows list.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    lines = similarity_title(comparison)
    names = [captured.model.name for captured in comparison.captures]
    with sheet([*lines, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        rows, columns = comparison.similarity.shape
        height, width = (max(LEAST, SIDE * n / max(rows, columns)) for n in (rows, columns))
        axes = place(figure, 0, 0, width, height)
        axes.set_facecolor("#f0f0f0")
        shown = axes.imshow(comparison.similarity, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        bar = axes.figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.03)
        bar.set_label("similarity", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        across = [comparison.others.index(match.other) for match in comparison.matches]
        down = [comparison.heads.index(match.head) for match in comparison.matches]
        size = min(40.0, (SIDE * 72 / max(rows, columns) / 2) ** 2)
        axes.scatter(across, down, s=size, facecolors="none", edgecolors="#d62728")
        for label, axis, heads in (
            (names[0], axes.yaxis, comparison.heads),
            (names[1], axes.xaxis, comparison.others),
        ):
            ticks, said = _named(heads)
            axis.set_ticks(ticks, said, fontsize=6)
            axis.set_label_text(fonts.spell(label), fontsize=8)
        axes.tick_params(axis="x", rotation=90)
        for number, line in enumerate(reversed(lines)):
            write_line(figure, height + 0.2 + 0.22 * number, fonts.spell(line))
    return figure


def _named(heads: Sequence[Head]) -> tuple[list[int], list[str]]:
    """The heads that are named: all, or one of several."""
    every = -(-len(heads) // LABELS)
    ticks = list(range(0, len(heads), every))
    return ticks, [str(heads[tick]) for tick in ticks]
