"""Seeded changes to files: bytes flipped, ends cut off, JSON values swapped for others."""

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 1 << 31, 1 << 62, 10**18, 10**30, 0.5, -1e300, 1e-300),
    *("", "a", "0", "nan", "\x1b[31m", "\u202e", "x" * 3000, [], {}, [0], [[]], {"a": 1}, [None]),
)
"""Values of other types and sizes than those that are expected."""


def change_file(path: Path, rng: random.Random) -> None:
    """Change a file by one of the ways that suit it."""
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_text(json.dumps(_changed(json.loads(data), rng)))
    elif path.suffix == ".safetensors" and rng.random() < 0.5:
        path.write_bytes(_header_changed(data, rng))
    else:
        path.write_bytes(change_bytes(data, rng))


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip some bytes, or cut, double or drop a part."""
    changed = bytearray(data)
    at, length = rng.randrange(len(data)), rng.choice((1, 3, 50, 1000))
    match rng.randrange(4):
        case 0:
            for _ in range(rng.choice((1, 1, 2, 20))):
                changed[rng.randrange(min(len(data), rng.choice((100, 5000, len(data)))))] ^= (
                    1 << rng.randrange(8)
                )
        case 1:
            del changed[at:]
        case 2:
            del changed[at : at + length]
        case 3:
            changed[at:at] = changed[at : at + length]
    return bytes(changed)


def change_archive(data: bytes, rng: random.Random) -> bytes:
    """Change what stands in an .npz file, which is then whole again; or its bytes."""
    if rng.random() < 0.2:
        return change_bytes(data, rng)
    arrays = dict(np.load(io.BytesIO(data)))
    name = rng.choice(list(arrays))
    if arrays[name].dtype.kind == "U":
        arrays[name] = np.array(json.dumps(_changed(json.loads(str(arrays[name])), rng)))
    else:
        arrays[name] = _array_changed(arrays[name].copy(), rng)
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def _array_changed(array: Any, rng: random.Random) -> Any:
    """Other numbers, another type, another shape."""
    match rng.randrange(5):
        case 0:
            array.flat[rng.randrange(array.size)] = rng.choice(
                (np.nan, np.inf, -np.inf, 1e38, -1.0, 2.0, 1e-45)
            )
        case 1:
            array[...] = rng.choice((0, 1e38, -1, np.nan))
        case 2:
            return array.astype(rng.choice(("f8", "f2", "i4", "?", "U3", "S2", "c8", ">f4")))
        case 3:
            return array[..., : rng.randrange(array.shape[-1])]
        case 4:
            return array.reshape(rng.choice((-1, (1, *array.shape), array.shape[::-1])))
    return array


def _header_changed(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(_changed(json.loads(data[8 : 8 + length]), rng)).encode()
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def _changed(content: Any, rng: random.Random) -> Any:
    """The content with one value, anywhere in it, swapped, dropped or doubled."""
    places = list(_places(content, rng))
    holder, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 1:
            holder[str(rng.choice(ODD))[:40]] = holder[key]
        case _:
            holder[key] = rng.choice(ODD)
    return content


def _places(content: Any, rng: random.Random) -> Any:
    """Where values stand; of a long list or object, only some."""
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        for key in keys if len(keys) < 40 else rng.sample(keys, 5):
            yield content, key
            yield from _places(content[key], rng)
