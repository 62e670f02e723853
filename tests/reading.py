"""What commands wrote, read again."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def rows_of(text: str) -> list[Any]:
    """The rows of a JSON document."""
    rows: list[Any] = json.loads(text)["rows"]
    return rows


def rows_in(text: str) -> list[Any]:
    """The rows of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def on_one_line(text: str) -> str:
    """A text that was broken to a width, with single spaces."""
    return " ".join(text.split())


def head_of(row: Mapping[str, Any], whose: str = "") -> str:
    """The name of a row's head: `L2H3`; `whose`: what stands before its columns."""
    return f"L{row[f'{whose}layer']}H{row[f'{whose}head']}"


def without_version(file: Path) -> bytes:
    """A file of a model's settings, without the version of transformers that wrote it."""
    return re.sub(rb'"transformers_version": "[^"]*"', b"", file.read_bytes())
