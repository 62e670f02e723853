"""The text itself, its words shaded by the weight of one query on them.

With colour the words are filled; without, their weights are below them, and pieces of a
word that are too short for their own numbers share one. The query is underlined, or has
a `^` below it. A last line explains colours and numbers. If the text was cut to fit the
model, `…` marks the parts that the model did not read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import ascii_only, distinct_labels, fenced, name_of, standing, told_apart
from attnviz.draw.terminal.around import heading, map_heading, ramp
from attnviz.draw.terminal.cells import cell_style, cut, fenced_line, folded, pad
from attnviz.draw.titles import left_out
from attnviz.errors import UsageError, option, readable
from attnviz.records.exhibit import Exhibit, Map, links_of
from attnviz.records.tokens import Token

# A text in pieces, one for each token, that together are the whole of it.


@dataclass(frozen=True)
class TextPiece:
    """A stretch of the text, its weight (None if not attended to), and the space before it.

    `lines` line ends and `spaces` spaces precede it in the source. `unseen`: it marks a part of
    the source that was cut off. `keys` are its tokens.
    """

    written: str
    weight: float | None = None
    query: bool = False
    lines: int = 0
    spaces: int = 0
    unseen: bool = False
    keys: tuple[int, ...] = ()


def pieces_of(exhibit: Exhibit, head_map: Map) -> list[TextPiece]:
    """The source text in pieces, a piece per token, with the weights of the one query.

    Tokens that share a letter are one piece, with the sum of their weights. Text between
    tokens is kept, so that nothing of the source is lost; text before the first or after
    the last one was cut off, and becomes `…`.
    """
    text, links = exhibit.capture.texts[1], links_of(exhibit, head_map)
    weights = dict(zip(links.key.tolist(), links.weight.tolist(), strict=True))
    # in an encoder-decoder, the query is the word that a position produces, and not a key
    query = exhibit.queries[0] if exhibit.capture.one_sequence else -1
    pieces: list[TextPiece] = []
    end, first, beside = 0, True, False  # `beside` an inset
    stretches = _stretches(exhibit.capture.key_tokens, text)
    following = [start for start, _, _ in stretches[1:]] + [len(text)]
    for (start, stop, tokens), after in zip(stretches, following, strict=True):
        inset = tokens[0].inset
        if tokens[0].special and not inset:
            piece = TextPiece(tokens[0].label, spaces=1)
        else:
            before = text[end:start]
            pieces += _cut_off(before) if first else [piece_of(before)]
            piece = TextPiece(tokens[0].label) if inset else piece_of(text[start:stop])
            if (inset or beside) and not piece.lines:
                piece = replace(piece, spaces=max(1, piece.spaces))
            end = after if inset else stop  # its mark is not shown
            first, beside = False, inset
        keys = tuple(token.index for token in tokens)
        weight = _sum(weights.get(key) for key in keys)
        pieces.append(replace(piece, weight=weight, query=query in keys, keys=keys))
    pieces += _cut_off(text[end:])
    if exhibit.capture.bos and len(pieces) > 1 and not pieces[1].lines:
        pieces[1] = replace(pieces[1], spaces=max(1, pieces[1].spaces))
    return [p for p in pieces if p.written or p.lines or p.spaces or p.weight or p.query]


def _stretches(tokens: Iterable[Token], text: str) -> list[tuple[int, int, list[Token]]]:
    """The places of tokens, without overlaps; those that share a letter are one stretch."""
    stretches: list[tuple[int, int, list[Token]]] = []
    end = 0
    for token in tokens:
        # A blank that two tokens share does not join them.
        shared = text[token.start : min(end, token.end)].strip(" ")
        start, end = max(token.start, end), max(token.end, end)
        if stretches and shared and not (token.special or stretches[-1][2][0].special):
            start, _, before = stretches.pop()
            stretches.append((start, end, [*before, token]))
        else:
            stretches.append((start, end, [token]))
    return stretches


def joined(first: TextPiece, second: TextPiece) -> TextPiece:
    """Join two pieces of one word, with the sum of their weights."""
    return replace(
        first,
        written=first.written + second.written,
        weight=_sum([first.weight, second.weight]),
        query=first.query or second.query,
        keys=first.keys + second.keys,
    )


def _sum(weights: Iterable[float | None]) -> float | None:
    known = [weight for weight in weights if weight is not None]
    return sum(known) if known else None


def _cut_off(source: str) -> list[TextPiece]:
    """The pieces for an end of the text without tokens: blanks, or a part that was cut off."""
    bare = source.strip(" \n")
    if not bare:
        return [piece_of(source)]
    before, _, behind = source.partition(bare)
    return [replace(piece_of(before), written="…", unseen=True), piece_of(behind)]


def piece_of(source: str) -> TextPiece:
    """Make a piece: leading line ends and spaces are layout, and the rest of a token is written."""
    bare = source.lstrip(" \n")
    before = source[: len(source) - len(bare)]
    lines, spaces = before.count("\n"), len(before) - before.rfind("\n") - 1
    if not bare and "\n" not in before:
        return TextPiece("", spaces=spaces)
    behind = " " * (len(bare) - len(bare.rstrip(" ")))
    return TextPiece(readable(bare) + behind if bare else "", lines=lines, spaces=spaces)


FAINT = 0.05  # of the strongest weight: a weaker word gets no background
STRONGEST = 3
DEEPEST_INDENT = 8
_QUERY = Style(bold=True, underline=True)


def render(exhibit: Exhibit, display: Display | None = None) -> list[RenderableType]:
    """Draw the text with the weights of the exhibit's only query, one block per head."""
    display = display or Display()
    if len(exhibit.queries) != 1:
        raise UsageError(
            f"the text view shows one query at a time, not {len(exhibit.queries):,}",
            f"choose it with {option('queries')}",
        )
    parts: list[RenderableType] = [*heading(exhibit, display)]
    whole = [_whole(exhibit, head_map, display) for head_map in exhibit.maps]
    maps = [_readable(pieces, display) for pieces in whole]
    most = _strongest(maps)
    for head_map, pieces in zip(exhibit.maps, maps, strict=True):
        parts.append(Text())
        if len(exhibit.maps) > 1:
            parts.append(map_heading(exhibit, head_map, display))
        for line in _wrapped(pieces, display):
            parts += _shown(line, most, display)
        parts += [Text(), *_summary(exhibit, pieces, display)]
    shared = sum(map(len, maps)) < sum(map(len, whole))
    query = _query(exhibit, maps[0] if maps else (), display)
    return [*parts, *_legend(exhibit, query, most, display, shared=shared)]


@dataclass(frozen=True)
class Line:
    """A line of the text: its pieces with their first cells, and the line as shown."""

    pieces: tuple[tuple[int, TextPiece], ...]
    shown: tuple[Text, ...]


def lines_of(exhibit: Exhibit, display: Display) -> list[Line]:
    """The lines of the text with the weights of the exhibit's only query in its first map."""
    pieces = _readable(_whole(exhibit, exhibit.maps[0], display), display)
    most = _strongest([pieces])
    lines = []
    for line in _wrapped(pieces, display):
        at, placed = 0, []
        for space, piece in line:
            placed.append((at + space, piece))
            at += space + _cells(piece, display)
        lines.append(Line(tuple(placed), tuple(_shown(line, most, display))))
    return lines


def shaded(pieces: Iterable[TextPiece], display: Display, most: float) -> list[Text]:
    """Draw pieces without an exhibit as lines; a weight of `most` gets the strongest shade."""
    shown = _readable([_spelled(piece, display) for piece in pieces], display)
    return [part for line in _wrapped(shown, display) for part in _shown(line, most, display)]


def _whole(exhibit: Exhibit, head_map: Map, display: Display) -> list[TextPiece]:
    return [_spelled(piece, display) for piece in pieces_of(exhibit, head_map)]


def _strongest(maps: Sequence[list[TextPiece]]) -> float:
    return max((piece.weight or 0.0 for pieces in maps for piece in pieces), default=0.0) or 1.0


def _shown(line: list[tuple[int, TextPiece]], most: float, display: Display) -> Iterator[Text]:
    return _colored(line, most, display) if display.color else _numbered(line, display)


def _spelled(piece: TextPiece, display: Display) -> TextPiece:
    """The piece in letters that the display has, at most a line wide, with signs for blanks."""
    written = piece.written
    if not written and (piece.query or (piece.weight or 0) >= LEAST):
        written = "\\n" * piece.lines or "␣"
    if piece.unseen and not display.unicode:
        written = "..."
    written = standing(written) if display.unicode else ascii_only(written)
    return replace(piece, written=cut(written, display.width, unicode=display.unicode))


def _readable(pieces: list[TextPiece], display: Display) -> list[TextPiece]:
    """The pieces to show: without colour, those whose numbers do not fit are summed."""
    if display.color:
        return pieces
    return [piece for word in words_of(pieces) for piece in summed(word, display.width)]


def _wrapped(pieces: list[TextPiece], display: Display) -> Iterator[list[tuple[int, TextPiece]]]:
    line: list[tuple[int, TextPiece]] = []
    used = 0
    for n, word in enumerate(words_of(pieces)):
        cells = sum(_cells(piece, display) for piece in word)
        if word[0].lines and (line or n):
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


def _cells(piece: TextPiece, display: Display) -> int:
    wide = cell_len(piece.written)
    return wide if display.color else max(wide, len(below(piece)))


def _colored(line: list[tuple[int, TextPiece]], most: float, display: Display) -> Iterator[Text]:
    text = Text(no_wrap=True, overflow="crop")
    for space, piece in line:
        text.append(" " * space)
        style = Style(dim=True)
        if piece.weight is not None:
            bright = piece.weight >= _least(most)
            style = cell_style(piece.weight / most, display) if bright else Style()
        text.append(piece.written, style + _QUERY if piece.query else style)
    # Nothing is below this line, so that words need no extra space.
    yield fenced_line(text)


def _least(most: float) -> float:
    return max(LEAST, FAINT * most)


def _numbered(line: list[tuple[int, TextPiece]], display: Display) -> Iterator[Text]:
    above = numbers = ""
    for space, piece in line:
        cells = _cells(piece, display)
        above += " " * space + pad(fenced(piece.written), cells)
        numbers += " " * space + pad(below(piece), cells)
    yield Text(above.rstrip(), no_wrap=True, overflow="crop")
    if numbers.strip():
        yield Text(numbers.rstrip(), no_wrap=True, overflow="crop")


def _summary(exhibit: Exhibit, pieces: Sequence[TextPiece], display: Display) -> list[Text]:
    """The strongest pieces in words, for those who see no colour and who copy the text."""
    keys = distinct_labels(exhibit.capture.key_tokens, unicode=display.unicode)
    numbered = told_apart([piece.written.strip() for piece in pieces])
    names = [  # a token's label; of several tokens, what is written
        keys[piece.keys[0]] if len(piece.keys) == 1 else name
        for piece, name in zip(pieces, numbered, strict=True)
    ]
    ranked = sorted(range(len(pieces)), key=lambda n: -(pieces[n].weight or 0.0))
    seen = [
        f"{fenced(name_of(names[n]))} {weight:.2f}"
        for n in ranked[:STRONGEST]
        if (weight := pieces[n].weight or 0.0) >= LEAST
    ]
    looks = f"attends to {', '.join(seen) or 'nothing that is shown'}"
    sentence = f"{_query(exhibit, pieces, display)} {looks}"
    return folded(Text(sentence, style="dim"), display.width)


def _query(exhibit: Exhibit, pieces: Sequence[TextPiece], display: Display) -> str:
    """The query and its mark: `creature (^)`, or `atures in creatures (^)`."""
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=display.unicode)
    query = fenced(queries[exhibit.queries[0]])
    marked = next((piece for piece in pieces if piece.query), None)
    if marked is None:
        return query
    word = fenced(marked.written.strip())
    whole = f"{query} in {word}" if len(marked.keys) > 1 and word not in query else query
    return f"{whole} ({'underlined' if display.color else '^'})"


def _legend(
    exhibit: Exhibit, query: str, most: float, display: Display, *, shared: bool
) -> list[Text]:
    why = left_out(exhibit)
    if display.color:
        least = _least(most)
        text = ramp(display, most)
        start = text.plain.index(f" {most:.2f}")
        text.append(f", no colour: under {least:.{2 if least >= 0.01 else 3}f}")
        text.append(f", dim: {why}" if why else "")
        text.stylize("dim", start)
        return folded(text, display.width)
    what = f"below each word: the weight of {query} on it"
    what += f"; blank: under {LEAST}" + (f", {why}" if why else "")
    what += "; the weights of short pieces of a word are summed" if shared else ""
    return folded(Text(what, style="dim"), display.width)


# Words with numbers below them; short pieces of a word share one.

LEAST = 0.005  # weaker weights get no number and no colour
LONGEST_WORD = 20  # cells; a longer run of letters without a space is not one word


def words_of(pieces: Sequence[TextPiece]) -> Iterator[list[TextPiece]]:
    """The pieces between one space or line end and the next."""
    starts = [n for n, p in enumerate(pieces) if n == 0 or p.spaces or p.lines] + [len(pieces)]
    for first, last in pairwise(dict.fromkeys(starts)):
        yield list(pieces[first:last])


def below(piece: TextPiece) -> str:
    """The mark below a piece without colour: `^` for the query, and the weight."""
    weight = piece.weight or 0.0
    number = f"{weight:.2f}".removeprefix("0") if weight >= LEAST else ""
    return ("^" if piece.query else "") + number


def summed(word: list[TextPiece], width: int) -> list[TextPiece]:
    """The word in pieces as wide as the marks below them, none wider than `width` cells.

    Wide letters stay separate. If the pieces of another word are too narrow, it becomes one piece
    with the sum of their weights; a longer run of letters is joined as little as possible.
    """
    if all(_fits(piece, following) for piece, following in pairwise(word)):
        return word
    if all(cell_len(piece.written) == 2 * len(piece.written) for piece in word):
        gaps = [len(below(piece)) + 1 - cell_len(piece.written) for piece in word[:-1]]
        spaced = zip(word[1:], gaps, strict=True)
        return [word[0], *(replace(piece, spaces=max(0, gap)) for piece, gap in spaced)]
    if sum(cell_len(piece.written) for piece in word) <= min(LONGEST_WORD, width):
        return [reduce(joined, word)]
    parts: list[TextPiece] = []
    for piece in word:
        both = joined(parts[-1], piece) if parts else piece
        if parts and not _fits(parts[-1], piece) and cell_len(both.written) <= width:
            parts[-1] = both
        else:
            parts.append(piece)
    return parts


def _fits(piece: TextPiece, following: TextPiece) -> bool:
    """Whether the mark below a piece ends before it does; that of the last one may be longer."""
    gap = 1 if below(piece) and below(following) else 0
    return len(below(piece)) + gap <= cell_len(piece.written)
