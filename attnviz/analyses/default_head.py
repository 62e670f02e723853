"""The head to show when the user chose none.

For a model whose card names heads, it is the named head that fits the text best
(`named_head.py`), or the only named head. For any other model, and for a capture that lacks a
named head, it is the most telling head (`generic_head.py`). Both rules are deterministic and
depend on the capture alone.
"""

from dataclasses import dataclass

from attnviz.analyses.generic_head import most_telling_head
from attnviz.analyses.named_head import choose
from attnviz.data.capture import Capture
from attnviz.data.head import Head


@dataclass(frozen=True)
class Choice:
    """A head, the words that describe it, and the reason for choosing it."""

    head: Head
    title: str
    why: str


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among the heads of the capture."""
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
    """The most telling head as a choice, with its title and reason."""
    title = "looks away most from itself, its neighbour and the start"
    return Choice(head, title, "the highest of all heads' generic scores")
