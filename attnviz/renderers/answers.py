"""An answer for renderers: sentences about it, and its rows as an exhibit of segments or words."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from attnviz.data.check import Check
from attnviz.data.shares import Column, Shares
from attnviz.draw.titles import amount, beginning, prompt_size, size_of_answer
from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, HeadMap, Sides
from attnviz.records.heads import listed
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
