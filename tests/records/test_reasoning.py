"""Shares carried back through an answer, sentences by sentences, and the sections of an answer."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from attnviz.commands.generate.sections import sections_of
from attnviz.errors import InputError, UsageError
from attnviz.records.reasoning import NEAR, by_span, carried, kurtosis, received
from attnviz.records.tokens import Token, numbered


def rows_of(prompt: int, new: int, seed: int) -> NDArray[np.float64]:
    """Random rows of new tokens, each over the prompt and the new tokens before it."""
    draw = np.random.default_rng(seed)
    rows = np.zeros((new, prompt + new - 1))
    for i, row in enumerate(rows):
        row[: prompt + i] = draw.dirichlet(np.full(prompt + i, 0.5))
    return rows


def published(rows: NDArray[np.float64], prompt: int, start: int, hops: int) -> NDArray[np.float64]:
    """FlashTrace's loop for one target: what is seen on the prompt, hop by hop.

    Each hop attributes the written tokens anew, weighted by what the hop before put on them
    (normalised), times the running share of the attribution that goes through them.
    """
    now, seen, ratio = rows[start], rows[start][:prompt].copy(), 1.0
    for _ in range(hops):
        written = now[prompt:]
        ratio *= written.sum() / now.sum()
        if ratio <= 0:
            break
        now = (written / written.sum()) @ rows[: len(written)]
        seen += ratio * now[:prompt]
    return seen


@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 9), st.integers(0, 99))
def test_carried_shares_are_those_of_the_published_loop_and_keep_their_sum(
    prompt: int, new: int, hops: int, seed: int
) -> None:
    rows = rows_of(prompt, new, seed)
    after = carried(rows, hops)
    np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-12)  # the prompt and the rest
    for i in range(new):
        expected = published(rows, prompt, i, hops)
        np.testing.assert_allclose(after[i, :prompt], expected, atol=1e-12)
    if hops >= new - 1:  # no token is written by more tokens than stand before it
        np.testing.assert_allclose(after[:, prompt:], 0, atol=1e-12)


def test_a_row_that_a_learned_sink_takes_a_part_of_is_never_more_than_it_was() -> None:
    rows = rows_of(3, 5, 0) * 0.8
    sums = carried(rows, 4).sum(axis=1)
    assert sums[0] == pytest.approx(0.8)
    assert (sums[1:] < 0.8).all()


def test_a_square_is_the_mean_link_between_spans() -> None:
    weights = np.arange(20.0).reshape(4, 5)
    square = by_span(weights, [slice(0, 1), slice(1, 4)], [slice(0, 2), slice(2, 5)])
    assert square.tolist() == [[0.5, 3.0], [10.5, 13.0]]


def test_a_sentence_receives_from_those_that_are_not_near() -> None:
    square = np.arange(49.0).reshape(7, 7)
    assert NEAR == 4
    expected = [np.mean([square[q, k] for q in range(k + 4, 7)]) for k in range(3)]
    assert received(square).tolist() == expected


def test_a_kurtosis_is_high_where_one_value_stands_out() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    away = values - values.mean()
    assert kurtosis(values) == pytest.approx(np.mean(away**4) / np.mean(away**2) ** 2 - 3)
    assert kurtosis(np.eye(1, 40)[0]) > 30
    assert np.isnan(kurtosis(np.full(9, 0.1)))
    assert np.isnan(kurtosis(np.array([1.0, 2.0])))


# Sections.


def written(*parts: str | tuple[str]) -> tuple[str, tuple[Token, ...]]:
    """A text of words, and special tokens (in brackets) that are no part of it."""
    text, tokens = "", list[Token]()
    for part in parts:
        if isinstance(part, tuple):
            tokens.append(Token(0, 1, "", len(text), len(text), special=True, name=part[0]))
            continue
        for word in re.findall(r"\s*\S+|\s+$", part):
            tokens.append(Token(0, 1, word, len(text), len(text) + len(word)))
            text += word
    return text, numbered(tokens)


def found(
    *parts: str | tuple[str], wanted: Sequence[str] = (), begun: bool = False
) -> list[tuple[str, int]]:
    """Each section with its number of tokens."""
    sections = sections_of(*written(*parts), wanted, begun=begun)
    assert [each.first for each in sections[1:]] == [each.after for each in sections[:-1]]
    return [(each.name, each.after - each.first) for each in sections]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("so it is",), [("answer", 3)]),
        (("<think> Tom </think> Tom .",), [("thinking", 3), ("answer", 2)]),
        # a tokenizer of words writes tags with spaces
        (("< think > Tom < / think > Tom",), [("thinking", 8), ("answer", 1)]),
        # the template has begun the thinking in the prompt
        (("Tom </think>\n\nTom .",), [("thinking", 2), ("answer", 2)]),
        # the model stopped within its thinking
        (("<think> Tom did",), [("thinking", 3)]),
        ((("[THINK]",), "Tom", ("[/THINK]",), "Tom"), [("thinking", 3), ("answer", 1)]),
        (("<|channel>thought Tom <channel|> Tom",), [("thinking", 3), ("answer", 1)]),
        ((("[TOOL_CALLS]",), "get {x}", ("</s>",)), [("tool call", 4)]),
        (("<|python_tag|> get(x) <|eom_id|> so",), [("tool call", 3), ("answer", 1)]),
        (
            (
                "<think> a </think> <tool_call> {x} </tool_call> <tool_response> 3 "
                "</tool_response> <think> b </think> it is 3",
            ),
            [
                ("thinking 1", 3),
                ("tool call", 3),
                ("tool result", 3),
                ("thinking 2", 3),
                ("answer", 3),
            ],
        ),
        # harmony, with special tokens
        (
            (
                *(("<|channel|>",), "analysis", ("<|message|>",), "so", ("<|end|>",)),
                *(("<|start|>",), "assistant", ("<|channel|>",), "commentary to=functions.get"),
                *(("<|message|>",), "{}", ("<|call|>",), ("<|start|>",), "assistant"),
                *(("<|channel|>",), "final", ("<|message|>",), "Tom ."),
            ),
            [("thinking", 5), ("tool call", 8), ("answer", 7)],
        ),
    ],
)
def test_sections_are_found_by_the_marks_of_chats(
    parts: tuple[str | tuple[str], ...], expected: list[tuple[str, int]]
) -> None:
    assert found(*parts) == expected


def test_a_thought_that_the_prompt_has_begun_and_nobody_ended_is_thinking() -> None:
    assert found("Tom did", begun=True) == [("thinking", 2)]
    assert found("Tom </think> it", begun=True) == [("thinking", 2), ("answer", 1)]


def test_a_user_names_sections_and_they_come_before_the_marks() -> None:
    plan = found("<think> a plan . Tom </think> Tom", wanted=["plan=/a plan ./"])
    assert plan == [("thinking 1", 1), ("plan", 3), ("thinking 2", 2), ("answer", 1)]


@pytest.mark.parametrize(
    ("wanted", "error"), [("plan", UsageError), ("=/a/", UsageError), ("plan=/zz/", InputError)]
)
def test_a_section_that_is_no_name_and_place_is_refused(
    wanted: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"plan|/a/"):
        found("a b", wanted=[wanted])
