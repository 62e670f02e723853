"""Which head to show when nobody chose one.

A model whose card names heads: the named head that fits the text best (`named_head.py`).
Any other model, and a capture that lacks a named head: the head with the highest generic
score (`generic_head.py`). Both rules are deterministic and look at nothing but the capture.
"""

from dataclasses import dataclass

from attnviz.analyses.generic_head import most_telling_head
from attnviz.analyses.named_head import choose
from attnviz.data.capture import Capture
from attnviz.data.heads import Head


@dataclass(frozen=True)
class Choice:
    """A head, and in words why it is this one."""

    head: Head
    reason: str


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among those that the capture holds."""
    named = capture.named_heads
    if named and all(each.head in capture.heads for each in named):
        patterns = {each.head: capture.weights(each.head) for each in named}
        best = choose(patterns, named, bos=capture.bos)
        if best is not None:
            why = "the named head that fits this text best"
            return Choice(best.head, f"{best.title} ({why}; others: --head all)")
    head = most_telling_head(capture)
    why = "the head that looks away most from itself, its neighbour and the start"
    return Choice(head, f"{why} (others: --head all)")
