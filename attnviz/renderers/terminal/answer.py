"""An answer, and what each part of it looked at: a column for each segment of the prompt.

The same as coloured cells, or as the prompt itself, shaded for each part of the answer.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.data.check import Check
from attnviz.data.shares import Column, Shares, View
from attnviz.draw.labels import fenced
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import listing
from attnviz.draw.terminal import text as terminal_text
from attnviz.draw.terminal.colors import cut, folded, widest
from attnviz.errors import readable
from attnviz.renderers.answers import about_answer, about_check, by_segment, by_word, quoted

LONGEST_NAME, LONGEST_QUOTE = 14, 200
"""Cells of the name of a segment; letters of a segment that is quoted."""
SHORTEST_ROW, LONGEST_ROW = 12, 28
"""Cells of a row's name, a third of the width within these."""
NUMBER = len("0.00")
QUOTED = 3
"""So many of the segments with the largest share are quoted below the table."""


def render(
    shares: Shares, check: Check | None, display: Display, view: View = "table"
) -> Iterator[RenderableType]:
    """The answer in this view, the segments that it looked at most, and what deletions changed."""
    yield from VIEWS[view](shares, display)
    yield from _quotes(shares, display)
    if check is not None:
        yield Text()
        yield from _checked(check, display)


def _as_table(shares: Shares, display: Display) -> Iterator[RenderableType]:
    """The heads, and a row for each part of the answer."""
    yield from folded(Text(about_answer(shares), "dim"), display.width)
    answer = "".join(token.exact for token in shares.capture.query_tokens).strip()
    yield from folded(Text(fenced(f"“{readable(answer)}”")), display.width)
    yield Text()
    yield from _table(shares, display)


def _as_heatmap(shares: Shares, display: Display) -> Iterator[RenderableType]:
    yield from terminal_heatmap.render(by_segment(shares), display)


def _as_text(shares: Shares, display: Display) -> Iterator[RenderableType]:
    """The prompt, once for each part of the answer."""
    for n, exhibit in enumerate(by_word(shares)):
        yield from [Text()] if n else []
        yield from terminal_text.render(exhibit, display)


VIEWS: Mapping[View, Callable[[Shares, Display], Iterator[RenderableType]]] = MappingProxyType(
    {"table": _as_table, "heatmap": _as_heatmap, "text": _as_text}
)


def _quotes(shares: Shares, display: Display) -> Iterator[Text]:
    """The segments with the largest share, in their own words."""
    segments = [column for column in by_share(shares) if column.part == "segment"]
    words = [(column.name, quoted(shares.capture, column)) for column in segments]
    strongest = [(name, said) for name, said in words if said.strip(" …")][:QUOTED]
    if strongest:
        yield Text()
    for name, quote in strongest:
        said = f"{readable(name)}  {quote}"
        short = said if len(said) <= LONGEST_QUOTE else said[: LONGEST_QUOTE - 1] + "…"
        yield from folded(Text(fenced(short)), display.width)


def _checked(check: Check, display: Display) -> Iterator[Text]:
    """The change in the answer's log-probability without each segment, beside its attention."""
    columns = [listing.Column("deleted")]
    columns += [listing.Column(name, right=True) for name in ("attention", "change (nats)")]
    rows = [
        (fenced(readable(each.segment)), f"{each.share:.2f}", f"{each.change:+z.2f}")
        for each in check.effects
    ]
    yield from listing.listing(columns, rows, display.width)
    yield from folded(Text(about_check(check)), display.width)


def by_share(shares: Shares) -> list[Column]:
    """The columns, those with the largest mean share first."""
    order = np.argsort(-shares.shares.mean(axis=0), kind="stable")
    return [shares.columns[i] for i in order]


def _table(shares: Shares, display: Display) -> Iterator[Text]:
    """As many segments as fit, in the order of the prompt; what the others have is one column."""
    most = max(SHORTEST_ROW, min(LONGEST_ROW, display.width // 3))
    rows = [cut(readable(row.text), most, unicode=display.unicode) for row in shares.rows]
    names = [cut(readable(c.name), LONGEST_NAME, unicode=display.unicode) for c in shares.columns]
    room = display.width - widest(rows)
    room -= 0 if shares.lookback is None else listing.GAP + len("lookback")
    kept, used = list[int](), 0
    order = np.argsort(-shares.shares.mean(axis=0), kind="stable").tolist()
    others = listing.GAP + len("999 others")
    for i in order:
        cells = listing.GAP + max(widest([names[i]]), NUMBER)
        last = len(kept) + 1 == len(order)
        if used + cells + (0 if last else others) > room:
            break
        kept, used = [*kept, i], used + cells
    kept.sort()
    left = [i for i in order if i not in kept]
    named = "answer" if shares.lookback is None else "head"
    columns = [listing.Column(named), *(listing.Column(names[i], right=True) for i in kept)]
    cells_of = [[f"{share:.2f}" for share in row[kept]] for row in shares.shares]
    if left:
        columns.append(listing.Column(f"{len(left)} others", right=True))
        cells_of = [
            [*cells, f"{row[left].sum():.2f}"]
            for cells, row in zip(cells_of, shares.shares, strict=True)
        ]
    if shares.lookback is not None:
        columns.append(listing.Column("lookback", right=True))
        ratios = ["" if np.isnan(ratio) else f"{ratio:.2f}" for ratio in shares.lookback]
        cells_of = [[*cells, ratio] for cells, ratio in zip(cells_of, ratios, strict=True)]
    lines = [[fenced(name), *cells] for name, cells in zip(rows, cells_of, strict=True)]
    yield from listing.listing(columns, lines, display.width)
