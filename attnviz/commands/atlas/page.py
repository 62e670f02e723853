"""The result of a scan as a page: one file, or one beside a folder with a script for each head."""

import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from attnviz.commands.atlas.headvis import new_folder
from attnviz.commands.atlas.record import SCORES, Atlas, HeadAtlas, HeadExample
from attnviz.draw.labels import VIRIDIS
from attnviz.draw.page import document
from attnviz.draw.page.document import COMMON, beside, filled, policy, safe_json, source
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option, readable
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.metrics import METRICS, ROLES, Score

# The page of a scan: all heads by their scores, and one head with all that was found of it.
#
# A small page is one file that holds its heads. A large one loads a head when it is asked for, from
# a script beside the page that calls `attnvizHead` with what was found. Weights are exact to
# 0.00005.


LEVELS = 10_000
"""A weight of 1 on the page."""
FOLDER = "commands/atlas/page"
STYLES = (f"{COMMON}.css", f"{FOLDER}/atlas.css")
SCRIPTS = (
    f"{COMMON}.js",
    *(
        f"{FOLDER}/{name}.js"
        for name in ("state", "overview", "panel", "examples", "search", "atlas")
    ),
)


@dataclass(frozen=True)
class AtlasStart:
    """What the page shows at first: a head, by its number among the rows, and why.

    `score`: the one that the heads are coloured by; the head was chosen as it has the largest value
    of it, if `telling`. `x`, `y`: the scores of the scatter.
    """

    head: int = 0
    score: str = "entropy"
    telling: bool = False
    x: str = "distance"
    y: str = "entropy"


@dataclass
class Search:
    """Which heads have which tokens among those with the most mass, head by head as they come."""

    sides: Mapping[str, dict[str, list[float]]] = field(
        default_factory=lambda: {"query": defaultdict(list), "key": defaultdict(list)}
    )
    sampled: set[int] = field(default_factory=set)

    def add(self, number: int, head: HeadAtlas) -> None:
        """The tokens of a head; `number`: its place among the rows of the atlas."""
        for side, found in self.sides.items():
            for each in head.tokens.get(side, ()):  # type: ignore[call-overload]
                token = each.query if side == "query" else each.key
                found[_token(token or "")] += [number, _short(each.mass) or 0.0]
        if head.tokens:
            self.sampled.add(head.sampled)

    def content(self) -> Mapping[str, object]:
        """For the page: the tokens, and for each of them head, mass, head, mass and so on."""
        tokens = sorted(set().union(*self.sides.values()))
        lists = {side: [found.get(t, []) for t in tokens] for side, found in self.sides.items()}
        return {"tokens": tokens, "sampled": sorted(self.sampled), **lists}


def page_chunks(
    atlas: Atlas,
    start: AtlasStart,
    search: Search,
    heads: Sequence[str] | None = None,
    folder: str = "",
) -> Iterator[str]:
    """The page, piece by piece.

    `heads`: for a page of one file, what `head_json` gives of each head, in the order of rows;
    `folder`: else the folder beside the page that holds `head_script` of each, as a URL.
    """
    style, script = source(*STYLES), source(*SCRIPTS)
    apart = heads is None
    before, after = source(f"{FOLDER}/atlas.html").split("{{heads}}")
    values = {
        "title": escape(_title(atlas)),
        "policy": policy(style, script, loads=apart),
        "beside": beside(script) if apart else policy(style, script),
        "style": style,
        "data": safe_json({**_facts(atlas, start), "folder": folder if apart else None}),
        "search": safe_json(search.content()),
        "script": script,
    }
    yield filled(before, values)
    for row, head in zip(atlas.rows, heads or (), strict=False):
        yield f'<script type="application/json" id="head-{head_name(row)}">{head}</script>\n'
    yield after


def head_json(head: HeadAtlas, scan: str) -> str:
    """All that was found of a head, as JSON that can stand in a page; `scan`: `scan_id`."""
    found = {
        "scan": scan,
        "head": head_name(head.row),
        "sampled": head.sampled,
        "histograms": {
            name: [[bin.start, bin.end, _short(bin.value)] for bin in bins]
            for name, bins in head.histograms.items()
        },
        "tokens": {
            side: [[_or_none(m.query), _or_none(m.key), _short(m.mass) or 0.0] for m in masses]
            for side, masses in head.tokens.items()
        },
        "examples": [_example(example) for example in head.examples],
    }
    return safe_json(found)


def head_script(content: str) -> str:
    """The script beside the page that hands it a head; `content`: what `head_json` gives."""
    return f"attnvizHead({content});\n"


def head_name(row: Mapping[str, Any]) -> str:
    """As in L5H1: made of numbers, as a name may be anything in a stranger's table."""
    return f"L{int(row['layer'])}H{int(row['head'])}"


def scan_id(atlas: Atlas) -> str:
    """By which a page knows whether a head beside it is of the same scan."""
    content = safe_json([atlas.model, _values(atlas), dict(atlas.asked)])
    return sha256(content.encode()).hexdigest()[:16]


def _facts(atlas: Atlas, start: AtlasStart) -> Mapping[str, object]:
    """Everything of the page but the tokens and the heads."""
    return {
        "scan": scan_id(atlas),
        "title": _title(atlas),
        "about": _about(atlas),
        "documents": atlas.size[0],
        "heads": [[head_name(row), int(row["layer"]), int(row["head"])] for row in atlas.rows],
        "scores": [_explained(score) for score in SCORES.values()],
        "values": _values(atlas),
        "start": vars(start),
        "colors": {"light": VIRIDIS, "dark": VIRIDIS},  # a dot of no score is seen, too
        "levels": LEVELS,
    }


def _explained(score: Score) -> Mapping[str, object]:
    digits = {"tokens": 2, "tokens²": 1}.get(score.unit, 3)
    about = {"name": score.name, "label": score.label, "unit": score.unit}
    return {**about, "says": score.meaning, "digits": digits}


def _title(atlas: Atlas) -> str:
    documents, _ = atlas.size
    model = f"{amount(len(atlas.rows), 'attention head')} of {readable(atlas.model)}"
    return f"{model} over {amount(documents, 'document')}"


def _about(atlas: Atlas) -> str:
    length, windows = atlas.asked.get("length"), int(atlas.rows[0]["windows"])
    at_most = f" of at most {amount(length, 'token')}" if isinstance(length, int) else ""
    tokens = f"{amount(atlas.size[1], 'token')} in {amount(windows, 'window')}{at_most}"
    return f"Scanned: {tokens}. Scores are means over documents."


def _values(atlas: Atlas) -> Mapping[str, object]:
    """For each score, that of every head with its standard error and its number of documents."""
    return {
        name: [
            [_short(row[name]), _short(row[f"{name}_error"]), row[f"{name}_documents"]]
            for row in atlas.rows
        ]
        for name in SCORES
    }


def _example(example: HeadExample) -> Mapping[str, object]:
    """A window and its links, by query and then by weight."""
    order = np.lexsort((example.keys, -example.weights, example.queries))
    levels = np.rint(np.nan_to_num(example.weights.astype(np.float64)) * LEVELS).astype(np.int64)
    arrays = [array[order] for array in (example.queries, example.keys, levels)]
    return {
        "kind": example.kind,
        "bin": example.bin,
        "apart": _short(example.apart) or 0.0,
        "path": readable(example.path),
        "start": example.start,
        "window": example.window,
        "tokens": [_token(token) for token in example.tokens],
        "links": document.packed_numbers(np.concatenate(arrays)),
    }


def _token(text: str) -> str:
    """A token with every control character written out; the space that it begins with stays."""
    space = " " if text.startswith(" ") and text.strip(" ") else ""
    return space + readable(text)


def _or_none(token: str | None) -> str | None:
    return None if token is None else _token(token)


def _short(value: float | None) -> float | None:
    """Five digits, which is more than the page shows; no number is None."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.5g}")


LARGEST = 20_000_000
"""A page of at most so many bytes is one file."""
TELLING = [role.metric for role in ROLES if METRICS[role.metric].telling]


def write_page(
    atlas: Atlas, heads: Iterable[HeadAtlas], path: Path, start: AtlasStart | None = None
) -> Path | None:
    """Write the page, and where it would be too large for one file, a folder of heads beside it.

    The folder is written before the page; at most `LARGEST` bytes of heads are in memory. `path`:
    the page; atlas.html gets the folder atlas_heads, which is returned. `start`: what is shown at
    first; else `start_of` chooses.
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
    if not made.up_to(LARGEST):
        return None
    page = b"".join(encoded(page_chunks(atlas, start, made.search, made.kept)))
    return page if len(page) <= LARGEST else None
