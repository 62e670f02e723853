"""The shares of segments sum to 1."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnviz
from attnviz.commands.generate import answer
from attnviz.commands.generate.answer import (
    Answer,
    AnswerPart,
    FindResting,
    KeyGroup,
    columns_of_prompt,
)
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head
from attnviz.records.tokens import Segment, partition, segment_of
from tests.commands.heads.test_retrieval import planted, saved
from tests.conftest import Run
from tests.factories import make_capture, make_tokens, random_patterns
from tests.reading import on_one_line

CHOICE = Choice((Head(0, 0),))


def answered(new: int, *, kind: str = "answer", sinks: bool = False) -> Capture:
    """A capture of an answer of so many tokens to "red blue. green", in two segments."""
    prompt, _ = make_tokens("red blue. green")
    text, tokens = make_tokens("red blue. green" + " so" * new, bos=True)
    segments = partition(prompt, [Segment("a", ((0, 9),)), Segment("b", ((9, 15),))])
    blank = make_capture("x", heads_per_layer=(1,))
    return replace(
        blank,
        text=text,
        kind=kind,
        query_tokens=tokens[4:],
        key_tokens=tokens[:-1] if kind == "answer" else tokens[:4],
        segments=segments,
        sinks=sinks,
        layers=(),
    )


def answer_of(capture: Capture, weights: FloatArray) -> Answer:
    crossed = capture.kind == "cross"
    of = segment_of(capture.key_tokens[:4], capture.segments, capture.text)
    columns = columns_of_prompt(of, capture.segments, crossed=crossed, sinks=capture.sinks)
    of_answer = KeyGroup("answer", "answer", np.arange(4, len(capture.key_tokens)))
    columns = columns if crossed else (*columns, of_answer)
    return Answer("", capture, weights, CHOICE, "mean", columns)


def keys_of(capture: Capture) -> dict[str, list[int]]:
    columns = answer_of(capture, np.empty((0, 0), np.float32)).columns
    return {column.name: column.keys.tolist() for column in columns}


def test_every_key_is_in_one_column() -> None:
    columns = keys_of(answered(3))
    assert columns == {"sink": [0], "a": [1, 2], "b": [3], "answer": [4, 5]}


def test_of_cross_attention_a_special_token_is_no_sink() -> None:
    columns = keys_of(answered(2, kind="cross"))
    assert columns == {"a": [1, 2], "b": [3], "special": [0]}


@given(new=st.integers(1, 6), seed=st.integers(0, 99))
def test_shares_sum_to_1_in_every_row(new: int, seed: int) -> None:
    capture = answered(new)
    n = len(capture.key_tokens)
    weights = random_patterns(1, n, seed=seed)[0][-new:]
    rows = [AnswerPart("x", i, i + 1) for i in range(new)] + [AnswerPart("all", 0, new)]
    shares = answer_of(capture, weights).shares_of(rows)
    np.testing.assert_allclose(shares.shares.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(shares.shares[-1], shares.shares[:-1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(shares.shares[:-1, 1], weights[:, 1:3].sum(axis=1), atol=1e-6)


def test_what_a_learned_sink_takes_is_the_sinks() -> None:
    capture = answered(1, sinks=True)
    weights = np.array([[0.1, 0.2, 0.1, 0.0]], np.float32)
    shares = answer_of(capture, weights).shares_of([AnswerPart("x", 0, 1)])
    np.testing.assert_allclose(shares.shares, [[0.7, 0.3, 0.0, 0.0]], atol=1e-6)


def test_a_head_whose_rows_a_sink_takes_has_no_lookback_ratio() -> None:
    blank = answered(3, sinks=True)
    layer = LayerPattern(0, (0,), np.zeros((1, 3, 6), np.float32))
    capture = replace(blank, layers=(layer,))
    shares = answer_of(capture, capture.weights(Head(0, 0))).shares("head")
    assert shares.lookback is not None
    assert np.isnan(shares.lookback).all()
    np.testing.assert_allclose(shares.shares[0, 0], 1)


def test_a_head_rests_on_a_key_that_most_of_five_rows_so_far_give_much() -> None:
    find = FindResting(2, np.array([1, 3]))
    rows = np.full((6, 2, 5), 0.1, np.float32)
    rows[:, 0, 1] = 0.5  # of the first head every row
    rows[:3, 1, 3] = 0.5  # of the second head three of six
    rows[:, :, 2] = 0.6  # a key of a document
    rests = [find.of_row(n, [0, 1], row).tolist() for n, row in enumerate(rows)]
    nothing = [[0, 0], [0, 0]]
    assert rests[:4] == [nothing] * 4  # four rows are too few to judge by
    np.testing.assert_allclose(rests[4], [[0.5, 0], [0, 0.1]])
    np.testing.assert_allclose(rests[5], [[0.5, 0], [0, 0]])


def test_what_rests_is_the_sinks_and_no_share_of_a_segment() -> None:
    capture = answered(3)
    weights = random_patterns(1, 6, seed=3)[0][-3:]
    may, rests = np.array([3]), weights[:, [3]] / 2
    resting = replace(answer_of(capture, weights), may=may, rests=rests)
    before, parts = answer_of(capture, weights), [AnswerPart(str(i), i, i + 1) for i in range(3)]
    for hops in (0, 1):
        plain, shares = (replace(a, hops=hops).shares_of(parts) for a in (before, resting))
        np.testing.assert_allclose(shares.shares.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(shares.shares[:, 2], plain.shares[:, 2] / 2, atol=1e-6)
        np.testing.assert_allclose(shares.rests, plain.rests + plain.shares[:, 2] / 2, atol=1e-6)
    np.testing.assert_array_equal(resting.carried, before.carried)  # views show all weights


DOCUMENTS = {"one": "ab cd", "two": "ef"}


@pytest.mark.parametrize("unit", ["token", "head"])
def test_rests_of_the_question_are_told_in_rows_and_below_the_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setattr(answer, "ALIKE", 0.01)  # the second head attends to all keys alike
    monkeypatch.setattr(answer, "ASKED", 3)  # of an answer of four tokens
    name = saved(tmp_path / "model", planted(matching=False))
    for document, text in DOCUMENTS.items():
        (tmp_path / f"{document}.txt").write_text(text)
    files = [part for each in DOCUMENTS for part in ("--doc", str(tmp_path / f"{each}.txt"))]
    asked = ("generate", "gh", *files, "-m", name, "--max-new-tokens", "4", "--head", "L1H0")
    rows = [*map(json.loads, run(*asked, "-f", "jsonl", "--rows", unit).out.splitlines())]
    told = attnviz.generate("gh", name, docs=DOCUMENTS, max_new_tokens=4, heads="L1H0")
    assert told.shares(unit) == rows
    for number in {row["row"] for row in rows}:
        of = {row["segment"]: row for row in rows if row["row"] == number}
        assert of["sink"]["share"] == of["sink"]["rests"] == of["one"]["rests"]
        assert (of["question"]["share"] == 0) is (unit == "token" and number > 2)
        assert of["one"]["share"] > 0.1
        assert sum(row["share"] for row in of.values()) == pytest.approx(1, abs=1e-5)
    assert r"is given; heads also rest on \n, g, h" in on_one_line(run(*asked).out)
