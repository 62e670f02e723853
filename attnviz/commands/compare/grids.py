"""Patterns of two models over one image, on the finer of their grids of patches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError
from attnviz.records.apply import NOTHING
from attnviz.records.capture import Capture, LayerPattern
from attnviz.records.tokens import Token, numbered
from attnviz.records.transforms import SpecialDropped


def patches_of(captured: Capture) -> list[Token]:
    """The tokens that stand for a part of the image."""
    return [token for token in captured.key_tokens if token.patch]


def on_one_grid(ours: Capture, theirs: Capture) -> tuple[Capture, Capture]:
    """Both over the patches of the finer grid that both models saw, without their own tokens."""
    finer = max(ours, theirs, key=lambda each: len(patches_of(each)))
    patches = patches_of(finer)
    shares = [overlaps(patches_of(each), patches).sum(axis=0) for each in (ours, theirs)]
    areas = overlaps(patches, patches).diagonal()
    seen = (np.minimum(shares[0], shares[1]) > areas / 2).tolist()
    if sum(seen) < 2:
        raise InputError("the two models saw no part of this image both", "give another image")
    kept = numbered([token for token, both in zip(patches, seen, strict=True) if both])
    return _spread(ours, kept), _spread(theirs, kept)


def grids_of(ours: Capture, theirs: Capture) -> tuple[tuple[int, int], ...]:
    """The rows and columns of both models' patches, where only these are compared."""
    both = [each for each in (ours, theirs) if each.image_alone]
    patches = all(token.patch for each in both for token in each.key_tokens)
    return tuple((v.rows, v.columns) for c in both for v in c.images[0].views) if patches else ()


def overlaps(ones: Sequence[Token], others: Sequence[Token]) -> NDArray[np.float64]:
    """(ones, others): the areas that patches have in common, in shares of the image."""
    a, b = (np.array([t.patch.box for t in each if t.patch]) for each in (ones, others))
    sides = [
        np.minimum(a[:, None, high], b[:, high]) - np.maximum(a[:, None, low], b[:, low])
        for low, high in ((0, 2), (1, 3))
    ]
    return np.asarray(np.clip(sides[0], 0, None) * np.clip(sides[1], 0, None))


def _spread(captured: Capture, tokens: tuple[Token, ...]) -> Capture:
    """A capture over other patches: a row is the mean of those that it covers, by area.

    The weight on a patch is spread evenly over its area; rows are scaled to sum to 1.
    """
    own = patches_of(captured)
    at, common = [token.index for token in own], overlaps(own, tokens)
    keys = (common / overlaps(own, own).diagonal()[:, None]).astype(np.float32)  # (own, tokens)
    rows = (common / common.sum(axis=0)).T.astype(np.float32)  # (tokens, own)
    layers, shares = [], []
    for layer in captured.layers:
        on_patches = layer.weights[:, at][:, :, at]
        shares.append(1 - on_patches.sum(axis=2).mean())
        weights = rows @ on_patches @ keys
        sums = weights.sum(axis=2, keepdims=True)
        some = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > NOTHING)
        layers.append(LayerPattern(layer.layer, layer.heads, some))
    dropped = [SpecialDropped(float(np.mean(shares)))] if len(at) < len(captured.key_tokens) else []
    return replace(
        captured,
        layers=tuple(layers),
        query_tokens=tokens,
        key_tokens=tokens,
        transforms=(*captured.transforms, *dropped),
    )
