"""Which format the output file, the name of a format and the terminal choose together."""

import re
from pathlib import Path

import pytest

from attnviz.errors import UsageError
from attnviz.kit.session import as_flag
from attnviz.kit.write import Format, choose_format


@pytest.mark.parametrize(
    ("output", "name", "is_terminal", "expected"),
    [
        (None, None, True, "txt"),  # a person reads it
        (None, None, False, "txt"),
        (None, "jsonl", True, "jsonl"),
        (None, "JSONL", False, "jsonl"),
        (None, "png", False, "png"),  # bytes into a pipe
        ("a.png", None, True, "png"),  # the suffix decides
        ("a.b.SVG", None, True, "svg"),
        ("a.npz", "npz", True, "npz"),  # both, and they agree
        ("/dev/stdout", "csv", True, "csv"),  # no suffix
        ("a.txt", None, False, "txt"),
    ],
)
def test_the_format_is(
    output: str | None, name: str | None, is_terminal: bool, expected: str
) -> None:
    chosen = choose_format(None if output is None else Path(output), name, is_terminal)
    assert chosen == Format(expected)


@pytest.mark.parametrize(
    ("output", "name", "is_terminal", "sentence"),
    [
        ("a.png", "svg", False, "'a.png' and -f svg disagree; leave -f out"),
        ("a.txt", "json", False, "'a.txt' and -f json disagree; leave -f out"),
        ("a.jsn", None, False, "the suffix of 'a.jsn' .*; did you mean json\\? suffixes are .txt"),
        ("a.xyz", None, False, "the suffix of 'a.xyz' .*; suffixes are .txt, .json"),
        ("a.xyz", "png", False, "the suffix of 'a.xyz'"),
        ("a", None, False, "'a' has no suffix .*; add one or give -f: txt"),
        ("-", "json", False, "-o - does not name a file; leave -o out"),
        (None, "pgn", False, "there is no format 'pgn'; did you mean png\\? formats are txt"),
        (None, "yaml", False, "there is no format 'yaml'; formats are txt"),
        (None, "png", True, "png is not text.*; .* -o FILE.png, or with > FILE.png"),
        (None, "npz", True, "npz is not text"),
        (None, "pdf", True, "pdf is not text"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_told_with_a_remedy(
    output: str | None, name: str | None, is_terminal: bool, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_format(None if output is None else Path(output), name, is_terminal)
    assert re.match(sentence, caught.value.spelled(as_flag))
