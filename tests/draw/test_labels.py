"""Labels: told apart, cut and padded by cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.draw.labels import ascii_only, distinct_labels, name_of, standing
from attnviz.draw.terminal.cells import cut, pad
from tests.factories import make_tokens


def labels(text: str, *, bos: bool = False, unicode: bool = True) -> tuple[str, ...]:
    return distinct_labels(make_tokens(text, bos=bos)[1], unicode=unicode)


def test_only_repeated_labels_are_numbered_from_1() -> None:
    assert labels("the mole saw the mole hill") == (
        "the#1",
        "mole#1",
        "saw",
        "the#2",
        "mole#2",
        "hill",
    )


def test_letters_beyond_ascii_become_escapes_where_the_display_lacks_them() -> None:
    assert labels("楚 é a", unicode=False) == ("\\u695a", "\\xe9", "a")


def test_a_combining_mark_alone_gets_a_circle_to_stand_on() -> None:
    assert standing("\u0301") == "◌\u0301"
    assert standing("é") == "é"


@pytest.mark.parametrize(
    ("label", "width", "short"),
    [
        ("creature", 8, "creature"),
        ("creature", 5, "crea…"),
        ("creature#2", 8, "creat…#2"),  # the number still tells it apart
        ("creature#12", 4, "cre…"),  # no room for it
        ("[register 2]", 9, "[regi… 2]"),
        ("楚留香", 5, "楚留…"),
        ("楚留香", 4, "楚…"),  # a wide letter isn't halved
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_long_label_is_cut_to_the_width(label: str, width: int, short: str) -> None:
    assert cut(label, width) == short


def test_without_unicode_the_cut_is_marked_in_ascii() -> None:
    assert cut("creature", 5, unicode=False) == "crea~"


@given(st.text(), st.integers(0, 30))
def test_a_cut_label_is_never_wider_than_asked(label: str, width: int) -> None:
    label = standing("".join(c for c in label if c.isprintable()))
    assert cell_len(cut(label, width)) <= width


@given(st.text(alphabet="a楚e\u0301😀", max_size=8), st.integers(0, 20), st.booleans())
def test_padding_counts_cells(label: str, width: int, right: bool) -> None:
    padded = pad(label, width, right=right)
    assert cell_len(padded) == max(width, cell_len(label))
    assert padded.strip() == label


@given(st.text())
def test_ascii_only_is_ascii(text: str) -> None:
    assert ascii_only(text).isascii()


@pytest.mark.parametrize(
    ("label", "beside_a_number"),
    [
        ("creature", "creature"),
        ("creature#2", "creature#2"),  # its number tells it apart
        ("don't", "don't"),
        ("[SEP]", "[SEP]"),
        ("楚", "楚"),
        ("␣", "␣"),
        ("7", '"7"'),
        ("7#2", '"7#2"'),
        (".", '"."'),
        ("-", '"-"'),
        ("x2", '"x2"'),
        ("楚 1/3", '"楚 1/3"'),
        ("New York", '"New York"'),
        ("[register 2]", "[register 2]"),  # a model's own
        ("@t1r0c12", "@t1r0c12"),  # a place in an image
    ],
)
def test_a_token_is_quoted_where_it_could_be_taken_for_a_number(
    label: str, beside_a_number: str
) -> None:
    assert name_of(label) == beside_a_number
