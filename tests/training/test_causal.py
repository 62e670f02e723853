"""The heads that the built-in model's card names matter for what it names them for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import attnviz.models
from attnviz.models.folder.card import read_card
from attnviz.training import causal
from attnviz.training.causal import Loss
from attnviz.training.probe import WorldProbe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


@pytest.mark.parametrize("count", [5, pytest.param(12, marks=pytest.mark.slow)])
def test_without_its_named_head_repetition_loses_more_than_without_a_median_one(
    probe: WorldProbe, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    repeated = [each for each in causal.MEASURES if each[1] == causal.REPEATED]
    monkeypatch.setattr(causal, "MEASURES", repeated)
    losses = list(_losses(probe, count))
    assert len(losses) == 2
    for loss in losses:
        assert loss.named.mean > 3 * loss.middle.mean, loss
        assert loss.n == count


def _losses(probe: WorldProbe, count: int) -> Iterator[Loss]:
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    return causal.losses(probe, {each.behaviour: each.head for each in card.heads}, count)


@pytest.fixture(scope="module")
def probe() -> WorldProbe:
    return WorldProbe.open(BUILTIN)
