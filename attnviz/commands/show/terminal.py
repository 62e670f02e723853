"""The strongest links of all heads in a terminal: a line for each query, strongest first.

    L1H2  creature → fluffy 0.48, blue 0.47

A query that sees one key only has no line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import distinct_labels, fenced, names_of
from attnviz.draw.terminal.around import heading
from attnviz.draw.terminal.colors import cut, pad, widest
from attnviz.draw.terminal.listing import footnotes
from attnviz.errors import Speller
from attnviz.records.exhibit import Exhibit, links_of

MOST_LINES, MOST_KEYS, FAINT = 20, 5, 0.05
LONGEST = 24  # cells of a label


@dataclass(frozen=True)
class LinkLine:
    """One query of one head, and its strongest keys with their weights."""

    head: str
    query: int
    keys: tuple[tuple[int, float], ...]


def render(exhibit: Exhibit, display: Display | None = None) -> list[RenderableType]:
    """The lines; without a least weight only the first of them, and how many there are besides."""
    display = display or Display()
    lines = sorted(_lines(exhibit), key=lambda line: -line.keys[0][1])
    shown = lines if exhibit.least > 0 else lines[:MOST_LINES]
    closing = "" if lines else "no link to show"
    if len(lines) > len(shown):
        closing = _closing(len(lines) - len(shown), exhibit, display.speller)
    notes = [closing] if closing else []
    written = _written(exhibit, shown, display)
    return [*heading(exhibit, display), Text(), *written, *footnotes(notes, display.width)]


def _lines(exhibit: Exhibit) -> Iterator[LinkLine]:
    seen = exhibit.capture.allowed_count()
    most = exhibit.top or MOST_KEYS
    for head_map in exhibit.maps:
        links = links_of(exhibit, head_map)
        starts = np.flatnonzero(np.diff(links.query, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(links)]):
            query = int(links.query[start])
            keys = zip(links.key[start:end].tolist(), links.weight[start:end].tolist(), strict=True)
            strongest = [
                (key, weight) for key, weight in keys if exhibit.weakest_left_out or weight >= FAINT
            ]
            if strongest and seen[query] > 1:
                yield LinkLine(head_map.label, query, tuple(strongest[:most]))


def _written(exhibit: Exhibit, lines: list[LinkLine], display: Display) -> Iterator[Text]:
    unicode = display.unicode
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=unicode)
    keys = names_of(exhibit.capture.key_tokens, unicode=unicode)
    longest = max(8, min(LONGEST, display.width // 4))
    heads = widest([line.head for line in lines])
    names = min(longest, widest([queries[line.query] for line in lines]))
    for line in lines:
        written = Text(pad(line.head, heads) + "  ", no_wrap=True, overflow="crop")
        query = fenced(cut(queries[line.query], names, unicode=unicode))
        written.append(pad(query, names, right=True), "bold")
        written.append(" → " if unicode else " > ", "dim")
        for rank, (key, weight) in enumerate(line.keys):
            label = fenced(cut(keys[key], longest, unicode=unicode))
            more = Text(f"{', ' if rank else ''}{label} {weight:.2f}")
            if rank and written.cell_len + more.cell_len > display.width:
                break
            written.append_text(more)
        yield written


def _closing(others: int, exhibit: Exhibit, speller: Speller) -> str:
    """How many lines are not shown, and how to see others."""
    plural = "" if others == 1 else "s"
    note = f"{others:,} more line{plural}: {speller('least', '0.5')} shows all links of 0.5 or more"
    if not (exhibit.skip or exhibit.dropped):
        itself, previous = speller("no_self", None), speller("no_previous", None)
        note += f"; {itself}, {previous} and {speller('drop_sink', None)} hide the usual ones"
    return note
