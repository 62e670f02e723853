"""Why a head attends where it does, and what it writes, in a terminal."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.why.titles import (
    ACCOUNTING,
    KEPT,
    about_why,
    about_write,
    identity,
    removed,
    side_title,
)
from attnviz.console import Display
from attnviz.draw.effects import part_name, strongest_parts
from attnviz.draw.labels import fenced, names_of
from attnviz.draw.terminal.around import in_ascii
from attnviz.draw.terminal.colors import cut, folded
from attnviz.draw.terminal.listing import Column, listing, named_bars
from attnviz.records.parts import Node, Reader, Shares, Side, Why, Write

SOURCES, READERS = 8, 8
SIDE = {"query": "query", "key": "keys"}
READ_BY = {"query": "its query", "key": "its keys", "value": "its values"}


def render(why: Why, display: Display, top: int) -> Iterator[RenderableType]:
    """The contrast, its parts on both sides, the strongest pairs, the trees and the removals."""

    def bold(sentence: str) -> list[Text]:
        return folded(Text(sentence, "bold"), display.width)

    names = [fenced(name) for name in names_of(why.tokens, unicode=display.unicode)]
    yield from folded(Text(_letters(about_why(why, names), display)), display.width)
    yield from folded(Text(identity(why, names), "dim"), display.width)
    sides: tuple[tuple[Side, Shares], ...] = (("query", why.query_shares), ("key", why.key_shares))
    for side, shares in sides:
        yield Text()
        yield from bold(side_title(why, side, names))
        yield from named_bars(strongest_parts(shares, top, names), display)
    yield Text()
    title = "the strongest terms: a part at the query × a part at the keys"
    yield from bold(_letters(title, display))
    rows = [
        (f"{part_name(pair.query, names)} × {part_name(pair.key, names)}", pair.value)
        for pair in why.pairs
        if pair.query is not None and pair.key is not None
    ][:top]
    rest = why.contrast - sum(value for _, value in rows)
    rows = [(_letters(name, display), value) for name, value in rows]
    yield from named_bars([*rows, ("all others", rest)], display)
    for side, nodes in why.trees:
        yield Text()
        yield from bold(f"what the strongest parts at the {SIDE[side]} are made of")
        yield from _tree(nodes, names, display)
    if why.removals:
        yield Text()
        for removal in why.removals:
            yield from folded(Text(removed(why, removal, names)), display.width)
        yield from folded(Text(KEPT, "dim"), display.width)
    yield Text()
    closing = f"{ACCOUNTING}; error of the sums: {why.error:.0e} of their terms' sizes"
    yield from folded(Text(closing, "dim"), display.width)


def _letters(sentence: str, display: Display) -> str:
    """A sentence in letters that the display has."""
    return sentence if display.unicode else in_ascii(sentence)


def _tree(
    nodes: Sequence[Node], names: Sequence[str], display: Display, depth: int = 1
) -> Iterator[Text]:
    """Each part below the one that it is part of; a head with the options that ask about it."""
    for node in nodes:
        line = Text(f"{'  ' * depth}{part_name(node.part, names)}  {node.value:+z.3f}")
        if node.part is not None and node.part.kind == "head":
            head = f"L{node.part.layer}H{node.part.head}"
            values = (("heads", head), ("query", node.query), ("key", node.key))
            options = " ".join(display.speller(name, str(value)) for name, value in values)
            line.append(f"  why {options}", "dim")
        yield from folded(line, display.width)
        yield from _tree(node.children, names, display, depth + 1)


def render_write(write: Write, display: Display) -> Iterator[RenderableType]:
    """What a head takes from each token, the tokens that it raises and lowers, and its readers."""
    names = [fenced(name) for name in names_of(write.tokens, unicode=display.unicode)]
    yield from folded(Text(_letters(about_write(write, names), display)), display.width)
    yield Text()
    columns = [Column("from"), Column("weight", right=True), Column("length", right=True)]
    order = np.argsort(-write.lengths, kind="stable")[:SOURCES]
    rows = [
        (names[i], f"{write.weights[i]:.2f}", f"{write.lengths[i]:.2f}")
        for i in order.tolist()
        if write.weights[i] >= 0.005 or write.lengths[i] >= 0.005
    ]
    yield from listing(columns, rows, display.width)
    if write.moved:
        yield Text()
        title = (
            "direct effect on the logits of the next token, with the last norm held fixed, minus "
            "its mean over all tokens"
        )
        yield from folded(Text(title, "bold"), display.width)
        yield from _moved(write, names, display)
    for through, by in READ_BY.items():
        readers = [reader for reader in write.readers if reader.through == through]
        if readers:
            yield Text()
            title = f"later heads that read it through {by}"
            yield from folded(Text(title, "bold"), display.width)
            yield from _readers(readers, names, display)


def _moved(write: Write, names: Sequence[str], display: Display) -> Iterator[Text]:
    columns = [Column("token"), Column("logit", right=True), Column("most of it from")]
    rows = []
    for label, moved in write.moved:
        sign = 1 if moved.effect > 0 else -1
        source = int(np.argmax(sign * np.array(moved.by_source)))
        share = f"{names[source]} {moved.by_source[source]:+z.2f}"
        rows.append((fenced(label), f"{moved.effect:+z.2f}", share))
    yield from listing(columns, rows, display.width)


def _readers(readers: Sequence[Reader], names: Sequence[str], display: Display) -> Iterator[Text]:
    by_value = readers[0].through == "value"
    columns = [
        Column("head"),
        Column("its row"),
        Column("its key"),
        Column("length" if by_value else "value", right=True),
        Column("of a length of" if by_value else "of a contrast of", right=True),
    ]
    strongest = sorted(readers, key=lambda reader: -abs(reader.value))[:READERS]
    sign = "" if by_value else "+"
    rows = [
        (
            str(reader.head),
            cut(names[reader.query], 20, unicode=display.unicode),
            cut(names[reader.key], 20, unicode=display.unicode),
            f"{reader.value:{sign}.2f}",
            f"{reader.total:{sign}.2f}",
        )
        for reader in strongest
    ]
    yield from listing(columns, rows, display.width)
