"""The exhibit: what was asked to be shown of a capture; renderers and writers take it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.data.capture import Capture, FloatArray

Reduction: TypeAlias = Literal["mean", "max"]
Orient: TypeAlias = Literal["query-rows", "key-rows"]
ColorScale: TypeAlias = Literal["linear", "log", "row"]


@dataclass(frozen=True, eq=False)
class HeadMap:
    """One matrix to be shown, `weights` (n_queries, n_keys): a head, or a reduction of several.

    `layer` is None where it was reduced over layers, `head` where over heads; then
    `reduced` says how.
    """

    weights: FloatArray
    layer: int | None
    head: int | None
    reduced: Reduction | None = None

    @property
    def label(self) -> str:
        """`L1H2`; reduced: `L1 mean`, `H2 max`, `mean`."""
        layer = "" if self.layer is None else f"L{self.layer}"
        head = "" if self.head is None else f"H{self.head}"
        return " ".join(part for part in (layer + head, self.reduced or "") if part)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A capture, the maps chosen from it, and the filters that every view and format obeys.

    `queries` and `keys` are the token positions asked for, in order; `top` is how many
    keys are kept per query (None: all), `least` the smallest weight that is shown;
    `about` is the sentence that says which heads these are and why.
    """

    capture: Capture
    maps: tuple[HeadMap, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    top: int | None = None
    least: float = 0.0
    about: str = ""

    @property
    def by_row(self) -> bool:
        """Whether each row is coloured by itself, as all are nearly flat."""
        return self.capture.model.architecture == "embeddings"
