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

    `key` is the position of the key that they share, where they share one.
    """

    habit: Habit
    rows: int
    of: int
    key: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a head does on a text.

    `behaviour`: the `links` show this one, by the words of the text; None where no behaviour was
    looked for or none was seen. Then `tendency` says what most rows do; if they have nothing in
    common, `links` are the strongest ones.
    """

    links: tuple[FoundLink, ...] = ()
    behaviour: Behaviour | None = None
    tendency: Tendency | None = None
