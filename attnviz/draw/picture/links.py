"""Two columns of tokens with a line for each link: the stronger, the more opaque.

The drawing of BertViz's head view (Vig 2019, "A multiscale visualization of attention in the
Transformer model", arXiv 1906.05714). Each head has a colour; keys on which it rests are left out.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import fenced
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write, write_below, write_titles
from attnviz.draw.picture.paint import PictureWords, options_of, words_for
from attnviz.draw.terminal.cells import cut, widest
from attnviz.errors import UsageError, option
from attnviz.records.capture import RESTS
from attnviz.records.exhibit import Exhibit, Look, Map, links_of
from attnviz.records.heads import Head
from attnviz.records.rests import rests_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = """
    #0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #882255 #44aa99 #999933 #aa4499 #cc6677 #666666
""".split()
"""The colours of heads, in order."""
MOST_TOKENS = 60
"""The most tokens of a column."""
LEAST_DRAWN = 0.02
"""A weaker link is a line that nobody sees."""
ROW, BETWEEN, WIDE, ASIDE = 0.2, 2.4, 4.4, 0.13
"""Inches of a token's row, between the columns, and of a title; rows between the lines of heads."""
SIZE, LONGEST, LETTER = 9.0, 24, 0.085
"""Points of a label, the most cells of it, and inches of a cell."""
LINE, SAMPLES = 1.8, {1.0: 0.0, 0.5: 0.45, 0.1: 0.75}
"""Points of a line's width; the shares of the strongest weight in the key, and their places."""


class DrawnLink(NamedTuple):
    """A link of the map of this number."""

    map: int
    query: int
    key: int
    weight: float


def drawn_as(exhibit: Exhibit, look: Look) -> Drawn:
    """Draw the links of the exhibit's maps.

    Raises:
        UsageError: more heads than there are colours, or no link is left.
    """
    maps = exhibit.maps
    if len(maps) > len(COLORS):
        raise UsageError(
            f"{option('view', 'links')} draws up to {len(COLORS)} heads, and these are {len(maps)}",
            f"choose some with {option('heads')}",
        )
    options = options_of(look, None)
    found = [_lines(exhibit, number) for number in range(len(maps))]
    every = sorted((line for lines, _ in found for line in lines), key=lambda line: -line.weight)
    if not every:
        raise UsageError(
            "no link is left to draw", f"leave {option('least')} or {option('keys')} out"
        )
    shown = _between_few(every)
    sides = (
        _of_column([line.query for line in shown], exhibit.queries),
        _of_column([line.key for line in shown], exhibit.keys),
    )
    words = words_for(exhibit, options)
    names = [*words.all, *(each.label for each in maps)]
    with sheet(names, dpi=options.dpi, cmap=options.cmap) as (figure, fonts):
        _draw(figure, exhibit, shown, sides, words.spelled(fonts))
        left = {*every} - {*shown}
        if notes := [*_notes(exhibit, [share for _, share in found], left, sides)]:
            write_below(figure, -0.4, BETWEEN, notes, fonts)
    return Drawn(figure, fonts.notes)


def _lines(exhibit: Exhibit, number: int) -> tuple[list[DrawnLink], float]:
    """The links of a map that can be seen, of rows that have a choice; without its rests, unless
    links are filtered; and the mean share of these rows on rests."""
    links = links_of(exhibit, exhibit.maps[number])
    choice = exhibit.capture.allowed_count()[links.query] > 1
    asked = exhibit.weakest_left_out or len(exhibit.keys) < len(exhibit.capture.key_tokens)
    on_rests = _rests(exhibit, exhibit.maps[number])[links.key] & (not asked) & choice
    kept = choice & ~on_rests & (links.weight >= (exhibit.least or LEAST_DRAWN))
    columns = (links.query, links.key, links.weight)
    each = zip(*(column[kept].tolist() for column in columns), strict=True)
    rows = len(np.unique(links.query[choice]))
    resting = float(links.weight[on_rests].sum()) / max(1, rows)
    return [DrawnLink(number, *link) for link in each], resting


def _rests(exhibit: Exhibit, shown: Map) -> NDArray[np.bool_]:
    """The keys on which a head rests, special tokens, and the first of a causal text (n_keys)."""
    capture = exhibit.capture
    rests = np.array([token.special and not token.inset for token in capture.key_tokens])
    rests[0] |= capture.causal and capture.one_sequence
    if shown.layer is None or shown.head is None or shown.reduced:
        return rests
    if capture.named_heads and RESTS not in capture.extras:  # a column alike may be what it is for
        return rests
    return np.asarray(rests | rests_in(capture, Head(shown.layer, shown.head)))


def _between_few(lines: Sequence[DrawnLink]) -> list[DrawnLink]:
    """The first of these lines, between no more tokens than a column holds; the last is first."""
    kept, queries, keys = list[DrawnLink](), set[int](), set[int]()
    for line in lines:
        ends = (queries, line.query), (keys, line.key)
        if all(end in side or len(side) < MOST_TOKENS for side, end in ends):
            queries.add(line.query)
            keys.add(line.key)
            kept.append(line)
    return kept[::-1]


def _of_column(linked: Sequence[int], every: Sequence[int]) -> Sequence[int]:
    """The tokens of a column: all, or those with links if they are too many."""
    return every if len(every) <= MOST_TOKENS else sorted({*linked})


def _draw(
    figure: "Figure",
    exhibit: Exhibit,
    lines: Sequence[DrawnLink],
    sides: Sequence[Sequence[int]],
    words: PictureWords,
) -> None:
    """Draw both columns, the lines between them, the names of the heads and the key."""
    rows, most = max(map(len, sides)), max(line.weight for line in lines)
    axes = _empty(place(figure, 0, 0, BETWEEN, rows * ROW), rows)
    labels = (words.queries, words.keys)
    names = (exhibit.sides.rows, exhibit.sides.columns)
    wide = [
        _write_column(axes, at, name, [cut(every[i], LONGEST) for i in side])
        for at, name, every, side in zip((0, 1), names, labels, sides, strict=True)
    ]
    _draw_lines(axes, lines, sides, len(exhibit.maps))
    if len(exhibit.maps) > 1:
        beside = _empty(place(figure, BETWEEN + wide[1], 0, 1, rows * ROW), rows)
        for number, each in enumerate(exhibit.maps):
            _sample(beside, (0.0, number + 0.5), COLORS[number], 1.0, each.label)
    write_titles(_empty(place(figure, -wide[0], 0, 0.01, rows * ROW), rows), words, WIDE, above=18)
    key = _empty(place(figure, 0, -0.25, BETWEEN, 0.2), 1)
    for share, left in SAMPLES.items():
        said = f"{most * share:.2f}{' weight' * (share == 1)}"
        _sample(key, (left, 0.5), "black", share, said)


def _empty(axes: "Axes", rows: int) -> "Axes":
    """The axes with rows down from 0, and 0 to 1 across."""
    axes.set_xlim(0, 1)
    axes.set_ylim(rows, 0)
    axes.set_axis_off()
    return axes


def _write_column(axes: "Axes", at: int, name: str, labels: Sequence[str]) -> float:
    """Write labels at the left (0) or right (1) side, under their name; their width in inches."""
    side: Literal["left", "right"] = "left" if at else "right"
    off = (at - 0.5) * 10
    write(axes, name, (at, 0), (off, 4), size=8, align=(side, "bottom"))
    for row, label in enumerate(labels):
        where = (at, row + 0.5)
        write(
            axes, fenced(label), where, (off, 0), size=SIZE, align=(side, "center"), color="black"
        )
    return widest(labels) * LETTER + 0.1


def _draw_lines(
    axes: "Axes", lines: Sequence[DrawnLink], sides: Sequence[Sequence[int]], heads: int
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    query_at, key_at = ({token: row + 0.5 for row, token in enumerate(side)} for side in sides)
    most, step = max(line.weight for line in lines), min(ASIDE, 0.8 / heads)
    aside = [step * (number - (heads - 1) / 2) for number in range(heads)]
    ends = [
        [(0, query_at[line.query] + aside[line.map]), (1, key_at[line.key] + aside[line.map])]
        for line in lines
    ]
    colors = [to_rgba(COLORS[line.map], line.weight / most) for line in lines]
    axes.add_collection(LineCollection(ends, colors=colors, linewidths=LINE, capstyle="butt"))


def _sample(axes: "Axes", at: tuple[float, float], color: str, opacity: float, said: str) -> None:
    """Draw a short line, and what it means."""
    x, y = at
    line = {"color": color, "alpha": opacity, "linewidth": LINE, "clip_on": False}
    axes.plot([x, x + 0.1], [y, y], **line)  # type: ignore[arg-type]
    write(axes, said, (x + 0.1, y), (3, 0), size=7.5, align=("left", "center"))


def _notes(
    exhibit: Exhibit, resting: Sequence[float], left: set[DrawnLink], sides: Sequence[Sequence[int]]
) -> Iterator[str]:
    """What is left out: rests, and links between more tokens than there are rows for."""
    low, high = min(resting), max(resting)
    if high >= 0.005:
        share = f"{high:.0%}" if len(resting) == 1 else f"{low:.0%} to {high:.0%}"
        first = "the first token" if exhibit.capture.causal else "special tokens"
        yield f"left out: {first}, and keys on which a head rests: {share} of the weight"
    if left:
        queries, keys = len(exhibit.queries), len(exhibit.keys)
        yield (
            f"shown are {len(sides[0])} of {queries:,} queries and {len(sides[1])} of {keys:,} "
            f"keys; {len(left):,} links of {exhibit.least or LEAST_DRAWN:g} and more, up to "
            f"{max(each.weight for each in left):.2f}, are left out"
        )
