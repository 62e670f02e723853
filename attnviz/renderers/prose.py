"""Sentences of the terminal: wrapped between words, and no line ends in spaces."""

import io

from rich.console import Console
from rich.text import Text


def folded(text: Text, width: int) -> list[Text]:
    """The text as lines of at most `width` cells, in the styles that it has."""
    # The console is asked for nothing here but is a part of Rich's signature.
    lines = text.wrap(Console(file=io.StringIO(), width=width), width, overflow="fold")
    for line in lines:
        line.rstrip()
        line.no_wrap, line.overflow = True, "crop"
    return list(lines)
