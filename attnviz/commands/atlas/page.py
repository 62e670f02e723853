"""The result of a scan as a page: one file, or one beside a folder with a script for each head."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np

from attnviz.commands.atlas.headvis import new_folder
from attnviz.corpus.record import DRAWN, SCORES
from attnviz.corpus.result import partial_notes
from attnviz.corpus.tables import Atlas, HeadAtlas, HeadExample, TokenSide
from attnviz.draw import page as document
from attnviz.draw.labels import BLUES, BLUES_ON_DARK
from attnviz.draw.page import COMMON, HEAD, beside, filled, policies, policy, safe_json, source
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option, readable
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.metrics import METRICS, ROLES

# The page of a scan: all heads by their scores, and one head with all that was found of it.
#
# A small page is one file that holds its heads. A large one loads a head when it is asked for, from
# a script beside the page that calls `attnvizHead` with what was found. Weights are exact to
# 0.00005.


LEVELS = 10_000
"""A weight of 1 on the page."""
FOLDER = "commands/atlas/page"
STYLES = (f"{COMMON}.css", f"{FOLDER}/atlas.css")
PARTS = "state", "overview", "panel", "examples", "search", "atlas"
SCRIPTS = (f"{COMMON}.js", *(f"{FOLDER}/{name}.js" for name in PARTS))


@dataclass(frozen=True)
class AtlasStart:
    """The first view of the page: a head, by its number among the rows, and why.

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
    """Find the heads that have certain tokens among those with the most mass, one by one."""

    sides: Mapping[TokenSide, dict[str, list[float]]] = field(
        default_factory=lambda: {"query": defaultdict(list), "key": defaultdict(list)}
    )
    sampled: set[int] = field(default_factory=set)

    def add(self, number: int, head: HeadAtlas) -> None:
        """Add the tokens of a head; `number`: its place among the rows of the atlas."""
        for side, heads in self.sides.items():
            for each in head.tokens.get(side, ()):
                token = _token(getattr(each, side) or "")
                heads[token] += [number, _short(each.mass) or 0.0]
        if head.tokens:
            self.sampled.add(head.sampled)

    def content(self) -> Mapping[str, object]:
        """For the page: the tokens, and for each of them head, mass, head, mass and so on."""
        tokens = sorted(set().union(*self.sides.values()))
        content: dict[str, object] = {"tokens": tokens, "sampled": sorted(self.sampled)}
        for side, heads in self.sides.items():
            content[side] = [heads.get(token, []) for token in tokens]
        return content


def page_chunks(
    atlas: Atlas,
    start: AtlasStart,
    search: Search,
    heads: Sequence[str] | None = None,
    folder: str = "",
) -> Iterator[str]:
    """The page, piece by piece.

    `heads`: for a page of one file, what `head_json` gives of each head, in the order of rows;
    `folder`: else the folder beside the page that holds a script for each, as a URL.
    """
    style, script = source(*STYLES), source(*SCRIPTS)
    apart, over = heads is None, atlas.mean_over
    before, after = source(HEAD, f"{FOLDER}/atlas.html").split("{{heads}}")
    values = {
        "title": escape(_title(atlas)),
        "means": f"means over {over}{' ± standard error' if over == 'documents' else ''}",
        "policies": policies(
            policy(style, script, loads=apart), beside(script) if apart else policy(style, script)
        ),
        "style": style,
        "data": safe_json({**_facts(atlas, start), "folder": folder if apart else None}),
        "search": safe_json(search.content()),
        "script": script,
    }
    yield filled(before, values)
    for head, content in zip(atlas.heads, heads or (), strict=False):
        yield f'<script type="application/json" id="head-{head}">{content}</script>\n'
    yield after


def head_json(head: HeadAtlas, scan: str) -> str:
    """All that was found of a head, as JSON for a page; `scan`: `scan_id`."""
    content = {
        "scan": scan,
        "head": str(head.head),
        "sampled": head.sampled,
        "histograms": {
            name: [[bin.start, bin.end, _short(bin.value)] for bin in bins]
            for name, bins in head.histograms.items()
        },
        "tokens": {
            side: [
                [m.query and _token(m.query), m.key and _token(m.key), _short(m.mass) or 0.0]
                for m in masses
            ]
            for side, masses in head.tokens.items()
        },
        "examples": [_example(example) for example in head.examples],
    }
    return safe_json(content)


def scan_id(atlas: Atlas) -> str:
    """An id by which a page knows whether a head beside it is of the same scan."""
    content = safe_json([atlas.model, _values(atlas), dict(atlas.manifest)])
    return sha256(content.encode()).hexdigest()[:16]


def _facts(atlas: Atlas, start: AtlasStart) -> Mapping[str, object]:
    """Everything of the page but the tokens and the heads."""
    windows = int(atlas.rows[0]["windows"])
    at_most = f" of at most {amount(atlas.length, 'token')}" if atlas.length else ""
    tokens = f"{amount(atlas.size[1], 'token')} in {amount(windows, 'window')}{at_most}"
    later = "".join(f"{note[0].upper()}{note[1:]}." for note in partial_notes(atlas.partial))
    return {
        "scan": scan_id(atlas),
        "title": _title(atlas),
        "about": f"Scanned: {tokens}. Scores are means over {atlas.mean_over}. {later}".rstrip(),
        "later": later,
        "documents": atlas.size[0],
        "heads": [[str(head), *head] for head in atlas.heads],
        "scores": [
            {
                "name": score.name,
                "label": score.label,
                "unit": score.unit,
                "says": score.meaning,
                "digits": {"tokens": 2, "tokens²": 1}.get(score.unit, 3),
            }
            for score in SCORES.values()
        ],
        "values": _values(atlas),
        "start": vars(start),
        "colors": {"light": BLUES, "dark": BLUES_ON_DARK},
        "levels": LEVELS,
        "drawn": DRAWN,
        "over": atlas.mean_over,
    }


def _title(atlas: Atlas) -> str:
    documents, _ = atlas.size
    model = f"{amount(len(atlas.rows), 'attention head')} of {readable(atlas.model)}"
    only = f" (partial: {atlas.partial})" if atlas.partial else ""
    return f"{model} over {amount(documents, 'document')}{only}"


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


def _short(value: float | None) -> float | None:
    """Five digits, which is more than the page shows; no number is None."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.5g}")


LARGEST = 20_000_000
"""The most bytes of a page in one file."""
TELLING = [role.metric for role in ROLES if METRICS[role.metric].telling]


def write_page(
    atlas: Atlas, heads: Iterable[HeadAtlas], path: Path, start: AtlasStart | None = None
) -> Path | None:
    """Write the page, and where it would be too large for one file, a folder of heads beside it.

    The folder is written before the page; about `LARGEST` bytes of heads are in memory. `path`:
    the page; atlas.html gets the folder atlas_heads, which is returned. `start`: what is shown at
    first; else `start_of` chooses.
    """
    start, search = start or start_of(atlas), Search()
    contents = _contents(atlas, heads, search)
    page, kept = _one_file(atlas, contents, search, start)
    if page is not None:
        write_bytes(path, page)
        return None
    folder = path.with_name(f"{path.stem}_heads")
    with new_folder(folder, r"L\d+H\d+\.js") as fresh:
        for head, content in zip(atlas.heads, chain(kept, contents), strict=True):
            write_bytes(fresh / f"{head}.js", f"attnvizHead({content});\n".encode())
    name = quote(os.fsencode(folder.name), safe="")
    write_bytes(path, encoded(page_chunks(atlas, start, search, folder=name)))
    return folder


def page_of(atlas: Atlas, heads: Iterable[HeadAtlas], start: AtlasStart | None = None) -> bytes:
    """The page as one file.

    Raises:
        UsageError: it would be too large.
    """
    search = Search()
    contents = _contents(atlas, heads, search)
    page, _ = _one_file(atlas, contents, search, start or start_of(atlas))
    if page is None:
        raise UsageError(
            f"the page of {amount(len(atlas.rows), 'head')} is larger than {LARGEST:,} bytes, and "
            "would be several files",
            f"name the first one: {option('output', 'atlas.html')}",
        )
    return page


def _contents(atlas: Atlas, heads: Iterable[HeadAtlas], search: Search) -> Iterator[str]:
    """Each head as JSON, made as it comes; its tokens are added to the search."""
    scan = scan_id(atlas)
    for number, head in enumerate(heads):
        search.add(number, head)
        yield head_json(head, scan)


def _one_file(
    atlas: Atlas, contents: Iterable[str], search: Search, start: AtlasStart
) -> tuple[bytes | None, list[str]]:
    """The page as one file, None where that would be too large; and the heads that it has."""
    kept, size = list[str](), 0
    for content in contents:
        kept.append(content)
        size += len(content)
        if size > LARGEST:
            return None, kept
    page = b"".join(encoded(page_chunks(atlas, start, search, kept)))
    return (page if len(page) <= LARGEST else None), kept


def start_of(atlas: Atlas, score: str | None = None) -> AtlasStart:
    """The first view of the page: the head with the largest value of this score.

    Without a score, it is one by which a newcomer learns what a head can do: the first that makes a
    role (`records/metrics.py`) of some head; where none does, the one with the largest value of
    all.
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
