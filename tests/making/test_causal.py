"""The heads that the built-in model's card names matter for what it names them for."""

from pathlib import Path

import pytest

import attnviz
from attnviz.models.folder.config import read_card
from making import causal
from making.probe import WorldProbe

BUILTIN = Path(attnviz.__file__).parent / "builtin" / "gpt"


# several heads share adjectives, pronouns and senses, so that one of them can be missed
NEEDED = ("mystery", *causal.REPEATED)


@pytest.mark.parametrize(
    ("behaviours", "count", "least"),
    [
        # the fewest texts that tell the named head from all others but one or two
        (NEEDED[:1], 20, 2),
        (NEEDED[1:], 6, 3),
        pytest.param(NEEDED, 300, 3, marks=pytest.mark.slow),
    ],
)
def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one(
    behaviours: tuple[str, ...], count: int, least: int
) -> None:
    probe = WorldProbe.open(BUILTIN)
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    losses = list(causal.losses(probe, named, count, behaviours))
    assert [loss.behaviour for loss in losses] == list(behaviours)
    for loss in losses:
        assert loss.errors > least, loss
        assert loss.n == count
