"""A calculation with every array in full: one JSON object, or an .npz file."""

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.inputs.captures import Entry, archive_chunks
from attnviz.records.rows import CAPTURE_META, to_json

Numbers: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


def calculation_json(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[str]:
    """The facts as fields, then `arrays`: nested lists by name, −∞ as null."""
    yield "{\n"
    for name, value in facts.items():
        yield f"{to_json(name)}: {to_json(value)},\n"
    yield '"arrays": {'
    for number, (name, array) in enumerate(arrays.items()):
        yield f"{',' if number else ''}\n{to_json(name)}: {json.dumps(_nested(array))}"
    yield "\n}\n}\n"


def _nested(array: Numbers) -> object:
    """Lists of lists with the shortest decimals that mean the same number."""
    if array.ndim > 1:
        return [_nested(row) for row in array]
    return [float(str(x)) if np.isfinite(x) else None for x in array]


def calculation_npz(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[bytes]:
    """The facts as JSON in the entry `meta`, then every array."""
    entries: list[tuple[str, Entry]] = [
        (CAPTURE_META, np.array(json.dumps(facts, allow_nan=False)))
    ]
    entries += [(name, array) for name, array in arrays.items()]
    yield from archive_chunks(entries)
