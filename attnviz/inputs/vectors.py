"""Vectors of the residual stream: from .npy files and arrays, with every claim checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, UsageError, option, readable
from attnviz.inputs.captures import DAMAGE
from attnviz.inputs.text import opened
from attnviz.records.capture import FloatArray

WIDEST = 1 << 20
"""The most entries of a vector; the stream of a large model has some ten thousand."""
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""The readers of a header, by the version of the layout."""
HOW = 'save one with numpy.save("v.npy", vector)'


@dataclass(frozen=True, eq=False)
class StreamVector:
    """A vector (d), and its name: that of its file, or `a vector`."""

    values: FloatArray
    name: str


def vector_of(given: Any, name: str = "direction") -> StreamVector | None:
    """A vector from an .npy file, or from an array; `name`: the option, for messages."""
    if given is None or isinstance(given, StreamVector):
        return given
    if isinstance(given, str | PathLike):
        path = Path(given)
        return _checked(_read(path), repr(str(path)), readable(path.name))
    given = given.detach().cpu().float() if hasattr(given, "detach") else given  # of torch
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):  # rows of several lengths, and the like
        array = np.array(None)
    return _checked(array, option(name), "a vector")


def _read(path: Path) -> NDArray[Any]:
    """The array of a file; its header is checked before any memory is allocated."""
    shown = repr(str(path))
    with opened(path) as stream:
        try:
            shape, _, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
        except DAMAGE as error:
            raise InputError(f"{shown} is not an .npy file, or is damaged", HOW) from error
        size = math.prod(shape)
        whole = all(type(each) is int and each >= 0 for each in shape)
        if dtype.kind not in "iuf" or size > WIDEST or not whole:
            what = f"an array {shape} of {dtype}"
            raise InputError(f"{shown} holds {what}, not a vector of numbers", HOW)
        data = stream.read(size * dtype.itemsize + 1)
    if len(data) != size * dtype.itemsize:
        raise InputError(f"{shown} is damaged: it has not the size that its header says", HOW)
    return np.frombuffer(data, dtype).reshape(shape)


def _checked(array: NDArray[Any], shown: str, name: str) -> StreamVector:
    """A vector (d), or (1, d), of finite numbers that are not all 0."""
    if array.dtype.kind not in "iuf":
        raise UsageError(f"{shown} is no vector of numbers", "give an array (d)")
    values = np.asarray(array[0] if array.ndim == 2 and len(array) == 1 else array)
    if values.ndim != 1 or not values.size:
        raise InputError(f"{shown} has the shape {array.shape}, not (d,)", "give a single vector")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise InputError(f"{shown} has numbers that are not finite", "give another vector")
    if not values.any():
        raise InputError(f"{shown} is 0 everywhere", "give another vector")
    return StreamVector(values, name)


# Vectors added to the stream, each at the input of a layer.


@dataclass(frozen=True, eq=False)
class Steering:
    """The vectors to add at layers, as a user names these, and the factor on each."""

    vectors: Sequence[tuple[str, StreamVector]]
    strength: float = 1.0


def steering_of(given: Any, strength: float) -> Steering | None:
    """The vectors of `LAYER:FILE.npy`, of several, or of a mapping of layers to vectors."""
    if given is None or isinstance(given, Steering):
        return given
    if isinstance(given, Mapping):
        pairs: list[tuple[str, Any]] = [(str(layer), each) for layer, each in given.items()]
    else:
        named = given if isinstance(given, list | tuple) else [given]
        paths = [each if isinstance(each, str | PathLike) else "" for each in named]
        pairs = [(layer, file) for layer, _, file in (str(p).partition(":") for p in paths)]
    vectors = list[tuple[str, StreamVector]]()
    for layer, file in pairs:
        both = layer.lstrip("-").isdecimal() and not (isinstance(file, str) and not file)
        if not both or (vector := vector_of(file, "add")) is None:
            hint = "give the number of a layer and a file, as in 4:happy.npy"
            raise UsageError(f"{option('add', repr(layer))} is not LAYER:FILE.npy", hint)
        vectors.append((layer, vector))
    return Steering(vectors, strength) if vectors else None
