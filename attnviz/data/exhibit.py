"""The exhibit: what was asked to be shown of a capture; renderers and writers take it."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from attnviz.data.capture import Capture, FloatArray, IntArray

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


@dataclass(frozen=True, eq=False)
class LinkMap(Place):
    """Of a matrix too large to keep, the links that the exhibit's filters leave.

    `totals` (n_queries) are the sums of the whole rows, 0 for queries that nobody asked for.
    """

    links: Links = field(kw_only=True)
    totals: FloatArray = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class CellMap(Place):
    """Of a matrix too large to keep, blocks of weights, each with its strongest.

    `cells` (rows, columns) over the queries and keys that were asked for; NaN where the mask
    forbids the whole block. `shape` is how many (queries, keys) it was reduced from; `sums`
    whether each of its rows sums to 1.
    """

    cells: FloatArray = field(kw_only=True)
    shape: tuple[int, int] = field(kw_only=True)
    sums: bool = field(kw_only=True)


Map: TypeAlias = HeadMap | LinkMap | CellMap


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A capture, the maps chosen from it, and the filters that every view and format obeys.

    `queries` and `keys` are the token positions asked for, in order; `top` is how many
    keys are kept per query (None: all), `least` the smallest weight that is shown; `skip`
    are distances (query minus key) of links that are left out: 0 to itself, 1 to the token
    before. `dropped` are keys whose weight was taken away. `about` is the sentence that says
    which heads these are and why.
    """

    capture: Capture
    maps: tuple[Map, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    top: int | None = None
    least: float = 0.0
    skip: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    about: str = ""

    @property
    def weakest_left_out(self) -> bool:
        """Whether the user said which links are too weak to be shown."""
        return self.top is not None or self.least > 0

    @property
    def filtered(self) -> bool:
        """Whether links are left out that the mask allows."""
        return self.weakest_left_out or bool(self.skip)

    @property
    def by_row(self) -> bool:
        """Whether each row is coloured by itself, as all are nearly flat."""
        return self.capture.model.architecture == "embeddings"
