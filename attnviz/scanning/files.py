"""A record of a shard as a file: arrays of integers, and a few lines of JSON."""

import io
import json
import zipfile
from typing import Any

import numpy as np

from attnviz.data.record import NUMBERS, Record, arrays_of, shapes
from attnviz.data.scan import Skipped
from attnviz.data.serial import to_json


def record_to_bytes(record: Record) -> bytes:
    """A record as an NPZ file, the same bytes for the same counts."""
    rest = {
        "heads": record.heads,
        **{name: getattr(record, name) for name in NUMBERS},
        "skipped": [vars(each) for each in record.skipped],
    }
    made = io.BytesIO()
    written: dict[str, Any] = {**arrays_of(record)}
    written["rest"] = np.frombuffer(to_json(rest).encode(), np.uint8)
    np.savez_compressed(made, **written)
    return made.getvalue()


def record_of_bytes(data: bytes) -> Record:
    """The record that a file holds.

    Raises:
        ValueError: it holds none.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            rest = json.loads(found["rest"].tobytes())
            heads = tuple(map(str, rest["heads"]))
            arrays = {name: found[name] for name in shapes(len(heads))}
        for name, shape in shapes(len(heads)).items():
            if arrays[name].shape != shape or arrays[name].dtype != np.int64:
                raise ValueError(name)
        numbers: dict[str, Any] = {name: int(rest[name]) for name in NUMBERS}
        skipped = tuple(
            Skipped(str(each["path"]), int(each["start"]), str(each["why"]))
            for each in rest["skipped"]
        )
    except (OSError, EOFError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(str(error)) from None
    return Record(heads, **arrays, **numbers, skipped=skipped)
