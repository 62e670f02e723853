"""A chat, and the parts of it whose places in the prompt are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """A part of a chat: its name, and the keys that lead to its text."""

    name: str
    path: tuple[str | int, ...]


@dataclass(frozen=True)
class Chat:
    """What templates take: `messages`, and perhaps `documents` and `tools`; and its parts."""

    content: Mapping[str, Any]
    parts: tuple[Said, ...]
