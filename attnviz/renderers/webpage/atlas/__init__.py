"""The page of a scan: all heads by their scores, and one head with all that was found of it.

A small page is one file that holds its heads. A large one loads a head when it is asked for, from
a script beside the page that calls `attnvizHead` with what was found. Weights are exact to 0.00005.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

from attnviz.data.atlas import SCORES, Atlas, Example, HeadAtlas
from attnviz.draw.labels import VIRIDIS
from attnviz.draw.page import document
from attnviz.draw.page.document import beside, filled, policy, safe_json, source
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.renderers.webpage.atlas.scores import EXPLAINED

LEVELS = 10_000
"""A weight of 1 on the page."""
STYLES = ("common.css", "atlas/atlas.css")
SCRIPTS = (
    "common.js",
    *(f"atlas/{name}.js" for name in ("state", "overview", "panel", "examples", "search", "atlas")),
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

    Args:
        atlas: the scores of all heads.
        start: what is shown at first.
        search: the tokens of all heads.
        heads: for a page of one file, what `head_json` gives of each head, in the order of rows.
        folder: else the folder beside the page that holds `head_script` of each, as a URL.
    """
    style, script = source(*STYLES), source(*SCRIPTS)
    apart = heads is None
    before, after = source("atlas/atlas.html").split("{{heads}}")
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
        "scores": [{"name": name, **vars(EXPLAINED[name])} for name in SCORES],
        "values": _values(atlas),
        "start": vars(start),
        "colors": {"light": VIRIDIS, "dark": VIRIDIS},  # a dot of no score is seen, too
        "levels": LEVELS,
    }


def _title(atlas: Atlas) -> str:
    documents, _ = atlas.size
    model = f"{amount(len(atlas.rows), 'attention head')} of {readable(atlas.model)}"
    return f"{model} over {amount(documents, 'document')}"


def _about(atlas: Atlas) -> str:
    """What was scanned, and how it was cut."""
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


def _example(example: Example) -> Mapping[str, object]:
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
