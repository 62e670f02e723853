"""The shares of segments sum to 1."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.generate.answer import (
    Answer,
    AnswerPart,
    KeyGroup,
    columns_of_prompt,
)
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head
from attnviz.records.tokens import Segment, partition, segment_of
from tests.factories import make_capture, make_tokens, random_patterns

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
