"""What a head does on a text, computed from what is shown of it."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.kit.choose import finding_of
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Finding, FoundLink, Habit, Head, NamedHead, Tendency
from attnviz.records.transforms import Scores
from tests.factories import make_capture, make_exhibit

TEXT = "a fluffy blue creature roamed the verdant forest"
NAMED = NamedHead("adjectives", Head(0, 0), "nouns attend to their adjectives")


def shown(pattern: np.ndarray, text: str = TEXT, *, bos: bool = False) -> Exhibit:
    return make_exhibit(make_capture(text, patterns={Head(0, 0): pattern}, bos=bos))


def found(exhibit: Exhibit, named: NamedHead | None = None) -> Finding | None:
    return finding_of(exhibit, exhibit.maps[0], named)


def rows(size: int, **weights: dict[int, float]) -> np.ndarray:
    """Rows that rest on the first token, but for these (`r3={2: .7}`)."""
    pattern = np.zeros((size, size), np.float32)
    pattern[:, 0] = 1
    for name, row in weights.items():
        query = int(name[1:])
        pattern[query, 0] = 1 - sum(row.values())
        for key, weight in row.items():
            pattern[query, key] = weight
    return pattern


def test_the_clearest_rows_of_the_behaviour_are_told_in_order_strongest_key_first() -> None:
    pattern = rows(8, r3={1: 0.3, 2: 0.65}, r7={6: 0.99})
    finding = found(shown(pattern), NAMED)
    assert finding is not None
    assert finding.behaviour == "adjectives"
    assert [(q, k) for q, k, _ in finding.links] == [(3, 2), (3, 1), (7, 6)]
    assert finding.links[-1].weight == pytest.approx(0.99)


def test_nothing_in_a_told_row_is_passed_over_that_is_stronger() -> None:
    pattern = rows(8, r3={0: 0.25, 1: 0.2, 2: 0.45, 3: 0.1})  # "a" is no adjective of "creature"
    finding = found(shown(pattern), NAMED)
    assert finding is not None
    assert finding.behaviour == "adjectives"
    assert [key for _, key, _ in finding.links] == [2]


@pytest.mark.parametrize("row", [{1: 0.1, 2: 0.25}, {1: 0.37}])
def test_a_row_with_little_weight_on_the_keys_shows_no_behaviour(row: dict[int, float]) -> None:
    spread = {key: (1 - sum(row.values())) / 2 for key in (0, 3)}
    finding = found(shown(rows(8, r3={**spread, **row})), NAMED)
    assert finding is not None
    assert finding.behaviour is None


def test_up_to_three_rows_of_a_behaviour_are_told() -> None:
    text = "a red cat , a blue dog , a green bird and a grey fish"
    pattern = rows(15, r2={1: 0.7}, r6={5: 0.9}, r10={9: 0.8}, r14={13: 0.6})
    finding = found(shown(pattern, text), NAMED)
    assert finding is not None
    assert [(q, k) for q, k, _ in finding.links] == [(2, 1), (6, 5), (10, 9)]


def test_a_pronoun_is_said_to_stand_for_one_key_and_only_where_that_is_clear() -> None:
    named = NamedHead("pronouns", Head(0, 0), "pronouns attend to what they stand for")
    text = "Tom saw Paul and he"
    finding = found(shown(rows(5, r4={0: 0.3, 2: 0.7}), text), named)
    assert finding is not None
    assert finding.behaviour == "pronouns"
    assert [(q, k) for q, k, _ in finding.links] == [(4, 2)]
    unsure = found(shown(rows(5, r4={0: 0.46, 1: 0.06, 2: 0.48}), text), named)
    assert unsure is not None
    assert unsure.behaviour is None


def test_a_row_whose_strongest_link_goes_elsewhere_shows_no_behaviour() -> None:
    finding = found(shown(rows(8, r3={1: 0.2, 2: 0.25, 3: 0.45})), NAMED)
    assert finding is not None
    assert finding.behaviour is None


def test_only_rows_that_are_shown_are_told() -> None:
    exhibit = shown(rows(8, r3={1: 0.3, 2: 0.6}, r7={6: 0.99}))
    one = found(replace(exhibit, queries=(3,)), NAMED)
    assert one is not None
    assert {link.query for link in one.links} == {3}


def test_where_the_behaviour_is_not_seen_no_claim_is_made() -> None:
    finding = found(shown(rows(8)), NAMED)
    assert finding == Finding(tendency=Tendency("one key", 7, 7, 0))


@pytest.mark.parametrize(
    ("k", "bos", "expected"),
    [
        (-1, False, ("previous", 7, 7, None)),
        (-1, True, ("previous", 8, 8, None)),  # BOS has no row here
        (0, False, ("self", 7, 7, None)),  # the first token has no choice
    ],
)
def test_what_most_rows_have_in_common_is_counted(
    k: int, bos: bool, expected: tuple[Habit, int, int, int | None]
) -> None:
    size = 8 + bos
    pattern = np.eye(size, k=k, dtype=np.float32)
    pattern[0, 0] = 1
    assert found(shown(pattern, bos=bos)) == Finding(tendency=Tendency(*expected))


def test_half_of_the_rows_are_a_tendency_and_one_row_less_is_none() -> None:
    half = np.eye(7, k=-1, dtype=np.float32)
    half[[0, 2, 4, 6]] = np.eye(7, dtype=np.float32)[[0, 0, 1, 3]]
    text = "a fluffy blue creature roamed the verdant"
    assert found(shown(half, text)) == Finding(tendency=Tendency("previous", 3, 6))
    half[5] = np.eye(7, dtype=np.float32)[2]
    less = found(shown(half, text))
    assert less is not None
    assert less.tendency is None


def test_rows_that_attend_to_what_followed_their_earlier_copy_are_told() -> None:
    pattern = np.zeros((8, 8), np.float32)
    pattern[range(8), [0, 0, 0, 1, 1, 2, 3, 4]] = 1
    finding = found(shown(pattern, "a b c d a b c d"))
    assert finding == Finding(tendency=Tendency("followers", 4, 7))


def test_rows_with_nothing_in_common_give_the_strongest_links() -> None:
    pattern = rows(8, r3={1: 0.92}, r4={2: 0.8}, r5={3: 0.7}, r6={4: 0.6}, r7={5: 0.95})
    finding = found(shown(pattern))
    assert finding is not None
    assert finding.tendency is None
    assert [link[:2] for link in finding.links] == [(3, 1), (7, 5)]
    assert isinstance(finding.links[0], FoundLink)


def test_scores_are_no_shares_of_attention() -> None:
    exhibit = shown(rows(8, r7={6: 0.99}))
    capture = replace(exhibit.capture, transforms=(Scores(),))
    assert found(replace(exhibit, capture=capture), NAMED) is None


def test_what_is_told_of_a_row_does_not_depend_on_the_links_that_are_shown() -> None:
    exhibit = shown(rows(8, r3={1: 0.3, 2: 0.65}, r7={6: 0.99}))
    whole = found(exhibit, NAMED)
    for filtered in ({"keys": (0, 5)}, {"skip": (1,)}, {"least": 0.999}, {"top": 1}):
        assert found(replace(exhibit, **filtered), NAMED) == whole


def test_a_row_that_attends_to_itself_alone_is_told() -> None:
    exhibit = shown(rows(8, r5={5: 0.9}))
    finding = found(replace(exhibit, queries=(5,)))
    assert finding is not None
    assert [link[:2] for link in finding.links] == [(5, 5), (5, 0)]
