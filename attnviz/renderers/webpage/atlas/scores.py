"""The scores of a scan in words, for a reader who meets them for the first time."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Explained:
    """A score's name, its unit (empty for a share), and a clause that says what it measures.

    `digits`: behind the point.
    """

    label: str
    unit: str
    says: str
    digits: int = 3


EXPLAINED: Mapping[str, Explained] = MappingProxyType(
    {
        "entropy": Explained(
            "entropy", "nats", "how widely a query spreads its weight; 0: all on one key"
        ),
        "normalised": Explained(
            "normalised entropy",
            "",
            "entropy as a share of the most possible; 1: the same weight on every key",
        ),
        "distance": Explained(
            "distance", "tokens", "how far away the keys are: the mean, by weight", 2
        ),
        "distance_variance": Explained(
            "distance variance", "tokens²", "how much this distance varies", 1
        ),
        "previous": Explained("previous", "", "weight on the token before the query"),
        "first": Explained("first", "", "weight on the first token of the window"),
        "self": Explained("self", "", "weight on the query itself"),
        "duplicate": Explained(
            "duplicate", "", "weight on earlier occurrences of the query's token"
        ),
        "induction": Explained(
            "induction",
            "",
            "weight on the tokens that followed earlier occurrences of the query's token",
        ),
    }
)
