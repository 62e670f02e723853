"""The heads that the built-in model's card names matter for what it names them for."""

from pathlib import Path

import pytest

import attnviz.models
from attnviz.models.folder.card import read_card
from attnviz.training import causal
from attnviz.training.probe import WorldProbe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_without_its_named_head_repetition_loses_more_than_without_a_median_one(
    count: int,
) -> None:
    probe = WorldProbe.open(BUILTIN)
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    losses = list(causal.losses(probe, named, count, causal.REPEATED))
    assert [loss.behaviour for loss in losses] == list(causal.REPEATED)
    for loss in losses:
        assert loss.errors > 3, loss
        assert loss.n == count
