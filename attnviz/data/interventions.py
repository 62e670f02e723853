"""Interventions: what is replaced or removed in a run, and what the model predicts then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from attnviz.data.blocks import FloatArray
from attnviz.data.head import Head

SiteKind: TypeAlias = Literal["head", "attention", "mlp", "residual"]
Replacement: TypeAlias = Literal["zero", "mean"]
"""What replaces an output: zero, or its mean over the positions of the text, in its own run."""


class Site(NamedTuple):
    """A vector at each position of a run.

    `head`: z = pattern·v of head number `head`, as the output projection W_O is given it: past a
    gate (Qwen3-Next) or a norm (BitNet) where a model has one. `attention` and `mlp`: what a
    layer's attention or MLP adds to the stream, past a norm of its own (Gemma 2), without a factor
    that is the same for all (Granite). `residual`: the residual stream that arrives at a layer.
    """

    kind: SiteKind
    layer: int
    head: int | None = None


@dataclass(frozen=True)
class Edit:
    """The vectors of a site replaced, at some positions or at all (None).

    `by`: zero, their mean over all positions of the unchanged run, or what they are in the source.
    """

    site: Site
    by: Literal["zero", "mean", "source"]
    positions: tuple[int, ...] | None = None

    @property
    def layer(self) -> int:
        """The first layer that it changes."""
        return self.site.layer


@dataclass(frozen=True)
class CutLink:
    """A link of a head removed: the query no longer takes the key's value.

    `renormalise`: the other weights of the row are what softmax makes of the other scores, and sum
    to 1 again; else they stay as they are.
    """

    head: Head
    query: int
    key: int
    renormalise: bool = False

    @property
    def layer(self) -> int:
        """The first layer that it changes."""
        return self.head.layer


Intervention: TypeAlias = tuple[Edit | CutLink, ...]
"""All that is changed in one run; empty: the model as it is."""


@dataclass(frozen=True)
class SourceRun:
    """The tokens (n_s) from whose run vectors are taken.

    `places` (n): for each position of the text that is run, the position whose vectors it takes.
    """

    ids: Sequence[int]
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class ChangedRun:
    """What a model predicts under one intervention.

    `index`: the number of the intervention among those of the run. `followed` (n - 1): the
    log-probability, in nats, of the token that follows each position but the last; empty where
    it was not wanted. `last` (V): the logits after the last position.
    """

    index: int
    followed: FloatArray
    last: FloatArray


RunConsumer: TypeAlias = Callable[[ChangedRun], None]
