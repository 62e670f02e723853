"""Blocks of query rows, as a model hands them over, and the two consumers that every run has.

A consumer is called with the rows that were asked for, a block at a time. `KeepEverything` puts
whole patterns together; `Checked` checks each block before it passes it on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import ModelError, option

if TYPE_CHECKING:
    from attnviz.data.capture import Capture

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatternBlock:
    """Some query rows of some heads of one layer, as a model hands them to its consumer.

    `weights` has the shape (len(heads), len(queries), n): the weights on the first n keys;
    none of these queries sees a later one. The array may be used only during the call.
    """

    layer: int
    heads: tuple[int, ...]
    queries: IntArray
    weights: FloatArray

    @cached_property
    def sums(self) -> FloatArray:
        """The sum of each row (heads, queries)."""
        # numpy's own sum takes three times as long; BLAS may flag lanes that it does not use
        with np.errstate(invalid="ignore"):
            sums: FloatArray = self.weights @ np.ones(self.weights.shape[2], np.float32)
        return sums


Consumer: TypeAlias = Callable[[PatternBlock], None]
"""Is given the wanted rows of each layer, some at a time, layers and rows in order."""


@dataclass(frozen=True)
class Wanted:
    """What a model hands over: which heads of which layers, and which query rows of them.

    `heads`: layer to heads; a layer that is not named is not recorded. `queries`: positions
    in rising order; None for all of them. `scores`: not the weights, but what they are made
    of: q·k / √d_k, before mask and softmax.
    """

    heads: Mapping[int, tuple[int, ...]]
    queries: tuple[int, ...] | None = None
    scores: bool = False

    @property
    def last_layer(self) -> int:
        """The last layer that has to run; -1 where none is wanted."""
        return max(self.heads, default=-1)


NOTHING = Wanted({})


@dataclass(frozen=True, eq=False)
class LayerPattern:
    """The chosen heads of one layer: `weights` (len(heads), n_queries, n_keys), read-only."""

    layer: int
    heads: tuple[int, ...]
    weights: FloatArray

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False


@dataclass
class KeepEverything:
    """The plainest consumer: whole patterns by layer; `shape` is (n_queries, n_keys)."""

    shape: tuple[int, int]
    _kept: dict[int, tuple[tuple[int, ...], FloatArray]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        if block.layer not in self._kept:
            zeros = np.zeros((len(block.heads), *self.shape), np.float32)
            self._kept[block.layer] = block.heads, zeros
        columns = block.weights.shape[2]
        self._kept[block.layer][1][:, block.queries, :columns] = block.weights

    def layers(self) -> tuple[LayerPattern, ...]:
        """What was kept."""
        return tuple(LayerPattern(layer, *kept) for layer, kept in sorted(self._kept.items()))


@dataclass
class Checked:
    """Passes blocks on to a consumer, after a check of each.

    `empty` is the capture to be: whether queries see later keys, whether rows sum to 1, and
    how many queries and keys there are.
    """

    consume: Consumer
    empty: "Capture"
    _rows: dict[int, int] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        """Check the block, and pass it on.

        Raises:
            ModelError: the weights are not numbers, or no attention pattern over these tokens.
        """
        self._rows[block.layer] = self._rows.get(block.layer, 0) + len(block.queries)
        if not np.isfinite(block.sums).all():
            raise ModelError(
                f"the attention of layer {block.layer} is not a number (NaN or infinite)",
                "the checkpoint may be damaged; in half precision try "
                f"{option('dtype', 'float32')}",
            )
        if not self._over_all_keys(block):
            raise self._no_pattern(block.layer, "does not attend to each of the tokens")
        if self.empty.signed:  # nothing more can be said of scores
            self.consume(block)
            return
        if not self.empty.sinks and np.abs(block.sums - 1).max() > self._sum_error:
            raise self._no_pattern(block.layer, "has rows that do not sum to 1")
        if self.empty.causal and _looks_ahead(block):
            raise self._no_pattern(block.layer, "attends to later tokens")
        self.consume(block)

    def finish(self, wanted: Wanted) -> None:
        """See that every row that was wanted came, once.

        Raises:
            ModelError: some did not.
        """
        queries = len(self.empty.query_tokens) if wanted.queries is None else len(wanted.queries)
        silent = [layer for layer in sorted(wanted.heads) if layer not in self._rows]
        if len(silent) == len(wanted.heads):
            raise ModelError(
                f"attnviz finds no attention in {self._architecture} that it could show: it has "
                "none, or computes it in a way of its own",
                "use another model",
            )
        if silent:
            raise ModelError(
                f"layer {silent[0]} of this model has no attention that could be shown",
                f"choose others with {option('layers')}",
            )
        for layer, rows in self._rows.items():
            if rows != queries:
                raise self._no_pattern(layer, f"has {rows} rows for {queries} tokens")

    def _over_all_keys(self, block: PatternBlock) -> bool:
        """Causal blocks may end behind the last key that their queries see."""
        n, keys = block.weights.shape[2], len(self.empty.key_tokens)
        return n == keys or (self.empty.causal and int(block.queries[-1]) < n < keys)

    @property
    def _sum_error(self) -> float:
        return 1e-3 if self.empty.model.dtype == "float32" else 0.05

    @property
    def _architecture(self) -> str:
        return self.empty.model.architecture

    def _no_pattern(self, layer: int, why: str) -> ModelError:
        return ModelError(
            f"layer {layer} of {self._architecture} {why}: this is no attention pattern that "
            "attnviz could show",
            "use another model",
        )


def _looks_ahead(block: PatternBlock) -> bool:
    first = int(block.queries[0])  # no earlier column can be ahead of any of these rows
    later = np.arange(first, block.weights.shape[2]) > block.queries[:, None]
    return bool(block.weights[:, :, first:][:, later].any())
