"""`attnviz patch`: what of the difference between two texts each part carries."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import rows_in

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ASKED = "--answer", "red", "--versus", "blue"
LONGER = "a red little bird slept . the bird was"


def rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    ended = run("patch", *arguments, "-f", "jsonl")
    assert ended.status == ExitStatus.OK, ended.err
    return rows_in(ended.out)


def test_both_ends_of_a_share_are_what_predict_says_of_both_texts(run: Run) -> None:
    def difference(text: str) -> float:
        row = json.loads(run("predict", text, *ASKED, "-f", "jsonl").out)
        return float(row["answer_logit"] - row["versus_logit"])

    before, ends = difference(BLUE), difference(RED)
    found = rows(run, BLUE, "--from", RED, *ASKED)
    assert len(found) == 20
    for row in found:
        assert np.allclose([row["before"], row["source"]], [before, ends], atol=1e-4)
        change = row["answer_logit_change"] - row["versus_logit_change"]
        assert np.allclose(row["share"], change / (ends - before), atol=1e-5)
        assert np.allclose(row["after"], before + change, atol=1e-4)


def test_the_stream_that_arrives_first_carries_everything_at_the_one_token_that_differs(
    run: Run,
) -> None:
    found = rows(run, BLUE, "--from", RED, "--part", "residual", "--layer", "0")
    shares = {row["token"]: row["share"] for row in found}
    assert np.allclose(shares.pop("blue"), 1.0, atol=1e-4)
    assert np.allclose(list(shares.values()), 0.0, atol=1e-4)
    sources = {row["token"]: row["source_token"] for row in found}
    assert sources["blue"] == "red"
    assert sources["bird#2"] == "bird#2"


def test_an_answer_alone_is_measured_in_its_log_probability(run: Run) -> None:
    row = rows(run, BLUE, "--from", RED, "--answer", "red")[0]
    assert row["versus"] is None
    assert row["versus_logit_change"] is None
    assert np.isclose(row["change"], row["answer_log_probability_change"])


def test_a_word_of_several_tokens_is_measured_by_its_first_and_says_so(run: Run) -> None:
    given = BLUE, "--from", RED, "--answer", "Donaudampf", "--versus", "blue"
    row = rows(run, *given)[0]
    assert (row["answer"], row["answer_begins"]) == ("D", "Donaudampf")
    assert row["versus_begins"] is None
    assert "logit(D, the first token of Donaudampf) - logit(blue)" in run("patch", *given).out


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    for part in "head", "residual":
        out = run("patch", BLUE, "--from", RED, "--part", part, "--width", str(width)).out
        assert max(map(len, out.splitlines())) <= width
        assert ("blue ← red" in out) == (part == "residual")


def test_texts_of_other_lengths_need_words_that_stand_for_each_other(run: Run) -> None:
    ended = run("patch", BLUE, "--from", LONGER)
    assert ended.status == ExitStatus.INPUT
    assert "the text has 9 tokens, and the source 10" in ended.err
    found = rows(run, BLUE, "--from", LONGER, "--align", "blue=red", "--part", "residual")
    assert {row["token"]: row["source_token"] for row in found}["blue"] == "red"
    at_end = {row["token"]: row["source_position"] for row in found}
    assert at_end["was"] == 9


def test_a_page_and_a_picture_are_written(run: Run, tmp_path: Path) -> None:
    for name, begins in (("map.html", b"<!doctype html>"), ("map.png", b"\x89PNG")):
        assert run("patch", BLUE, "--from", RED, "-o", str(tmp_path / name)).status == ExitStatus.OK
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_pairs_whose_source_is_lower_are_in_the_mean_change_and_in_no_share(
    run: Run, tmp_path: Path
) -> None:
    others = [(BLUE.replace("bird", name), RED.replace("bird", name)) for name in ("dog", "fox")]
    pairs = [(BLUE, RED), (RED, RED), (RED, BLUE), *others]  # the second is no pair
    file = tmp_path / "pairs.jsonl"
    lines = [{"text": t, "source": s, "answer": "red", "versus": "blue"} for t, s in pairs]
    file.write_text("\n".join(map(json.dumps, lines)))
    asked = ("patch", "--pairs", str(file), "--head", "L4H0")
    ended = run(*asked, "-f", "jsonl")
    *each, mean = map(json.loads, ended.out.splitlines())
    assert [row["line"] for row in each] == [1, 3, 4, 5]
    changes = np.array([row["change"] for row in each])
    gaps = np.array([row["source"] - row["before"] for row in each])
    assert gaps[1] < 0 < gaps[[0, 2, 3]].min()
    assert mean["change"] == pytest.approx(changes.mean())
    assert mean["error"] == pytest.approx(changes.std(ddof=1) / 2)
    kept = [0, 2, 3]
    share = changes[kept].mean() / gaps[kept].mean()
    rest = changes[kept] - share * gaps[kept]
    assert mean["share"] == pytest.approx(share)
    assert mean["share_error"] == pytest.approx(
        rest.std(ddof=1) / np.sqrt(3) / gaps[kept].mean(), rel=1e-4
    )
    said = "the source is not higher than the text on line 3: counted only in the mean change"
    assert said in ended.err
    for more in ((), ("--together",)):
        ended = run(*asked, *more)
        assert "of 3 of the 4 pairs" in " ".join(ended.out.split())
        assert said in ended.err
    many = " ".join(run(*asked[:-2], "--layer", "0-3", "--together").out.split())
    assert "with L0H0 to L3H3 (16 heads) of the source: " in many
    function = attnviz.patch([BLUE, RED], [RED, BLUE], answer="red", versus="blue", heads="L4H0")
    assert "than the text on line" in str(function.notes)
