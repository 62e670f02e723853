"""Captures from outside, with every claim checked: saved ones, and weights of another program.

A file is read with numpy only, and never by pickle; its layout is in `docs/formats.md`.
"""

import contextlib
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, option
from attnviz.inputs.restore import (
    CAPTURE,
    MAKE_ONE,
    capture_from,
    check_patches,
    facts_from,
    images_from,
    layers_from,
    no_capture,
    sound_from,
    with_arrays,
)
from attnviz.inputs.text import opened
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.places import Pixels

CAPTURE_META = "meta"
"""The entry that holds everything except the arrays."""
LAYER, EXTRA, IMAGE, SOUND = "layer_{}", "extra_{}", "image_{}", "sound"
"""The entries of a layer's array, (heads, n_queries, n_keys), of an extra array by its place, of
the pixels of an image, and of the envelope of a sound."""
CHUNK = 1 << 20
META_AT_MOST = 1 << 28  # bytes: some hundred thousand tokens
DEFLATE_AT_MOST = 1100  # deflate cannot shrink further than 1:1032; more is a lie
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,  # a wrong header, invalid JSON, a check of restore.py
    KeyError,
    TypeError,
    OverflowError,
    RecursionError,
    RuntimeError,  # an encrypted entry
    NotImplementedError,  # an unknown compression
    SyntaxError,  # a header that is not a literal
    tokenize.TokenError,  # or ends before it is one
    OSError,
)


def load_capture(path: Path) -> Capture:
    """The capture in a file, bit for bit as it was saved; or of an engine's rows."""
    if path.suffix.lower() == ".jsonl":
        from attnviz.inputs.steps import capture_of_steps, parsed

        return capture_of_steps(parsed(path))
    shown = repr(str(path))
    with opened(path) as stream, _as_input_error(shown), zipfile.ZipFile(stream) as archive:
        if f"{CAPTURE_META}.npy" not in archive.namelist():
            raise no_capture(shown)
        with _entry(archive, CAPTURE_META) as (entry, shape, dtype):
            if shape or dtype.kind != "U" or not 0 < dtype.itemsize <= META_AT_MOST:
                raise no_capture(shown)
            facts = facts_from(json.loads(str(_read(entry, shape, dtype)[()])), shown)
        capture = capture_from(facts)
        layers = [
            _layer(archive, capture, layer, heads)
            for layer, heads in layers_from(facts, capture.model)
        ]
        extras = {n: _floats(archive, EXTRA.format(i)) for i, n in enumerate(facts["extras"])}
        if len(extras) < len(facts["extras"]):
            raise ValueError("the list of extras cannot be right")
        pixels = [_pixels(archive, i) for i in range(len(facts.get("images", ())))]
        capture = check_patches(replace(capture, images=images_from(facts, pixels)))
        if "sound" in facts:
            capture = replace(capture, sound=sound_from(facts, _floats(archive, SOUND)))
        return with_arrays(capture, layers, extras)


def _layer(
    archive: zipfile.ZipFile, capture: Capture, layer: int, heads: tuple[int, ...]
) -> LayerPattern:
    expected = (len(heads), len(capture.query_tokens), len(capture.key_tokens))
    with _entry(archive, LAYER.format(layer)) as (stream, shape, dtype):
        if shape != expected or dtype != np.float32:
            raise ValueError(
                f"layer {layer} has the shape {shape} of {dtype}, but its tokens and "
                f"heads need {expected} of float32"
            )
        weights = _read(stream, shape, dtype)
    if not np.isfinite(weights).all():
        raise ValueError(f"layer {layer} holds weights that are not numbers")
    return LayerPattern(layer, heads, weights)


def _floats(archive: zipfile.ZipFile, name: str) -> FloatArray:
    with _entry(archive, name) as (stream, shape, dtype):
        if dtype != np.float32:
            raise ValueError(f"{name} is {dtype}, not float32")
        return _read(stream, shape, dtype)


def _pixels(archive: zipfile.ZipFile, position: int) -> Pixels:
    with _entry(archive, IMAGE.format(position)) as (stream, shape, dtype):
        if dtype != np.uint8 or len(shape) != 3:
            raise ValueError(f"image {position} has the shape {shape} of {dtype}")
        return _read(stream, shape, dtype)


@contextlib.contextmanager
def _entry(
    archive: zipfile.ZipFile, name: str
) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]]:
    """An entry's stream after its header, its shape and its type.

    The header is checked against the size of the entry before any memory is allocated.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > DEFLATE_AT_MOST * (info.compress_size + 1):
        raise ValueError(f"{name} claims to be larger than it can be")
    with archive.open(info) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{name} has a header of another version")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
        if fortran_order or min(shape, default=0) < 0 or dtype.hasobject:
            raise ValueError(f"{name} has another layout")
        if stream.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
            raise ValueError(f"{name} does not have the size that its shape {shape} needs")
        yield stream, shape, dtype


def _read(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in the rest of an entry, read piece by piece."""
    array = np.empty(shape, dtype)
    rest = array.reshape(-1).view(np.uint8).data
    while rest:
        piece = stream.read(min(CHUNK, len(rest)))
        if not piece:
            raise EOFError("it ends too early")
        rest[: len(piece)] = piece
        rest = rest[len(piece) :]
    if stream.read(1):  # this also makes zipfile compare the checksum
        raise ValueError("an entry is longer than it says")
    return array


@contextlib.contextmanager
def _as_input_error(shown: str) -> Iterator[None]:
    """Raise an InputError with a sentence about the fault of the file."""
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"{shown} does not fit into memory",
            f"save fewer heads with {option('layers')} and {option('heads')}",
        ) from error
    except zipfile.BadZipFile as error:
        raise InputError(f"{shown} is not a saved capture, or is damaged", MAKE_ONE) from error
    except DAMAGE as error:
        detail = str(error) or type(error).__name__
        raise InputError(f"{shown} is damaged: {detail}", "save the capture again") from error


# A capture as an .npz file; docs/formats.md describes its layout.

Entry: TypeAlias = NDArray[np.str_] | FloatArray | NDArray[np.float64] | Pixels
WRITTEN_AT_ONCE = 1 << 20
BIG = 1 << 30  # bytes; a larger entry is written with 64-bit sizes
EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same capture gives the same bytes


def npz_chunks(capture: Capture) -> Iterator[bytes]:
    """The bytes of the file in chunks, so that memory never holds a large capture twice."""
    return archive_chunks(_arrays(capture))


def archive_chunks(arrays: Iterable[tuple[str, Entry]]) -> Iterator[bytes]:
    """An .npz file of these arrays in this order; the same arrays give the same bytes."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, array in arrays:
            info = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED  # the masked half shrinks to nothing
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=array.nbytes > BIG) as entry:
                header = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(entry, header)
                rest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                for start in range(0, len(rest), WRITTEN_AT_ONCE):
                    entry.write(rest[start : start + WRITTEN_AT_ONCE])
                    yield sink.taken()
            yield sink.taken()
    yield sink.taken()


def _arrays(capture: Capture) -> Iterator[tuple[str, Entry]]:
    yield CAPTURE_META, np.array(json.dumps(CAPTURE.row(capture), allow_nan=False))
    for layer in capture.layers:
        yield LAYER.format(layer.layer), plain(layer.weights)
    for position, extra in enumerate(capture.extras.values()):
        yield EXTRA.format(position), plain(extra)
    for position, image in enumerate(capture.images):
        yield IMAGE.format(position), image.raw.pixels
    if capture.sound is not None:
        yield SOUND, plain(capture.sound.envelope)


def plain(array: FloatArray) -> FloatArray:
    """The same numbers as little-endian float32 in C order."""
    return np.ascontiguousarray(array, dtype="<f4").reshape(array.shape)


def npy_bytes(array: FloatArray) -> bytes:
    """The .npy file of one array."""
    file = BytesIO()
    np.lib.format.write_array(file, plain(array), (1, 0), allow_pickle=False)
    return file.getvalue()


class _Sink:
    """A write-only file whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing, as nothing is buffered."""

    def close(self) -> None:
        """Do nothing, as nothing is open."""

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
