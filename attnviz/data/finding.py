"""What one head does on one text, computed from its pattern: what a title may say of it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from attnviz.data.evidence import Behaviour

Habit: TypeAlias = Literal["previous", "followers", "self", "one key"]
"""Where the strongest link of a query goes: to the token before, to what followed an earlier
occurrence of the query, to the query itself, or to one key that many queries share."""


class FoundLink(NamedTuple):
    """A link by its positions, with its weight."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Tendency:
    """What the strongest links of `rows` queries, of `of` in all, have in common.

    `key` is the position of the key that they share, where they share one; then `of` are the
    queries that may attend to it.
    """

    habit: Habit
    rows: int
    of: int
    key: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a head does on a text.

    `links` are the strongest ones of a few rows, by row, strongest first. The first one of each
    row shows the `behaviour`, by the words of the text; None where none was looked for or seen.
    Then `tendency` says what most rows do; where they have nothing in common, `links` do.
    """

    links: tuple[FoundLink, ...] = ()
    behaviour: Behaviour | None = None
    tendency: Tendency | None = None
