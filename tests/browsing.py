"""What a test does with a browser."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

Open: TypeAlias = "Callable[..., Page]"
"""Opens a page: its text or its file, and the fragment of its address."""


def until(page: "Page | Frame", expression: str) -> None:
    """Wait until an expression is true; a page's policy lets no browser wait for it."""
    for _ in range(250):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"it never came to this: {expression}")
