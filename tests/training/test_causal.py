"""The heads that the built-in model's card names matter for what it names them for."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import attnviz.models
from attnviz.data.head import Head
from attnviz.models.folder.card import read_card
from attnviz.training import causal
from attnviz.training.causal import Loss
from attnviz.training.probe import WorldProbe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


@pytest.mark.parametrize("count", [5, pytest.param(12, marks=pytest.mark.slow)])
def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one(
    probe: WorldProbe, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(causal, "MEASURES", causal.MEASURES[2:])  # the first two come below
    for loss in _losses(probe, count):
        assert loss.named.mean > 3 * loss.middle.mean, loss
        assert loss.n == count


@pytest.mark.parametrize("count", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_the_adjectives_head_matters_for_what_is_asked_about_and_not_for_the_answer(
    probe: WorldProbe, count: int
) -> None:
    answer, asked = itertools.islice(_losses(probe, count), 2)
    assert asked.named.mean > asked.middle.mean
    assert answer.most.head == Head(1, 3)
    assert answer.named.mean < answer.middle.mean  # as the document says


def _losses(probe: WorldProbe, count: int) -> Iterator[Loss]:
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    return causal.losses(probe, {each.behaviour: each.head for each in card.heads}, count)


@pytest.fixture(scope="module")
def probe() -> WorldProbe:
    return WorldProbe.open(BUILTIN)
