"""An exhibit as one JSON object; `docs/formats.md` describes it."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, Finding, Map, links_of, whole_map
from attnviz.records.rows import (
    SCHEMA,
    loss_to_dict,
    made_to_dict,
    model_to_dict,
    to_json,
    token_to_dict,
    unknown_to_dict,
)
from attnviz.records.transforms import transform_to_dict


def json_chunks(
    exhibit: Exhibit, *, about: str = "", notes: Sequence[str] = (), line: int | None = None
) -> Iterator[str]:
    """An exhibit as one JSON object, some rows at a time, ended by a newline.

    Args:
        exhibit: what to write; see `_rows` for what its filters do.
        about: which heads these are, what they do here, and why they are shown, for a person.
        notes: what else there is to say of the text, for a person.
        line: the number of the input line; then the object stands on one line of its
            own. Without it the object is spread over lines for a person to read.
    """
    wrap = "\n" if line is None else ""
    gap = "\n" if line is None else " "
    yield "{" + wrap
    for name, value in _fields(exhibit, about, notes, line).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{to_json(name)}: ["
            yield from _separated(map(to_json, value), wrap, gap)
            yield f"{wrap}],{gap}"
        else:
            yield f"{to_json(name)}: {to_json(value)},{gap}"
    yield '"patterns": ['
    for number, head_map in enumerate(exhibit.maps):
        yield f",{gap}[" if number else f"{wrap}["
        yield from _separated(_rows(exhibit, head_map), wrap, gap)
        yield f"{wrap}]"
    yield f"{wrap}]{wrap}}}\n"


def _separated(items: Iterable[str], wrap: str, gap: str) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f",{gap}{item}" if number else f"{wrap}{item}"


def _fields(exhibit: Exhibit, about: str, notes: Sequence[str], line: int | None) -> dict[str, Any]:
    """All but the patterns, in order."""
    capture = exhibit.capture
    return {
        "schema": SCHEMA,
        "command": "show",
        **({} if line is None else {"line": line}),
        "model": model_to_dict(capture.model),
        "versions": dict(sorted(capture.versions.items())),
        "made": made_to_dict([capture]),
        "text": capture.text,
        "bos": capture.bos,
        "left_out": list(capture.left_out),
        "kind": capture.kind,
        **({"target": capture.target} if capture.target else {}),
        **unknown_to_dict(capture.unknown_words),
        "causal": capture.causal,
        "sinks": capture.sinks,
        "transforms": [transform_to_dict(transform) for transform in capture.transforms],
        **_tokens(capture),
        "about": about,
        "notes": list(notes),
        "finding": _finding(exhibit.finding),
        "loss": _loss(capture),
        "heads": [_head(capture, head_map) for head_map in exhibit.maps],
        "queries": list(exhibit.queries),
        "keys": list(exhibit.keys),
        "top": exhibit.top,
        "min": None if exhibit.least == -inf else exhibit.least,
        **({"skip_distances": list(exhibit.skip)} if exhibit.skip else {}),
    }


def _tokens(capture: Capture) -> dict[str, Any]:
    """One list where queries and keys are the same tokens, else two."""
    queries = [token_to_dict(token) for token in capture.query_tokens]
    if capture.kind != "cross" and capture.key_tokens == capture.query_tokens:
        return {"tokens": queries}
    keys = [token_to_dict(token) for token in capture.key_tokens]
    return {"query_tokens": queries, "key_tokens": keys}


def _head(capture: Capture, head_map: Map) -> dict[str, Any]:
    layer, head = head_map.place
    named = capture.named(head_map.layer, head_map.head)
    return {
        "layer": layer,
        "head": head,
        "name": head_map.label,
        "behaviours": [named.behaviour for named in named],
        "known_for": [named.title for named in named],
    }


def _finding(finding: Finding | None) -> dict[str, Any] | None:
    """What the head does here, where a rule picked it: links, or what most rows do."""
    if finding is None:
        return None
    most = finding.tendency
    return {
        "behaviour": finding.behaviour,
        "links": [link._asdict() for link in finding.links],
        "tendency": None
        if most is None
        else {"kind": most.habit, "rows": most.rows, "of": most.of, "key": most.key},
    }


def _loss(capture: Capture) -> dict[str, Any] | None:
    """How well the model predicts the text, where its card says what that means."""
    loss = capture.loss
    if loss is None:
        return None
    return {
        **loss_to_dict(loss),
        "nats_per_character": loss.per_character,
        "strange": loss.strange,
    }


def _rows(exhibit: Exhibit, head_map: Map) -> Iterator[str]:
    """The rows of the exhibit's queries, in the columns of its keys.

    Weights that the filters leave out are null, so that every number is one that the model
    computed. A pair that the mask forbids keeps its weight in the model: 0.0.
    """
    queries, keys = list(exhibit.queries), list(exhibit.keys)
    weights = whole_map(head_map).weights[np.ix_(queries, keys)]
    kept = np.isfinite(weights)  # JSON has no infinity
    if exhibit.filtered:
        forbidden = ~exhibit.capture.allowed()[np.ix_(queries, keys)]
        kept &= _among_links(exhibit, head_map) | forbidden
    for row, known in zip(weights, kept, strict=True):
        numbers: Iterable[str] = map(str, row)
        if not known.all():
            numbers = (
                n if is_known else "null" for n, is_known in zip(numbers, known, strict=True)
            )
        yield "[" + ", ".join(numbers) + "]"


def _among_links(exhibit: Exhibit, head_map: Map) -> NDArray[np.bool_]:
    """(exhibit.queries, exhibit.keys), True for links that pass the filters."""
    links = links_of(exhibit, head_map)
    passed = np.zeros(whole_map(head_map).weights.shape, dtype=np.bool_)
    passed[links.query, links.key] = True
    return passed[np.ix_(list(exhibit.queries), list(exhibit.keys))]
