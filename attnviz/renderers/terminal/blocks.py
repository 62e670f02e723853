"""Blocks of lines side by side where there is room, else one below the other."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.text import Text

BLOCK_GAP = 4


def side_by_side(blocks: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """The blocks in rows, as many in each as fit, with an empty line between rows.

    Args:
        blocks: lines, none wider than `width`.
        width: of the terminal.
    """
    for n, row in enumerate(_rows(blocks, width)):
        if n:
            yield Text()
        wide = [_width(block) for block in row]
        for parts in zip_longest(*row, fillvalue=Text()):
            line = Text(no_wrap=True, overflow="crop")
            for part, cells in zip(parts, wide, strict=True):
                line.append_text(part)
                line.append(" " * (cells - part.cell_len + BLOCK_GAP))
            line.rstrip()
            yield line


def _rows(blocks: Sequence[Sequence[Text]], width: int) -> Iterator[list[Sequence[Text]]]:
    row: list[Sequence[Text]] = []
    used = 0
    for block in blocks:
        cells = _width(block)
        if row and used + BLOCK_GAP + cells > width:
            yield row
            row, used = [], 0
        used += cells + (BLOCK_GAP if row else 0)
        row.append(block)
    if row:
        yield row


def _width(block: Sequence[Text]) -> int:
    return max((line.cell_len for line in block), default=0)
