"""A picture for each score: layers down, heads across, with the roles that follow."""

from collections.abc import Iterator

from attnviz.commands.heads.rows import heads_title, untold
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import draw_panes, score_pane
from attnviz.draw.titles import amount, caption
from attnviz.errors import readable
from attnviz.records.metrics import METRICS, HeadReport


def draw(report: HeadReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The metrics of all heads: shares from 0 to 1, others from 0 to the largest.

    A head is boxed in the metric that gives it its role.
    """
    found = (
        score_pane(
            metric,
            by_head((each.head, each.metrics[name].mean) for each in report.heads),
            [each.head for each in report.heads if each.role and each.role.metric == name],
        )
        for name, metric in METRICS.items()
    )
    panes = [pane for pane in found if pane is not None]
    title = f"Scores of {amount(len(report.heads), 'head')}"
    about = heads_title(report) if report.probe else caption(report.capture)
    return draw_panes(title, panes, about=about, below=list(_below(report)), dpi=dpi, cmap=cmap)


def _below(report: HeadReport) -> Iterator[str]:
    """What a box means, and which heads have a name."""
    roles = dict.fromkeys(each.role for each in report.heads if each.role)
    if roles:
        passed = (f"{role.name}: {role.metric} ≥ {role.least:g}" for role in roles)
        yield f"boxed: the head's role, the first threshold that it meets ({', '.join(passed)})"
    if report.untold:
        yield untold(report)
    named = [f"{each.head} {', '.join(each.named)}" for each in report.heads if each.named]
    if named:
        yield f"known for: {readable('; '.join(named))}"
