"""How a person reads a token."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import in_quotes, readable
from attnviz.records.tokens import Token

LABELS: list[tuple[str, str]] = [
    (" creature", "creature"),  # no space mark
    ("  ", "␣␣"),  # spaces alone are shown
    ("\n", "\\n"),
    ("\t", "\\t"),
    ("\x00", "\\x00"),
    ("\x1b[31m", "\\x1b[31m"),  # a terminal would obey it
    ("\x9b", "\\x9b"),
    ("\u202e", "\\u202e"),  # would turn the line around
    ("\u200b", "\\u200b"),  # would hide
    ("\u2028", "\\u2028"),
    ("\U000e0041", "\\U000e0041"),
    ("[red]", "[red]"),  # markup is escaped by not being read as markup
    ("楚", "楚"),
    ("é", "é"),
]


@pytest.mark.parametrize(("text", "label"), LABELS)
def test_a_label_is_what_a_person_reads(text: str, label: str) -> None:
    assert Token(0, 0, text, 0, len(text)).label == label


@given(st.text(min_size=1))
def test_no_label_is_empty_or_holds_what_a_terminal_would_obey(text: str) -> None:
    label = readable(text)
    assert label
    assert not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") for character in label
    )


def test_a_beginning_token_and_a_part_of_a_letter_say_what_they_are() -> None:
    assert Token(0, 0, "", 0, 0, special=True).label == "BOS"
    assert Token(1, 5, " 楚", 0, 2, part=(1, 3)).label == "楚 1/3"


def test_the_exact_text_has_the_space_that_a_slice_leaves_out() -> None:
    token = Token(1, 7, "blue", 2, 6, spaced=True)
    assert (token.text, token.label, token.exact, token.quoted) == (
        *("blue", "blue", " blue", '" blue"'),
    )
    assert Token(1, 7, " blue", 1, 6).exact == " blue"
    assert Token(0, 0, "", 0, 0, special=True).quoted == "BOS"
    assert Token(1, 7, "楚", 0, 1, part=(2, 3)).quoted == '"楚" 2/3'


@given(st.text())
def test_a_quoted_text_holds_nothing_that_a_terminal_would_obey(text: str) -> None:
    quoted = in_quotes(text)
    assert quoted[0] == quoted[-1] == '"'
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co") for c in quoted)
