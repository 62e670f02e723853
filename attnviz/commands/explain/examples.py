"""The matrices of examples: those that are built in, and a user's own from a JSON file."""

import json
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias

import numpy as np

from attnviz.errors import InputError, readable
from attnviz.inputs.text import opened, read_limited
from attnviz.records.trace import DoubleArray, Matrices

ExampleName: TypeAlias = Literal["three-inputs", "multi-head"]

CHARACTERS = ("楚", "留", "香")
WIDTH, HEADS = 6, 3  # of the multi-head example: three heads of two numbers each


def three_inputs() -> Matrices:
    """Self-attention by hand, with whole numbers: three inputs of four numbers.

    Karim 2019, "Illustrated: Self-Attention".
    """
    return Matrices(
        x=np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], float),
        w_key=np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], float),
        w_query=np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], float),
        w_value=np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], float),
        labels=("x1", "x2", "x3"),
    )


NEEDED = ("x", "w_query", "w_key", "w_value")
KEYS = (*NEEDED, "w_output", "heads", "labels")
LARGEST_SIDE, LONGEST_LABEL = 1_000, 100
"""Limits of matrices that a person can follow, and of the names of their rows."""
EXPECTED = '{"x": [[...]], "w_query": [[...]], "w_key": [[...]], "w_value": [[...]]}'


def read_matrices(path: Path) -> Matrices:
    """The matrices of a file, with shapes that fit each other.

    Raises:
        InputError: the file cannot be read, is not such an object, has an unknown key, a number
            that is not finite, or a shape that does not fit (the message gives the expected and the
            actual one).
    """
    with opened(path) as stream:
        data = read_limited(stream, path)
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"is no JSON ({error})") from None
    if not isinstance(raw, dict):
        raise _wrong(path, "is no JSON object")
    missing = [name for name in NEEDED if name not in raw]
    if missing:
        raise _wrong(path, f"lacks {', '.join(missing)}")
    unknown = [name for name in raw if name not in KEYS]
    if unknown:
        raise InputError(
            f"{str(path)!r} has {', '.join(map(repr, unknown))}, which is not a known key",
            f"the keys are {', '.join(KEYS)}",
        )
    heads = raw.get("heads", 1)
    if isinstance(heads, bool) or not isinstance(heads, int) or not 0 < heads <= LARGEST_SIDE:
        raise _wrong(
            path, f"has {heads!r} heads, and needs a whole number from 1 to {LARGEST_SIDE:,}"
        )
    x, w_query, w_key, w_value = (_matrix(path, name, raw[name]) for name in NEEDED)
    w_output = raw.get("w_output")
    if w_output is not None:
        w_output = _matrix(path, "w_output", w_output)
    labels = raw.get("labels", [f"x{i}" for i in range(1, len(x) + 1)])
    if not isinstance(labels, list) or len(labels) != len(x):
        raise _wrong(path, f"needs {len(x)} labels, one for each row of x")
    labels = tuple(map(str, labels))
    if max(map(len, labels)) > LONGEST_LABEL:
        raise _wrong(path, f"has a label of more than {LONGEST_LABEL} characters")
    labels = tuple(map(readable, labels))  # they reach the terminal
    matrices = Matrices(x, w_query, w_key, w_value, w_output, heads, labels)
    _check(path, matrices)
    return matrices


def _matrix(path: Path, name: str, value: Any) -> DoubleArray:
    try:
        # null is NaN, which is told by its place
        numbers = all(type(each) in (int, float, NoneType) for row in value for each in row)
        array = np.array(value if numbers else [], dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0)
    if array.ndim != 2 or not array.size:
        raise _wrong(path, f"is wrong: {name} is no matrix, numbers in rows of one length")
    if max(array.shape) > LARGEST_SIDE:
        raise _wrong(
            path,
            f"is too large: {name} has the shape {array.shape}, and may have "
            f"{LARGEST_SIDE:,} rows and columns",
        )
    if not np.isfinite(array).all():
        at = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise _wrong(path, f"is wrong: {name} has NaN, Infinity or null at {at}, and no number")
    return array


def _check(path: Path, matrices: Matrices) -> None:
    """Check that every product exists, and that the heads divide the widths evenly."""
    heads, w_query, w_value = matrices.heads, matrices.w_query, matrices.w_value
    w_key, w_output, x = matrices.w_key, matrices.w_output, matrices.x
    d, wide = x.shape[1], w_value.shape[1]
    for name, array in (("w_query", w_query), ("w_key", w_key), ("w_value", w_value)):
        if array.shape[0] != d:
            _misfit(path, name, array, f"({d}, …), as x is {x.shape}")
        if array.shape[1] % heads:
            _misfit(path, name, array, f"({d}, a multiple of {heads}), for {heads} heads")
    if w_key.shape != w_query.shape:
        _misfit(path, "w_key", w_key, f"{w_query.shape}, as w_query is")
    if w_output is not None and w_output.shape[0] != wide:
        _misfit(path, "w_output", w_output, f"({wide}, …), as w_value is {w_value.shape}")


def _misfit(path: Path, name: str, array: DoubleArray, expected: str) -> None:
    raise InputError(
        f"in {str(path)!r} {name} has the shape {array.shape}, but must have {expected}",
        "correct the matrix",
    )


def _wrong(path: Path, what: str) -> InputError:
    return InputError(f"{str(path)!r} {what}", f"write {EXPECTED}")
