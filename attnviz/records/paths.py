"""Path patching: what reaches one part of a model from another, the other heads held fixed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from attnviz.records.capture import FloatArray
from attnviz.records.interventions import Edit, Site, SiteKind, SourceRun

Letter: TypeAlias = Literal["q", "k", "v"]
LETTERS: tuple[Letter, ...] = "q", "k", "v"
MlpsOnPaths: TypeAlias = Literal["recompute", "freeze"]


def held_fixed(mlps: MlpsOnPaths) -> tuple[SiteKind, ...]:
    """The kinds of sites that a path holds at what they are in the text's own run."""
    return ("head", "mlp") if mlps == "freeze" else ("head",)


class Receiver(NamedTuple):
    """The end of a path.

    The logits (no `layer`), what the MLP of a layer reads, or with a `letter` a head's own queries,
    keys or values, as its attention is given them: after a rotation; where heads share keys and
    values, this head's copy alone.
    """

    layer: int | None = None
    head: int | None = None
    letter: Letter | None = None

    def __str__(self) -> str:
        if self.layer is None:
            return "logits"
        return f"L{self.layer}" + (".mlp" if self.head is None else f"H{self.head}.{self.letter}")

    @property
    def input(self) -> int:
        """Its place among the inputs of an attention."""
        return "qkv".index(self.letter or "")

    def follows(self, sender: Site) -> bool:
        """Whether the sender stands before it."""
        if self.layer is None or sender.layer < self.layer:
            return True
        return sender.layer == self.layer and self.head is None and sender.kind == "head"


LOGITS = Receiver()


@dataclass(frozen=True)
class Paths:
    """Senders, whose outputs are those of the `source`, and where these are received.

    `mlps`: those between sender and receiver are computed anew (Wang et al. 2022, appendix B), or
    held at what they add in the text's own run, as all heads are but the sender.
    """

    senders: Sequence[Edit]
    receivers: Sequence[Receiver]
    source: SourceRun
    mlps: MlpsOnPaths = "recompute"

    def received(self, senders: Sequence[int]) -> list[tuple[Receiver, list[int]]]:
        """Each receiver but the logits, with the places of those senders that stand before it."""
        return [
            (to, [i for i, at in enumerate(senders) if to.follows(self.senders[at].site)])
            for to in self.receivers
            if to.layer is not None
        ]


PathConsumer: TypeAlias = Callable[[int, Receiver, FloatArray], None]
"""Is given the number of a sender, a receiver, and the logits (V) after the last position."""


# Attribution patching: all patches at once, to first order.


@dataclass(frozen=True)
class SlopeOf:
    """A request for the first order of patches.

    `kinds`: the kinds and layers of sites. `measure`: is given the logits (V) after the text and
    after the source, and names the token whose log-probability, or the two whose difference of
    logits is measured. `direct`: of paths to the logits alone, with all heads held fixed; as
    `Paths.mlps`.
    """

    kinds: Sequence[tuple[SiteKind, int]]
    source: SourceRun
    measure: Callable[[FloatArray, FloatArray], Sequence[int]]
    direct: MlpsOnPaths | None = None


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """By how much patches change what is measured, to first order.

    `before`, `ends` (V): the logits after the text and after the source. `products`: of kinds of
    sites in layers (n, heads), or (n, 1): the gradient times the difference of both texts'
    vectors, at each position of the text.
    """

    before: FloatArray
    ends: FloatArray
    products: Mapping[tuple[SiteKind, int], FloatArray]

    def of(self, edit: Edit) -> float:
        """The effect of a patch."""
        site, own = edit.site, self.products[edit.site[:2]]
        places = slice(None) if edit.positions is None else list(edit.positions)
        return float(own[places, site.head or 0].astype(float).sum())
