"""What a test does with a browser."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open: TypeAlias = "Callable[..., Page]"
"""Opens a page: its text or its file, and the fragment of its address."""
