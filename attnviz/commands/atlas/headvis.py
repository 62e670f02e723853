"""The result of a scan as the data tree that HeadVis and Neuronpedia's loaders read.

    TREE/MODEL/headvis/CORPUS/
        config.json                 what was run, and what the page shows
        scatter_data.json           a row for each head: its scores
        server_config.json          {}: no server
        attributions/manifest.json  {}
        heads/L5H1.json             histograms, tokens and sequences of one head

Heads are written one by one as they come, and the folder gets its name when it is complete.
`docs/scan.md` says where the numbers differ from those of HeadVis's own pipeline.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from attnviz.commands.atlas.record import (
    SCORES,
    Atlas,
    Bin,
    HeadAtlas,
    HeadExample,
    TokenSide,
    head_of,
)
from attnviz.errors import OutputError
from attnviz.kit.write import ELSEWHERE, as_output_error, check_folder, make_folder, write_bytes
from attnviz.records.metrics import Score
from attnviz.records.tokens import SPECIAL_LABEL

INTERVALS = 5
"""Bins of equal width, from 1 to 5; those of HeadVis's own pipeline hold equally many windows."""
BINS = 20  # of the largest weight, in a scan
TOKENS = 50
DIGITS = 4
ENTRIES = r"(config|scatter_data|server_config)\.json|attributions|heads"
PUBLISHED = ("schema", "revision", "engine", "split", "key", "length", "documents", "seed")
"""The facts of the manifest that the tree tells: not which files of the user's were read."""
OWN = (
    *("self_attention_score", "prev_token_score", "pattern_entropy"),
    *("qk_distance", "qk_distance_variance", "induction_score"),
)
"""The scores that HeadVis has of its own; they stand first."""


def scores() -> list[Score]:
    """The scores in the order of the tree."""
    own = dict(zip(OWN, range(len(OWN)), strict=True))
    return sorted(SCORES.values(), key=lambda score: own.get(score.headvis, len(own)))


PAGE: Mapping[str, Any] = {
    "head_data_pattern": "L{layer}H{head}.json",
    "has_umap": False,
    "umap_heads": [],
    "custom_plots": [
        {"key": "qk_distance_histogram", "label": "Mean weight by distance"},
        {"key": "histogram", "label": "Windows by largest weight"},
    ],
    "custom_tables": [
        {"key": "top_query_tokens", "label": "Query tokens"},
        {"key": "top_key_tokens", "label": "Key tokens"},
    ],
    "statistics_display": {
        "n_samples": {"label": "Windows kept", "format": "default"},
        "mean_max_activation": {
            "label": "Mean largest weight (from bins of 0.05)",
            "format": "default",
        },
    },
}
"""The fields of a head that the page shows, and where."""


def write_headvis(tree: Path, atlas: Atlas, heads: Iterable[HeadAtlas]) -> Path:
    """Write the tree, the folder that the loaders are given; returns that of this scan in it.

    `heads`: those of the scan, as they come; only one of them is held at a time.
    """
    folder = tree / file_name(model_of(atlas), "model") / "headvis"
    folder /= file_name(corpus_of(atlas), "corpus")
    check_replaced(folder / "heads", r"L\d+H\d+\.json")
    check_replaced(folder / "attributions", r"manifest\.json")
    with new_folder(folder, ENTRIES) as fresh:
        make_folder(fresh / "heads")
        make_folder(fresh / "attributions")
        for head in heads:
            _write(fresh / "heads" / f"{head.head}.json", head_object(head, atlas))
        _write(fresh / "scatter_data.json", [scatter_row(row) for row in atlas.rows])
        _write(fresh / "server_config.json", {})
        _write(fresh / "attributions" / "manifest.json", {})
        _write(fresh / "config.json", config_object(atlas))
    return folder


def file_name(text: str, otherwise: str) -> str:
    """A text as the name of one folder: letters, digits, `.`, `_` and `-`; never `..`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or otherwise


def model_of(atlas: Atlas) -> str:
    """The model's name; of a folder only its last part, as trees are published."""
    local = atlas.model.startswith(("/", ".", "~")) or "\\" in atlas.model
    return PurePath(atlas.model.replace("\\", "/")).name if local else atlas.model


def corpus_of(atlas: Atlas) -> str:
    """The name of the corpus: its file or folder, or the folder that all of it lies in."""
    files = atlas.manifest.get("corpus") or []
    named = atlas.manifest.get("paths") or [each[0] for each in files if isinstance(each, list)]
    paths = [Path(str(path)) for path in named]
    if len(paths) == 1:
        return paths[0].stem or "corpus"
    parts = [path.parent.parts for path in paths]
    shared = [some[0] for some in zip(*parts, strict=False) if len(set(some)) == 1]
    return shared[-1] if shared else "corpus"


def _write(path: Path, content: object) -> None:
    """Write JSON in ASCII, as the loaders read files in the encoding of their machine."""
    write_bytes(path, f"{json.dumps(content, allow_nan=False)}\n".encode("ascii"))


def scatter_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of a head under HeadVis's names; null where one could not be measured."""
    named = {score.headvis: _rounded(row[score.name]) for score in scores()}
    return {**head_of(row)._asdict(), **named}


def head_object(head: HeadAtlas, atlas: Atlas) -> dict[str, Any]:
    """The content of `heads/L5H1.json`."""
    largest = head.histograms.get("largest", ())
    windows = sum(each.value for each in largest)
    mean = sum((each.start + (each.end or 1.0)) / 2 * each.value for each in largest)
    # one window may be among the largest, and be drawn from its bin, too
    distinct = {(each.path, each.start, each.window): each for each in head.examples}
    sequences = list(map(sequence_object, distinct.values()))
    return {
        "sequences": sorted(sequences, key=lambda s: (s["interval"], -s["max_activation"])),
        "qk_distance_histogram": _distances(head.histograms.get("distance", ()), atlas),
        "top_query_tokens": _tokens(head, "query"),
        "top_key_tokens": _tokens(head, "key"),
        "histogram": {
            "bin_edges": [_rounded(each.start) for each in largest] + [1.0],
            "bin_values": [int(each.value) for each in largest],
        },
        "statistics": {
            "n_samples": len(sequences),
            "mean_max_activation": _rounded(mean / windows) if windows else None,
        },
    }


def sequence_object(example: HeadExample) -> dict[str, Any]:
    """An example with its links as `query * len(tokens) + key`, in rising order."""
    indices = example.queries * len(example.tokens) + example.keys
    order = np.argsort(indices, kind="stable")
    place = f"{example.path}\0{example.start}\0{example.window}"
    return {
        # the same window has the same number in every head; JavaScript counts up to 2**53
        "sequence_id": int.from_bytes(sha256(place.encode("utf-8", "replace")).digest()[:6]),
        "interval": min(INTERVALS, example.bin * INTERVALS // BINS + 1),
        "tokens": list(map(_token, example.tokens)),
        "attention_indices": indices[order].tolist(),
        "attention_values": [_rounded(value) for value in example.weights[order].tolist()],
        "seq_len": len(example.tokens),
        "max_activation": _rounded(example.largest),
    }


def _distances(bins: Sequence[Bin], atlas: Atlas) -> dict[str, list[float]]:
    """The bins that a window's distances reach; the open one ends where its successor would."""
    length = atlas.manifest.get("length")
    reached = [b for b in bins if not isinstance(length, int) or b.start < length]
    ends = [each.end if each.end is not None else each.start * 2 for each in reached]
    return {
        "bin_edges": [0.0, *ends] if reached else [],
        "bin_values": [round(each.value, 6) for each in reached],
    }


def _tokens(head: HeadAtlas, side: TokenSide) -> list[dict[str, Any]]:
    return [
        {"token": _token(getattr(each, side)), "weight": _rounded(each.mass)}
        for each in head.tokens.get(side, ())[:TOKENS]
    ]


def _token(text: str | None) -> str:
    """A token as PostgreSQL takes it, which has no NUL."""
    return (text or SPECIAL_LABEL).replace("\0", "␀")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def config_object(atlas: Atlas) -> dict[str, Any]:
    """What `config.json` holds: the run as the loaders read it, and what the page shows."""
    dtype = atlas.manifest.get("dtype")
    shared: dict[str, Any] = {
        "model_name": model_of(atlas),
        "dataset_name": corpus_of(atlas),
        "n_intervals": INTERVALS,
    }
    return {
        **shared,
        "heads": list(map(list, atlas.heads)),
        "n_layers": max(head.layer for head in atlas.heads) + 1,
        "n_heads": max(head.head for head in atlas.heads) + 1,
        "metrics": [score.headvis for score in scores()],
        "metric_descriptions": {score.headvis: score.sentence for score in SCORES.values()},
        **PAGE,
        "pipeline_config": {
            **shared,
            "n_sequences": int(atlas.rows[0]["windows"]),
            "seq_len": int(atlas.manifest.get("length") or 0),
            "dtype": "float32" if dtype in (None, "auto") else str(dtype),
            "attn_implementation": "attnviz",
            "attnviz": {name: atlas.manifest[name] for name in PUBLISHED if name in atlas.manifest},
        },
    }


# Writing a folder completely or not at all: a temporary folder, then a rename.


@contextlib.contextmanager
def new_folder(path: Path, own: str) -> Iterator[Path]:
    """A folder to write into, which takes the place of `path` at the end.

    If anything happens before (an error, Ctrl-C), it is gone, and an old one stays as it was. One
    that is there is replaced if it holds nothing but own files, whose names match `own`.

    Raises:
        OutputError: the folder cannot be written, or holds something else.
    """
    check_replaced(path, own)
    fresh, old = _beside(path), _beside(path)
    make_folder(fresh)
    try:
        yield fresh
        with as_output_error(path):
            if path.exists():
                path.rename(old)
            fresh.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_replaced(path: Path, own: str) -> None:
    """Check early that a folder can be written, and that nothing of a user's is lost by it.

    Raises:
        OutputError: it cannot, or holds files whose names do not match `own`.
    """
    check_folder(path)
    if not os.path.lexists(path):
        return
    with as_output_error(path):
        entries = [] if path.is_symlink() else os.listdir(path)
    others = [name for name in entries if not re.fullmatch(own, name)]
    if path.is_symlink() or others:
        what = "is a link" if path.is_symlink() else f"holds other files, such as {others[0]!r}"
        raise OutputError(f"{str(path)!r} {what}", "move it away, or " + ELSEWHERE)


def _beside(path: Path) -> Path:
    return path.with_name(f".attnviz-{secrets.token_hex(8)}.tmp")
