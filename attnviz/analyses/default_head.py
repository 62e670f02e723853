"""The head to show when the user chose none.

A model whose card names heads: the named head that fits the text best (`named_head.py`); the
only one, where it names one. Any other model, and a capture that lacks a named head: the head
with the highest generic score (`generic_head.py`). Both rules are deterministic, and use
nothing but the capture.
"""

from attnviz.analyses.generic_head import most_telling_head
from attnviz.analyses.named_head import choose
from attnviz.data.capture import Capture
from attnviz.data.exhibit import Choice


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among the heads of the capture."""
    named = capture.named_heads
    if named and all(each.head in capture.heads for each in named):
        patterns = {each.head: capture.weights(each.head) for each in named}
        best = choose(patterns, named, bos=capture.bos)
        if best is not None:
            return Choice((best.head,), "fits best", best)
        if len(named) == 1:
            return Choice((named[0].head,), "card", named[0])
    return Choice((most_telling_head(capture),), "generic")
