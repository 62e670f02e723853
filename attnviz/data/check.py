"""What the deletion of segments does to an answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effect:
    """A segment's share of the attention, and the change in log-probability (nats) without it.

    `changes` (new tokens): the change of each token of the answer; they sum to `change`.
    """

    segment: str
    share: float
    changes: tuple[float, ...]

    @property
    def change(self) -> float:
        """Of the whole answer."""
        return sum(self.changes)


@dataclass(frozen=True)
class Group:
    """The change without the `size` segments with the most attention, and without random ones."""

    size: int
    top: float
    random: float


@dataclass(frozen=True)
class Check:
    """The log-probability of the whole answer (nats), and what deletions change of it.

    `kept`: the segment that was not deleted, as it asks for the answer, and its share; None where
    every one was. `sink`: the segment with which the first token was deleted, which takes the
    attention that must go somewhere; None where a BOS stands before all segments. `correlation`:
    Spearman's ρ between the shares and how much less probable the answer becomes; it and `group`
    are None where there are too few segments.
    """

    log_probability: float
    effects: tuple[Effect, ...]
    correlation: float | None
    group: Group | None
    kept: tuple[str, float] | None = None
    sink: str | None = None
