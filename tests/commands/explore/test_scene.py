"""Scenes: what the panes show, and where a move leads."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.commands.explore.scene import Scene, matches_of, scene_of
from attnviz.errors import UsageError
from attnviz.kit.choose import default_head, with_finding
from attnviz.records.apply import merged, rollout, whole_exhibit
from attnviz.records.heads import Head, NamedHead
from attnviz.records.rests import with_rests
from attnviz.records.tokens import Token
from attnviz.records.transforms import PLAIN, Transforms
from tests.commands.explore.app import TEXT
from tests.factories import make_capture


def scene(**toggles: bool) -> Scene:
    return scene_of(make_capture(TEXT), Transforms(**toggles))


def test_a_scene_begins_at_the_link_that_its_title_would_tell_first() -> None:
    capture = make_capture(TEXT, bos=True)
    begun, choice = scene_of(capture, PLAIN), default_head(capture)
    assert begun.head is not None
    assert choice.heads == (begun.head,)
    told = with_finding(whole_exhibit(capture.only(choice.heads), choice), begun.head).finding
    assert told is not None
    first = told.links[0]
    assert (begun.query, begun.key) == (first.query, first.key)


def test_rests_are_no_peaks_and_no_strongest_links() -> None:
    pattern = np.eye(8, dtype=np.float32)
    pattern[3:] = [0, 0.2, 0.7, 0.1, 0, 0, 0, 0]
    capture = make_capture(TEXT, patterns={Head(0, 0): pattern})
    begun = scene_of(with_rests(capture), PLAIN, choose=False).in_slot((0, 0)).at(5)
    assert begun.peaks()[0, 0] == (1, pytest.approx(0.2))
    assert begun.at_strongest_link().key == 1
    unknown = scene_of(capture, PLAIN, choose=False).in_slot((0, 0)).at(5)
    assert unknown.peaks()[0, 0] == (2, pytest.approx(0.7))


def test_the_strongest_link_of_a_head_that_is_known_for_something_is_one_that_shows_it() -> None:
    pattern = np.eye(9, dtype=np.float32)
    pattern[4] = [0.02, 0.03, 0.3, 0.6, 0.05, 0, 0, 0, 0]  # creature: its adjective
    pattern[5] = [0, 0, 0, 0, 1, 0, 0, 0, 0]  # a stronger one, which does not show it
    card = (NamedHead("adjectives", Head(1, 1), "nouns attend to their adjectives"),)
    capture = make_capture(TEXT, bos=True, patterns={Head(1, 1): pattern}, named_heads=card)
    begun = scene_of(capture, PLAIN)
    assert begun.head == Head(1, 1)
    assert (begun.query, begun.key) == (4, 3)


def test_where_no_token_attends_to_another_a_scene_begins_at_the_last_word() -> None:
    only_itself = make_capture(TEXT, heads_per_layer=(1,), patterns={Head(0, 0): np.eye(8)})
    assert scene_of(only_itself, PLAIN).query == 7
    assert scene_of(make_capture("cat"), PLAIN).query == 0


def test_an_older_place_is_not_left_for_the_strongest_link() -> None:
    begun = scene_of(make_capture(TEXT), PLAIN, choose=False)
    assert begun.query == 7
    assert begun.slot == (0, 0)


def test_layers_that_are_still_to_come_have_no_weights_and_no_peaks() -> None:
    nothing = np.full((8, 8), np.nan, np.float32)
    to_come = {Head(1, 0): nothing, Head(1, 1): nothing}
    begun = scene_of(make_capture(TEXT, patterns=to_come), PLAIN, choose=False).at(5)
    assert begun.computed == {(0, 0), (0, 1)}
    assert set(begun.peaks()) == {(0, 0), (0, 1)}
    waiting = begun.in_slot((1, 0))
    assert waiting.waits
    assert not begun.waits
    assert waiting.looks_at() == []
    assert set(waiting.peaks()) == {(0, 0), (0, 1)}
    assert waiting.at_strongest_link() is waiting


def test_moves_go_through_layers_and_heads_and_stop_at_the_edge() -> None:
    begun = scene().in_slot((0, 0))
    assert begun.moved(1, 0).head == Head(1, 0)
    assert begun.moved(0, 1).head == Head(0, 1)
    assert begun.moved(-1, 0) is begun
    assert begun.moved(0, -1) is begun


def test_a_move_passes_over_heads_that_are_not_there() -> None:
    few = make_capture(TEXT).only((Head(0, 0), Head(1, 1), Head(0, 1)))
    begun = scene_of(few, PLAIN)
    assert begun.in_slot((1, 0)) is begun  # no L1H0
    hybrid = make_capture(TEXT, heads_per_layer=(2, 0, 2))
    assert scene_of(hybrid, PLAIN).in_slot((0, 0)).moved(1, 0).head == Head(2, 0)


def test_links_are_the_weights_of_the_pattern_strongest_first() -> None:
    begun = scene().at(4)
    weights = begun.capture.weights(begun.head)
    assert [key for key, _ in begun.looks_at()] == np.argsort(
        -weights[4, :5], kind="stable"
    ).tolist()
    assert sum(weight for _, weight in begun.looks_at()) == pytest.approx(1, abs=1e-6)
    found = dict(begun.looked_at_by())
    assert found == {query: weights[query, 4] for query in range(4, 8)}


def test_a_peak_is_the_strongest_key_but_the_query_itself_and_the_first() -> None:
    begun = scene().at(5)
    for slot, (key, weight) in begun.peaks().items():
        row = begun.slots[slot].weights[5, 1:5]
        assert (key, weight) == (1 + int(np.argmax(row)), row.max())


def test_the_first_tokens_have_no_peak_in_a_model_that_looks_back() -> None:
    assert scene().at(0).peaks() == {}
    assert scene().at(1).peaks() == {}


def test_where_everything_is_seen_the_first_token_may_be_a_peak() -> None:
    weights = np.full((8, 8), 0.02, np.float32)
    weights[:, 0] = 0.86
    everything = make_capture(
        TEXT, heads_per_layer=(1,), causal=False, patterns={Head(0, 0): weights}
    )
    assert scene_of(everything, PLAIN).at(5).peaks()[0, 0][0] == 0


def test_special_tokens_are_no_peak() -> None:
    begun = scene_of(make_capture(TEXT, bos=True), PLAIN).at(5)
    assert all(key > 0 for key, _ in begun.peaks().values())


def test_words_are_what_the_transform_makes_of_them() -> None:
    pieces = ["a", " flu", "ffy", " blue", " cat"]
    capture = make_capture(pieces)
    begun = scene_of(capture, Transforms(words=True))
    words = merged(capture, "words")
    assert [token.text for token in begun.capture.query_tokens] == ["a", " fluffy", " blue", " cat"]
    np.testing.assert_array_equal(begun.map.weights, words.weights(begun.head))


def test_the_place_in_the_text_stays_where_words_are_merged_and_taken_apart() -> None:
    capture = make_capture(["a", " flu", "ffy", " blue", " cat"])
    piece = scene_of(capture, PLAIN).at(1)
    word = scene_of(capture, Transforms(words=True)).following(piece)
    assert word.capture.query_tokens[word.query].text == " fluffy"
    assert scene_of(capture, PLAIN).following(word).query == 1
    blue = scene_of(capture, Transforms(words=True)).following(piece.at(3))
    assert blue.capture.query_tokens[blue.query].text == " blue"


def test_the_last_word_is_followed_while_the_text_grows() -> None:
    before = scene_of(make_capture("a blue cat"), PLAIN)
    after = scene_of(make_capture("a blue cat ran far"), PLAIN)
    grown = after.following(before)
    assert grown.query == 4
    elsewhere = after.following(before.at(1))
    assert elsewhere.query == 1


def test_without_the_sink_no_row_and_no_column_is_the_first_token() -> None:
    begun = scene(drop_sink=True)
    assert begun.exhibit.keys == tuple(range(1, 8))
    assert begun.at(0).query == 1  # the first looked at nothing else
    assert begun.map.weights[7, 1:].sum() == pytest.approx(1, abs=1e-6)


def test_a_rollout_is_one_map_for_each_layer_and_leads_back_to_the_layer() -> None:
    heads = scene().in_slot((1, 1))
    rolled = scene_of(make_capture(TEXT), Transforms(rollout=True)).following(heads)
    assert rolled.grid.layers == (0, 1)
    assert rolled.head is None
    assert rolled.map.label == "L1 rollout"
    every = [heads.slots[slot] for slot in sorted(heads.slots)]
    for got, expected in zip(rolled.slots.values(), rollout(every), strict=True):
        np.testing.assert_array_equal(got.weights, expected.weights)
    assert scene_of(make_capture(TEXT), PLAIN).following(rolled).head == Head(1, 1)


def test_a_rollout_of_a_part_of_the_heads_is_refused() -> None:
    with pytest.raises(UsageError, match="needs all heads"):
        scene_of(make_capture(TEXT).only((Head(0, 0),)), Transforms(rollout=True))


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("creature", (3,)),  # a token
        ("2", (2,)),  # an index
        ("/^f/", (1, 7)),  # a regular expression
        ("FOR", (7,)),  # a part of one, in whatever case
        ("zebra", ()),
    ],
)
def test_a_token_is_found(name: str, places: tuple[int, ...]) -> None:
    assert matches_of(scene(), name) == (places, False)


def test_between_two_texts_queries_are_found_first_and_then_keys() -> None:
    target = tuple(Token(i, i, word, 2 * i, 2 * i + 1) for i, word in enumerate("xyz"))
    capture = make_capture("a blue cat", causal=False)
    cross = replace(capture, kind="cross", target="x y z", query_tokens=target)
    begun = scene_of(cross, PLAIN)
    assert matches_of(begun, "y") == ((1,), False)
    assert matches_of(begun, "cat") == ((2,), True)


def test_the_nearest_that_is_shown_is_gone_to() -> None:
    begun = scene(drop_sink=True)
    assert begun.at(0).query == 1
    assert begun.at(99).query == 7
    assert begun.at(key=0).key == 1
