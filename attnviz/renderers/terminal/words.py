"""Words with numbers below them: what stands there, and which pieces of a word share one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise

from rich.cells import cell_len

from attnviz.renderers.terminal.pieces import TextPiece, joined

LEAST = 0.005  # weaker weights get no number and no colour
LONGEST_WORD = 20  # cells; a longer run of letters without a space is no one word


def words_of(pieces: Sequence[TextPiece]) -> Iterator[list[TextPiece]]:
    """The pieces between one space or line end and the next."""
    starts = [n for n, p in enumerate(pieces) if n == 0 or p.spaces or p.lines] + [len(pieces)]
    for first, last in pairwise(dict.fromkeys(starts)):
        yield list(pieces[first:last])


def below(piece: TextPiece) -> str:
    """What stands below a piece where there is no colour: `^` for the query, and the weight."""
    weight = piece.weight or 0.0
    number = f"{weight:.2f}".removeprefix("0") if weight >= LEAST else ""
    return ("^" if piece.query else "") + number


def summed(word: list[TextPiece], width: int) -> list[TextPiece]:
    """The word in pieces that are as wide as what stands below them.

    Wide letters are set apart. Where the pieces of another word are not as wide, it
    becomes one piece with the sum of their weights; of a longer run of letters without
    spaces no more are joined than have to be.
    No piece gets wider than `width` cells.
    """
    if all(_fits(piece, following) for piece, following in pairwise(word)):
        return word
    if all(cell_len(piece.written) == 2 * len(piece.written) for piece in word):
        return _apart(word)
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


def _apart(word: list[TextPiece]) -> list[TextPiece]:
    """Wide letters (楚), which are written without spaces, with room for the numbers between."""
    gaps = [len(below(piece)) + 1 - cell_len(piece.written) for piece in word[:-1]]
    return [word[0], *(replace(p, spaces=max(0, g)) for p, g in zip(word[1:], gaps, strict=True))]


def _fits(piece: TextPiece, following: TextPiece) -> bool:
    """Whether what stands below a piece ends before it does; the last one's may stand out."""
    gap = 1 if below(piece) and below(following) else 0
    return len(below(piece)) + gap <= cell_len(piece.written)
