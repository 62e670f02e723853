"""The heads that the built-in model's card names matter for what it names them for."""

from pathlib import Path

import pytest

import attnviz.models
from attnviz.models.folder.card import read_card
from attnviz.training import causal
from attnviz.training.probe import WorldProbe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one(
    count: int,
) -> None:
    probe = WorldProbe.open(BUILTIN)
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    # several heads share adjectives, pronouns and senses, so that one of them can be missed
    needed = ["mystery", *causal.REPEATED]
    losses = list(causal.losses(probe, named, count, needed))
    assert [loss.behaviour for loss in losses] == needed
    for loss in losses:
        assert loss.errors > 3, loss
        assert loss.n == count
