"""The result of a scan as the data tree that HeadVis and Neuronpedia's loaders read.

    TREE/MODEL/headvis/CORPUS/
        config.json                 what was run, and what the page shows
        scatter_data.json           a row for each head: its scores
        server_config.json          {}: no server
        attributions/manifest.json  {}
        heads/L5H1.json             histograms, tokens and sequences of one head

Heads are written one by one as they come, and the folder gets its name when it is complete. A field
with a name of HeadVis's has the definition of its pipeline `compute-head-metrics`; everything else
stands under names of its own. `docs/scan.md` lists both.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np

from attnviz.corpus.record import SCORES, bin_of
from attnviz.corpus.tables import Atlas, Bin, HeadAtlas, HeadExample, TokenSide, head_of
from attnviz.errors import OutputError
from attnviz.kit.write import ELSEWHERE, as_output_error, check_folder, make_folder, write_bytes
from attnviz.records.metrics import STRONG
from attnviz.records.tokens import SPECIAL_LABEL

INTERVALS = 5
"""Intervals of a window's largest weight, 1 to 5, with as equal counts as the bins allow."""
DISTANCES = (0, *(1 << i for i in range(13)))
TOKENS = 50
DIGITS = 4
ENTRIES = r"(config|scatter_data|server_config)\.json|attributions|heads"
PUBLISHED = ("schema", "revision", "engine", "split", "key", "length", "documents", "seed")
"""The facts of the manifest that the tree contains: not which files of the user's were read."""
OWN = {score.headvis: f"{score.name}_over_tokens" for score in SCORES.values() if score.headvis}
COLUMNS: Mapping[str, str] = {
    **OWN,
    "induction_score": "strong_induction_over_tokens",
    **{f"{n}_over_tokens": f"{n}_over_tokens" for n, each in SCORES.items() if not each.headvis},
    **{f"{name}_over_documents": name for name in SCORES},
}
"""Each score of the tree, HeadVis's six first, and its column in `heads.parquet`."""


def meanings() -> dict[str, str]:
    """The meaning of each score of the tree, in a sentence."""
    followed = SCORES["induction"].meaning
    strong = f"Mean {followed}, the query counted, weights below {STRONG} not; over tokens."
    told = {"strong_induction_over_tokens": strong}
    for name, score in SCORES.items():
        told[name] = f"{score.sentence[:-1]}; over documents."
        told[f"{name}_over_tokens"] = f"{score.sentence[:-1]}; over tokens."
    return {name: told[column] for name, column in COLUMNS.items()}


PAGE: Mapping[str, Any] = {
    "head_data_pattern": "L{layer}H{head}.json",
    "has_umap": False,
    "umap_heads": [],
    "custom_plots": [
        {"key": "qk_distance_histogram", "label": "Weight of the sequences by distance"},
        {"key": "histogram", "label": "Windows by largest weight"},
        {"key": "mean_weight_by_distance", "label": "Mean weight by distance, over documents"},
    ],
    "custom_tables": [
        {"key": "top_query_tokens", "label": "Query tokens of the sequences"},
        {"key": "top_key_tokens", "label": "Key tokens of the sequences"},
        {"key": "sample_query_tokens", "label": "Query tokens of the sample"},
        {"key": "sample_key_tokens", "label": "Key tokens of the sample"},
    ],
    "statistics_display": {
        "n_samples": {"label": "Windows kept", "format": "default"},
        "mean_max_activation": {"label": "Mean largest weight", "format": "default"},
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
    """The name of the corpus: its file or folder, or the folder of all of it."""
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
    """The scores of a head under their names in the tree; null where one could not be measured."""
    named = {name: _rounded(row[column]) for name, column in COLUMNS.items()}
    return {**head_of(row)._asdict(), **named}


def head_object(head: HeadAtlas, atlas: Atlas) -> dict[str, Any]:
    """The content of `heads/L5H1.json`."""
    largest = head.histograms.get("largest", ())
    edges = boundaries(largest)
    # one window may be among the largest, and be drawn from its bin, too
    distinct = {(e.path, e.start, e.window): e for e in head.examples if len(e.tokens) > 1}
    sequences = [sequence_object(example, edges) for example in distinct.values()]
    queries, keys, distances = _sums(sequences)
    return {
        "sequences": sorted(sequences, key=lambda s: (s["interval"], -s["max_activation"])),
        "qk_distance_histogram": {"bin_edges": list(DISTANCES), "bin_values": distances},
        "top_query_tokens": queries,
        "top_key_tokens": keys,
        "histogram": {
            "bin_edges": [_rounded(each.start) for each in largest] + [1.0],
            "bin_values": [int(each.value) for each in largest],
        },
        "statistics": {
            "n_samples": len(sequences),
            "mean_max_activation": _rounded(head.row["largest_over_windows"]),
        },
        "mean_weight_by_distance": _distances(head.histograms.get("distance", ()), atlas),
        "sample_query_tokens": _sampled(head, "query"),
        "sample_key_tokens": _sampled(head, "key"),
    }


def boundaries(largest: Sequence[Bin]) -> list[int]:
    """The bins with which all intervals but the first begin.

    Each has the window that is first of its interval in the order of all n largest weights:
    that of place i·n/5, as HeadVis takes it.
    """
    counts = np.array([each.value for each in largest])
    places = np.rint(counts.sum() * np.arange(1, INTERVALS) / INTERVALS)
    bins = np.searchsorted(counts.cumsum(), np.minimum(places, counts.sum() - 1), side="right")
    first: list[int] = bins.tolist()
    return first


def sequence_object(example: HeadExample, edges: Sequence[int]) -> dict[str, Any]:
    """An example with its links as `query * len(tokens) + key`, in rising order.

    `edges`: see `boundaries`.
    """
    indices = example.queries * len(example.tokens) + example.keys
    order = np.argsort(indices, kind="stable")
    place = f"{example.path}\0{example.start}\0{example.window}"
    return {
        # the same window has the same number in every head; JavaScript counts up to 2**53
        "sequence_id": int.from_bytes(sha256(place.encode("utf-8", "replace")).digest()[:6]),
        "interval": bisect_right(edges, int(bin_of(example.largest))) + 1,
        "tokens": list(map(_token, example.tokens)),
        "attention_indices": indices[order].tolist(),
        "attention_values": [_rounded(value) for value in example.weights[order].tolist()],
        "seq_len": len(example.tokens),
        "max_activation": _rounded(example.largest),
    }


TokenWeights: TypeAlias = list[dict[str, Any]]


def _sums(sequences: Sequence[Mapping[str, Any]]) -> tuple[TokenWeights, TokenWeights, list[float]]:
    """The weights that are kept of the sequences, by query token, by key token and by distance."""
    queries, keys = defaultdict[str, float](float), defaultdict[str, float](float)
    distances = [0.0] * (len(DISTANCES) - 1)
    for each in sequences:
        for index, value in zip(each["attention_indices"], each["attention_values"], strict=True):
            query, key = divmod(index, each["seq_len"])
            queries[each["tokens"][query]] += value
            keys[each["tokens"][key]] += value
            place = bisect_right(DISTANCES, abs(query - key)) - 1
            if place < len(distances):  # HeadVis leaves out what is farther
                distances[place] += value
    by_query, by_key = (
        [
            {"token": token, "weight": round(weight, DIGITS)}
            for token, weight in sorted(sums.items(), key=lambda pair: -pair[1])[:TOKENS]
        ]
        for sums in (queries, keys)
    )
    return by_query, by_key, [round(value, DIGITS) for value in distances]


def _distances(bins: Sequence[Bin], atlas: Atlas) -> dict[str, list[float]]:
    """The bins that a window's distances reach; the open one ends where its successor would."""
    length = atlas.length
    reached = [b for b in bins if length is None or b.start < length]
    ends = [each.end if each.end is not None else each.start * 2 for each in reached]
    return {
        "bin_edges": [0.0, *ends] if reached else [],
        "bin_values": [round(each.value, 6) for each in reached],
    }


def _sampled(head: HeadAtlas, side: TokenSide) -> TokenWeights:
    """The tokens of one side in the sample of all windows."""
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
    """The content of `config.json`: the run as the loaders read it, and the page's settings."""
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
        "metrics": list(COLUMNS),
        "metric_descriptions": meanings(),
        **PAGE,
        "pipeline_config": {
            **shared,
            "n_sequences": int(atlas.rows[0]["windows"]),
            "seq_len": atlas.length or 0,
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
