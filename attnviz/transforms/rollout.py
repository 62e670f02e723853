"""Attention rollout: how much of each token is in a position, through all layers.

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", arXiv 2005.00928: the mean
of a layer's heads, half of it replaced by the identity for the residual connection, multiplied
through the layers.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from attnviz.data.exhibit import HeadMap
from attnviz.transforms.between import Between, each, go_on


def rollout(maps: Sequence[HeadMap], between: Between = go_on) -> Iterator[HeadMap]:
    """From all heads (n, n) of the layers from the first on, in order: the rollout to each layer.

    Rows still sum to 1, where those of the heads do.
    """
    through: NDArray[np.float64] | None = None
    for layer, heads in each(groupby(maps, key=lambda head_map: head_map.layer), between):
        weights = np.array([head_map.weights for head_map in heads], np.float64)  # (h, n, n)
        mixed = (weights.mean(axis=0) + np.eye(weights.shape[1])) / 2
        through = mixed if through is None else mixed @ through
        yield HeadMap(layer, None, "rollout", weights=through.astype(np.float32))
