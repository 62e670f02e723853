"""A capture as an .npz file, which holds everything needed to show it without a model.

The layout is in `docs/formats.md`; `inputs/capture_file.py` reads it.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray
from attnviz.records.rows import CAPTURE_META, capture_to_dict, extra_entry, layer_entry

Entry: TypeAlias = NDArray[np.str_] | FloatArray | NDArray[np.float64]
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
                entry.write(_header(array))
                rest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                for start in range(0, len(rest), WRITTEN_AT_ONCE):
                    entry.write(rest[start : start + WRITTEN_AT_ONCE])
                    yield sink.taken()
            yield sink.taken()
    yield sink.taken()


def _arrays(capture: Capture) -> Iterator[tuple[str, Entry]]:
    """The entries in order, the metadata first."""
    yield CAPTURE_META, np.array(json.dumps(capture_to_dict(capture), allow_nan=False))
    for layer in capture.layers:
        yield layer_entry(layer.layer), plain(layer.weights)
    for position, extra in enumerate(capture.extras.values()):
        yield extra_entry(position), plain(extra)


def plain(array: FloatArray) -> FloatArray:
    """The same numbers as little-endian float32 in C order."""
    return np.ascontiguousarray(array, dtype="<f4").reshape(array.shape)


def _header(array: Entry) -> bytes:
    """The header of an .npy file: type and shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


class _Sink:
    """A write-only file whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
