"""The call behind a result: the options that were given, and the seed."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

ELSEWHERE = frozenset(
    "given text texts prompt model other tokenizer folders"
    " output format quiet debug color no_color width".split()
)
"""Parameters that a result shows by itself, or that change no number of it."""


@dataclass(frozen=True)
class Asked:
    """The options that a user gave, by name and as given, and the seed that was used."""

    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None


_NOW: ContextVar[Asked | None] = ContextVar("asked", default=None)


def asked() -> Asked:
    """The options and the seed of the command or function under way."""
    return _NOW.get() or Asked()


@contextmanager
def asking(given: Mapping[str, Any], seed: object = None) -> Iterator[None]:
    """Let `asked` return this until the end."""
    before = _NOW.set(_asked(given, seed))
    try:
        yield
    finally:
        _NOW.reset(before)


def begin(given: Mapping[str, Any], seed: object = None) -> None:
    """Let `asked` tell this until the program ends, which is asked once."""
    _NOW.set(_asked(given, seed))


def _asked(given: Mapping[str, Any], seed: object) -> Asked:
    told = {name: _plain(value) for name, value in given.items() if name not in ELSEWHERE}
    if isinstance(given.get("docs"), Mapping):  # whole documents, which a prompt holds already
        told["docs"] = {str(name): len(str(text)) for name, text in given["docs"].items()}
    return Asked(told, seed if isinstance(seed, int) else None)


def _plain(value: Any) -> Any:
    """A value as JSON has it; an object that it has not, by the name of its class."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return type(value).__name__
