"""Circuits that were read off the weights, as a person reads them."""

from collections.abc import Iterator
from math import isnan

from rich.text import Text

from attnviz.console import Display
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.records.parts import Circuits
from attnviz.renderers.heads_titles import circuits_title

SHOWN = 10


def render(circuits: Circuits, top: int | None, display: Display) -> Iterator[Text]:
    """The heads that copy most, and the pairs that compose most."""
    most = top or SHOWN
    yield from folded(Text(circuits_title(circuits), "dim"), display.width)
    if circuits.copying:
        yield Text()
        tokens = circuits.copying[0].tokens
        said = (
            f"copying: does a head raise the token that it attends to? (top-1 of {tokens:,} tokens)"
        )
        yield from folded(Text(said, "bold"), display.width)
        columns = [Column("head"), Column("eigenvalues", right=True), Column("top-1", right=True)]
        rows = [
            (str(each.head), _number(each.eigenvalues, "+.2f"), _number(each.top, ".2f"))
            for each in circuits.copying[:most]
        ]
        yield from listing(columns, rows, display.width)
    if circuits.composed:
        yield Text()
        said = "composition: which head reads what another one writes?"
        yield from folded(Text(said, "bold"), display.width)
        pairs = [
            (
                str(each.writer),
                str(each.reader),
                str(each.through),
                _number(each.score, ".3f"),
                f"{circuits.expected[each.through]:.3f}",
            )
            for each in circuits.compositions[:most]
        ]
        columns = [
            Column("writer"),
            Column("reader"),
            Column("through its"),
            Column("score", right=True),
            Column("by chance", right=True),
        ]
        yield from listing(columns, pairs, display.width)
    yield Text()
    yield from folded(Text(_conventions(circuits), "dim"), display.width)


def _number(value: float, form: str) -> str:
    return "–" if isnan(value) else format(value, form)


def _conventions(circuits: Circuits) -> str:
    """What the numbers above are, as far as their names do not say it."""
    said = ["the weights of the norms are part of each circuit"]
    if circuits.copying:
        said.insert(0, "eigenvalues: their sum over the sum of their sizes, from -1 to 1")
    if circuits.composed and "query" not in circuits.composed:
        said.append("positions turn queries and keys here (rotary), so only values are compared")
    return "; ".join(said)
