"""How much of each head's attention goes to the keys that are labelled as true."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.console import Display
from attnviz.data.labels import LabelReport, LabelScore
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.records.metrics import Estimate


def render(report: LabelReport, scores: Sequence[LabelScore], display: Display) -> Iterator[Text]:
    """These heads as a table, and what its columns are."""
    yield from folded(Text(labels_title(report), "dim"), display.width)
    yield Text()
    errors = report.texts > 1
    names = ["mass", *(["± s.e."] if errors else [])]
    names += ["strongest", *(["± s.e."] if errors else [])]
    columns = [Column("head"), *(Column(name, right=True) for name in names)]
    rows = [[str(score.head), *_cells(score.mass), *_cells(score.strongest)] for score in scores]
    yield from listing(columns, rows, display.width)
    yield Text()
    said = "mass: weight on the true keys; strongest: share of rows whose strongest key is true"
    if errors:
        said += "; s.e.: standard error over texts"
    yield from folded(Text(said, "dim"), display.width)


def _cells(estimate: Estimate) -> list[str]:
    error = [] if estimate.error is None else [f"{estimate.error:.3f}"]
    return [f"{estimate.mean:.3f}", *error]


def labels_title(report: LabelReport) -> str:
    """What labelled links were scored on how much."""
    size = f"{amount(report.texts, 'text')}, {amount(report.rows, 'row')}"
    return f"{readable(report.model.name)}, labelled links: {size}"
