"""An answer for renderers: sentences about it, and its rows as an exhibit of segments or words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, NotRequired, TypedDict

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.generate.answer import Check, Column, Part, Shares, View
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import listing
from attnviz.draw.terminal import text as terminal_text
from attnviz.draw.terminal.colors import cut, folded, widest
from attnviz.draw.titles import amount, beginning, prompt_size, size_of_answer
from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, HeadMap, Sides
from attnviz.records.heads import listed
from attnviz.records.rows import LineNumber, measured
from attnviz.records.tokens import Token
from attnviz.records.transforms import How

SIDES = Sides("part of the answer", "parts of the answer", "segment", "segments")
OF_HEADS = Sides("head", "heads", "segment", "segments")


def about_answer(shares: Shares) -> str:
    """`builtin, the mean of all 20 heads: 74 prompt tokens, 2 new`."""
    name, size = readable(shares.capture.model.name), size_of_answer(shares.capture)
    return f"{name}, {about_heads(shares)}: {size}"


def about_heads(shares: Shares) -> str:
    """`the mean of all 20 heads`, `retrieval head L4H0`."""
    choice = shares.choice
    if shares.lookback is not None:
        return f"each of {amount(len(choice.heads), 'head')}"
    if len(choice.heads) == 1:
        known = "retrieval head " if choice.why == "retrieval" else ""
        heads = f"{known}{choice.heads[0]}"
    elif choice.why == "retrieval":
        heads = f"the {shares.how} of the retrieval heads {listed(choice.heads)}"
    elif choice.why == "all":
        heads = f"the {shares.how} of all {len(choice.heads)} heads"
    else:
        heads = f"the {shares.how} of {listed(choice.heads)}"
    return heads


def by_segment(shares: Shares) -> Exhibit:
    """The shares of segments as an exhibit: a row for each part of the answer."""
    answer = "".join(token.exact for token in shares.capture.query_tokens)
    read = beginning(shares.capture.text[: _end_of_prompt(shares.capture)])
    said = f"{readable(shares.capture.model.name)}, {size_of_answer(shares.capture)}: “{read}” → “"
    rows = [row.text for row in shares.rows]
    shown = replace(
        shares.capture,
        kind="cross",
        causal=False,
        query_tokens=tuple(_labelled(rows)),
        key_tokens=tuple(_labelled(column.name for column in shares.columns)),
        layers=(),
    )
    exhibit = _exhibit(shares, shown, (HeadMap(*_place(shares), weights=shares.shares),))
    caption = f"what the answer attended to ({about_heads(shares)})"
    subtitle = f"{said}{beginning(answer)}”"
    sides = SIDES if shares.lookback is None else OF_HEADS
    return replace(exhibit, caption=caption, subtitle=subtitle, sides=sides)


def by_word(shares: Shares) -> Iterator[Exhibit]:
    """For each part of the answer, the prompt and how much this part attended to each token."""
    n, capture = prompt_size(shares.capture), shares.capture
    own = [i for i, column in enumerate(shares.columns) if column.part == "answer"]
    for row, of_row in zip(shares.rows, shares.shares, strict=True):
        shown = replace(
            capture,
            kind="cross",
            causal=False,
            text=capture.text[: _end_of_prompt(capture)],
            query_tokens=tuple(_labelled([row.text])),
            key_tokens=capture.key_tokens[:n],
            layers=(),
        )
        weights = shares.weights[row.first : row.after, :n].mean(axis=0, keepdims=True)
        head_map = HeadMap(*_place(shares), weights=weights)
        exhibit = _exhibit(shares, shown, (head_map,))
        itself = "".join(f", {of_row[i]:.2f} on the answer itself" for i in own)
        subtitle = f"{about_answer(shares)}{itself}"
        yield replace(exhibit, caption=f"“{beginning(row.text)}”", subtitle=subtitle)


def _exhibit(shares: Shares, shown: Capture, maps: tuple[HeadMap, ...]) -> Exhibit:
    queries, keys = range(len(shown.query_tokens)), range(len(shown.key_tokens))
    return Exhibit(shown, maps, tuple(queries), tuple(keys), caption=about_heads(shares))


def _place(shares: Shares) -> tuple[int | None, int | None, How | None]:
    """The layer and the head of the one head, or how several were joined."""
    heads = shares.choice.heads
    return (*heads[0], None) if len(heads) == 1 else (None, None, shares.how)


def _labelled(labels: Iterable[str]) -> Iterator[Token]:
    """Tokens that read so; they are slices of no text."""
    return (Token(i, -1, label, 0, 0) for i, label in enumerate(labels))


def _end_of_prompt(capture: Capture) -> int:
    if capture.kind == "cross":
        return len(capture.text)
    return capture.query_tokens[0].start


MATTERS = 0.1
"""Nats; a change of less is called none."""


def about_check(check: Check) -> str:
    """Whether the segments that were attended to are those that matter."""
    said = [f"log-probability of the answer: {check.log_probability:.2f} nats"]
    most = max(check.effects, key=lambda each: each.share)
    kept = check.kept
    if kept is not None:
        said.append(
            f"{readable(kept[0])} ({kept[1]:.2f}) was not deleted, as it asks for the answer"
        )
    if check.sink is not None:
        said.append(
            f"with {readable(check.sink)} the first token was deleted, the sink, as there is no BOS"
        )
    if most.change > -MATTERS and (kept is None or kept[1] < most.share):
        how = "more" if most.change > MATTERS else "as"
        name = readable(most.segment)
        said.append(f"{name} has the most attention, but the answer is {how} probable without it")
    if check.correlation is not None:
        said.append(
            f"rank correlation of attention and effect (Spearman's ρ): {check.correlation:.2f}"
        )
    if check.group is not None:
        n, top, random = check.group.size, check.group.top, check.group.random
        said.append(
            f"without the {amount(n, 'segment')} with the most attention {top:+.2f} nats, without "
            f"{amount(n, 'random one')} {random:+.2f}"
        )
    return "; ".join(said)


def quoted(capture: Capture, column: Column) -> str:
    """The text of a segment's tokens."""
    keys, tokens = column.keys.tolist(), capture.key_tokens
    firsts = [i for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key - 1]
    runs = (keys[a:b] for a, b in pairwise([*firsts, len(keys)]))
    parts = (capture.text[tokens[run[0]].start : tokens[run[-1]].end] for run in runs)
    return readable(" … ".join(" ".join(part.split()) for part in parts))


# An answer, and what each part of it looked at: a column for each segment of the prompt.
#
# The same as coloured cells, or as the prompt itself, shaded for each part of the answer.

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


# The shares of a prompt's segments in what an answer attended to, as rows.


class ShareRow(TypedDict):
    """The share of a segment in what a part of the answer attended to."""

    line: LineNumber
    row: Annotated[int, "The number of the part of the answer, or of the head, from 1."]
    text: Annotated[str, "The part of the answer; empty: the whole answer in one head."]
    segment: Annotated[str, "The name of the segment."]
    part: Annotated[Part, "What the segment is; sink: the first token."]
    share: Annotated[float, "The mean weight on it; the shares of a row sum to 1."]
    layer: NotRequired[Annotated[int, "With --rows head: the head's layer."]]
    head: NotRequired[Annotated[int, "With --rows head: its number in the layer."]]
    change: NotRequired[
        Annotated[
            float | None,
            "With --check: the change of this part's log-probability (nats) without the segment.",
        ]
    ]
    lookback: NotRequired[Annotated[float | None, "With --rows head: the head's lookback ratio."]]


def share_rows(
    shares: Shares, line: int = 1, check: Check | None = None, first: int = 0
) -> Iterator[ShareRow]:
    """A row for each part of the answer and each column.

    `first`: how many parts of the answer went out before.
    """
    changes = {each.segment: each.changes for each in check.effects} if check else {}
    for n, part in enumerate(shares.rows):
        for column, share in zip(shares.columns, shares.shares[n], strict=True):
            row: ShareRow = {
                "line": line,
                "row": first + n + 1,
                "text": "" if part.head else part.text,
                "segment": column.name,
                "part": column.part,
                "share": float(share),
            }
            if part.head is not None:
                row |= {"layer": part.head.layer, "head": part.head.head}
            if check is not None:
                deleted = column.part == "segment" and column.name in changes
                of_part = changes[column.name][part.first : part.after] if deleted else ()
                row |= {"change": sum(of_part) if deleted else None}
            if shares.lookback is not None:
                row |= {"lookback": measured(float(shares.lookback[n]))}
            yield row
