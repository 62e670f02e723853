"""A consumer that keeps everything: whole patterns, from the rows that a model hands over."""

from dataclasses import dataclass, field

import numpy as np

from attnviz.data.capture import FloatArray, LayerPattern, PatternBlock


@dataclass
class KeepEverything:
    """Keeps whole patterns by layer; `shape` is (n_queries, n_keys)."""

    shape: tuple[int, int]
    _kept: dict[int, tuple[tuple[int, ...], FloatArray]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        if block.layer not in self._kept:
            zeros = np.zeros((len(block.heads), *self.shape), np.float32)
            self._kept[block.layer] = block.heads, zeros
        columns = block.weights.shape[2]
        self._kept[block.layer][1][:, block.queries, :columns] = block.weights

    def layers(self) -> tuple[LayerPattern, ...]:
        """The kept patterns, in the order of the layers."""
        return tuple(LayerPattern(layer, *kept) for layer, kept in sorted(self._kept.items()))
