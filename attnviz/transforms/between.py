"""What is called between the layers of a long transform, so that whoever waits can stop it."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

Between: TypeAlias = Callable[[], None]
"""Is called before each step of a transform; an error that it raises ends the transform."""

T = TypeVar("T")


def go_on() -> None:
    """Let the transform go on to its end."""


def each(items: Iterable[T], between: Between) -> Iterator[T]:
    """The items, with a call before each."""
    for item in items:
        between()
        yield item
