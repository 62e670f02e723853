"""The text itself, its words shaded by how much one query attends to them.

With colour the words are filled; without, their weights stand below them. The query is
underlined, or has a `^` below it. Where the text was cut to fit the model, `…` stands
for what the model has not seen.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.data.exhibit import Exhibit, HeadMap
from attnviz.data.links import links_of
from attnviz.errors import UsageError
from attnviz.renderers.colors import cell_style
from attnviz.renderers.direction import fenced, fenced_line
from attnviz.renderers.heading import heading, map_heading
from attnviz.renderers.labels import ascii_only, cut, distinct_labels, pad, standing
from attnviz.renderers.pieces import Piece, pieces_of
from attnviz.renderers.prose import folded

LEAST = 0.005  # weaker weights get no number and no colour
STRONGEST = 3
DEEPEST_INDENT = 8
_QUERY = Style(bold=True, underline=True)


def render(exhibit: Exhibit, display: Display | None = None) -> RenderableType:
    """The text as the exhibit's only query sees it, one block per head.

    Raises:
        UsageError: the exhibit has more than one query, or none.
    """
    display = display or Display()
    if len(exhibit.queries) != 1:
        raise UsageError(
            f"the text view shows one query at a time, not {len(exhibit.queries):,}",
            "choose it with --query",
        )
    parts: list[RenderableType] = [*heading(exhibit, display)]
    maps = [[_spelled(p, display) for p in pieces_of(exhibit, m)] for m in exhibit.maps]
    most = max((piece.weight or 0.0 for pieces in maps for piece in pieces), default=0.0) or 1.0
    for head_map, pieces in zip(exhibit.maps, maps, strict=True):
        parts.append(Text())
        if len(exhibit.maps) > 1:
            parts.append(map_heading(exhibit, head_map, display))
        for line in _wrapped(pieces, display):
            parts += _colored(line, most, display) if display.color else _numbered(line, display)
        parts += [Text(), *_summary(exhibit, head_map, display)]
    return Group(*parts)


def _spelled(piece: Piece, display: Display) -> Piece:
    """The piece in letters that the display has, at most a line wide.

    A token of nothing but white space is written out if there is something to say of it.
    """
    written = piece.written
    if not written and (piece.query or (piece.weight or 0) >= LEAST):
        written = "\\n" * piece.lines or "␣"
    if piece.unseen and not display.unicode:
        written = "..."
    written = standing(written) if display.unicode else ascii_only(written)
    return replace(piece, written=cut(written, display.width, unicode=display.unicode))


def _wrapped(pieces: list[Piece], display: Display) -> Iterator[list[tuple[int, Piece]]]:
    """Lines of (cells of space in front, piece); a word whose pieces fit a line stays whole."""
    starts = [n for n, p in enumerate(pieces) if n == 0 or p.spaces or p.lines] + [len(pieces)]
    line: list[tuple[int, Piece]] = []
    used = 0
    for first, last in pairwise(dict.fromkeys(starts)):
        word = pieces[first:last]
        cells = sum(_cells(piece, display) for piece in word)
        if word[0].lines and (line or first):
            yield line
            yield from ([] for _ in range(min(1, word[0].lines - 1)))
            line, used = [], 0
        for piece in word:
            space = min(DEEPEST_INDENT, piece.spaces) if line or piece.lines else 0
            wanted = (
                cells if piece is word[0] and cells <= display.width else _cells(piece, display)
            )
            if used + space + wanted > display.width and line:
                yield line
                line, used, space = [], 0, 0
            space = min(space, display.width - _cells(piece, display))
            line.append((space, piece))
            used += space + _cells(piece, display)
    if line:
        yield line


def _cells(piece: Piece, display: Display) -> int:
    """How wide the piece is with what stands below it and the gap that keeps numbers apart."""
    below = _below(piece)
    wide = cell_len(piece.written)
    return wide if display.color or not below else max(wide, min(len(below) + 1, display.width))


def _below(piece: Piece) -> str:
    """What stands below a piece where there is no colour: `^` for the query, and the weight."""
    weight = piece.weight or 0.0
    number = f"{weight:.2f}".replace("0.", ".", 1) if weight >= LEAST else ""
    return ("^" if piece.query else "") + number


def _colored(line: list[tuple[int, Piece]], most: float, display: Display) -> Iterator[Text]:
    text = Text(no_wrap=True, overflow="crop")
    for space, piece in line:
        text.append(" " * space)
        style = Style(dim=True)
        if piece.weight is not None:
            bright = piece.weight >= LEAST
            style = cell_style(piece.weight / most, display) if bright else Style()
        text.append(piece.written, style + _QUERY if piece.query else style)
    # Nothing stands below this line, so that words may run as they are read.
    yield fenced_line(text)


def _numbered(line: list[tuple[int, Piece]], display: Display) -> Iterator[Text]:
    above = below = ""
    for n, (space, piece) in enumerate(line):
        cells = _cells(piece, display)
        joined = n + 1 < len(line) and line[n + 1][0] == 0
        fill = ("·" if display.unicode else "-") if joined else " "
        above += " " * space + fenced(piece.written) + fill * (cells - cell_len(piece.written))
        below += " " * space + pad(_below(piece), cells)
    yield Text(above.rstrip(), no_wrap=True, overflow="crop")
    if below.strip():
        yield Text(below.rstrip(), no_wrap=True, overflow="crop")


def _summary(exhibit: Exhibit, head_map: HeadMap, display: Display) -> list[Text]:
    """The strongest keys in words, for those who see no colour and for those who copy the text."""
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=display.unicode)
    keys = distinct_labels(exhibit.capture.key_tokens, unicode=display.unicode)
    top = min(STRONGEST, exhibit.top or STRONGEST)
    links = links_of(replace(exhibit, top=top), head_map)
    found = [
        f"{fenced(keys[key])} {weight:.2f}"
        for key, weight in zip(links.key.tolist(), links.weight.tolist(), strict=True)
        if weight >= LEAST
    ]
    query = fenced(queries[exhibit.queries[0]])
    mark = "underlined" if display.color else "^"
    what = f"{query} ({mark}) looks at {', '.join(found) or 'nothing that is shown'}"
    return folded(Text(what, style="dim"), display.width)
