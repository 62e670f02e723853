"""The result of a scan as a page: one file, or one beside a folder with a script for each head."""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from attnviz.data.atlas import SCORES, Atlas, HeadAtlas
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.metrics import ROLES
from attnviz.renderers.webpage.atlas import (
    AtlasStart,
    Search,
    head_json,
    head_name,
    head_script,
    page_chunks,
    scan_id,
)
from attnviz.writers.folders import new_folder

LARGEST = 20_000_000
"""A page of at most so many bytes is one file."""
TELLING = ("induction", "duplicate", "previous", "self")
"""Scores that say what a head does; the others say how its weights are spread."""


def write_page(
    atlas: Atlas, heads: Iterable[HeadAtlas], path: Path, start: AtlasStart | None = None
) -> Path | None:
    """Write the page, and where it would be too large for one file, a folder of heads beside it.

    The folder is written before the page; at most `LARGEST` bytes of heads are in memory.

    Args:
        atlas: the scores of all heads.
        heads: all that was found of each, in the order of its rows.
        path: the page; atlas.html gets the folder atlas_heads.
        start: what is shown at first; else `start_of` chooses.

    Returns:
        the folder, if there is one.

    Raises:
        OutputError: a file cannot be written, or the folder holds something else.
    """
    made, start = _Heads(atlas, iter(heads)), start or start_of(atlas)
    page = _one_file(atlas, made, start)
    if page is not None:
        write_bytes(path, page)
        return None
    folder = path.with_name(f"{path.stem}_heads")
    with new_folder(folder, is_head) as fresh:
        for row, head in zip(atlas.rows, made.all(), strict=True):
            write_bytes(fresh / f"{head_name(row)}.js", head_script(head).encode())
    name = quote(os.fsencode(folder.name), safe="")
    write_bytes(path, encoded(page_chunks(atlas, start, made.search, folder=name)))
    return folder


def page_of(atlas: Atlas, heads: Iterable[HeadAtlas], start: AtlasStart | None = None) -> bytes:
    """The page as one file.

    Raises:
        UsageError: it would be too large.
    """
    page = _one_file(atlas, _Heads(atlas, iter(heads)), start or start_of(atlas))
    if page is None:
        raise UsageError(
            f"the page of {amount(len(atlas.rows), 'head')} is larger than {LARGEST:,} bytes, and "
            "would be several files",
            f"name the first one: {option('output', 'atlas.html')}",
        )
    return page


def is_head(name: str) -> bool:
    """Whether a file of this name is a head of a page."""
    return re.fullmatch(r"L\d+H\d+\.js", name) is not None


def start_of(atlas: Atlas, score: str | None = None) -> AtlasStart:
    """What the page shows at first: the head with the largest value of this score.

    Without a score, it is one by which a newcomer learns what a head can do: the first that makes a
    role (`analyses/heads.py`) of some head; where none does, the one with the largest value of all.
    """
    best = {}
    for name in TELLING if score is None else (score,):
        values = [(row[name], -i) for i, row in enumerate(atlas.rows) if row[name] is not None]
        if values:
            best[name] = max(values)
    if not best:
        measured = [name for name in SCORES if any(row[name] is not None for row in atlas.rows)]
        return AtlasStart(score=measured[0] if measured else "entropy")
    roles = [r.metric for r in ROLES if r.metric in best and best[r.metric][0] >= r.least]
    chosen = roles[0] if roles else max(best, key=lambda name: best[name][0])
    return AtlasStart(-best[chosen][1], chosen, telling=True)


@dataclass
class _Heads:
    """The heads of a page as JSON, made as they come; the tokens of all of them are kept."""

    atlas: Atlas
    heads: Iterator[HeadAtlas]
    search: Search = field(default_factory=Search)
    kept: deque[str] = field(default_factory=deque)

    def up_to(self, size: int) -> bool:
        """Keep them, up to this size together; whether that was all of them."""
        for head in self._made():
            self.kept.append(head)
            size -= len(head)
            if size < 0:
                return False
        return True

    def all(self) -> Iterator[str]:
        """Those that were kept, and then the others."""
        while self.kept:
            yield self.kept.popleft()
        yield from self._made()

    def _made(self) -> Iterator[str]:
        scan = scan_id(self.atlas)
        places = {head_name(row): i for i, row in enumerate(self.atlas.rows)}
        for head in self.heads:
            self.search.add(places[head_name(head.row)], head)
            yield head_json(head, scan)


def _one_file(atlas: Atlas, made: _Heads, start: AtlasStart) -> bytes | None:
    """The page as one file; None if it would be too large."""
    if not made.up_to(LARGEST):
        return None
    page = b"".join(encoded(page_chunks(atlas, start, made.search, made.kept)))
    return page if len(page) <= LARGEST else None
