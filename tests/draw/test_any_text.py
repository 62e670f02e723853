"""Every terminal view, whatever the text, the width and the terminal."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Group, RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import MARK
from attnviz.draw.terminal import grid as terminal_grid
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import table
from attnviz.draw.terminal import text as terminal_text
from attnviz.records.exhibit import Exhibit
from attnviz.records.transforms import Merged
from tests.factories import awkward_pieces, make_capture, make_exhibit, printed

displays = st.builds(
    Display,
    width=st.integers(40, 200),
    color=st.booleans(),
    unicode=st.booleans(),
    sixteen=st.booleans(),
)
views = pytest.mark.parametrize(
    "view",
    [
        table.render,
        terminal_heatmap.render,
        terminal_grid.render,
        terminal_text.render,
        lambda exhibit, display: terminal_heatmap.render(exhibit, display, orient="key-rows"),
        lambda exhibit, display: terminal_grid.render(exhibit, display, orient="key-rows"),
    ],
    ids=["table", "heatmap", "grid", "text", "heatmap turned", "grid turned"],
)


def exhibit_of(words: list[str], view: object, top: int | None = None) -> Exhibit:
    capture = make_capture(words, heads_per_layer=(3, 2), bos=len(words) % 2 == 0)
    queries = [len(capture.query_tokens) - 1] if view is terminal_text.render else None
    return make_exhibit(capture, heads=capture.heads, queries=queries, top=top)


def flat(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """The parts, those of groups one by one."""
    for part in parts:
        yield from part.renderables if isinstance(part, Group) else (part,)


View = Callable[[Exhibit, Display], Iterable[RenderableType]]


@views
@given(words=awkward_pieces, display=displays, top=st.none() | st.integers(1, 15))
@settings(max_examples=25, deadline=None)
def test_no_line_is_wider_than_the_display(
    view: View, words: list[str], display: Display, top: int | None
) -> None:
    for part in flat(view(exhibit_of(words, view, top), display)):
        assert isinstance(part, Text)
        # Rich folds the others; these it would crop, and what they say would be lost.
        assert not part.no_wrap or part.cell_len <= display.width


@views
@given(words=awkward_pieces, display=displays, top=st.none() | st.integers(1, 15))
@settings(max_examples=25, deadline=None)
def test_nothing_that_a_terminal_obeys_comes_through_and_no_line_ends_in_spaces(
    view: View, words: list[str], display: Display, top: int | None
) -> None:
    plain = Display(display.width, color=False, unicode=display.unicode)
    lines = printed(Group(*view(exhibit_of(words, view, top), plain)), plain)
    assert not [line for line in lines if line != line.rstrip(" ")]
    shown = "".join(lines).replace(MARK, "")  # ours: one from outside is escaped
    assert not [c for c in shown if unicodedata.category(c)[0] == "C"]
    assert plain.unicode or "".join(lines).isascii()


@pytest.mark.parametrize("view", [table.render, terminal_text.render])
def test_markup_and_escape_codes_are_shown_as_text(view: View) -> None:
    display = Display(120)
    words = ["a ", "[red]", "\x1b[31m", ":smile:"]
    lines = " ".join(printed(Group(*view(exhibit_of(words, view), display)), display))
    for shown in ("[red]", "\\x1b[31m", ":smile:"):
        assert shown in lines


@views
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_view_says_what_it_shows_in_its_first_line(view: View, width: int) -> None:
    display = Display(width)
    capture = make_capture("a b c", bos=True, transforms=(Merged("words"),))
    exhibit = make_exhibit(capture, queries=[3], about="L0H0: chosen for a reason")
    said = " ".join(" ".join(printed(Group(*view(exhibit, display)), display)).split())
    assert said.startswith("L0H0: chosen for a reason · tiny, 4 tokens with BOS, pieces")


@views
def test_colours_are_codes_only_where_the_display_has_colour(view: View) -> None:
    exhibit = exhibit_of(["a", " b", " c"], view)
    for color in (False, True):
        display = Display(80, color=color)
        assert ("\x1b[" in "".join(printed(Group(*view(exhibit, display)), display))) == color
