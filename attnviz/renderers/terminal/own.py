"""By how much both tokens of a question changed, as columns of a table."""

from collections.abc import Sequence

from attnviz.records.interventions import Candidate, Outcome
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import name_of
from attnviz.renderers.terminal.listing import Column

LEGEND = "log p: change in each token's own log-probability (nats)"


def own_columns(answer: Candidate | None, versus: Candidate | None) -> Sequence[Column]:
    """A column for each token; texts with answers of their own have other tokens."""
    first, other = "answer", "versus"
    if answer is not None and versus is not None:
        first, other = (fenced(name_of(each.label)) for each in (answer, versus))
    return [Column(f"log p {name}", right=True) for name in (first, other)]


def own_cells(own: Outcome | None) -> Sequence[str]:
    """The changes of both log-probabilities."""
    if own is None:
        return "", ""
    return f"{own.answer_log_probability:+.3f}", f"{own.versus_log_probability:+.3f}"
