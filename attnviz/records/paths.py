"""Path patching: effects of one part of a model on another, with the other heads held fixed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from attnviz.records.capture import FloatArray
from attnviz.records.interventions import Edit, Site, SiteKind, SourceRun

Letter: TypeAlias = Literal["q", "k", "v"]
LETTERS: tuple[Letter, ...] = "q", "k", "v"
MlpsOnPaths: TypeAlias = Literal["recompute", "freeze"]


def held_fixed(mlps: MlpsOnPaths) -> tuple[SiteKind, ...]:
    """The kinds of sites that a path holds at their values in the text's own run."""
    return ("head", "mlp") if mlps == "freeze" else ("head",)


class Receiver(NamedTuple):
    """The end of a path.

    The logits (no `layer`), the input of a layer's MLP, or with a `letter` a head's own queries,
    keys or values, as its attention takes them: after a rotation; if heads share keys and values,
    only this head's copy.
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
        """The index of its letter among an attention's inputs."""
        return "qkv".index(self.letter or "")

    def follows(self, sender: Site) -> bool:
        """Whether the sender precedes it in the model."""
        if self.layer is None or sender.layer < self.layer:
            return True
        return sender.layer == self.layer and self.head is None and sender.kind == "head"


LOGITS = Receiver()


@dataclass(frozen=True)
class Paths:
    """Senders, whose outputs are those of the `source`, and their receivers.

    `mlps`: those between sender and receiver are recomputed (Wang et al. 2022, appendix B), or
    held at their values in the text's own run, like all heads but the sender.
    """

    senders: Sequence[Edit]
    receivers: Sequence[Receiver]
    source: SourceRun
    mlps: MlpsOnPaths = "recompute"

    @property
    def inner(self) -> list[tuple[int, Receiver]]:
        """The receivers except the logits, each with its layer."""
        return [(to.layer, to) for to in self.receivers if to.layer is not None]

    @property
    def order(self) -> list[int]:
        """The numbers of the senders by layer: runs in a batch begin at the first one's."""
        return sorted(range(len(self.senders)), key=lambda i: self.senders[i].layer)

    def to_last(self, n: int) -> "Paths":
        """The paths to the logits, in runs of only the last of n tokens.

        All heads but the sender are held fixed, so no token moves anything to another one.
        """
        senders = [
            replace(
                edit, positions=None if edit.positions is None or n - 1 in edit.positions else ()
            )
            for edit in self.senders
        ]
        return replace(self, senders=senders, receivers=(LOGITS,))

    def received(self, senders: Sequence[int]) -> list[tuple[Receiver, list[int]]]:
        """Each receiver except the logits, with the indices of the senders that precede it."""
        return [
            (to, [i for i, at in enumerate(senders) if to.follows(self.senders[at].site)])
            for _, to in self.inner
        ]


PathConsumer: TypeAlias = Callable[[int, Receiver, FloatArray], None]
"""A function of the number of a sender, a receiver, and the logits (V) after the last position."""


# Attribution patching: all patches at once, to first order.


@dataclass(frozen=True)
class SlopeOf:
    """A request for the first order of patches.

    `kinds`: the kinds and layers of sites. `measure`: takes the logits (V) after the text and
    after the source, and names the token whose log-probability, or the two whose difference of
    logits is measured. `direct`: only paths to the `receivers`, with all heads held fixed; like
    `Paths.mlps`.
    """

    kinds: Sequence[tuple[SiteKind, int]]
    source: SourceRun
    measure: Callable[[FloatArray, FloatArray], Sequence[int]]
    direct: MlpsOnPaths | None = None
    receivers: Sequence[Receiver] = (LOGITS,)


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """The effects of patches on the measure, to first order.

    `before`, `ends` (V): the logits after the text and after the source. `products`: by receiver,
    for kinds of sites in layers (n, heads), or (n, 1): the gradient times the difference of both
    texts' vectors, at each position of the text.
    """

    before: FloatArray
    ends: FloatArray
    products: Mapping[Receiver, Mapping[tuple[SiteKind, int], FloatArray]]

    def of(self, edit: Edit, to: Receiver = LOGITS) -> float:
        """The effect of a patch, on a path if there are receivers."""
        site, own = edit.site, self.products[to][edit.site[:2]]
        places = slice(None) if edit.positions is None else list(edit.positions)
        return float(own[places, site.head or 0].astype(float).sum())
