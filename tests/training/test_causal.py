"""The heads that the built-in model's card names matter for what it names them for."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import attnviz.models
from attnviz.data.head import Head
from attnviz.models.folder.card import read_card
from attnviz.training.causal import Loss, losses
from attnviz.training.probe import WorldProbe

BUILTIN = Path(attnviz.models.__file__).parent / "builtin"


def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one() -> None:
    for loss in list(_losses(12))[2:]:
        assert loss.named.mean > 3 * loss.middle.mean, loss
        assert loss.n == 12


def test_the_adjectives_head_matters_for_what_is_asked_about_and_not_for_the_answer() -> None:
    answer, asked = itertools.islice(_losses(40), 2)
    assert asked.named.mean > asked.middle.mean
    assert answer.most.head == Head(1, 3)
    assert answer.named.mean < answer.middle.mean  # as the document says


def _losses(count: int) -> Iterator[Loss]:
    probe = WorldProbe.open(BUILTIN)
    card = read_card(BUILTIN, "builtin", probe.model.config.heads_per_layer)
    return losses(probe, {each.behaviour: each.head for each in card.heads}, count)
