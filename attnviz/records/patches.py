"""The scores of each head within an image, over the rows of its patches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import PatternBlock
from attnviz.records.heads import Head
from attnviz.records.images import (
    Patch,
    SeenImage,
    are_sinks,
    one_sheet,
    spatial_entropy,
    take_much,
)
from attnviz.records.metrics import entropy
from attnviz.records.tokens import Token


@dataclass
class HeadSums:
    """Sums over the rows of patches of one head; n keys, p patches.

    `entropy`: of the rows. `distance`: the weight on patches times their distance, and `near` the
    weight. `keys` (n): the weights. `much` (p): see `take_much`. `classes` (rows, p): the rows of
    class tokens.
    """

    keys: NDArray[np.float64]
    much: NDArray[np.int64]
    entropy: float = 0.0
    distance: float = 0.0
    near: float = 0.0
    classes: list[NDArray[np.float32]] = field(default_factory=list)


@dataclass
class MeasurePatches:
    """Consumes the rows of a run within an image, and measures every head.

    `dropped`: keys that are treated as if no query attended to them.
    """

    tokens: Sequence[Token]
    image: SeenImage
    dropped: Sequence[int] = ()
    _sums: dict[Head, HeadSums] = field(default_factory=dict)

    @cached_property
    def _patches(self) -> list[tuple[int, Patch]]:
        return [(i, token.patch) for i, token in enumerate(self.tokens) if token.patch]

    @cached_property
    def _keys(self) -> list[int]:
        """The patches that are keys."""
        return [i for i, _ in self._patches if i not in self.dropped]

    @cached_property
    def _places(self) -> NDArray[np.float32]:
        """The row and the column of each token, shape (n, 2); NaN unless it is a patch."""
        places = np.full((len(self.tokens), 2), nan, np.float32)
        for i, patch in self._patches:
            places[i] = patch.row, patch.column
        return places

    def _named(self, name: str) -> list[int]:
        """The model's own tokens that have such a name."""
        return [i for i, token in enumerate(self.tokens) if token.label.startswith(f"[{name}")]

    def __call__(self, block: PatternBlock) -> None:
        queries = self._places[block.queries]
        of_patches = ~np.isnan(queries[:, 0])
        of_classes = np.isin(block.queries, self._named("class"))
        apart = queries[of_patches, None] - self._places[self._keys]  # (rows, patches, 2)
        away = np.hypot(apart[..., 0], apart[..., 1])
        for number, weights in zip(block.heads, block.weights, strict=True):
            head, own = Head(block.layer, number), weights[:, self._keys]
            blank = HeadSums(np.zeros(len(self.tokens)), np.zeros(len(self._keys), np.int64))
            sums = self._sums.setdefault(head, blank)
            sums.keys += weights[of_patches].sum(axis=0)
            sums.much += take_much(own[of_patches]).sum(axis=0)
            sums.entropy += float(entropy(weights[of_patches]).sum())
            sums.distance += float((own[of_patches] * away).sum())
            sums.near += float(own[of_patches].sum())
            sums.classes += [*own[of_classes]]

    def metrics(self) -> dict[Head, dict[str, float]]:
        """Every head's `IMAGE_METRICS`; NaN if one could not be measured."""
        rows = len(self._patches)

        def mass(sums: HeadSums, tokens: Sequence[int]) -> float:
            return float(sums.keys[tokens].sum()) / rows if tokens else nan

        seen = set(range(len(self.tokens))) - set(self.dropped)
        classes, registers = (sorted(seen & {*self._named(n)}) for n in ("class", "register"))
        return {
            head: {
                "entropy": sums.entropy / rows,
                "patch_distance": sums.distance / sums.near if sums.near else nan,
                "spatial_entropy": self._spatial(sums),
                "class": mass(sums, classes),
                "registers": mass(sums, registers),
                "sinks": float(sums.keys[self._keys][are_sinks(sums.much, rows)].sum()) / rows,
            }
            for head, sums in sorted(self._sums.items())
        }

    def _spatial(self, sums: HeadSums) -> float:
        """The spatial entropy of class tokens' rows, or else of the mean row of patches."""
        rows: Sequence[NDArray[np.floating]] = sums.classes or [sums.keys[self._keys]]
        maps = np.stack(rows)
        sheet = one_sheet(self.image, [p for i, p in self._patches if i not in self.dropped])
        return float(spatial_entropy(np.where(sheet < 0, nan, maps[:, sheet])).mean())
