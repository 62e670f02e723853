"""Fitting and measuring the rule that picks a default head (`analyses/named_head.py`)."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attnviz.analyses.named_head import choose, fingerprint
from attnviz.data.card import Figure, NamedHead
from attnviz.data.head import Head
from attnviz.training.probe import WorldProbe
from attnviz.training.world.texts import texts

KIND_OF = {
    # behaviour: the kind of text that shows it; "previous token" occurs everywhere
    "adjectives": "adjectives",
    "pronouns": "pronouns",
    "mystery": "mystery",
    "senses": "senses",
    "induction": "repetition",
}
RIDGE = 0.0003
SHORT, SEARCHED = 16, 10
"""The tokens of a text such as people type, and the texts that are searched for each such text."""
BAR = 0.80


def fitted(probe: WorldProbe, heads: Sequence[NamedHead], count: int) -> tuple[NamedHead, ...]:
    """The same heads with the rule's weights, fitted on development texts of each kind.

    The texts are `count` whole ones, as many cut ones, and twice as many short ones where the
    kind has any, because people mostly type short texts.

    Fisher's linear discriminant with equal priors: with class means m and the pooled
    covariance S, the score of x is x·S⁻¹m − m·S⁻¹m / 2.
    """
    seen = {
        behaviour: np.array(
            [
                fingerprint(patterns, heads, bos=True)
                for patterns in itertools.chain(
                    _patterns(probe, kind, "rule development", count),
                    _patterns(probe, kind, "rule development", count, cut=True),
                    _patterns(probe, kind, "rule development, short", 2 * count, most=SHORT),
                )
            ]
        )
        for behaviour, kind in KIND_OF.items()
    }
    means = {behaviour: x.mean(0) for behaviour, x in seen.items()}
    spread = np.concatenate([x - means[behaviour] for behaviour, x in seen.items()])
    pooled = spread.T @ spread / len(spread)
    inverse = np.linalg.inv(pooled + RIDGE * np.eye(len(pooled)))
    return tuple(replace(h, fit=_weights(inverse, means.get(h.behaviour))) for h in heads)


def measured(probe: WorldProbe, heads: Sequence[NamedHead], count: int) -> list[Figure]:
    """The share of each kind's held-out texts for which the rule picks the head of that kind."""
    figures = []
    for behaviour, kind in KIND_OF.items():
        picked = [
            choose(patterns, heads, bos=True)
            for patterns in _patterns(probe, kind, "rule test", count)
        ]
        right = [named is not None and named.behaviour == behaviour for named in picked]
        share = round(float(np.mean(right)), 4)
        figures.append(Figure(behaviour, "picked as the default head", share, BAR, len(right)))
    return figures


def _weights(inverse: NDArray[np.float64], mean: NDArray[np.float64] | None) -> tuple[float, ...]:
    if mean is None:
        return ()
    weights = inverse @ mean
    return tuple(round(float(w), 4) for w in (*weights, -0.5 * mean @ weights))


def _patterns(
    probe: WorldProbe,
    kind: str,
    seed: str,
    count: int,
    *,
    cut: bool = False,
    most: int | None = None,
) -> Iterator[dict[Head, NDArray[np.float32]]]:
    """Every head's pattern on held-out texts; with `cut`, they end at or soon after a query.

    `most`: the largest number of tokens; a kind with few short texts yields fewer than `count`.
    """
    rng = random.Random(f"{seed} {kind}")
    longest = probe.model.config.n_positions if most is None else most
    stream = texts(seed, kind, held_out=True)
    fitting = (
        (text, ids, positions)
        for text in (stream if most is None else itertools.islice(stream, SEARCHED * count))
        for ids, positions in [probe.encoder.text(text)]
        if len(ids) <= longest
    )
    for text, ids, positions in itertools.islice(fitting, count):
        end = len(ids)
        if cut and text.links:
            query = rng.choice(text.links).query
            end = positions[query][-1] + 1 + rng.choice((0, 0, 1, 3, 6))
        patterns, _ = probe.run(ids[:end])
        yield {Head(*at): patterns[at] for at in np.ndindex(patterns.shape[:2])}
