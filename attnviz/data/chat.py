"""A chat, and the parts of it whose places in the prompt are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Said:
    """A part of a chat: its name, and the keys that lead to each of its texts."""

    name: str
    paths: tuple[tuple[str | int, ...], ...]


@dataclass(frozen=True)
class Chat:
    """What templates take: `messages`, and perhaps `documents` and `tools`; and its parts.

    `template`: the name of the template, of several; None leaves the choice to transformers.
    `variables`: what else the template reads (`enable_thinking`).
    """

    content: Mapping[str, Any]
    parts: tuple[Said, ...]
    template: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
