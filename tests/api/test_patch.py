"""`attnviz.patch`, and what `ablate` and `predict` measure of two answers, from Python."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from tests.conftest import Run

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ASKED = {"answer": "red", "versus": "blue"}


def test_patch_gives_the_rows_of_the_command(run: Run) -> None:
    found = attnviz.patch(BLUE, RED, part="mlp", query=["blue", -1], **ASKED)
    flags = "--part", "mlp", "--query", "blue", "--query", "-1", "--answer", "red"
    out = run("patch", BLUE, "--from", RED, *flags, "--versus", "blue", "-f", "jsonl").out
    assert found.rows == [json.loads(line) for line in out.splitlines()]
    assert len(found.rows) == 10


def test_ablate_gives_the_rows_of_the_command(run: Run) -> None:
    found = attnviz.ablate(BLUE, mlps=[0, 1], whole_layers=2, answer="blue", versus="red")
    flags = "--mlp", "0,1", "--whole-layer", "2", "--answer", "blue", "--versus", "red"
    out = run("ablate", BLUE, *flags, "-f", "jsonl").out
    assert found.rows == [json.loads(line) for line in out.splitlines()]
    assert {row["kind"] for row in found.rows} == {"mlp", "layer"}
    cut = attnviz.ablate(BLUE, cut="bird#2:blue", renormalise=True, **ASKED)
    flags = "--cut", "bird#2:blue", "--renormalise", "--answer", "red", "--versus", "blue"
    out = run("ablate", BLUE, *flags, "-f", "jsonl").out
    assert cut.rows == [json.loads(line) for line in out.splitlines()]


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
    assert columns["head"].dtype == np.int64 or np.isfinite(columns["head"]).all()


def _texts(artist: Any) -> bool:
    return hasattr(artist, "get_text")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: attnviz.patch(BLUE, 5), "a int is no text"),
        (lambda: attnviz.patch([BLUE, RED], [RED]), "2 texts and 1 source"),
        (lambda: attnviz.patch(BLUE, RED, answer=5), "answer is not one text"),
        (lambda: attnviz.patch(BLUE, RED, part="z"), "part='z' is not known"),
        (lambda: attnviz.patch(BLUE, RED, part="mlp", heads="L0H0"), "heads is for"),
        (lambda: attnviz.patch(BLUE, RED, query=1.5), "query is of type float"),
        (lambda: attnviz.patch(BLUE, RED, align=[("a", "b")]), "align is of type tuple"),
        (lambda: attnviz.ablate(BLUE, mlps=True), "mlps names no layers"),
        (lambda: attnviz.ablate(BLUE, whole_layers=[]), "whole_layers names no layers"),
        (lambda: attnviz.ablate(BLUE, cut=5), "cut is of type int"),
        (lambda: attnviz.ablate(BLUE, renormalise=True), "renormalise is for cut"),
        (lambda: attnviz.ablate(BLUE, cut="bird#2:a", replacement="mean"), "does nothing"),
        (lambda: attnviz.predict(BLUE, answer=["blue"]), "answer is of type list"),
        (lambda: attnviz.predict(BLUE, versus="blue"), "versus is for answer"),
    ],
)
def test_what_is_wrong_is_a_sentence(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(attnviz.AttnvizError, match=said.replace("(", r"\(")):
        call()
