"""A calculation with every array in full: one JSON object, or an .npz file."""

import json
from collections.abc import Iterator, Mapping

import numpy as np

from attnviz.data.capture import FloatArray
from attnviz.data.serial import CAPTURE_META, to_json
from attnviz.writers.npz import archive_chunks, plain


def calculation_json(
    facts: Mapping[str, object], arrays: Mapping[str, FloatArray]
) -> Iterator[str]:
    """The facts as fields, then `arrays`: nested lists by name, −∞ as null."""
    yield "{\n"
    for name, value in facts.items():
        yield f"{to_json(name)}: {to_json(value)},\n"
    yield '"arrays": {'
    for number, (name, array) in enumerate(arrays.items()):
        yield f"{',' if number else ''}\n{to_json(name)}: {json.dumps(_nested(array))}"
    yield "\n}\n}\n"


def _nested(array: FloatArray) -> object:
    """Lists of lists with the shortest decimals that mean the same float32."""
    if array.ndim > 1:
        return [_nested(row) for row in array]
    return [float(str(x)) if np.isfinite(x) else None for x in array.astype(np.float32)]


def calculation_npz(
    facts: Mapping[str, object], arrays: Mapping[str, FloatArray]
) -> Iterator[bytes]:
    """The facts as JSON in the entry `meta`, then every array."""
    yield from archive_chunks(
        [
            (CAPTURE_META, np.array(json.dumps(facts, allow_nan=False))),
            *((name, plain(array)) for name, array in arrays.items()),
        ]
    )
