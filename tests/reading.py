"""What commands wrote, read again."""

import json
from collections.abc import Mapping
from typing import Any


def rows_of(text: str) -> list[Any]:
    """The rows of a JSON document."""
    rows: list[Any] = json.loads(text)["rows"]
    return rows


def head_of(row: Mapping[str, Any], whose: str = "") -> str:
    """The name of a row's head: `L2H3`; `whose`: what stands before its columns."""
    return f"L{row[f'{whose}layer']}H{row[f'{whose}head']}"
