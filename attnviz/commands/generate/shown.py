"""An answer as people see it: sentences, tables, and its shares as exhibits of other renderers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.generate.answer import Answer, AnswerShares, AnswerView, KeyGroup, RowUnit
from attnviz.commands.generate.checked import checked, draw_curves
from attnviz.console import Display
from attnviz.draw.labels import fenced, name_of
from attnviz.draw.overlay import image_facts
from attnviz.draw.picture import heatmap, overlay
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.paint import options_of
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import image as terminal_image
from attnviz.draw.terminal import table as terminal_table
from attnviz.draw.terminal import text as terminal_text
from attnviz.draw.terminal.cells import GAP, Column, cut, folded, listing, widest
from attnviz.draw.titles import about_gates, amount, beginning, elided, prompt_size, size_of_answer
from attnviz.errors import readable, series
from attnviz.records.apply import with_wholes
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit, HeadMap, Look, PictureLook, Sides
from attnviz.records.heads import listed
from attnviz.records.tokens import Token
from attnviz.records.transforms import Contributions

SIDES = Sides("part of the answer", "parts of the answer", "segment", "segments")
OF_HEADS = Sides("head", "heads", "segment", "segments")


def about_answer(shares: AnswerShares) -> str:
    """`builtin, the mean of all 20 heads: 74 prompt tokens, 2 new`."""
    capture = shares.answer.capture
    what = ", contribution weights" if capture.transformed_by(Contributions) else ""
    size, hops = size_of_answer(capture), shares.answer.hops
    back = f", {amount(hops, 'hop')} back" if hops else ""
    images = f", {image_facts(capture)}" if capture.images else ""
    heads = about_heads(shares, each=True)
    return f"{readable(capture.model.name)}, {heads}{what}: {size}{images}{back}"


def about_heads(shares: AnswerShares, *, each: bool = False) -> str:
    """`the mean of all 20 heads`, `retrieval head L4H0`; `each`: every retrieval head by name."""
    choice, how = shares.answer.choice, shares.answer.how
    if shares.lookback is not None:
        return f"each of {amount(len(choice.heads), 'head')}"
    if len(choice.heads) == 1:
        known = "retrieval head " if choice.why == "retrieval" else ""
        if choice.named is not None:
            return f"{choice.heads[0]}, known for: {readable(choice.named.title)}"
        return f"{known}{choice.heads[0]}"
    if choice.why == "all":
        return f"the {how} of all {len(choice.heads)} heads"
    if choice.why != "retrieval":
        return f"the {how} of {listed(choice.heads)}"
    named = ", ".join(map(str, choice.heads)) if each else listed(choice.heads)
    return f"the {how} of the retrieval heads {named}"


def by_segment(shares: AnswerShares, *, begun: bool = False) -> Exhibit:
    """The shares of segments as an exhibit: a row for each part of the answer.

    `begun`: a segment that has only a number is named by how it begins, too.
    """
    answer = shares.answer
    columns = (_begun(answer, each) if begun else each.name for each in answer.columns)
    rows = (part.section or part.text for part in shares.parts)
    exhibit = exhibit_of(answer, rows, columns, shares.shares)
    about = f"{readable(answer.capture.model.name)}, {size_of_answer(answer.capture)}"
    signed = answer.capture.transformed_by(Contributions)
    what = "What contributed to the answer" if signed else "What the answer attended to"
    prompt = beginning(answer.before)
    return replace(
        exhibit,
        caption=f"{what} ({about_heads(shares)})",
        subtitle=f"{about}: “{prompt}” → “{beginning(_exact(answer.capture))}”",
        sides=SIDES if shares.lookback is None else OF_HEADS,
    )


BEGUN = 20  # letters of a segment, below its column of a picture


def _begun(answer: Answer, column: KeyGroup) -> str:
    """`13 the count was …`: a number in place of a name, and the beginning of its text."""
    words = quoted(answer.capture, column) if column.name.isdigit() else ""
    short = words if len(words) <= BEGUN else words[:BEGUN].rsplit(" ", 1)[0] + " …"
    return f"{column.name} {short}".rstrip()


def by_word(shares: AnswerShares) -> Iterator[Exhibit]:
    """For each part of the answer, the prompt and how much this part attended to each token."""
    answer, n = shares.answer, prompt_size(shares.answer.capture)
    capture = answer.capture
    prompt = replace(capture, text=answer.before, key_tokens=capture.key_tokens[:n])
    own = [i for i, column in enumerate(answer.columns) if column.part == "answer"]
    for part, of_part in zip(shares.parts, shares.shares, strict=True):
        weights = answer.carried[part.first : part.after, :n].mean(axis=0, keepdims=True)
        itself = f", {of_part[own].sum():.2f} on the answer itself" if own else ""
        yield replace(
            _exhibit(answer, prompt, [part.section or part.text], weights),
            caption=part.section or f"“{beginning(part.text)}”",
            subtitle=f"{about_answer(shares)}{itself}",
        )


def exhibit_of(
    answer: Answer, rows: Iterable[str], columns: Iterable[str], weights: FloatArray
) -> Exhibit:
    """An exhibit of weights (rows, columns) that are parts of an answer, or of its prompt."""
    return _exhibit(answer, replace(answer.capture, key_tokens=_labelled(columns)), rows, weights)


def by_link(shares: AnswerShares) -> Exhibit:
    """Each part of the answer, and how much it attended to each token before it."""
    answer = shares.answer
    weights = [answer.carried[each.first : each.after].mean(axis=0) for each in shares.parts]
    exhibit = _exhibit(
        answer, answer.capture, [each.text for each in shares.parts], np.stack(weights)
    )
    written = f"“{readable(_exact(answer.capture).strip())}”"
    return replace(exhibit, caption=written, subtitle=about_answer(shares))


def _exhibit(answer: Answer, capture: Capture, rows: Iterable[str], weights: FloatArray) -> Exhibit:
    """An exhibit of weights (rows, keys); its rows have names of their own."""
    heads = answer.choice.heads
    layer, head, how = (*heads[0], None) if len(heads) == 1 else (None, None, answer.how)
    capture = replace(capture, kind="cross", causal=False, layers=(), extras={})
    capture = replace(capture, query_tokens=_labelled(rows))
    queries, keys = (tuple(range(n)) for n in weights.shape)
    return Exhibit(capture, (HeadMap(layer, head, how, weights=weights),), queries, keys)


def _labelled(labels: Iterable[str]) -> tuple[Token, ...]:
    """Tokens with these labels; they are slices of no text."""
    return tuple(Token(i, -1, label, 0, 0) for i, label in enumerate(labels))


def _exact(capture: Capture) -> str:
    """The answer, token by token; the apostrophes of a translation are joined."""
    text = "".join(token.exact for token in capture.query_tokens)
    return elided(text) if capture.kind == "cross" else text


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
MOST_PARTS, STRONGEST, LONGEST_ANSWER = 64, 12, 600
"""The most parts to show in full, the number to show of more; the letters of a quoted answer."""
LEAST_THROUGH = 0.005
"""Shares below this would be shown as 0.00, and are left out."""
QUOTED = 3
"""The number of segments with the largest shares to quote below the table."""


def picture_view(capture: Capture, unit: RowUnit | None) -> AnswerView:
    """The view of a picture when none is named: the images of a prompt, else shares in colours."""
    return "image" if capture.images and unit != "head" and not capture.signed else "heatmap"


def draw(shares: AnswerShares, view: AnswerView = "heatmap", **look: Any) -> Drawn:
    """Draw the shares of segments as a heatmap, or the curves of a check; `look`: of `PictureLook`.

    `view`: "image" draws what each part attended to over the images of the prompt.
    """
    options = options_of(PictureLook(**look), None)
    if shares.check is not None and shares.check.curves:
        return draw_curves(shares.check, about_answer(shares), options)
    if view == "image":
        return overlay.drawn_as(by_link(shares), Look(**look))
    return heatmap.draw(by_segment(shares, begun=True), options)


def render(shares: AnswerShares, display: Display, view: AnswerView) -> Iterator[RenderableType]:
    """Render the answer in this view, segments with the most attention, and changes by deletions.

    An answer in many parts is cut to the strongest ones.
    """
    every, shares = shares, strongest_parts(shares)
    if view == "heatmap":
        yield from terminal_heatmap.render(by_segment(shares), display)
    elif view == "image":
        yield from terminal_image.render(by_link(shares), display)
    elif view == "links":
        yield from terminal_table.render(with_wholes(by_link(shares)), display)
    elif view == "text":  # the prompt, once for each part of the answer
        for n, exhibit in enumerate(by_word(shares)):
            yield from [Text()] if n else []
            yield from terminal_text.render(with_wholes(exhibit), display)
    else:
        yield from folded(Text(about_answer(shares), "dim"), display.width)
        answer = readable(_exact(shares.answer.capture).strip())
        if len(answer) > LONGEST_ANSWER:
            answer = f"{answer[:LONGEST_ANSWER]} …"
        yield from folded(Text(fenced(f"“{answer}”")), display.width)
        yield Text()
        yield from _table(shares, display)
    if len(every.parts) > len(shares.parts):
        yield Text()
        yield from folded(Text(about_rest(every, shares)), display.width)
    yield from _quotes(every, display) if view not in ("links", "image") else ()
    yield from _through(every, display)
    yield from _gates(every, display)
    if shares.check is not None:
        yield Text()
        yield from checked(shares.check, display, shares.answer.hops)


def strongest_parts(shares: AnswerShares) -> AnswerShares:
    """The parts of an answer with the largest share on one segment, where there are many."""
    if len(shares.parts) <= MOST_PARTS or shares.lookback is not None:
        return shares
    columns = [i for i, column in enumerate(shares.answer.columns) if column.part == "segment"]
    largest = shares.shares[:, columns].max(axis=1)
    kept = sorted(np.argsort(-largest, kind="stable")[:STRONGEST].tolist())
    return replace(shares, parts=tuple(shares.parts[i] for i in kept), shares=shares.shares[kept])


def about_rest(every: AnswerShares, shown: AnswerShares) -> str:
    """A sentence on the number of parts of an answer that are not shown."""
    left = len(every.parts) - len(shown.parts)
    return (
        f"{len(shown.parts)} parts of the answer, those with the largest share on one segment; the "
        f"page (html) and the rows (jsonl) also have the {left:,} others"
    )


def _quotes(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """The segments with the largest share, in their own words."""
    columns = (shares.answer.columns[i] for i in _by_share(shares))
    quotes = (
        (column.name, quoted(shares.answer.capture, column))
        for column in columns
        if column.part == "segment" and column.name not in shares.answer.images
    )
    most = islice((each for each in quotes if each[1].strip(" …")), QUOTED)
    for n, (name, quote) in enumerate(most):
        yield from [] if n else [Text()]
        line = f"{readable(name)}  {quote}"
        short = line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"
        yield from folded(Text(fenced(short)), display.width)
    answer, tokens = shares.answer, shares.answer.capture.key_tokens
    for column in (each for each in answer.columns if each.part == "sink"):
        own = [name_of(tokens[key].label) for key in column.keys.tolist()]
        named = series([*own, *(["a learned sink"] if answer.capture.sinks else [])])
        told = f"sink  {named}, the first token: it takes the attention that no other key is given"
        found = answer.may[answer.rests.any(axis=0)].tolist()
        if names := dict.fromkeys(name_of(tokens[key].label) for key in found):
            told += f"; heads also rest on {', '.join(names)}"
        yield from folded(Text(fenced(told), "dim"), display.width)


def _through(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """The sources of the last part's share by way of the answer's own words."""
    if shares.through is None:
        return
    row, columns = shares.through[-1].tolist(), shares.answer.columns
    found = [(x, c.name) for x, c in zip(row, columns, strict=True) if c.part == "segment"]
    most = sorted((each for each in found if each[0] >= LEAST_THROUGH), reverse=True)[:QUOTED]
    said = ", ".join(f"{x:.2f} from {readable(name)}" for x, name in most)
    last = shares.parts[-1].section or f"“{beginning(shares.parts[-1].text)}”"
    yield Text()
    told = f"{readable(last)}, through the words before it: {said or 'nothing of the prompt'}"
    yield from folded(Text(fenced(told)), display.width)


def _gates(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """The share that gates let through, and the parts of the answer whose weights add nothing."""
    if shares.gates is None:
        return
    names = [part.section or f"“{beginning(part.text)}”" for part in shares.parts]
    yield Text()
    for told in about_gates(shares.gates, names, several=len(shares.answer.choice.heads) > 1):
        yield from folded(Text(fenced(readable(told)), "dim"), display.width)


def _by_share(shares: AnswerShares) -> list[int]:
    """The numbers of the columns, the one with the largest mean share first."""
    order: list[int] = np.argsort(-shares.shares.mean(axis=0), kind="stable").tolist()
    return order


def _table(shares: AnswerShares, display: Display) -> Iterator[Text]:
    """The segments that fit, in the order of the prompt; one column for all others."""
    most = max(SHORTEST_ROW, min(LONGEST_ROW, display.width // 3))
    texts = [part.section or part.text for part in shares.parts]
    labels = [cut(readable(text), most, unicode=display.unicode) for text in texts]
    names = [
        cut(readable(each.name), LONGEST_NAME, unicode=display.unicode)
        for each in shares.answer.columns
    ]
    room = display.width - widest(labels)
    room -= 0 if shares.lookback is None else GAP + len("lookback")
    order, values = _by_share(shares), shares.shares
    kept = sorted(_fitting(order, names, room))
    left = [i for i in order if i not in kept]
    columns = [(names[i], [f"{share:z.2f}" for share in values[:, i]]) for i in kept]
    if left:
        columns.append((amount(len(left), "other"), [f"{row[left].sum():z.2f}" for row in values]))
    if shares.lookback is not None:
        ratios = ["" if np.isnan(ratio) else f"{ratio:.2f}" for ratio in shares.lookback]
        columns.append(("lookback", ratios))
    heads = [Column("part" if shares.lookback is None else "head")]
    heads += [Column(name, right=True) for name, _ in columns]
    lines = zip(map(fenced, labels), *(cells for _, cells in columns), strict=True)
    yield from listing(heads, list(lines), display.width)


def _fitting(order: Sequence[int], names: Sequence[str], room: int) -> Iterator[int]:
    """The first of these columns that fit into the room, beside one for all others."""
    others = GAP + len("999 others")
    for n, i in enumerate(order, start=1):
        room -= GAP + max(widest([names[i]]), NUMBER)
        if room < (0 if n == len(order) else others):
            return
        yield i
