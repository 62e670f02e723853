"""A record of a shard as a file: arrays of integers, and a few lines of JSON."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np

from attnviz.data.record import NUMBERS, Origin, Record, arrays_of, shapes
from attnviz.data.scan import Skipped
from attnviz.records.restore import model_of_dict
from attnviz.records.rows import model_to_dict, to_json

DIGEST = 16
"""Bytes of a digest, which stand behind a record: a zip file has bytes that no checksum holds."""


def record_to_bytes(record: Record, skipped: Sequence[Skipped] = (), shard: int = 0) -> bytes:
    """A record as an NPZ file and its digest, the same bytes for the same counts.

    `skipped`: its bad documents; `shard`: the number of what was counted.
    """
    model = record.origin.model
    rest = {
        "shard": shard,
        "heads": record.heads,
        "origin": {**vars(record.origin), "model": None if model is None else model_to_dict(model)},
        **{name: getattr(record, name) for name in NUMBERS},
        "skipped": [vars(each) for each in skipped],
    }
    made = io.BytesIO()
    written: dict[str, Any] = {**arrays_of(record)}
    written["rest"] = np.frombuffer(to_json(rest).encode(), np.uint8)
    np.savez_compressed(made, **written)
    return made.getvalue() + _digest(made.getvalue())


def record_of_bytes(data: bytes, shard: int | None = None) -> Record:
    """The record that a file holds.

    Raises:
        ValueError: it holds none, or that of another shard than this one.
    """
    with _opened(data) as (found, rest):
        if shard is not None and rest["shard"] != shard:
            raise ValueError("shard")
        heads = tuple(map(str, rest["heads"]))
        arrays = {name: found[name] for name in shapes(len(heads))}
        for name, shape in shapes(len(heads)).items():
            if arrays[name].shape != shape or arrays[name].dtype != np.int64:
                raise ValueError(name)
        numbers: dict[str, Any] = {name: int(rest[name]) for name in NUMBERS}
        return Record(heads, **arrays, **numbers, origin=_origin(rest["origin"]))


def skipped_of_bytes(data: bytes) -> list[Skipped]:
    """The documents of a record's shard that could not be read; raises as `record_of_bytes`."""
    with _opened(data) as (_, rest):
        return [Skipped(str(s["path"]), int(s["start"]), str(s["why"])) for s in rest["skipped"]]


def _origin(entry: dict[str, Any]) -> Origin:
    model = None if entry["model"] is None else model_of_dict(entry["model"])
    scan, device, length = str(entry["scan"]), str(entry["device"]), int(entry["length"])
    return Origin(scan, device, length, model, bool(entry["bos"]))


@contextmanager
def _opened(data: bytes) -> Iterator[tuple[Any, Any]]:
    """The arrays of a file, which are read when they are asked for, and the rest of it."""
    try:
        data, digest = data[:-DIGEST], data[-DIGEST:]
        if digest != _digest(data):
            raise ValueError("the digest is another one")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            yield found, json.loads(found["rest"].tobytes())
    except Exception as error:  # a damaged file fails in numpy, zlib, zipfile or tokenize
        raise ValueError(str(error)) from None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()
