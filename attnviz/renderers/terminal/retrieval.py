"""Each head's share of copied tokens that it looks at, as a person reads it."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.console import Display
from attnviz.data.retrieval import RETRIEVES, Retrieval
from attnviz.draw.terminal.colors import bar_style, folded
from attnviz.draw.titles import amount, bar_of
from attnviz.errors import readable
from attnviz.records.heads import Head, listed

BAR = 20


def render(
    retrieval: Retrieval, scores: Sequence[tuple[Head, float]], display: Display
) -> Iterator[Text]:
    """What was measured, the heads with a score, and which of them retrieve."""
    needles = retrieval.needles
    runs = len(needles.depths) * needles.samples
    said = (
        f"{readable(retrieval.model.name)}, retrieval: {needles.length} random tokens copied from "
        f"a haystack of random tokens, {amount(runs, 'text')}; share of the copied tokens that "
        "are the head's strongest key"
    )
    yield from folded(Text(said, "dim"), display.width)
    yield Text()
    for head, score in scores:
        if score > 0:
            line = Text(f"{head!s:<8}{score:.2f} ")
            line.append(bar_of(score, BAR, display.unicode), bar_style(score, display))
            line.rstrip()
            yield line
    found = retrieval.heads
    yield Text()
    yield from folded(
        Text(
            f"retrieval heads ({RETRIEVES} or more): {listed(found)}"
            if found
            else f"no head reaches {RETRIEVES}, so none is a retrieval head"
        ),
        display.width,
    )
