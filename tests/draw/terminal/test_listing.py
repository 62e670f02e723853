"""Records as a table, or one below the other: nothing is cut, and no line ends in spaces."""

import pytest
from rich.cells import cell_len

from attnviz.draw.terminal.cells import Column, listing

COLUMNS = (Column("name"), Column("number", right=True), Column("said of it", wraps=True))
ROWS = [("a", "1,234,567", "a sentence of some length that may be wrapped"), ("楚", "2", "")]


def lines(width: int) -> list[str]:
    return [line.plain for line in listing(COLUMNS, ROWS, width)]


def test_what_fits_is_a_table() -> None:
    assert lines(80) == [
        "name     number  said of it",
        "a     1,234,567  a sentence of some length that may be wrapped",
        "楚            2",
    ]


def test_a_sentence_takes_several_lines() -> None:
    assert lines(46)[1:3] == [
        "a     1,234,567  a sentence of some length",
        "                 that may be wrapped",
    ]


def test_where_it_does_not_fit_each_record_stands_by_itself() -> None:
    assert lines(40) == [
        "a",
        "  number: 1,234,567",
        "  said of it: a sentence of some length",
        "  that may be wrapped",
        "",
        "楚",
        "  number: 2",
    ]


@pytest.mark.parametrize("width", range(12, 90))
def test_no_line_is_too_wide_or_ends_in_spaces(width: int) -> None:
    for line in lines(width):
        assert cell_len(line) <= width
        assert line == line.rstrip()
