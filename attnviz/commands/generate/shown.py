"""An answer for renderers: sentences about it, and its rows as an exhibit of segments or words."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, NotRequired, TypedDict

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.generate.answer import AnswerShares, Check, KeyGroup, KeyKind, View
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import listing
from attnviz.draw.terminal import text as terminal_text
from attnviz.draw.terminal.colors import cut, folded, widest
from attnviz.draw.titles import amount, beginning, prompt_size, size_of_answer
from attnviz.errors import readable
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit, HeadMap, Sides
from attnviz.records.heads import listed
from attnviz.records.rows import LineNumber, measured
from attnviz.records.tokens import Token

SIDES = Sides("part of the answer", "parts of the answer", "segment", "segments")
OF_HEADS = Sides("head", "heads", "segment", "segments")


def about_answer(shares: AnswerShares) -> str:
    """`builtin, the mean of all 20 heads: 74 prompt tokens, 2 new`."""
    name, size = readable(shares.capture.model.name), size_of_answer(shares.capture)
    return f"{name}, {about_heads(shares)}: {size}"


def about_heads(shares: AnswerShares) -> str:
    """`the mean of all 20 heads`, `retrieval head L4H0`."""
    choice = shares.choice
    if shares.lookback is not None:
        return f"each of {amount(len(choice.heads), 'head')}"
    if len(choice.heads) == 1:
        known = "retrieval head " if choice.why == "retrieval" else ""
        return f"{known}{choice.heads[0]}"
    if choice.why == "all":
        return f"the {shares.how} of all {len(choice.heads)} heads"
    known = "the retrieval heads " if choice.why == "retrieval" else ""
    return f"the {shares.how} of {known}{listed(choice.heads)}"


def by_segment(shares: AnswerShares) -> Exhibit:
    """The shares of segments as an exhibit: a row for each part of the answer."""
    capture = shares.capture
    answer = "".join(token.exact for token in capture.query_tokens)
    prompt = beginning(capture.text[: _end_of_prompt(capture)])
    about = f"{readable(capture.model.name)}, {size_of_answer(capture)}"
    exhibit = _exhibit(
        shares,
        replace(capture, key_tokens=_labelled(column.name for column in shares.columns)),
        [row.text for row in shares.rows],
        shares.shares,
    )
    return replace(
        exhibit,
        caption=f"what the answer attended to ({about_heads(shares)})",
        subtitle=f"{about}: “{prompt}” → “{beginning(answer)}”",
        sides=SIDES if shares.lookback is None else OF_HEADS,
    )


def by_word(shares: AnswerShares) -> Iterator[Exhibit]:
    """For each part of the answer, the prompt and how much this part attended to each token."""
    capture, n = shares.capture, prompt_size(shares.capture)
    prompt = replace(
        capture, text=capture.text[: _end_of_prompt(capture)], key_tokens=capture.key_tokens[:n]
    )
    own = [i for i, column in enumerate(shares.columns) if column.part == "answer"]
    for row, of_row in zip(shares.rows, shares.shares, strict=True):
        weights = shares.weights[row.first : row.after, :n].mean(axis=0, keepdims=True)
        itself = "".join(f", {of_row[i]:.2f} on the answer itself" for i in own)
        yield replace(
            _exhibit(shares, prompt, [row.text], weights),
            caption=f"“{beginning(row.text)}”",
            subtitle=f"{about_answer(shares)}{itself}",
        )


def _exhibit(
    shares: AnswerShares, capture: Capture, rows: Iterable[str], weights: FloatArray
) -> Exhibit:
    """An exhibit of weights (rows, keys); its rows have names of their own."""
    heads = shares.choice.heads
    layer, head = heads[0] if len(heads) == 1 else (None, None)
    head_map = HeadMap(layer, head, None if len(heads) == 1 else shares.how, weights=weights)
    capture = replace(capture, kind="cross", causal=False, query_tokens=_labelled(rows), layers=())
    queries, keys = (tuple(range(n)) for n in weights.shape)
    return Exhibit(capture, (head_map,), queries, keys)


def _labelled(labels: Iterable[str]) -> tuple[Token, ...]:
    """Tokens with these labels; they are slices of no text."""
    return tuple(Token(i, -1, label, 0, 0) for i, label in enumerate(labels))


def _end_of_prompt(capture: Capture) -> int:
    if capture.kind == "cross":
        return len(capture.text)
    return capture.query_tokens[0].start


MATTERS = 0.1
"""Nats; a smaller change is called none."""


def about_check(check: Check) -> str:
    """Whether the segments with the most attention are those that matter."""
    facts = [f"log-probability of the answer: {check.log_probability:.2f} nats"]
    most = max(check.effects, key=lambda each: each.share)
    kept = check.kept
    if kept is not None:
        facts.append(
            f"{readable(kept[0])} ({kept[1]:.2f}) was not deleted, as it asks for the answer"
        )
    if check.sink is not None:
        facts.append(
            f"with {readable(check.sink)} the first token was deleted, the sink, as there is no BOS"
        )
    if most.change > -MATTERS and (kept is None or kept[1] < most.share):
        how = "more" if most.change > MATTERS else "as"
        name = readable(most.segment)
        facts.append(f"{name} has the most attention, but the answer is {how} probable without it")
    if check.correlation is not None:
        facts.append(
            f"rank correlation of attention and effect (Spearman's ρ): {check.correlation:.2f}"
        )
    if check.group is not None:
        n, top, random = check.group.size, check.group.top, check.group.random
        facts.append(
            f"without the {amount(n, 'segment')} with the most attention {top:+.2f} nats, without "
            f"{amount(n, 'random one')} {random:+.2f}"
        )
    return "; ".join(facts)


def quoted(capture: Capture, column: KeyGroup) -> str:
    """The text of a segment's tokens."""
    keys, tokens = column.keys.tolist(), capture.key_tokens
    firsts = [i for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key - 1]
    runs = (keys[a:b] for a, b in pairwise([*firsts, len(keys)]))
    parts = (capture.text[tokens[run[0]].start : tokens[run[-1]].end] for run in runs)
    return readable(" … ".join(" ".join(part.split()) for part in parts))


LONGEST_NAME, LONGEST_QUOTE = 14, 200
"""Cells of the name of a segment; letters of a segment that is quoted."""
SHORTEST_ROW, LONGEST_ROW = 12, 28
"""Cells of a row's name, a third of the width within these."""
NUMBER = len("0.00")
QUOTED = 3
"""How many of the segments with the largest share to quote below the table."""


def render(
    shares: AnswerShares, check: Check | None, display: Display, view: View = "table"
) -> Iterator[RenderableType]:
    """The answer in this view, the segments with the most attention, and changes by deletions."""
    if view == "heatmap":
        yield from terminal_heatmap.render(by_segment(shares), display)
    elif view == "text":  # the prompt, once for each part of the answer
        for n, exhibit in enumerate(by_word(shares)):
            yield from [Text()] if n else []
            yield from terminal_text.render(exhibit, display)
    else:
        yield from folded(Text(about_answer(shares), "dim"), display.width)
        answer = "".join(token.exact for token in shares.capture.query_tokens).strip()
        yield from folded(Text(fenced(f"“{readable(answer)}”")), display.width)
        yield Text()
        yield from _table(shares, display)
    yield from _quotes(shares, display)
    if check is not None:
        yield Text()
        yield from _checked(check, display)


def _quotes(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """The segments with the largest share, in their own words."""
    quotes = [
        f"{readable(shares.columns[i].name)}  {quote}"
        for i in _by_share(shares)
        if shares.columns[i].part == "segment"
        and (quote := quoted(shares.capture, shares.columns[i])).strip(" …")
    ][:QUOTED]
    if quotes:
        yield Text()
    for quote in quotes:
        short = quote if len(quote) <= LONGEST_QUOTE else quote[: LONGEST_QUOTE - 1] + "…"
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


def _by_share(shares: AnswerShares) -> list[int]:
    """The numbers of the columns, the one with the largest mean share first."""
    order: list[int] = np.argsort(-shares.shares.mean(axis=0), kind="stable").tolist()
    return order


def _table(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """As many segments as fit, in the order of the prompt; one column for all others."""
    most = max(SHORTEST_ROW, min(LONGEST_ROW, display.width // 3))
    rows = [cut(readable(row.text), most, unicode=display.unicode) for row in shares.rows]
    names = [cut(readable(c.name), LONGEST_NAME, unicode=display.unicode) for c in shares.columns]
    room = display.width - widest(rows)
    room -= 0 if shares.lookback is None else listing.GAP + len("lookback")
    kept, used = list[int](), 0
    order = _by_share(shares)
    others = listing.GAP + len("999 others")
    for i in order:
        cells = listing.GAP + max(widest([names[i]]), NUMBER)
        last = len(kept) + 1 == len(order)
        if used + cells + (0 if last else others) > room:
            break
        kept, used = [*kept, i], used + cells
    kept.sort()
    left = [i for i in order if i not in kept]
    name = "answer" if shares.lookback is None else "head"
    columns = [listing.Column(name), *(listing.Column(names[i], right=True) for i in kept)]
    if left:
        columns.append(listing.Column(f"{len(left)} others", right=True))
    if shares.lookback is not None:
        columns.append(listing.Column("lookback", right=True))
    lines = []
    for n, (label, row) in enumerate(zip(rows, shares.shares, strict=True)):
        lines.append([fenced(label), *(f"{share:.2f}" for share in row[kept])])
        if left:
            lines[-1].append(f"{row[left].sum():.2f}")
        if shares.lookback is not None:
            ratio = shares.lookback[n]
            lines[-1].append("" if np.isnan(ratio) else f"{ratio:.2f}")
    yield from listing.listing(columns, lines, display.width)


# The shares of a prompt's segments in what an answer attended to, as rows.


class ShareRow(TypedDict):
    """The share of a segment in what a part of the answer attended to."""

    line: LineNumber
    row: Annotated[int, "The number of the part of the answer, or of the head, from 1."]
    text: Annotated[str, "The part of the answer; empty: the whole answer in one head."]
    segment: Annotated[str, "The name of the segment."]
    part: Annotated[KeyKind, "What the segment is; sink: the first token."]
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
    shares: AnswerShares, line: int = 1, check: Check | None = None, first: int = 0
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
