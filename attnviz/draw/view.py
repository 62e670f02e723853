"""The view of a result as data, which terminal, picture and page read alike."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.draw.effects import ran
from attnviz.draw.matrix import head_name, layer_name
from attnviz.draw.terminal.cells import TableColumns
from attnviz.draw.titles import caption, facts
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head
from attnviz.records.interventions import BothRuns


@dataclass(frozen=True, eq=False)
class Pane:
    """One measure: `values` (layers, heads), NaN where there is nothing, from `low` to `high`.

    `digits`: behind the point, where the cells of a picture have room for numbers. `boxed`: heads
    that are marked. `columns`: the names of what stands across, where that is not heads alone;
    `rows`: of what stands down, where that is not layers. `errors`: of a mean, the standard errors.
    `bar`: the label of its colour bar; None: it has none. `turned`: in a terminal columns stand
    down, where their names have room. `order`: the rows, first that of most interest. `quoted`: in
    a picture a column's name that may be taken for a number stands in quotes. `told`: the numbers
    of a cell (row, column) in words.
    """

    title: str
    values: FloatArray
    low: float = 0.0
    high: float = 1.0
    digits: int = 2
    boxed: Collection[Head] = ()
    columns: Sequence[str] | None = None
    rows: Sequence[str] | None = None
    errors: FloatArray | None = None
    bar: str | None = ""
    turned: bool = False
    order: Sequence[int] | None = None
    quoted: bool = False
    told: Callable[[int, int], str] | None = None

    @property
    def across(self) -> Sequence[str]:
        """The names of the columns."""
        return self.columns or [head_name(head) for head in range(self.values.shape[1])]

    @property
    def down(self) -> Sequence[str]:
        return self.rows or [layer_name(layer) for layer in range(len(self.values))]


@dataclass(frozen=True)
class Table:
    """A row for each item; `spare` stands beside the columns where there is room for it.

    `legend`: what the spare columns are.
    """

    items: Sequence[Any]
    columns: Sequence[TableColumns]
    spare: TableColumns | None = None
    legend: str = ""


@dataclass(frozen=True, eq=False)
class ResultView:
    """The view of a changed run, or of the mean over `texts`, each a `noun`.

    `done`: what was changed. `about`: what is measured, and what its numbers mean; `under`: the
    same below a picture. `found`: the finding. `maps` are on one scale, to `most` on both sides,
    which for a person who sees no numbers is at least `least`; `bar` names it. `empty`: what a cell
    without a number means. `below`: sentences below the table, `notes` in small letters.
    """

    done: str
    first: Capture
    texts: int | None
    noun: str
    about: Sequence[str]
    found: str = ""
    maps: Sequence[Pane] = ()
    most: float = 0.0
    least: float = 0.0
    bar: str = ""
    under: Sequence[str] | None = None
    empty: str = ""
    table: Table | None = None
    next_tokens: BothRuns[Any] | None = None
    below: Sequence[str] = ()
    notes: Sequence[str] = ()
    graph: Callable[..., float] | None = None

    @property
    def title(self) -> str:
        """The change as a title."""
        return self.done[0].upper() + self.done[1:]

    @property
    def scale(self) -> float:
        """The end of the scale of colours."""
        return max(self.least, self.most) or 1.0

    @property
    def facts(self) -> str:
        """The run in a few words."""
        return ran(self.first, self.texts, self.noun, facts)

    @property
    def caption(self) -> str:
        """The run in a few words, with the beginning of its text."""
        return ran(self.first, self.texts, self.noun, caption)
