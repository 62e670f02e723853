"""Attention on images: as grids of weights, as regions, as sinks, as a share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head
from attnviz.records.metrics import entropy
from attnviz.records.places import Patch, SeenImage, class_rows
from attnviz.records.tokens import Token


def heat_of(
    image: SeenImage, number: int, patches: Sequence[Patch | None], weights: NDArray[np.float32]
) -> tuple[NDArray[np.float32], ...]:
    """The weights (n) of tokens as grids (rows, columns), one for each view of an image.

    NaN where a view has no token.
    """
    grids = tuple(np.full((v.rows, v.columns), np.nan, np.float32) for v in image.views)
    for patch, weight in zip(patches, weights.tolist(), strict=True):
        if patch and patch.image == number:
            grids[patch.view][patch.row, patch.column] = weight
    return grids


def one_sheet(image: SeenImage, patches: Sequence[Patch]) -> NDArray[np.int64]:
    """The numbers of patches at their places (rows, columns), -1 elsewhere.

    The views of an image stand side by side, with an empty column between them.
    """
    starts = np.cumsum([0, *(view.columns + 1 for view in image.views)])
    sheet = np.full((max(view.rows for view in image.views), starts[-1]), -1)
    for number, patch in enumerate(patches):
        sheet[patch.row, starts[patch.view] + patch.column] = number
    return sheet


def spatial_entropy(maps: NDArray[np.floating]) -> NDArray[np.float64]:
    """−Σ p ln p over the regions of maps (n, rows, columns), in nats (n); NaN in a map: no token.

    Peruzzo et al. 2022, arXiv 2206.04636, section 3: the map's mean is subtracted from each weight;
    the positive rest forms regions of cells that touch at a side or a corner, and p is a region's
    share of it. The value is 0 for one region, and NaN if no weight is above the mean.
    """
    mean = np.nanmean(maps, axis=(1, 2), keepdims=True, dtype=np.float64)
    inside = maps > mean * (1 + FLAT)
    labels, above = _regions(inside), np.where(inside, maps - mean, 0)
    masses = np.bincount(labels.ravel(), above.ravel(), minlength=inside.size + 1)[1:]
    masses = masses.reshape(len(maps), -1)
    total = masses.sum(axis=1, keepdims=True)
    shares = np.divide(masses, total, out=np.full_like(masses, np.nan), where=total > 0)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))


def _regions(inside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The largest number within its region for each cell of maps (n, rows, columns); 0 outside.

    Cells are numbered from 1. A pass joins each region that is known so far with those beside it,
    as Zhang, Azad and Hu 2020, "FastSV", do: passes grow with the logarithm of a region's length.
    """
    of = np.arange(inside.size + 1)
    of[1:] *= inside.ravel()
    while True:
        around = of[1:].reshape(inside.shape)
        for axis in (1, 2):
            wide = np.pad(around, [(int(axis == each),) * 2 for each in range(3)])
            around = np.lib.stride_tricks.sliding_window_view(wide, 3, axis=axis).max(axis=-1)
        joined, largest = of.copy(), (inside * around).ravel()
        np.maximum.at(joined, of[1:], largest)
        np.maximum(joined[1:], largest, out=joined[1:])
        joined = joined[joined]
        if (joined == of).all():
            return of[1:].reshape(inside.shape)
        of = joined


FLAT = 1e-6
"""A weight above its map's mean by no larger a share than this is only so by rounding."""

# Sinks: tokens of an image that take attention whatever the query.

MUCH, OFTEN, FEW = 4.0, 0.9, 4
"""A sink takes this multiple of the mean over an image's tokens, in this share of the rows of
text, which must be at least this many."""


def take_much(rows: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """A mask of weights on an image's tokens (m, n): those far above their row's mean."""
    return np.asarray(rows > np.float32(MUCH) * rows.mean(axis=1, keepdims=True))


def are_sinks(much: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
    """A mask of the tokens (n) that take much in nearly all of these rows of text."""
    return np.asarray((much >= OFTEN * rows) & (rows >= FEW))


def sinks_in(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    """A mask of an image's tokens (n) that are sinks, by rows of text (m, n) that are not 0."""
    rows = rows[rows.any(axis=1)]
    return are_sinks(take_much(rows).sum(axis=0), len(rows))


@dataclass(frozen=True)
class ImageShare:
    """The share of the attention of rows of text on images, as a mean over rows and heads.

    `share`: of the whole rows; `sinks`: the part of it on sinks, or None if nothing is on images,
    or the rows of text are too few to find sinks. `rows`, `heads`: their numbers.
    """

    share: float
    sinks: float | None
    rows: int
    heads: int


def share_on_images(
    heads: Sequence[NDArray[np.float32]],
    images: Sequence[Sequence[int]],
    text: Sequence[int],
    rows: Sequence[int],
) -> ImageShare:
    """The share that `rows` give to images.

    Args:
        heads: weights (queries, keys) of each.
        images: the keys of each image.
        text: the rows of text, by which an image's sinks are found.
        rows: those that are asked for.
    """
    mass = on_sinks = 0.0
    for weights in heads:
        for keys in images:
            own = weights[list(rows)][:, list(keys)]
            mass += float(own.sum())
            on_sinks += float(own[:, sinks_in(weights[list(text)][:, list(keys)])].sum())
    told = mass > 0 and len(text) >= FEW
    share = mass / (len(rows) * len(heads))
    return ImageShare(share, on_sinks / mass if told else None, len(rows), len(heads))


# The head that looks at an image.


@dataclass
class FindSeeingHead:
    """Consumes the rows of a run, and finds the head that looks at single places of an image.

    Its measure is the sum, over the rows of text behind the image and over its tokens, of squared
    weights, each times the share of heads that do not look at that token much: a sink, at which
    most heads look, adds little. Of an image alone the row is that of its class, or the mean over
    its patches, and the measure is the mass on patches, with sinks weighted down in the same way,
    times its compactness, e to the minus `spatial_entropy`: 1 where one region has all. A head that
    the card names is taken if it has half of the highest.
    """

    empty: Capture
    sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = [t.index for t in self.empty.key_tokens if t.inset]
        self._seen = np.array(seen, np.int64)
        after = max(seen, default=-1) if self.empty.causal else -1
        tokens = self.empty.query_tokens
        rows = [not t.inset and t.index > after for t in tokens]
        self._alone = self.empty.image_alone and bool(self.empty.images[0].views)
        if self.empty.image_alone:
            own = class_rows(tokens) or range(len(tokens))
            rows = [token.index in own for token in tokens]
        self.rows: NDArray[np.bool_] = np.array(rows)

    def __call__(self, block: PatternBlock) -> None:
        of_text = self.rows[block.queries]
        if not of_text.any():
            return
        weights = block.weights[:, of_text][:, :, self._seen].astype(np.float64)
        moments = np.stack([weights.sum(axis=1), np.square(weights).sum(axis=1)], axis=1)
        for number, own in zip(block.heads, moments, strict=True):  # (2, tokens of images)
            head = Head(block.layer, number)
            self.sums[head] = self.sums.get(head, np.zeros_like(own)) + own

    def highest(self) -> Head:
        """The head to show; ties go to the earliest head."""
        heads = sorted(self.sums)
        totals, squares = np.stack([self.sums[head] for head in heads], axis=1)  # (heads, tokens)
        seldom = 1 - take_much(totals).mean(axis=0)
        values = ((totals * self._compact(totals)) if self._alone else squares) @ seldom
        measure = dict(zip(heads, values.tolist(), strict=True))
        best = max(heads, key=lambda head: measure[head])
        named = [each.head for each in self.empty.named_heads if each.head in measure]
        first = max(named, key=lambda head: measure[head], default=best)
        return first if measure[first] >= measure[best] / 2 else best

    def choice(self) -> Choice:
        return Choice((self.highest(),), "sees")

    def _compact(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """How compact the weights of each row (heads, patches) are on the image (heads, 1)."""
        keys = self.empty.key_tokens
        sheet = one_sheet(self.empty.images[0], [p for i in self._seen if (p := keys[i].patch)])
        entropy = spatial_entropy(np.where(sheet < 0, np.nan, rows[:, sheet]))
        return np.exp(-np.nan_to_num(entropy, nan=np.inf))[:, None]


# What each head does within an image, over the rows of its patches.


@dataclass
class HeadSums:
    """Sums over the rows of patches of one head; n keys, p patches.

    `entropy`: of the rows. `distance`: the weight on patches times how far away they are, and
    `near` the weight. `keys` (n): the weights. `much` (p): see `take_much`. `classes` (rows, p):
    the rows of class tokens.
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

    `dropped`: keys that no query sees.
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
        """(n, 2): the row and the column of each token; NaN of one that is no patch."""
        places = np.full((len(self.tokens), 2), nan, np.float32)
        for i, patch in self._patches:
            places[i] = patch.row, patch.column
        return places

    def _named(self, name: str) -> list[int]:
        """The tokens of the model's own that have such a name."""
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
        """Every head's `IMAGE_METRICS`; NaN where it could not be measured."""
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


# Regions that are made grey, to see what an answer rests on.

PixelBox: TypeAlias = tuple[int, int, int, int]
"""x0, y0, x1, y1: pixels from the upper left corner of an image, without x1 and y1."""


@dataclass(frozen=True)
class Occlusion:
    """A region of an image, and the change in log-probability (nats) when it is made grey.

    `segment`: the image's; `image`: its number, from 0. `shares` (new tokens): the attention of
    each token of the answer to the region, empty if its tokens have no known places. `changes`
    (new tokens): they sum to `change`.
    """

    segment: str
    image: int
    box: PixelBox
    shares: tuple[float, ...]
    changes: tuple[float, ...]

    @property
    def share(self) -> float | None:
        """The mean share over the whole answer."""
        return sum(self.shares) / len(self.shares) if self.shares else None

    @property
    def change(self) -> float:
        """The change of the whole answer."""
        return sum(self.changes)
