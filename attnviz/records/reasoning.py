"""Attribution through an answer's own words: shares carried back, and sentence by sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

NEAR = 4
"""Sentences nearer than this do not count as receiving (Bogdan et al. 2025)."""
LEAST = 4
"""A kurtosis needs this many sentences that can receive."""
MATTERS = 0.1
"""Nats; a smaller change counts as none."""


def carried(rows: NDArray[np.floating], hops: int) -> NDArray[np.float64]:
    """Carry back the weights on the answer in rows of new tokens, `hops` times.

    With rows A (m, n + m - 1), whose last m - 1 keys are the new tokens but the last:

        W⁰ = A,   Wᵏ = [Wᵏ⁻¹ on the n keys of the prompt, 0] + Wᵏ⁻¹ on the answer · A

    Each hop replaces a weight on a written token by that token's own row, so that every row keeps
    its sum. The recursion of FlashTrace (Pan et al. 2026, arXiv 2602.01914, section on recursive
    attribution) with attention rows in place of its token contributions.

    Args:
        rows: (m, n + m - 1), a row for each new token: of the position that wrote it.
        hops: the number of times; 0 leaves the rows unchanged.
    """
    start = np.asarray(rows, np.float64)
    of_prompt = start.shape[1] - (len(start) - 1)
    done = start.copy()
    for _ in range(hops):
        of_answer = done[:, of_prompt:].copy()
        if not of_answer.any():
            break
        done[:, of_prompt:] = 0.0
        done += of_answer @ start[:-1]
    return done


def by_span(
    weights: NDArray[np.floating], queries: Sequence[slice], keys: Sequence[slice]
) -> NDArray[np.float64]:
    """The mean weight of a link from each span of queries (s) to each span of keys (t), (s, t)."""
    of_keys = np.stack([weights[:, span].mean(axis=1, dtype=np.float64) for span in keys], axis=1)
    return np.stack([of_keys[span].mean(axis=0) for span in queries])


def received(square: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vertical score of each sentence: the mean of its column from `NEAR` sentences below.

    Bogdan et al. 2025, "Thought Anchors", arXiv 2506.19143, section on receiver heads.

    Args:
        square: (s, s), the mean weight of a link from each sentence to each.

    Returns:
        (s - NEAR); the last sentences have no later one that counts.
    """
    means = [square[k + NEAR :, k].mean() for k in range(len(square) - NEAR)]
    return np.array(means, np.float64)


def kurtosis(values: NDArray[np.float64]) -> float:
    """The excess kurtosis m₄ / m₂² - 3 of values; NaN if they do not vary or are few."""
    if len(values) < LEAST:
        return float("nan")
    away = values - values.mean()
    variance = float((away**2).mean())
    if variance <= 1e-12 * float((values**2).mean()):
        return float("nan")
    return float((away**4).mean()) / variance**2 - 3


@dataclass(frozen=True)
class ChainLink:
    """A part of an answer, the source that it attended to most, and the change when that is cut.

    `source`: an earlier sentence of the answer, or the name of a segment. `share`: its share of the
    attention. `other`: the largest loss when the links to another source, `other_source`, are cut.
    Changes are in nats.
    """

    part: str
    source: str
    share: float
    change: float
    other: float | None
    other_source: str | None = None


@dataclass(frozen=True)
class Chain:
    """The links from an answer through its own sentences to a segment of the prompt.

    `deleted`: the change (nats) of the last link's part without that segment; None if it is kept,
    as it asks. `other`: the largest loss without another segment, `other_source`.
    """

    links: tuple[ChainLink, ...]
    deleted: float | None
    other: float | None
    other_source: str | None = None

    @property
    def tests(self) -> "list[ChainTest]":
        """The cut of each link, and the deletion of the last source."""
        cuts = [ChainTest("cut", e, e.change, e.other, e.other_source) for e in self.links]
        if self.deleted is None:
            return cuts
        last, other = self.links[-1], self.other_source
        return [*cuts, ChainTest("deletion", last, self.deleted, self.other, other)]

    @property
    def holds(self) -> bool:
        """Whether each cut, and the deletion, lowers the log-probability more than any other."""
        return all(test.holds for test in self.tests)


@dataclass(frozen=True)
class ChainTest:
    """The change (nats) by cutting a link, or deleting its source; and the largest other loss."""

    kind: Literal["cut", "deletion"]
    link: ChainLink
    change: float
    other: float | None
    other_source: str | None

    @property
    def holds(self) -> bool:
        """Whether it lowers the log-probability, and more than any other."""
        return self.change < -MATTERS and (self.other is None or self.change < self.other)
