"""`--lines` in `predict` and `ablate`: each line answered for itself, then the mean."""

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from attnviz.cli import COMMANDS, command
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import head_of, rows_in

TEXTS = (
    "a fluffy blue creature roamed . the creature was",
    "the old red house stood there . the house was",
    "Bark is very cute and he is a",
)
STDIN = ("\n".join(TEXTS) + "\n").encode()


TAKING_LINES = [
    name for name in COMMANDS if any("--lines" in each.opts for each in command(name).params)
]


def without_line(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "line"} for row in found]


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "--top", "2", "--each"),
        ("predict", "--attribute", "--top", "3"),
        ("ablate", "--layer", "2"),
        ("ablate", "--head", "L2H0,L4H0", "--together", "--top", "2"),
    ],
)
def test_each_line_has_the_rows_of_its_text_and_their_number(
    run: Run, arguments: tuple[str, ...]
) -> None:
    every = rows_in(run(*arguments, "--lines", "-f", "jsonl", stdin=STDIN).out)
    for number, text in enumerate(TEXTS, start=1):
        alone = rows_in(run(arguments[0], text, *arguments[1:], "-f", "jsonl").out)
        assert {row["line"] for row in alone} == {1}
        mine = [row for row in every if row["line"] == number]
        assert without_line(mine) == without_line(alone)
    last = [row for row in every if row["line"] is None]
    assert last
    assert every[len(every) - len(last) :] == last


def test_the_mean_of_an_effect_is_that_of_the_lines_with_its_standard_error(run: Run) -> None:
    every = rows_in(run("ablate", "--lines", "--layer", "2", "-f", "jsonl", stdin=STDIN).out)
    for head in ("L2H0", "L2H3"):
        changes = [row["change"] for row in every if row["line"] and head_of(row) == head]
        (mean,) = (row for row in every if row["line"] is None and head_of(row) == head)
        assert mean["change"] == pytest.approx(fmean(changes))
        assert mean["error"] == pytest.approx(stdev(changes) / len(changes) ** 0.5)
        assert mean["tokens"] == sum(r["tokens"] for r in every if r["line"] and head_of(r) == head)
    shown = run("ablate", "--lines", "--layer", "2", stdin=STDIN).out
    assert shown.count("\nall lines\n") == 1
    assert "mean of 3 texts" in shown
    assert "standard error over these texts" in shown.replace("\n", " ")


def test_the_mean_of_predictions_is_of_the_likeliest_token_and_of_those_that_followed(
    run: Run,
) -> None:
    asked = "predict", "--lines", "--each", "--top", "1", "-f", "jsonl"
    *lines, likeliest, followed = rows_in(run(*asked, stdin=STDIN).out)
    ends = [r["probability"] for r in lines if r["followed"] is None]
    assert likeliest["probability"] == pytest.approx(fmean(ends))
    assert likeliest["error"] == pytest.approx(stdev(ends) / 3**0.5)
    means = [
        fmean(r["followed_probability"] for r in lines if r["line"] == n and r["followed"])
        for n in (1, 2, 3)
    ]
    assert followed["followed_probability"] == pytest.approx(fmean(means))
    assert followed["error"] == pytest.approx(stdev(means) / 3**0.5)
    shown = run("predict", "--lines", "--each", stdin=STDIN).out
    assert f"likeliest next token: {fmean(ends):.3f} ± " in shown
    assert f"tokens that followed: {fmean(means):.3f} ± " in shown


def test_each_line_may_have_an_answer_of_its_own(run: Run) -> None:
    answers = "blue", "red", "Bark"
    pairs = zip(TEXTS, answers, strict=True)
    given = "\n".join(json.dumps({"text": text, "answer": answer}) for text, answer in pairs)
    options = ("--layer", "4", "-f", "jsonl")
    every = rows_in(run("ablate", "--pairs", "-", *options, stdin=given.encode()).out)
    for number, (text, answer) in enumerate(zip(TEXTS, answers, strict=True), start=1):
        alone = rows_in(run("ablate", text, "--answer", answer, *options).out)
        assert without_line([r for r in every if r["line"] == number]) == without_line(alone)
    assert {row["answer"] for row in every if row["line"] is None} == {None}
    shown = run("ablate", "--pairs", "-", stdin=given.encode()).out
    assert "mean log-probability of each text's answer" in shown.replace("\n", " ")


def test_a_bad_line_is_reported_and_left_out(run: Run) -> None:
    given = (TEXTS[0] + "\n\n" + TEXTS[1]).encode()
    ended = run("ablate", "--lines", "--layer", "4", "-f", "jsonl", stdin=given)
    assert ended.status is ExitStatus.INPUT
    assert "line 2" in ended.err
    assert {row["line"] for row in rows_in(ended.out)} == {1, 3, None}
    without = run("ablate", "--pairs", "-", stdin=b'a text\n{"text": "a cat", "answer": ""}\n')
    assert without.status is ExitStatus.INPUT
    assert "line 1: it is not JSON" in without.err
    assert "line 2: --answer '' is not a token here" in without.err
    assert "no line could be run" in without.err
    assert not without.out


@pytest.mark.parametrize("format", ["txt", "json", "csv"])
@pytest.mark.parametrize("name", TAKING_LINES)
def test_a_stream_without_a_line_is_unusable_input(
    run: Run, tmp_path: Path, name: str, format: str
) -> None:
    out = tmp_path / f"out.{format}"
    ended = run(name, "--lines", "-o", str(out), stdin=b"")
    assert ended.status is ExitStatus.INPUT
    assert ended.err == "attnviz: standard input is empty; give a text on each line.\n"
    assert not out.exists()


def test_json_is_one_document_and_a_table_has_one_header(run: Run) -> None:
    whole = json.loads(run("predict", "--lines", "-f", "json", stdin=STDIN).out)
    assert [row["line"] for row in whole["rows"]][-1] is None
    whole = json.loads(run("ablate", "--lines", "--layer", "4", "-f", "json", stdin=STDIN).out)
    assert [each["text"] for each in whole["made"]["runs"]] == list(TEXTS)
    table = run("predict", "--lines", "-f", "csv", stdin=STDIN).out.splitlines()
    assert sum(line.startswith("line,") for line in table) == 1


def test_a_picture_of_lines_is_that_of_their_mean(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.svg"
    assert run("ablate", "--lines", "-o", str(out), stdin=STDIN).status is ExitStatus.OK
    assert "mean of 3 texts" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ablate", "--pairs", "-", "x"), "--pairs already gives the texts"),
        (("ablate", "--pairs", "-", "--lines"), "leave the other text out"),
        (("ablate", "--lines", "-o", "{line}.csv"), "the mean over the lines has no line"),
        (("predict", "x", "-o", "{line}.csv"), "add --lines"),
        (("why", "x", "-o", "{line}.csv"), "needs a line number; add --lines"),
        (("patch", "x", "--from", "y", "-o", "{line}.csv"), "name one file"),
        (("predict", "--lines", "x.npz"), "a saved capture has no lines"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    ended = run(*arguments, stdin=STDIN)
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err


def test_an_option_that_is_wrong_for_one_line_stops_no_other(run: Run) -> None:
    options = ("--attribute", "--versus", "blue", "--top", "1", "-f", "jsonl")
    given = f"{TEXTS[1]}\n{TEXTS[0].replace('fluffy ', '')}\n{TEXTS[2]}\n".encode()
    ended = run("predict", "--lines", *options, stdin=given)
    assert {row["line"] for row in rows_in(ended.out)} == {1, 3, None}
    assert "line 2: --versus 'blue' is the likeliest token itself" in ended.err
