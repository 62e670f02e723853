"""`attnviz.patch`, and what `ablate` and `predict` measure of two answers, from Python."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ASKED = {"answer": "red", "versus": "blue"}


def test_patch_gives_the_rows_of_the_command(run: Run) -> None:
    found = attnviz.patch(BLUE, RED, part="mlp", query=["blue", -1], **ASKED)
    flags = "--part", "mlp", "--query", "blue", "--query", "-1", "--answer", "red"
    out = run("patch", BLUE, "--from", RED, *flags, "--versus", "blue", "-f", "jsonl").out
    assert found.rows == rows_in(out)
    assert len(found.rows) == 10


def test_ablate_gives_the_rows_of_the_command(run: Run) -> None:
    found = attnviz.ablate(BLUE, mlps=[0, 1], whole_layers=2, answer="blue", versus="red")
    flags = "--mlp", "0,1", "--whole-layer", "2", "--answer", "blue", "--versus", "red"
    out = run("ablate", BLUE, *flags, "-f", "jsonl").out
    assert found.rows == rows_in(out)
    assert {row["kind"] for row in found.rows} == {"mlp", "layer"}
    cut = attnviz.ablate(BLUE, cut="bird#2:blue", renormalise=True, **ASKED)
    flags = "--cut", "bird#2:blue", "--renormalise", "--answer", "red", "--versus", "blue"
    out = run("ablate", BLUE, *flags, "-f", "jsonl").out
    assert cut.rows == rows_in(out)


def test_predict_tells_an_answer_from_another_token(run: Run) -> None:
    (row,) = attnviz.predict(BLUE, answer="blue", versus="red").rows
    flags = "--answer", "blue", "--versus", "red", "-f", "jsonl"
    assert row == json.loads(run("predict", BLUE, *flags).out)
    assert row["unit"] == "logits"


def test_several_texts_have_sources_and_answers_of_their_own_and_a_mean() -> None:
    found = attnviz.patch([BLUE, RED], [RED, BLUE], answer=["red", "blue"], versus=["blue", "red"])
    first = attnviz.patch(BLUE, RED, **ASKED)
    assert found.rows[:20] == first.rows
    assert [row["line"] for row in found.rows] == [1] * 20 + [2] * 20 + [None] * 20
    assert found.record.lines == 2
    assert attnviz.patch([BLUE], RED).rows[0]["source"] == first.rows[0]["source"]


def test_a_patch_is_a_figure_a_page_and_columns(tmp_path: Path) -> None:
    found = attnviz.patch(BLUE, RED, top=3)
    assert repr(found) == "<Result of patch: builtin, 9 tokens with BOS>"
    assert "Heads' outputs" in " ".join(t.get_text() for t in found.figure().findobj(_texts))
    found.save(tmp_path / "patch.html")
    assert "L4H0: share" in (tmp_path / "patch.html").read_text("utf-8")
    columns = found.to_columns()
    assert list(columns) == list(found.rows[0])
    assert np.allclose(columns["share"], [row["share"] for row in found.rows])
    assert columns["head"].dtype == np.int64
    assert np.isnan(columns["position"]).all()  # heads are patched at all positions


def _texts(artist: Any) -> bool:
    return hasattr(artist, "get_text")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: attnviz.patch(BLUE, 5), "of type int is not a text"),
        (lambda: attnviz.patch([BLUE, RED], [RED]), "2 texts and 1 source"),
        (lambda: attnviz.patch(BLUE, RED, answer=5), "answer is not one text"),
        (lambda: attnviz.patch(BLUE, RED, query=1.5), "query is of type float"),
        (lambda: attnviz.patch(BLUE, RED, align=[("a", "b")]), "align is of type tuple"),
        (lambda: attnviz.ablate(BLUE, mlps=True), "mlps names no layers"),
        (lambda: attnviz.ablate(BLUE, whole_layers=[]), "whole_layers names no layers"),
        (lambda: attnviz.ablate(BLUE, cut=5), "cut is of type int"),
        (lambda: attnviz.predict(BLUE, answer=5), "answer is not one text"),
    ],
)
def test_what_is_wrong_is_a_sentence(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(attnviz.AttnvizError, match=said.replace("(", r"\(")):
        call()


def test_pairs_that_run_in_opposite_directions_have_a_mean_change_and_one_side_a_share() -> None:
    found = attnviz.patch([BLUE, RED], [RED, BLUE], heads="L4H0", **ASKED)
    *each, mean = found.rows
    assert mean["change"] == pytest.approx(sum(row["change"] for row in each) / 2)
    (left,) = found.record.against
    assert mean["share"] == pytest.approx(each[2 - left]["share"])
    assert f"on line {left}: counted only in the mean change" in str(found.notes)


def test_a_word_of_several_tokens_is_measured_by_its_first_behind_a_space() -> None:
    (row,) = attnviz.predict(BLUE, answer="xylophone").rows
    texts = BLUE, BLUE + "xylophone", BLUE + " xylophone"
    whole, glued, spaced = ([t.label for t in attnviz.capture(each).tokens] for each in texts)
    assert len(glued) < len(spaced)  # the shorter spelling is another word
    n = len(whole)
    assert row["answer"] == spaced[n] != glued[n]
    assert row["answer_begins"] == "xylophone"


def test_a_model_that_gives_no_numbers_is_refused() -> None:
    shared: Any = attnviz.load_model()  # by every test of this process
    own = replace(shared._loaded, model=copy.deepcopy(shared._loaded.model))
    model = replace(shared, _loaded=own)
    own.model.wte.weight.data[5:] *= float("inf")
    for found in (
        lambda: model.patch(BLUE, RED, **ASKED),
        lambda: model.ablate([BLUE, RED], answer="red", heads="L0H0"),
    ):
        with pytest.raises(attnviz.AttnvizError, match="not numbers"):
            found()


def test_positions_without_a_mean_are_told_before_all_pairs_are_run() -> None:
    longer = [text.replace("bird slept", "bird slept here") for text in (BLUE, RED)]
    texts, sources = [BLUE, longer[0], "never run"], [RED, longer[1], "never run"]
    with pytest.raises(attnviz.AttnvizError, match="patched at different positions"):
        attnviz.patch(texts, sources, part="residual", **ASKED)


def test_ends_that_nearly_meet_are_told() -> None:
    near = str(attnviz.patch("a blue bird slept", "a red bird slept", answer="."))
    assert "apart, so that shares are unreliable" in near.replace("\n", " ")
    assert "apart" not in str(attnviz.patch(BLUE, RED))


def test_both_tokens_own_changes_stand_beside_a_share() -> None:
    found = attnviz.patch(BLUE, RED, top=1, **ASKED)
    row = found.rows[0]
    shown = str(found).replace("\n", " ")
    assert "log p red  log p blue" in shown
    assert f"{row['answer_log_probability_change']:+.3f}" in shown
    assert f"{row['versus_log_probability_change']:+.3f}" in shown


def test_a_name_of_several_tokens_cuts_several_links_and_says_how_many() -> None:
    shown = on_one_line(str(attnviz.ablate(BLUE, cut="was:bird", heads="L4H1", **ASKED)))
    assert "a head's 2 links from was to bird removed" in shown
    one = on_one_line(str(attnviz.ablate(BLUE, cut="was:bird#1", heads="L4H1", **ASKED)))
    assert "a head's link from was to bird#1 removed" in one


def test_a_word_without_end_is_named_by_its_beginning() -> None:
    shown = str(attnviz.ablate(BLUE, answer="x" * 1_000, heads="L0H0"))
    assert "the first token of xxxx" in on_one_line(shown)
    assert shown.count("x") < 200
