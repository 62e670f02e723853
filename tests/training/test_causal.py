"""The heads that the built-in model's card names matter for what it names them for."""

from pathlib import Path

import attnviz.models
from attnviz.models.card import read_card
from attnviz.training.causal import losses
from attnviz.training.probe import Probe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one() -> None:
    probe = Probe.open(BUILTIN)
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    found = list(losses(probe, {each.behaviour: each.head for each in card.heads}, 12))
    assert len(found) == 7
    for loss in found[2:]:  # those of adjectives need more texts; the document has them
        assert loss.named.mean > 3 * loss.middle.mean, loss
        assert loss.n == 12
