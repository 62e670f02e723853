"""From any text to tokens, patterns and an exhibit."""

import itertools
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnviz
from attnviz.commands.show.outputs import Show
from attnviz.commands.show.run import show_capture
from attnviz.errors import InputError, UsageError
from attnviz.kit.choose import plan_capture
from attnviz.kit.prepare import Budget, HeadOptions, TextOptions, encode, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.native import NativeModel
from attnviz.records.capture import ModelIdentity
from attnviz.records.exhibit import Filters
from attnviz.records.heads import Head, every_head
from tests.factories import make_capture, recorded_heads

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    str.strip
)


@pytest.fixture(scope="module")
def builtin() -> NativeModel:
    model = load_model(Source())
    assert isinstance(model, NativeModel)
    return model


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=30)
def test_for_any_text_rows_sum_to_one_and_nothing_looks_ahead(
    builtin: NativeModel, text: str
) -> None:
    heads = recorded_heads(builtin, HeadOptions(everything=True))
    record = prepare(builtin, text, TextOptions()).record(heads)
    for head in record.heads:
        weights = record.weights(head)
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
        assert (np.triu(weights, 1) == 0).all()
        assert np.isfinite(weights).all()


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=100)
def test_for_any_text_offsets_cover_every_character_that_is_no_space(
    builtin: NativeModel, text: str
) -> None:
    tokens = encode(builtin.tokenizer, text, TextOptions(bos=True))
    covered = {i for token in tokens for i in range(token.start, token.end)}
    assert {i for i, character in enumerate(text) if character not in " \n"} <= covered
    for token in tokens[1:]:
        assert token.text == text[token.start : token.end]
        assert token.label
    assert [token.index for token in tokens] == list(range(len(tokens)))
    assert [t.start for t in tokens] == sorted(t.start for t in tokens)


@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=50)
def test_parts_of_one_character_are_numbered_and_share_its_slice(
    builtin: NativeModel, text: str
) -> None:
    tokens = encode(builtin.tokenizer, text, TextOptions(bos=False))
    for before, token in itertools.pairwise(tokens):
        overlaps = token.start < before.end
        assert overlaps == (before.part is not None and before.part[0] < before.part[1])
        if overlaps:
            assert before.part is not None
            assert token.part == (before.part[0] + 1, before.part[1])


def test_a_letter_in_several_tokens_is_shown_as_parts_of_that_letter(builtin: NativeModel) -> None:
    """The mark that a word begins, where it is a token of its own, is no part of its letter."""
    labels = [token.label for token in encode(builtin.tokenizer, "楚留", TextOptions(bos=False))]
    assert labels == ["␣", *(f"{letter} {i}/3" for letter in "楚留" for i in (1, 2, 3))]


def test_a_text_that_fills_the_context_is_taken_and_one_token_more_is_not(
    builtin: NativeModel,
) -> None:
    context = builtin.tokenizer.context
    heads = recorded_heads(builtin, HeadOptions(heads="L0H0"))
    fits = " ".join(["the"] * (context - 1))  # and BOS
    assert len(prepare(builtin, fits, TextOptions()).record(heads).query_tokens) == context
    with pytest.raises(InputError, match=rf"{context + 1} tokens.*at most {context}"):
        prepare(builtin, fits + " the", TextOptions()).record(heads)


def test_what_was_cut_off_is_recorded(builtin: NativeModel) -> None:
    context = builtin.tokenizer.context
    heads = recorded_heads(builtin, HeadOptions(heads="L0H0"))
    long = " ".join(["the"] * (context + 9))
    left = prepare(builtin, long, TextOptions(truncate="left")).record(heads)
    right = prepare(builtin, long, TextOptions(truncate="right")).record(heads)
    assert (left.left_out, right.left_out) == ((10, 0), (0, 10))
    assert len(left.query_tokens) == len(right.query_tokens) == context


def test_a_beginning_token_that_the_model_lacks_is_refused(builtin: NativeModel) -> None:
    without = replace(builtin.tokenizer, bos_id=None)
    assert not encode(without, "a", TextOptions())[0].special
    with pytest.raises(UsageError, match="no beginning token"):
        encode(without, "a", TextOptions(bos=True))


def test_a_default_is_chosen_from_every_head(builtin: NativeModel) -> None:
    """A named head may not act on the text, and then the generic choice is made."""
    every = recorded_heads(builtin, HeadOptions(everything=True))
    assert recorded_heads(builtin, HeadOptions()) == every
    assert set(every) == set(every_head(builtin.identity.heads_per_layer))


def test_the_loss_tells_a_text_of_another_world(builtin: NativeModel) -> None:
    empty = prepare(builtin, "a fluffy blue creature", TextOptions()).empty
    assert empty.loss is not None
    assert not empty.strange
    assert prepare(builtin, "Tu n'aurais pas vu mes clés ?", TextOptions()).empty.strange
    card = replace(builtin.card, loss_limit=None)
    assert prepare(replace(builtin, card=card), "Tu n'aurais", TextOptions()).empty.loss is None


def test_a_saved_capture_picks_the_same_default_without_the_model(builtin: NativeModel) -> None:
    everything = recorded_heads(builtin, HeadOptions(everything=True))
    few = recorded_heads(builtin, HeadOptions())
    text = "a fluffy blue creature roamed the verdant forest"
    captures = [prepare(builtin, text, TextOptions()).record(heads) for heads in (everything, few)]
    all_held, few_held = (plan_capture(each, HeadOptions()).pick(each) for each in captures)
    assert all_held == few_held
    assert all_held.why == "acts"


def test_an_exhibit_filters_by_token_and_keeps_the_order_of_the_text(builtin: NativeModel) -> None:
    record = attnviz.capture("the cat saw the dog", heads="L0H0").record
    filters = Filters(queries=("dog", "the"), keys=("BOS",))
    shown = show_capture(record, Show(HeadOptions(heads="L0H0"), filters=filters))
    assert shown.queries == (1, 4, 5)
    assert shown.keys == (0,)


@dataclass
class Claimed:
    """A model of a size that it only claims, whose runs take 1,000 bytes."""

    identity: ModelIdentity

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        return 1000


def test_patterns_are_kept_in_full_only_where_they_fit_beside_a_model_of_any_size() -> None:
    for dtype, bytes_each in (("float32", 4), ("bfloat16", 2)):
        identity = replace(make_capture("a").model, parameters=7 * 10**9, dtype=dtype)
        needed = 7 * 10**9 * bytes_each + 1000 + 2 * 30 * 50 * 4  # weights, run, patterns
        for room, holds in ((needed, True), (needed - 1, False)):
            budget = Budget(cast("LoadedModel", Claimed(identity)), (30, 50), room)
            assert budget.holds_whole([Head(0, 0), Head(1, 3)]) is holds


def test_patterns_beyond_64_mib_are_never_kept_in_full() -> None:
    identity = make_capture("a").model
    for n_keys, holds in ((4096, True), (4097, False)):
        budget = Budget(cast("LoadedModel", Claimed(identity)), (4096, n_keys), 1 << 40)
        assert budget.holds_whole([Head(0, 0)]) is holds
