"""Comparisons as a person reads them: heads that differ most, or that are most alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.compare.record import (
    HeadDifference,
    ModelComparison,
    Side,
    SideBySide,
    TextComparison,
    models_beside,
    texts_beside,
)
from attnviz.commands.compare.titles import about_models, about_texts
from attnviz.console import Display
from attnviz.draw.labels import fenced, names_of
from attnviz.draw.matrix import by_head
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal.colors import cell_style, cut, folded
from attnviz.draw.terminal.grid import head_grid
from attnviz.draw.terminal.listing import Column, listing
from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.transforms import Difference

LABEL = 16  # cells of a key at most
BY = {
    "rows": "whole rows",
    "shares": "the shares on the token itself, the first token, the previous token and the rest "
    "(the tokens do not align)",
}


def render_texts(
    comparison: TextComparison, display: Display, top: int
) -> Iterator[RenderableType]:
    """The texts, how far the word's vectors move apart, and the `top` heads; one with patterns."""
    yield from _texts(comparison, comparison.heads[:top], display)
    if len(comparison.heads) == 1:
        yield from render_beside(texts_beside(comparison), display)


def _texts(
    comparison: TextComparison, heads: Sequence[HeadDifference], display: Display
) -> Iterator[RenderableType]:
    for line in about_texts(comparison):
        yield from folded(Text(line, style="dim"), display.width)
    yield Text()
    if comparison.cosines:
        said = "similarity of the word's vectors: mean cosine of all pairs"
        yield from folded(Text(said, style="bold"), display.width)
        yield from folded(Text(_cosines(comparison.cosines)), display.width)
        yield Text()
    values = by_head((each.head, each.difference) for each in comparison.heads)
    alone = len(comparison.heads) == 1
    what = f"{comparison.heads[0].head} {comparison.heads[0].difference:.2f}, " if alone else ""
    said = f"{what}difference of each head, from 0 to 1: divergence of {BY[comparison.by]}"
    yield from folded(Text(said, style="bold"), display.width)
    if not alone:
        yield from head_grid(values, 1.0, cell_style, display)
    yield Text()
    if comparison.queries is None:
        rows = [(str(each.head), f"{each.difference:.3f}") for each in heads]
        yield from listing([Column("head"), Column("difference", right=True)], rows, display.width)
        return
    yield Text("what the word attends to", style="bold")
    labels = [names_of(c.key_tokens, unicode=display.unicode) for c in comparison.captures]
    for each in heads:
        yield from _sights(each, labels, display)


def _cosines(cosines: Sequence[float]) -> str:
    before, *after = cosines
    layers = (f"L{n} {_cosine(cosine)}" for n, cosine in enumerate(after))
    return "  ".join((f"before {_cosine(before)}", *layers))


def _cosine(value: float) -> str:
    """A cosine; none where a vector is 0."""
    return "–" if isnan(value) else f"{value:.2f}"


def _sights(
    each: HeadDifference, labels: Sequence[Sequence[str]], display: Display
) -> Iterator[Text]:
    margin = len(f"{each.head}  0.00  ")
    for n, (sight, names) in enumerate(zip(each.sights, labels, strict=True)):
        line = Text(no_wrap=True, overflow="crop")
        line.append(f"{each.head}  {each.difference:.2f}  " if n == 0 else " " * margin)
        line.append(f"{n + 1}  ", "dim")
        for rank, (key, weight) in enumerate(sight.links):
            label = cut(names[key], LABEL, unicode=display.unicode)
            said = f"{', ' if rank else ''}{fenced(label)} {weight:.2f}"
            if rank and (weight < 0.005 or line.cell_len + len(said) > display.width):
                break
            line.append(said)
        yield line


def render_models(
    comparison: ModelComparison, display: Display, top: int
) -> Iterator[RenderableType]:
    """Both models, and the `top` pairs of heads; a single one with its patterns."""
    for line in about_models(comparison):
        yield from folded(Text(line, style="dim"), display.width)
    yield Text()
    ours, theirs = (readable(captured.model.name) for captured in comparison.captures)
    columns = (Column(fenced(ours)), Column(fenced(theirs)), Column("similarity", right=True))
    rows = [(str(m.head), str(m.other), f"{m.similarity:.3f}") for m in comparison.matches[:top]]
    yield from listing(columns, rows, display.width)
    if len(comparison.matches) == 1:
        yield from render_beside(models_beside(comparison), display)


def render_beside(beside: SideBySide, display: Display) -> Iterator[RenderableType]:
    """The patterns one below the other, then the difference."""
    for side in beside.sides:
        yield Text()
        yield from terminal_heatmap.render(
            exhibit_of(side.capture, side.map, side.title, side.query), display
        )
    if beside.difference is not None:
        yield Text()
        side = beside.sides[0]
        captured = replace(_both(beside.sides), transforms=(Difference(),))
        less = HeadMap(side.map.layer, side.map.head, weights=beside.difference)
        titles = " minus ".join(each.title for each in beside.sides)
        yield from terminal_heatmap.render(exhibit_of(captured, less, titles, side.query), display)


def _both(sides: Sequence[Side]) -> Capture:
    """The first of two captures that align, its tokens named as in both: `cat/dog`."""
    first, second = (side.capture for side in sides)
    tokens = tuple(
        a if a.label == b.label else replace(a, text=f"{a.label}/{b.label}")
        for a, b in zip(first.key_tokens, second.key_tokens, strict=True)
    )
    return replace(first, query_tokens=tokens, key_tokens=tokens)


def exhibit_of(
    captured: Capture, head_map: HeadMap, title: str, query: int | None = None
) -> Exhibit:
    """One whole map on show, or one row of it."""
    queries, keys = (tuple(range(n)) for n in head_map.weights.shape)
    queries = queries if query is None else (query,)
    return Exhibit(replace(captured, named_heads=()), (head_map,), queries, keys, caption=title)
