"""The app's screens hold nothing from elsewhere that a terminal obeys."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings

from attnviz.commands.explore.scene import Opened
from attnviz.draw.labels import MARK
from attnviz.records.heads import Head, NamedHead
from tests.commands.explore.app import Visit, explore, plain
from tests.factories import awkward_pieces, make_capture
from tests.test_harmless import EVIL

KEYS = ("down", "tab", "down", "tab", "right", "tab", "down", "w", "s", "slash")


def drawn(there: Visit) -> str:
    """Every character of the screen, and the title of the terminal's window."""
    strips = there.app.screen._compositor.render_strips()
    cells = "".join(segment.text for strip in strips for segment in strip)
    return cells + plain(there.app.title) + plain(there.app.sub_title)


def check_every_screen(words: list[str], named: tuple[NamedHead, ...] = ()) -> None:
    async def does(there: Visit) -> None:
        for key in ("", *KEYS):
            if key:
                await there.press(key)
            bad = {c for c in drawn(there) if unicodedata.category(c) in ("Cc", "Cf", "Cs")}
            assert not {hex(ord(c)) for c in bad - {MARK}}, key

    opened = Opened(capture=make_capture(words, heads_per_layer=(2, 1), named_heads=named))
    explore(opened, does, folder=Path("unused"))


def test_evil_tokens_and_titles_stay_letters_on_every_screen() -> None:
    named = (NamedHead(EVIL[0], Head(0, 0), EVIL[3]), NamedHead(EVIL[4], Head(1, 0), EVIL[1]))
    check_every_screen(["red", *EVIL, "red"], named)


@pytest.mark.slow
@given(words=awkward_pieces)
@settings(max_examples=3, deadline=None)
def test_any_text_stays_letters_on_every_screen(words: list[str]) -> None:
    check_every_screen(words)
