"""Absurd arguments end in one short sentence, soon, and never as a bug."""

import re

import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run

TEXT, DIGITS, LONG = "a fluffy blue creature", "9" * 5000, "x" * 10_000
DEEP = "/" + "(" * 200 + "a" + ")" * 200 + "/"
CASES = [
    ("show", TEXT, "--top", DIGITS),
    ("show", TEXT, "--query", "/" + "(" * 3000 + "a" + ")" * 3000 + "/"),
    ("show", "a" * 200 + "b", "--query", "/^(([a-z])+.)+[A-Z]([a-z])+$/"),
    ("show", TEXT, "--query", "/a{99999999999}/"),
    ("show", TEXT, "--query", DIGITS),
    ("show", TEXT, "--query", f"creature#{DIGITS}"),
    ("show", TEXT, "--drop-key", "/./"),
    ("show", TEXT, "--head", f"L{DIGITS}H0"),
    ("show", TEXT, "--view", LONG),
    ("show", TEXT, "--min", "1e400"),
    ("show", TEXT, "--max-memory", f"{'9' * 400}GB"),
    ("show", TEXT, "-o", "x.png", "--dpi", "0"),
    ("show", TEXT, "-o", "x.png", "--dpi", "9" * 30),
    ("explain", TEXT, "--only", f"1-{DIGITS}"),
    ("explain", "--example", "multi-head", "--seed", "9" * 60),
    ("predict", TEXT, "--top", DIGITS),
    ("ablate", TEXT, "--answer", "x" * 10_000),
    ("compare", TEXT, TEXT, "--query", LONG),
    ("heads", "--samples", "1000000000"),
    ("heads", "--length", "1000000000"),
    ("train", "README.md", "-o", "m", "--vocab", "1000000000000"),
    ("train", "README.md", "-o", "m", "--n-layer", "1000000000"),
    ("train", "README.md", "-o", "m", "--batch", "60000", "--context", "60000"),
]


@pytest.mark.parametrize("arguments", CASES, ids=lambda case: " ".join(case)[:60])
def test_an_absurd_argument_is_a_usage_error_in_a_short_sentence(
    run: Run, arguments: tuple[str, ...]
) -> None:
    ended = run(*arguments)
    assert ended.status is ExitStatus.USAGE, ended.err
    assert ended.out == ""
    assert len(ended.err) < 600
    assert not re.search(r"\S{82}", ended.err)


@pytest.mark.parametrize("name", ["~nosuchuser/x", LONG, f"./{LONG}", "a\x00b", "/" * 5000])
@pytest.mark.parametrize("command", [("show", TEXT, "--model"), ("params",), ("models",)])
def test_a_model_that_no_folder_can_be_is_a_model_error(
    run: Run, command: tuple[str, ...], name: str
) -> None:
    ended = run(*command, name)
    assert ended.status is ExitStatus.MODEL, ended.err
    assert len(ended.err) < 600


@pytest.mark.parametrize("arguments", [("show",), ("predict",), ("show", "--lines"), ("tokens",)])
def test_an_endless_file_is_not_read_to_its_end(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments, "--file", "/dev/zero")
    assert ended.status is ExitStatus.INPUT
    assert "more than 64 MB" in ended.err
    matrices = run("explain", "--matrices", "/dev/zero")
    assert matrices.status is ExitStatus.INPUT


def test_a_text_that_no_tokens_of_the_model_could_hold_is_not_cut_into_tokens(run: Run) -> None:
    ended = run("show", stdin=b"a fluffy creature " * 100_000)
    assert ended.status is ExitStatus.INPUT
    assert "1,799,999 characters" in ended.err or "1,800,000 characters" in ended.err


@pytest.mark.parametrize("top", ["9" * 30, str(1 << 62)])
def test_more_than_there_is_is_all_there_is(run: Run, top: str) -> None:
    assert run("show", TEXT, "--top", top).out == run("show", TEXT, "--top", "99").out
