"""Tokens merged to characters and words: sums over keys, means over queries."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.apply import merged, pooled
from attnviz.records.capture import Capture, LayerPattern
from attnviz.records.tokens import Token
from attnviz.records.transforms import Merged, Unit
from tests.conftest import bytes_tokenizer
from tests.factories import make_capture, random_patterns

BYTES = TextTokenizer(bytes_tokenizer(), bos_id=0, vocab_size=257, context=10_000, bos=True)


def capture_of(text: str, *, bos: bool = True) -> Capture:
    """A text cut into bytes, with seeded patterns in three heads of two layers."""
    tokens = BYTES.encode(text, bos=bos, special=False)
    weights = random_patterns(2, len(tokens))
    layers = (LayerPattern(0, (0, 1), weights), LayerPattern(1, (1,), weights[:1].copy()))
    base = make_capture("a")
    return Capture(text, tokens, tokens, layers, base.model, bos=bos)


def labels(capture: Capture) -> list[str]:
    return [token.label for token in capture.key_tokens]


def test_the_parts_of_a_character_become_one_token() -> None:
    found = merged(capture_of("楚留香"), "chars")
    assert labels(found) == ["BOS", "楚", "留", "香"]
    assert [(t.start, t.end, t.part) for t in found.key_tokens[1:]] == [
        (0, 1, None),
        (1, 2, None),
        (2, 3, None),
    ]


def test_the_pieces_of_a_word_become_one_token_and_ideographs_stay_words() -> None:
    found = merged(capture_of("Don't say naïve, 楚留!"), "words")
    assert [label for label in labels(found) if label.strip("␣")] == [
        "BOS", "Don't", "say", "naïve", ",", "楚", "留", "!",
    ]  # fmt: skip


def test_a_word_is_the_slice_of_its_source_without_the_space_before_it() -> None:
    tokens = (Token(0, 5, "un", 0, 2), Token(1, 6, "do", 2, 4), Token(2, 7, " it", 4, 7))
    weights = random_patterns(1, 3)
    base = make_capture("a")
    layers = (LayerPattern(0, (0,), weights),)
    found = merged(Capture("undo it", tokens, tokens, layers, base.model, bos=False), "words")
    assert [t.text for t in found.key_tokens] == ["undo", " it"]
    assert [t.index for t in found.key_tokens] == [0, 1]


def test_weights_are_summed_over_the_keys_pieces_and_averaged_over_the_querys() -> None:
    tokens = (Token(0, 5, "un", 0, 2), Token(1, 6, "do", 2, 4), Token(2, 7, " it", 4, 7))
    weights = np.array([[[1, 0, 0], [0.3, 0.7, 0], [0.2, 0.3, 0.5]]], np.float32)
    base = make_capture("a")
    layers = (LayerPattern(0, (0,), weights),)
    found = merged(Capture("undo it", tokens, tokens, layers, base.model, bos=False), "words")
    np.testing.assert_allclose(found.layers[0].weights, [[[1, 0], [0.5, 0.5]]])


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), st.booleans())
@pytest.mark.parametrize("unit", ["chars", "words"])
def test_rows_of_any_text_still_sum_to_one_and_see_no_future(
    unit: Unit, text: str, bos: bool
) -> None:
    found = merged(capture_of(text, bos=bos), unit)
    for layer in found.layers:
        np.testing.assert_allclose(layer.weights.sum(axis=2), 1, atol=1e-5)
        assert not np.triu(layer.weights, 1).any()
    for token in found.key_tokens:
        assert token.special or token.text == text[token.start : token.end]
    shown = "".join(token.text for token in found.key_tokens)
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", text)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_rows_of_any_groups_sum_to_one_whatever_the_groups_of_the_keys(
    sizes: list[int], data: st.DataObject
) -> None:
    """As in cross-attention, where queries and keys are two texts; one entry at a time."""
    of_keys = data.draw(st.lists(st.integers(1, 4), min_size=len(sizes), max_size=len(sizes) + 2))
    queries, keys = partition(sizes), partition(of_keys)
    weights = np.random.default_rng(0).dirichlet(np.ones(sum(of_keys)), (2, sum(sizes)))
    found = pooled(weights.astype(np.float32), queries, keys)
    np.testing.assert_allclose(found.sum(axis=2), 1, atol=1e-5)
    expected = [
        [[head[np.ix_(q, k)].sum() / len(q) for k in keys] for q in queries] for head in weights
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def partition(sizes: list[int]) -> list[range]:
    """Ranges of these sizes, one after the other."""
    ends = np.cumsum(sizes).tolist()
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def test_merging_is_said_among_the_transforms() -> None:
    assert merged(capture_of("楚"), "chars").transforms == (Merged("chars"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("dogs' don’t_x", ["dogs", "'", "don’t_x"]),
        ("楚x留", ["楚", "x", "留"]),
    ],
)
def test_words_of_many_scripts_stay_whole(text: str, words: list[str]) -> None:
    found = merged(capture_of(text, bos=False), "words")
    assert [t.text.strip() for t in found.key_tokens if t.text.strip()] == words


def test_a_combining_mark_belongs_to_its_character() -> None:
    found = merged(capture_of("e\u0301x", bos=False), "chars")
    assert [t.text for t in found.key_tokens] == ["e\u0301", "x"]


@pytest.mark.parametrize("unit", ["chars", "words"])
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("👨‍👩‍👧x", ["👨‍👩‍👧", "x"]),  # joiners
        ("👍🏽!", ["👍🏽", "!"]),  # a skin tone
        ("❤️.", ["❤️", "."]),  # a variation selector
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),  # two letters a flag
        ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", ["🏴󠁧󠁢󠁳󠁣󠁴󠁿"]),  # tags
        ("😀😀", ["😀", "😀"]),
    ],
)
def test_what_a_reader_sees_as_one_character_is_one_row(
    unit: Unit, text: str, seen: list[str]
) -> None:
    assert [t.text for t in merged(capture_of(text, bos=False), unit).key_tokens] == seen


def test_a_mark_that_a_word_begins_goes_with_its_word() -> None:
    tokens = (
        *(Token(0, 1, "", 0, 0), Token(1, 2, "k", 0, 1), Token(2, 3, "ey", 1, 3)),
        *(Token(3, 1, " ", 3, 4), Token(4, 4, "楚", 4, 5), Token(5, 1, "", 5, 5)),
        Token(6, 5, "留", 5, 6),
    )
    base = make_capture("a")
    layers = (LayerPattern(0, (0,), random_patterns(1, 7)),)
    found = Capture("key 楚留", tokens, tokens, layers, base.model, bos=False)
    assert [t.text for t in merged(found, "words").key_tokens] == ["key", " 楚", "留"]
    assert [t.text for t in merged(found, "chars").key_tokens] == ["k", "ey", " ", "楚", "留"]
