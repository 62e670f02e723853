"""Which head to show when nobody chose one.

A model whose card names heads: the named head that fits the text best. Any other
model: the head with the highest generic score (`generic_head.py`). Both rules are
deterministic and look at nothing but the capture.
"""

from dataclasses import dataclass

from attnviz.analyses.generic_head import most_telling_head
from attnviz.data.capture import Capture
from attnviz.data.heads import Head


@dataclass(frozen=True)
class Choice:
    """A head, and in words why it is this one."""

    head: Head
    reason: str


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among those that the capture holds."""
    head = most_telling_head(capture)
    return Choice(head, "the head that looks away most from itself, its neighbour and the start")
