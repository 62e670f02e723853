"""Sentences of the terminal: wrapped between words, and no line ends in spaces."""

import io

from rich.console import Console
from rich.text import Text

from attnviz.renderers.direction import MARK, runs


def folded(text: Text, width: int) -> list[Text]:
    """The text as lines of at most `width` cells, in the styles that it has."""
    # The console is asked for nothing here but is a part of Rich's signature.
    lines = text.wrap(Console(file=io.StringIO(), width=width), width, overflow="fold")
    for line in lines:
        line.rstrip()
        line.no_wrap, line.overflow = True, "crop"
    return list(lines)


def fenced_line(line: Text) -> Text:
    """The same for a line in several styles, whose runs may cross from one style to another."""
    edges = [edge for run in runs(line.plain) for edge in run]
    if not edges:
        return line
    mark = Text(MARK, no_wrap=line.no_wrap, overflow=line.overflow)
    return mark.join(line.divide(edges))
