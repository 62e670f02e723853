"""Which head to show when nobody chose one.

A model whose card names heads: the named head that fits the text best (`named_head.py`); the only
one, where it names one.
Any other model, and a capture that lacks a named head: the head with the highest generic
score (`generic_head.py`). Both rules are deterministic and look at nothing but the capture.
"""

from dataclasses import dataclass

from attnviz.analyses.generic_head import most_telling_head
from attnviz.analyses.named_head import choose
from attnviz.data.capture import Capture
from attnviz.data.head import Head


@dataclass(frozen=True)
class Choice:
    """A head, in words what it does, and why it is this one."""

    head: Head
    title: str
    why: str


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among those that the capture holds."""
    named = capture.named_heads
    if named and all(each.head in capture.heads for each in named):
        patterns = {each.head: capture.weights(each.head) for each in named}
        best = choose(patterns, named, bos=capture.bos)
        if best is not None:
            return Choice(best.head, best.title, "the named head that fits this text best")
        if len(named) == 1:
            return Choice(named[0].head, named[0].title, "the head that the model's card names")
    return generic_choice(most_telling_head(capture))


def generic_choice(head: Head) -> Choice:
    """The head with the highest generic score, and that it is this."""
    title = "looks away most from itself, its neighbour and the start"
    return Choice(head, title, "the highest of all heads' generic scores")
