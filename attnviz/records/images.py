"""Images as a model reads them: the pixels that each of its image tokens stands for.

A processor turns an image, or parts of it, into sheets of pixels (an overview, tiles), and each
sheet becomes a grid of tokens. A sheet shows a rectangle of the image, in its pixels, which may
reach beyond the image: there the model read padding.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option

Pixels: TypeAlias = NDArray[np.uint8]
"""An image (height, width, 3): red, green, blue; rows from the top."""
Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels from the upper left corner of the image."""


@dataclass(frozen=True)
class Patch:
    """The part of an image that a token stands for: a cell in the grid of one of its views.

    `image`, `view`: their numbers, from 0. `box`: in shares of the image's width and height, which
    may be below 0 or above 1 where the model read padding.
    """

    image: int
    view: int
    row: int
    column: int
    box: Box = (0.0, 0.0, 0.0, 0.0)

    def holds(self, x: float, y: float) -> bool:
        """Whether it contains a point of the image, in shares."""
        x0, y0, x1, y1 = self.box
        across, down = x0 <= x < x1 or x0 < x == 1 <= x1, y0 <= y < y1 or y0 < y == 1 <= y1
        return across and down  # the right and the lower edge belong to the image, too

    def within(self, box: Box) -> float:
        """The share of its area within a box, given in shares of the image."""
        x0, y0, x1, y1 = self.box
        across, down = min(x1, box[2]) - max(x0, box[0]), min(y1, box[3]) - max(y0, box[1])
        return max(0.0, across) * max(0.0, down) / ((x1 - x0) * (y1 - y0))


@dataclass(frozen=True, eq=False)
class RawImage:
    """An image as it was given: its name, its pixels, and what was done to read it.

    `changes`: such as "turned as its EXIF data say".
    """

    name: str
    pixels: Pixels
    changes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.pixels.shape[1], self.pixels.shape[0]


@dataclass(frozen=True)
class ReadAs:
    """The way to read a text with images.

    `bos`, `special`: as in `TextTokenizer.encode`, None for the model's default. `whole`: the text
    was written by a chat template, with the model's own marks.
    """

    bos: bool | None = None
    special: bool = False
    whole: bool = False


@dataclass(frozen=True)
class ImageView:
    """A grid of image tokens, and the rectangle of the image that it covers.

    `name`: "overview" of the whole image, or a "tile" of several.
    """

    name: str
    window: Box
    rows: int
    columns: int

    def box(self, row: int, column: int) -> Box:
        """The pixels of one cell."""
        x0, y0, x1, y1 = self.window
        width, height = (x1 - x0) / self.columns, (y1 - y0) / self.rows
        left, top = x0 + column * width, y0 + row * height
        return left, top, left + width, top + height


@dataclass(frozen=True, eq=False)
class SeenImage:
    """An image with the views of it that a model was given."""

    raw: RawImage
    views: tuple[ImageView, ...]

    def shown(self) -> NDArray[np.bool_]:
        """A mask (height, width) of the pixels within a view."""
        width, height = self.raw.size
        inside = np.zeros((height, width), np.bool_)
        for view in self.views:
            left, top, right, bottom = (max(0, round(edge)) for edge in view.window)
            inside[top:bottom, left:right] = True
        return inside


CLASS = "[class", "[CLS"
"""Beginnings of names of the tokens from which a model reads an image's class."""
OWN: Mapping[str, str | tuple[str, ...]] = {
    "cls": CLASS,
    "class": CLASS,
    "register": "[register",
    "distillation": "[distillation",
    "detection": "[detection",
}
"""Beginnings of labels of a model's own tokens in an image, by the name for all of them."""


def no_own_token(name: str, parameter: str) -> UsageError:
    """The error for a model without its own tokens of this name in `OWN`."""
    kind = "class" if name == "cls" else name
    return UsageError(
        f"{option(parameter, name)}: this model has no {kind} token beside its patches",
        f"name a patch ({option(parameter, '@r3c5')}, or {option(parameter, '@.5,.5')} for the "
        "middle), or nothing for the mean over all",
    )


BESIDE = "the model reads its images in layers of cross-attention, beside the tokens of the text"


def lie_beside(images: Sequence[SeenImage], patches: Iterable[Patch | None]) -> bool:
    """Whether no token is a patch of these images, although their places are known.

    Such a text attends to them in layers of cross-attention.
    """
    return any(image.views for image in images) and not any(patches)


LABEL = re.compile(r"@(?:[0-9]+:)?(?:t[0-9]+)?r[0-9]+c[0-9]+")
"""The names that `label_of` gives."""


def label_of(place: Patch, images: Sequence[SeenImage]) -> str:
    """The name of an image token: `@r3c5`; `@2:r3c5` of a second image, `@t1r3c5` of a tile."""
    image = f"{place.image + 1}:" if len(images) > 1 else ""
    return f"@{image}{view_label(images[place.image].views, place.view)}r{place.row}c{place.column}"


def view_label(views: Sequence[ImageView], number: int) -> str:
    """A view in the name of a token: `t1`, or "" for the overview or the only view."""
    if len(views) == 1 or views[number].name == "overview":
        return ""
    tiles = [i for i, view in enumerate(views) if view.name != "overview"]
    return f"t{tiles.index(number) + 1}"


MARK = "<image>"
"""The placeholder of an image in a text, whatever the model's own mark is."""
NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?|-?\.[0-9]+)"
POINT = re.compile(rf"@(?:([0-9]+):)?{NUMBER},{NUMBER}(?::{NUMBER},{NUMBER})?")


def is_place(name: str) -> bool:
    """Whether a name is a point `@x,y` or a region `@x0,y0:x1,y1` of an image."""
    return POINT.fullmatch(name) is not None


def patches_at(patches: Sequence[Patch | None], name: str, parameter: str) -> list[int]:
    """The indices of the patches in a region, or around a point, in shares of the image.

    A patch is in a region if its middle is; a region without any gives those around its middle.
    """
    found = POINT.fullmatch(name)
    assert found is not None
    number, *edges = found.groups()
    x0, y0, x1, y1 = map(float, (*edges[:2], *(edges[2:] if edges[2] else edges[:2])))
    if x0 > x1 or y0 > y1:
        raise UsageError(
            f"{option(parameter, name)} ends before it begins", "give left, top, right and bottom"
        )
    if min(x0, y0) < 0 or max(x1, y1) > 1:
        raise UsageError(
            f"{option(parameter, name)} is outside the image",
            "give shares of its width and height, from 0 to 1",
        )
    image = int(number or 1) - 1
    own = [(i, patch) for i, patch in enumerate(patches) if patch and patch.image == image]
    if not own:
        raise UsageError(
            f"{option(parameter, name)} is in image {image + 1}, which does not exist",
            f"give one with {option('image')}",
        )
    inside = [i for i, patch in own if _middle_in(patch, (x0, y0, x1, y1))]
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    inside = inside or [i for i, patch in own if patch.holds(x, y)]
    if not inside:
        raise UsageError(
            f"{option(parameter, name)} is in a part of the image that was cropped away",
            "give a place that the model read",
        )
    return inside


def _middle_in(patch: Patch, box: Box) -> bool:
    x, y = (patch.box[0] + patch.box[2]) / 2, (patch.box[1] + patch.box[3]) / 2
    return box[0] <= x < box[2] and box[1] <= y < box[3]


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


# Regions that are made grey, to find what an answer rests on.

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
