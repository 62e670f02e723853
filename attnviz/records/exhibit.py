"""The exhibit, which renderers and writers take: the part of a capture to show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, FloatArray, IntArray
from attnviz.records.heads import Head, NamedHead

# Where a text may show a behaviour: the queries it is about, and the keys that may be right.

Behaviour: TypeAlias = Literal["adjectives", "pronouns", "mystery", "senses", "induction"]


@dataclass(frozen=True)
class Occasion:
    """A query word and the words that may be its keys, by the positions of their tokens."""

    word: tuple[int, ...]
    keys: tuple[tuple[int, ...], ...]

    @property
    def query(self) -> int:
        """The position whose row is meant: the word's last token, which sees all of it."""
        return self.word[-1]

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(sorted({position for key in self.keys for position in key}))


Evidence: TypeAlias = Mapping[Behaviour, tuple[Occasion, ...]]
"""The occasions of each behaviour; none where it cannot occur in the text."""


# The behaviour of one head on one text, computed from its pattern: the claims of a title.

Habit: TypeAlias = Literal["previous", "followers", "self", "one key"]
"""The target of a query's strongest link: the token before, the token that followed an earlier
occurrence of the query, the query itself, or one key that many queries share."""


class FoundLink(NamedTuple):
    """A link by its positions, with its weight."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Tendency:
    """The habit that the strongest links of `rows` queries, of `of` in total, share.

    `key` is the position of the key that they share, where they share one; then `of` are the
    queries that may attend to it.
    """

    habit: Habit
    rows: int
    of: int
    key: int | None = None


@dataclass(frozen=True)
class Finding:
    """The behaviour of a head on a text.

    `links` are the strongest ones of a few rows, by row, strongest first. The first one of each
    row shows the `behaviour`, by the words of the text; None where none was looked for or seen.
    Then `tendency` says what most rows do; where they have nothing in common, `links` do.
    """

    links: tuple[FoundLink, ...] = ()
    behaviour: Behaviour | None = None
    tendency: Tendency | None = None


ROWS = 512  # sorted at a time, as sorting takes many times what it keeps
Reduction: TypeAlias = Literal["mean", "max", "rollout"]
Orient: TypeAlias = Literal["query-rows", "key-rows"]
ColorScale: TypeAlias = Literal["linear", "log", "row"]


@dataclass(frozen=True)
class Place:
    """Which head a map is of, or a reduction of several.

    `layer` is None where it was reduced over layers, `head` where over heads; then
    `reduced` says how.
    """

    layer: int | None
    head: int | None
    reduced: Reduction | None = None

    @property
    def label(self) -> str:
        """`L1H2`; reduced: `L1 mean`, `H2 max`, `mean`, `L3 rollout`."""
        layer = "" if self.layer is None else f"L{self.layer}"
        head = "" if self.head is None else f"H{self.head}"
        return " ".join(part for part in (layer + head, self.reduced or "") if part)

    @property
    def place(self) -> tuple[int | str, int | str]:
        """The values of the columns `layer` and `head`; the reduction's name where it is of all."""
        reduced = self.reduced or "all"
        return (
            reduced if self.layer is None else self.layer,
            reduced if self.head is None else self.head,
        )


@dataclass(frozen=True, eq=False)
class HeadMap(Place):
    """A whole matrix to be shown: `weights` (n_queries, n_keys)."""

    weights: FloatArray = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Links:
    """Parallel arrays, one entry per link; by query, then strongest first, then by key."""

    query: IntArray
    key: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)

    def rows(self) -> Iterator[FoundLink]:
        return map(FoundLink, self.query.tolist(), self.key.tolist(), self.weight.tolist())


@dataclass(frozen=True, eq=False)
class LinkMap(Place):
    """The links that the exhibit's filters leave, of a matrix that is too large to keep.

    `totals` (n_queries) are the sums of the whole rows, 0 for queries that nobody asked for.
    """

    links: Links = field(kw_only=True)
    totals: FloatArray = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class CellMap(Place):
    """The strongest weight of each block of a matrix that is too large to keep.

    `cells` (rows, columns) over the queries and keys that were asked for; NaN where the mask
    forbids the whole block. `shape` is how many (queries, keys) it was reduced from; `sums`
    whether each of its rows sums to 1.
    """

    cells: FloatArray = field(kw_only=True)
    shape: tuple[int, int] = field(kw_only=True)
    sums: bool = field(kw_only=True)


Map: TypeAlias = HeadMap | LinkMap | CellMap


ChoiceReason: TypeAlias = Literal[
    "asked", "only", "held", "acts", "card", "generic", "retrieval", "all"
]
"""Named by the user; the model's only one; the capture's only one; a named head that acts on this
text; the only one that the card names; the one with the highest generic score; those that retrieve;
every head, as none is known for what is asked."""


@dataclass(frozen=True)
class Choice:
    """Which heads are shown, and why.

    `named` is what the model's card says of the head that was picked; `line` the number of the
    input line on which it was picked, where it was kept for the lines after it.
    """

    heads: tuple[Head, ...]
    why: ChoiceReason = "asked"
    named: NamedHead | None = None
    line: int | None = None

    @property
    def picked(self) -> bool:
        """Whether a rule picked the head, among others."""
        return self.why not in ("asked", "only")


@dataclass(frozen=True)
class Filters:
    """The shown part of a pattern: rows and columns (`queries`, `keys`; none: all), as named.

    `top` is how many keys are kept for each query, `least` the smallest weight; `no_self` and
    `no_previous` leave out the links to the token itself and to the token before it.

    Raises:
        UsageError: `top` is under 1.
    """

    queries: Sequence[str] = ()
    keys: Sequence[str] = ()
    top: int | None = None
    least: float = 0.0
    no_self: bool = False
    no_previous: bool = False

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise UsageError(f"{option('top', self.top)} shows no key", "give 1 or more")

    @property
    def skip(self) -> tuple[int, ...]:
        """The distances (query minus key) of links that are left out."""
        return (*((0,) if self.no_self else ()), *((1,) if self.no_previous else ()))


@dataclass(frozen=True)
class PictureLook:
    """How a picture is drawn; None is the default, a `title` of `""` no title."""

    cmap: str | None = None
    color_scale: ColorScale | None = None
    dpi: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Look(PictureLook):
    """How an exhibit is drawn, in the terminal or as a picture."""

    view: str | None = None
    orient: Orient | None = None


@dataclass(frozen=True)
class Sides:
    """Names of the rows and the columns of a pattern, singular and plural."""

    row: str = "query"
    rows: str = "queries"
    column: str = "key"
    columns: str = "keys"


@dataclass(frozen=True, eq=False)
class Exhibit:
    """The input of renderers and writers: a capture, maps made from it, and the filters to obey.

    `queries` and `keys` are the token positions asked for, in order; `top` is how many
    keys are kept per query (None: all), `least` the smallest weight that is shown; `skip`
    are distances (query minus key) of links that are left out: 0 to itself, 1 to the token
    before. `dropped` are keys whose weight was taken away. `choice` says which heads these
    are and why, `finding` what the one head does here that a rule picked; `caption` names the
    exhibit in its place, where it stands beside others. `subtitle` says what was run, where that
    cannot be told from the capture's own tokens; `sides` what the rows and the columns are.
    `origin` is the capture before its transforms, kept for a page, which names heads by it.
    `unasked`: parts of characters were merged although nobody asked for it.
    """

    capture: Capture
    maps: tuple[Map, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    top: int | None = None
    least: float = 0.0
    skip: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    choice: Choice | None = None
    caption: str = ""
    subtitle: str = ""
    sides: Sides = Sides()  # frozen
    finding: Finding | None = None
    origin: Capture | None = None
    unasked: bool = False

    @property
    def weakest_left_out(self) -> bool:
        """Whether the user said which links are too weak to be shown."""
        return self.top is not None or self.least > 0

    @property
    def filtered(self) -> bool:
        """Whether links are left out that the mask allows."""
        return self.weakest_left_out or bool(self.skip)

    @property
    def value_name(self) -> str:
        """The name of the column of values."""
        return "score" if self.capture.signed else "weight"

    @property
    def by_row(self) -> bool:
        """Whether each row is coloured by itself, as all are nearly flat."""
        return self.capture.model.architecture == "embeddings"


def links_of(exhibit: Exhibit, head_map: Map) -> Links:
    """The links of one map that the exhibit's filters leave; never one that the mask forbids.

    Filters apply in this order: queries, keys, distances, least weight, then the strongest
    `top` of what is left in each row (ties: the earlier key).
    """
    if isinstance(head_map, LinkMap):
        return head_map.links
    parts = [
        _links_of_rows(exhibit, whole_map(head_map), exhibit.queries[first : first + ROWS])
        for first in range(0, max(1, len(exhibit.queries)), ROWS)  # no row at all is one block
    ]
    return Links(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _links_of_rows(
    exhibit: Exhibit, whole: HeadMap, asked: Sequence[int]
) -> tuple[IntArray, IntArray, FloatArray]:
    queries, keys = np.array(asked, int), np.array(exhibit.keys, int)
    weights = whole.weights[np.ix_(queries, keys)]  # (rows, keys asked for)
    allowed = keys < exhibit.capture.allowed_count()[queries][:, None]
    allowed &= ~np.isin(queries[:, None] - keys, exhibit.skip)
    order = np.argsort(np.where(allowed, -weights, np.inf), axis=1, kind="stable")
    row = np.arange(len(queries))[:, None]
    kept = (allowed & (weights >= exhibit.least))[row, order]
    if exhibit.top is not None:
        kept &= np.cumsum(kept, axis=1) <= exhibit.top
    at_row, at_rank = np.nonzero(kept)
    at_key = order[at_row, at_rank]
    return queries[at_row], keys[at_key], weights[at_row, at_key]


def row_totals(exhibit: Exhibit, head_map: Map) -> list[float]:
    """The sums of the rows asked for, over all keys that a query may see, in order."""
    if isinstance(head_map, LinkMap):
        return [float(head_map.totals[query]) for query in exhibit.queries]
    weights, seen = whole_map(head_map).weights, exhibit.capture.allowed_count()
    return [float(weights[query, : seen[query]].sum()) for query in exhibit.queries]


def whole_map(head_map: Map) -> HeadMap:
    """A map that was kept whole, for what needs every weight of it.

    Raises:
        TypeError: it was reduced, which is a mistake of the program.
    """
    if not isinstance(head_map, HeadMap):
        raise TypeError(f"of {head_map.label} only a reduced form was kept")
    return head_map
