"""Right-to-left letters: whatever stands around them keeps its place on the line."""

import re
import unicodedata
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import MARK, fenced
from attnviz.draw.terminal import grid as terminal_grid
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal import table
from attnviz.draw.terminal import text as terminal_text
from attnviz.draw.terminal.cells import fenced_line
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Head, NamedHead
from tests.factories import make_capture, make_exhibit, printed

WORDS = "שלום عالم said שלום é 12 said ٣٤"


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("creature", "creature"),
        ("楚 é → 0.50", "楚 é → 0.50"),
        ("שלום", "|שלום|"),
        ("שלום#2", "|שלום|#2"),  # the number stays at the right, as in every label
        ("ש 1/2", "|ש| 1/2"),
        ("שלו…", "|שלו|…"),
        ("שלום עולם", "|שלום עולם|"),  # two words of one phrase: the first stands at the right
        ("a שלום b עולם", "a |שלום| b |עולם|"),
        ("ש → ל .96, עול 1.00; ש ע → ל", "|ש| → |ל| .96, |עול| 1.00; |ש ע| → |ל|"),
        ("ש 5 ל 3.14 ע", "|ש 5 ל 3.14 ע|"),  # but what the text itself has between its words
        ("שָ", "|שָ|"),  # a vowel point stays on its letter
        ("٣", "|٣|"),  # its digits run to the right, but an arrow between two would be turned
    ],
)
def test_marks_stand_around_each_run(written: str, marked: str) -> None:
    assert fenced(written) == marked.replace("|", MARK)


@given(st.text(alphabet="aשעع٣1 #→\u05b8\u0301楚é"))
def test_marks_take_no_cells_and_change_no_letter(written: str) -> None:
    assert fenced(written).replace(MARK, "") == written
    assert cell_len(fenced(written)) == cell_len(written)


@given(st.lists(st.text(alphabet="aש٣ 1\u05b8"), max_size=6))
def test_a_line_of_several_styles_is_marked_as_a_whole(pieces: list[str]) -> None:
    line = Text(no_wrap=True, overflow="crop")
    for n, piece in enumerate(pieces):
        line.append(piece, f"color({n})")
    marked = fenced_line(line)
    assert marked.plain == fenced(line.plain)
    assert (marked.no_wrap, marked.overflow) == (True, "crop")
    styles = {
        letter: span.style
        for span in marked.spans
        for letter in range(span.start, span.end)
        if marked.plain[letter] != MARK
    }
    expected = [f"color({n})" for n, piece in enumerate(pieces) for _ in piece]
    assert [str(styles[n]) for n in sorted(styles)] == expected


def exhibit_of(words: str, view: object) -> Exhibit:
    named = NamedHead("greetings", Head(0, 0), "finds שלום 1")
    capture = make_capture(words, named_heads=(named,))
    last = [len(capture.query_tokens) - 1] if view is terminal_text.render else None
    about = "L0H0: 12 finds שלום 3"
    return make_exhibit(capture, heads=capture.heads[:2], queries=last, about=about)


View = Callable[[Exhibit, Display], Iterable[RenderableType]]
views = pytest.mark.parametrize(
    "view",
    [
        *(table.render, terminal_heatmap.render, terminal_grid.render, terminal_text.render),
        lambda exhibit, display: terminal_heatmap.render(exhibit, display, orient="key-rows"),
    ],
    ids=["table", "heatmap", "grid", "text", "heatmap turned"],
)


def neighbours(line: str) -> list[tuple[str, str]]:
    """For each letter that a terminal may turn, the strong letters or digits around its run."""
    found = []
    for run in re.finditer(r"[\u0590-\u08ff][\u0590-\u08ff ]*(?<! )", line):
        before = [c for c in line[: run.start()] if unicodedata.bidirectional(c) != "WS"]
        after = [c for c in line[run.end() :] if unicodedata.bidirectional(c) != "WS"]
        found.append(("".join(before[-1:]), "".join(after[:1])))
    return found


@views
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("color", [False, True])
def test_no_view_lets_letters_turn_what_stands_beside_them(
    view: View, width: int, color: bool
) -> None:
    display = Display(width, color=color)
    lines = printed(Group(*view(exhibit_of(WORDS, view), display)), display)
    lines = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines]
    found = [pair for line in lines for pair in neighbours(line)]
    assert found
    assert set(found) == {(MARK, MARK)}


@views
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_view_is_as_wide_as_it_would_be_in_other_letters(view: View, width: int) -> None:
    """Hebrew against Greek, letter for letter, as alignment is the same for both."""
    greek = str.maketrans({chr(0x5D0 + n): chr(0x3B1 + n) for n in range(27)})
    words = "שלום said עולם and שלום 12 and גדול"
    display = Display(width)
    theirs, ours = (
        printed(Group(*view(exhibit_of(w, view), display)), display)
        for w in (words, words.translate(greek))
    )
    turned = [line.replace(MARK, "").translate(greek) for line in theirs]
    assert [line for line in turned if "finds" not in line] == [
        line for line in ours if "finds" not in line
    ]


@views
def test_other_letters_and_ascii_displays_get_no_marks(view: View) -> None:
    plain = make_exhibit(make_capture("楚留香 é 😀"), queries=[2], about="chosen")
    shown = printed(Group(*view(plain, Display(80))), Display(80))
    display = Display(80, unicode=False)
    ascii_shown = printed(Group(*view(exhibit_of(WORDS, view), display)), display)
    assert MARK not in "".join(shown)
    assert "".join(ascii_shown).isascii()


def test_each_line_of_a_wrapped_text_is_fenced_by_itself_and_once() -> None:
    once = fenced("a שלום\nעולם b")
    assert once == f"a {MARK}שלום{MARK}\n{MARK}עולם{MARK} b"
    assert fenced(once) == once
