"""Comparisons, shown: sentences, heads and patterns in a terminal, and pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil, isnan
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.compare.record import (
    HeadDifference,
    ModelComparison,
    Panel,
    StreamDifference,
    TextComparison,
    difference_of,
    models_beside,
    texts_beside,
)
from attnviz.commands.compare.rows import OF_STREAM, STREAM, what
from attnviz.console import Display
from attnviz.draw.labels import DIVERGING, SEQUENTIAL, distinct_labels, fenced, names_of
from attnviz.draw.matrix import SideLabels, block_maximum, by_head
from attnviz.draw.picture.canvas import Drawn, Lettering, place
from attnviz.draw.picture.frame import (
    BOX,
    GREY,
    outline,
    paint_cells,
    sheet,
    ticks_for,
    write,
    write_columns,
    write_heading,
    write_line,
    write_rows,
)
from attnviz.draw.picture.overlay import drawn_beside
from attnviz.draw.picture.paint import (
    EMPTY,
    PictureOptions,
    PictureWords,
    Scale,
    draw_bar,
    draw_color_bar,
    scale_for,
    signed_scale,
)
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal.cells import (
    Column,
    cell_style,
    fitting,
    folded,
    listing,
    table,
    titled_listing,
    words,
)
from attnviz.draw.terminal.grid import head_grid
from attnviz.draw.titles import amount, caption, facts, transform_titles
from attnviz.errors import readable, series
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.transforms import Difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def texts_title(comparison: TextComparison) -> str:
    """The head that differs most over the texts, and by how much."""
    first = comparison.heads[0]
    title = f"{first.head} in {_number(comparison)}: difference {first.difference:.2g}"
    if comparison.queries is not None:
        title += f" between the rows of {_words(comparison)}"
    return title + ("" if len(comparison.heads) == 1 else ", the largest of all heads")


def about_texts(comparison: TextComparison) -> list[str]:
    """The model, each text, and what a causal model means for the word."""
    first = comparison.captures[0]
    lines = [f"{readable(first.model.name)}, {_number(comparison)}"]
    for n, captured in enumerate(comparison.captures, start=1):
        changes = ", ".join(transform_titles(captured))
        lines.append(
            f"{n}  {fenced(readable(captured.text))}" + (f" ({changes})" if changes else "")
        )
    if comparison.identical:
        lines.append(_identical(comparison))
    elif comparison.alike_so_far:
        lines.append(f"{_alike(comparison)}, so every head attends to the same there")
    elif comparison.queries is None and first.causal:
        last = first.key_tokens[: comparison.shared][-1:]
        lines += [
            f"the texts are identical up to “{fenced(each.label)}”, and so are the rows of a "
            "causal model"
            for each in last
            if not each.special
        ]
    elif comparison.queries is not None and first.causal:
        attends = "attends" if len(set(_labels(comparison))) == 1 else "each attends"
        lines.append(
            f"the model is causal: {_words(comparison)} {attends} only to itself and to earlier "
            "tokens"
        )
    return lines


def _number(comparison: TextComparison) -> str:
    """`2 texts`, `3 images`."""
    return amount(len(comparison.captures), what(comparison))


def _identical(comparison: TextComparison) -> str:
    identical = f"the {what(comparison)}s are identical"
    return f"{identical}, so every head attends to the same in all of them"


def _alike(comparison: TextComparison) -> str:
    before = f"the texts are identical up to {_words(comparison)}"
    return f"{before}, and a causal model reads nothing behind it"


def _labels(comparison: TextComparison) -> list[str]:
    """The compared word as each text has it."""
    places = zip(comparison.captures, comparison.queries or (), strict=True)
    return [captured.query_tokens[place].label for captured, place in places]


def _words(comparison: TextComparison) -> str:
    """The word whose rows are compared; all of them where the texts have several in its place."""
    return series([f"“{fenced(label)}”" for label in dict.fromkeys(_labels(comparison))])


PAIRED = {"best": "the most similar head", "same": "the head of the same name"}


def _unit(comparison: ModelComparison) -> str:
    if comparison.grids:
        (coarse, fine) = sorted(comparison.grids)
        both = [f"{rows} × {columns}" for rows, columns in (fine, coarse)]
        spread = f" of the finer grid, {both[0]}, over which those of {both[1]} are spread,"
        return f"patches{spread if coarse != fine else ''} that both models saw"
    return "words, as their tokens differ" if comparison.words else "tokens"


def about_models(comparison: ModelComparison) -> list[str]:
    """Both models, and over what they are compared."""
    lines = [facts(captured) for captured in comparison.captures]
    order = "most similar" if comparison.pair == "best" else "largest change"
    lines.append(
        f"each head of the first model, with {PAIRED[comparison.pair]} of the second, over "
        f"{_unit(comparison)}; {order} first"
    )
    if comparison.silent:
        names = ", ".join(map(str, comparison.silent))
        lines.append(f"heads with no weight on these: {names}")
    return lines


# In a terminal.

LABEL = 16  # cells of a key at most
BY = {
    "rows": "whole rows",
    "shares": "the shares on the token itself, the first token, the previous token and the rest "
    "(the tokens do not align)",
}


def render_texts(
    comparison: TextComparison, display: Display, top: int
) -> Iterator[RenderableType]:
    """Render texts, the distances of the word's vectors, and the `top` heads; one with patterns."""
    if comparison.identical:
        yield from folded(Text(_identical(comparison)), display.width)
        return
    if comparison.alike_so_far:
        encoder = f"{display.speller('model', 'translator')} {display.speller('kind', 'encoder')}"
        alike = f"{_alike(comparison)}; ask about a later word, or use {encoder}"
        yield from folded(Text(alike), display.width)
        return
    yield from folded(Text("\n".join(about_texts(comparison)), "dim"), display.width)
    yield Text()
    if comparison.cosines:
        title = "similarity of the word's vectors: mean cosine of all pairs"
        yield from folded(Text(title, "bold"), display.width)
        # a dash where a vector is 0
        before, *after = ("–" if isnan(each) else f"{each:.2f}" for each in comparison.cosines)
        layers = (f"L{n} {each}" for n, each in enumerate(after))
        yield from folded(Text("  ".join((f"before {before}", *layers))), display.width)
        yield Text()
    heads, first = comparison.heads[:top], comparison.heads[0]
    only = f"{first.head} {first.difference:.2f}, " if len(comparison.heads) == 1 else ""
    title = f"{only}difference of each head, from 0 to 1: divergence of {BY[comparison.by]}"
    yield from folded(Text(title, "bold"), display.width)
    if not only:
        values = by_head((each.head, each.difference) for each in comparison.heads)
        yield from head_grid(values, 1.0, cell_style, display)
    yield Text()
    if comparison.queries is None:
        yield from _differences(comparison, heads, display)
    else:
        yield Text("what the word attends to", style="bold")
        labels = [names_of(c.key_tokens, unicode=display.unicode) for c in comparison.captures]
        for each in heads:
            yield from _sights(each, labels, display)
    if only:
        sides = texts_beside(comparison)
        yield from _beside(sides, difference_of(sides, comparison.by), display)


def _differences(
    comparison: TextComparison, heads: Sequence[HeadDifference], display: Display
) -> Iterator[Text]:
    """Heads by their difference; between two images, the keys that gain and lose most."""
    keys, moved = comparison.captures[0].key_tokens, comparison.heads[0].moved
    rows = [
        (str(h.head), f"{h.difference:.3f}", *(f"{keys[k].label} {c:+.3f}" for k, c in h.moved))
        for h in heads
    ]
    columns = [Column("head"), Column("difference", right=True)]
    columns += [Column(name) for name in ("largest gain", "loss") if moved]
    yield from listing(columns, rows, display.width)


def _sights(
    each: HeadDifference, labels: Sequence[Sequence[str]], display: Display
) -> Iterator[Text]:
    margin = len(f"{each.head}  0.00  ")
    for n, (sight, names) in enumerate(zip(each.sights, labels, strict=True)):
        line = Text(f"{each.head}  {each.difference:.2f}  " if n == 0 else " " * margin)
        line.append(f"{n + 1}  ", "dim")
        items = (
            (names[key], f"{weight:.2f}")
            for rank, (key, weight) in enumerate(sight.links)
            if rank == 0 or weight >= 0.005
        )
        yield fitting(line, items, LABEL, display)


def render_models(
    comparison: ModelComparison, display: Display, top: int
) -> Iterator[RenderableType]:
    """Both models, and the `top` pairs of heads; a single one with its patterns."""
    ours, theirs = (readable(captured.model.name) for captured in comparison.captures)
    columns = (Column(fenced(ours)), Column(fenced(theirs)), Column("similarity", right=True))
    rows = [(str(m.head), str(m.other), f"{m.similarity:.3f}") for m in comparison.matches[:top]]
    title = "\n".join(about_models(comparison))
    yield from titled_listing(title, columns, rows, display.width)
    if len(comparison.matches) == 1:
        sides = models_beside(comparison)
        yield from _beside(sides, difference_of(sides), display)


def _beside(
    sides: Sequence[Panel], difference: FloatArray | None, display: Display
) -> Iterator[RenderableType]:
    """The patterns one below the other, then the difference; whole, or the row to mark."""
    panels = [*sides]
    if difference is not None:
        first, second = sides
        tokens = tuple(  # named as in both: `cat/dog`
            a if a.label == b.label else replace(a, text=f"{a.label}/{b.label}")
            for a, b in zip(first.capture.key_tokens, second.capture.key_tokens, strict=True)
        )
        captured = replace(
            first.capture, query_tokens=tokens, key_tokens=tokens, transforms=(Difference(),)
        )
        title = f"{first.title} minus {second.title}"
        panels.append(replace(first, title=title, capture=captured, weights=difference))
    for panel in panels:
        yield Text()
        exhibit = replace(_exhibit_of(panel), caption=panel.title)
        yield from terminal_heatmap.render(exhibit, display)


def _exhibit_of(panel: Panel) -> Exhibit:
    """One pattern; whole, or the row to mark."""
    queries, keys = (tuple(range(n)) for n in panel.weights.shape)
    queries = queries if panel.query is None else (panel.query,)
    head_map = HeadMap(panel.head.layer, panel.head.head, weights=panel.weights)
    return Exhibit(replace(panel.capture, named_heads=()), (head_map,), queries, keys)


# As pictures.

GRID_SIDE = 5.0  # inches, of the longer side
LEAST = 0.8  # inches, of the shorter one
LABELS = 32  # heads along a side that are named at most


def draw_texts(comparison: TextComparison, **look: Any) -> Drawn:
    """Draw the patterns of the head that differs most; of images, what it attends to in each."""
    sides = texts_beside(comparison)
    if comparison.of_images and all(captured.images[0].views for captured in comparison.captures):
        about = "; ".join(about_texts(comparison))
        words = PictureWords(texts_title(comparison), about, (), (), ())
        return drawn_beside([*map(_exhibit_of, sides)], words, PictureOptions(**look))
    less, title = difference_of(sides, comparison.by), texts_title(comparison)
    return _draw_beside(sides, less, title, about_texts(comparison), **look)


def draw_models(comparison: ModelComparison, **look: Any) -> Drawn:
    """Draw the similarities of all heads, or the patterns of one pair."""
    if len(comparison.heads) > 1:
        return draw_similarity(comparison, **look)
    best, sides = comparison.matches[0], models_beside(comparison)
    title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
    return _draw_beside(sides, difference_of(sides), title, about_models(comparison), **look)


def draw_similarity(
    comparison: ModelComparison, *, dpi: int = 150, cmap: str = SEQUENTIAL
) -> Drawn:
    """Draw the similarity of every pair of heads; a circle marks the pairs that the rows list.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    title = f"Similarity of heads over {_unit(comparison)}; circles: {PAIRED[comparison.pair]}"
    names = [captured.model.name for captured in comparison.captures]
    about = f"{caption(comparison.captures[0])}; beside {readable(names[1])}"
    with sheet([title, about, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        rows, columns = comparison.similarity.shape
        height, width = (max(LEAST, GRID_SIDE * n / max(rows, columns)) for n in (rows, columns))
        axes = place(figure, 0, 0, width, height)
        axes.set_facecolor(EMPTY)
        shown = axes.imshow(comparison.similarity, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        draw_bar(place(figure, width + 0.15, 0, 0.15, height), shown, "similarity")
        across = [comparison.others.index(match.other) for match in comparison.matches]
        down = [comparison.heads.index(match.head) for match in comparison.matches]
        size = min(40.0, (GRID_SIDE * 72 / max(rows, columns) / 2) ** 2)
        axes.scatter(across, down, s=size, facecolors="white", edgecolors="black")
        for label, axis, heads in (
            (names[0], axes.yaxis, comparison.heads),
            (names[1], axes.xaxis, comparison.others),
        ):
            ticks = range(0, len(heads), -(-len(heads) // LABELS))
            axis.set_ticks(ticks, [str(heads[tick]) for tick in ticks], fontsize=6)
            axis.set_label_text(fonts.spell(label), fontsize=8)
        axes.tick_params(axis="x", rotation=90)
        write_heading(figure, height + 0.15, width, title, about, fonts)
    return Drawn(figure, fonts.notes)


# Patterns side by side on one scale, and their difference in diverging colours.

LARGEST_CELL, LARGEST_PANE = 0.42, 4.2  # inches
MOST_CELLS = 400
GAP, BAR = 0.35, 0.13
LETTERS = 13  # of the lines above, in an inch


def _draw_beside(
    sides: Sequence[Panel],
    less: FloatArray | None,
    title: str,
    about: Sequence[str],
    *,
    dpi: int = 150,
    cmap: str = SEQUENTIAL,
) -> Drawn:
    """Draw all patterns as one figure, with `about` in smaller letters below the title."""
    labels = [distinct_labels(side.capture.key_tokens) for side in sides]
    letters = [title, *about, *chain.from_iterable(labels)]
    with sheet(letters, dpi=dpi, cmap=cmap) as (figure, fonts):
        panes = [_visible(side.capture, side.weights) for side in sides]
        scale = scale_for(cmap, "linear", panes, sides[0].capture)
        left = 0.0
        for side, pane, names in zip(sides, panes, labels, strict=True):
            left = _draw_one(figure, left, side, pane, scale, names, fonts)
        left = _bar(figure, left, panes[-1], scale)
        if less is not None:
            pane = _visible(sides[0].capture, less)
            signed = signed_scale(DIVERGING, [pane], "first minus second")
            pairs = zip(*labels, strict=True)
            both = [one if one == other else f"{one} / {other}" for one, other in pairs]
            side = replace(sides[0], title="first minus second")
            left = _draw_one(figure, left, side, pane, signed, both, fonts)
            _bar(figure, left, pane, signed)
        width = max(50, int(left * LETTERS))
        masked = ["hatched: masked"] if any(np.isnan(pane).any() for pane in panes) else []
        below = "\n".join(fill(fonts.spell(line), width) for line in (*about, *masked))
        write_line(figure, 0.5, below, size=8, color=GREY)
        top = 0.6 + 0.15 * (below.count("\n") + 1)
        write_line(figure, top, fonts.spell(title), size=11)
    return Drawn(figure, fonts.notes)


def _visible(captured: Capture, weights: FloatArray) -> FloatArray:
    """NaN where the mask forbids a link."""
    return np.where(captured.allowed(), weights, np.float32(np.nan))


def _inches(pane: FloatArray) -> float:
    return min(LARGEST_CELL, LARGEST_PANE / len(pane)) * len(pane)


def _draw_one(
    figure: "Figure",
    left: float,
    side: Panel,
    pane: FloatArray,
    scale: Scale,
    labels: Sequence[str],
    fonts: Lettering,
) -> float:
    """Draw a pattern at `left` (inches); returns where the next one may begin."""
    size = _inches(pane)
    cell = size / len(pane)
    names = [fonts.spell(label) for label in labels]
    start = left + min(1.6, 0.09 * max(map(len, names), default=0)) + 0.3
    axes = place(figure, start, -size, size, size)
    drawn = pane if scale.low < 0 else block_maximum(pane, MOST_CELLS, MOST_CELLS)
    block = ceil(len(pane) / len(drawn))
    paint_cells(axes, scale.paint(drawn), pane.shape, (block, block))
    outline(axes, [(0, 0, *pane.shape)])
    ticks = ticks_for(SideLabels(names, range(len(pane))), cell)
    write_rows(axes, ticks)
    write_columns(axes, ticks, cell)
    axes.set_xlabel("key", fontsize=8, color=GREY)
    axes.set_ylabel("query", fontsize=8, color=GREY)
    if side.query is not None:
        from matplotlib.patches import Rectangle

        row = Rectangle(
            (0, side.query), len(pane), 1, fill=False, ec=BOX, lw=2, zorder=3, clip_on=False
        )
        axes.add_patch(row)
    written = fonts.spell(readable(side.title))
    write(axes, written, (0, 1), (0, 6), size=9, coords="axes fraction", color="black")
    return start + size + GAP


def _bar(figure: "Figure", left: float, pane: FloatArray, scale: Scale) -> float:
    size = _inches(pane)
    draw_color_bar(place(figure, left - GAP + 0.12, -size, BAR, size), scale)
    return left + 0.75


def render_stream(difference: StreamDifference, display: Display) -> Iterator[RenderableType]:
    """Render the length of the difference at each layer."""
    about = f"{readable(OF_STREAM.about(difference))}: the stream at their last tokens, "
    yield from folded(Text(f"{about}first set less second", "dim"), display.width)
    yield Text()
    rows = [STREAM.row((difference, i)) for i in range(len(difference.layers))]
    columns = [
        words("layer", lambda row: f"L{row['layer']}"),
        words("length", lambda row: f"{row['length']:.2f}", right=True),
        words("of stream", lambda row: f"{row['length'] / row['stream']:.0%}", right=True),
    ]
    yield from table(rows, columns, display.width)
