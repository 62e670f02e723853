"""Seeded changes to files, and seeded command lines.

In files, bytes are flipped, ends cut off, and JSON values swapped for others. A command line has a
random text and any options of its command, with values that fit and values that do not.
"""

import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from typer.core import TyperOption

from attnviz.cli import command

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


LEFT_OUT = (
    "--debug --output --model --against --revision --offline --help-all --matrices --samples "
    "--length --example --file --verify"
).split()
"""Options that write, fetch, take minutes, or stand on their own."""
FITTING: dict[str, tuple[str, ...]] = {
    "--view": ("table", "heatmap", "grid", "text", "links"),
    "--format": ("txt", "json", "jsonl", "csv", "tsv", "npz", "html", "png", "svg", "pdf"),
    "--head": ("all", "L0H0", "L1H1,0.1", "1.*", "L9H9"),
    "--layer": ("0", "0-1", "9"),
    "--query": ("0", "-1", "a", "/./", "9"),
    "--key": ("0", "a", "/[a-z]/", "-3"),
    "--drop-key": ("0", "BOS", "/./"),
    "--reduce": ("mean", "max"),
    "--over": ("heads", "layers", "all"),
    "--skip": ("self", "previous", "self,previous"),
    "--truncate": ("left", "right"),
    "--engine": ("native", "transformers", "auto"),
    "--only": ("1", "2-4", "9"),
    "--orient": ("query-rows", "key-rows"),
    "--color-scale": ("row", "shared", "global"),
    "--with": ("zero", "mean"),
    "--answer": ("a", " blue", ""),
}
NUMBERS = ("0", "1", "3", "80", "0.5", "-1", "1e9", "nan", "inf", "9" * 40)
WORDS = (
    "",
    " ",
    "a",
    "\x1b[31m",
    "\u202e",
    "--",
    "-",
    "/(/",
    "x" * 500,
    "é",
    "\U0001f600",
    "0.0.0",
)
LETTERS = (
    (0x20, 0x7E), (0x20, 0x7E), (0x0, 0x1F), (0x7F, 0xFF), (0x300, 0x36F), (0x590, 0x6FF),
    (0x900, 0x97F), (0x200B, 0x206F), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
    (0xD800, 0xDFFF), (0xE000, 0xE0FF), (0xFE00, 0xFFFF), (0x1F300, 0x1F9FF), (0x0, 0x10FFFF),
)  # fmt: skip
"""Ranges of characters: letters of many scripts, controls, marks, lone surrogates, anything."""


def random_text(rng: random.Random) -> str:
    """Up to 60 characters of one to three ranges, with English words among them or not."""
    ranges = rng.choices(LETTERS, k=rng.choice((1, 1, 2, 3)))
    drawn = [chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.choice((0, 1, 5, 20, 60)))]
    words = rng.choices(
        ("the", "cat", "a blue", "she", ".", "  ", "\n"), k=rng.choice((0, 0, 3, 8))
    )
    return "".join(rng.sample([*drawn, *(f" {word} " for word in words)], len(drawn) + len(words)))


@cache
def options_of(name: str) -> list[tuple[str, bool]]:
    """The options of a command, and whether they take a value."""
    options = [each for each in command(name).params if isinstance(each, TyperOption)]
    flags = ((max(each.opts, key=len), not each.is_flag) for each in options)
    return [(flag, takes) for flag, takes in flags if flag not in LEFT_OUT]


def random_command(rng: random.Random, model: str) -> list[str]:
    """A command with its texts, a model, and up to four options with any values."""
    name = rng.choice("show show show show tokens predict ablate compare explain heads".split())
    texts = [random_text(rng) for _ in range(2 if name == "compare" else 1)]
    arguments = [name, *(["--"] if rng.random() < 0.1 else []), *texts]
    if arguments[1] == "--":
        return arguments
    for flag, takes in rng.choices(options_of(name), k=rng.choice((0, 1, 1, 2, 3, 4))):
        arguments.append(flag)
        if takes:
            pools = (FITTING.get(flag, NUMBERS), FITTING.get(flag, NUMBERS), NUMBERS, WORDS)
            arguments.append(rng.choice(rng.choice(pools)))
    if rng.random() < 0.7:
        arguments += ["--model", rng.choice((model, model, "builtin", "translator", "embeddings"))]
    return arguments
