"""Images as a model reads them: which pixels each of its image tokens stands for.

A processor turns an image, or parts of it, into sheets of pixels (an overview, tiles), and each
sheet becomes a grid of tokens. What a sheet shows is a rectangle of the image, in its pixels, which
may reach beyond the image: there the model saw padding.
"""

import re
from collections.abc import Iterator, Sequence
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
    """Where an image token stands: the image and its view, from 0, and the cell of its grid."""

    image: int
    view: int
    row: int
    column: int


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

    def at(self, x: float, y: float) -> tuple[int, int] | None:
        """The cell (row, column) that a point of the image lies in."""
        x0, y0, x1, y1 = self.window
        if not (x0 <= x < x1 and y0 <= y < y1):
            return None
        row, column = (y - y0) / (y1 - y0) * self.rows, (x - x0) / (x1 - x0) * self.columns
        return min(int(row), self.rows - 1), min(int(column), self.columns - 1)


@dataclass(frozen=True, eq=False)
class SeenImage:
    """An image with the views of it that a model was given."""

    picture: RawImage
    views: tuple[ImageView, ...]

    def shown(self) -> NDArray[np.bool_]:
        """(height, width): which pixels lie in a view."""
        width, height = self.picture.size
        inside = np.zeros((height, width), np.bool_)
        for view in self.views:
            left, top, right, bottom = (max(0, round(edge)) for edge in view.window)
            inside[top:bottom, left:right] = True
        return inside


def label_of(place: Patch, images: Sequence[SeenImage]) -> str:
    """The name of an image token: `@r3c5`; `@2:r3c5` of a second image, `@t1r3c5` of a tile."""
    image = f"{place.image + 1}:" if len(images) > 1 else ""
    return f"@{image}{view_label(images[place.image].views, place.view)}r{place.row}c{place.column}"


def view_label(views: Sequence[ImageView], number: int) -> str:
    """A view in the name of a token: nothing for the overview, or the only one; else `t1`."""
    if len(views) == 1 or views[number].name == "overview":
        return ""
    tiles = [i for i, view in enumerate(views) if view.name != "overview"]
    return f"t{tiles.index(number) + 1}"


NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
POINT = re.compile(rf"@(?:([0-9]+):)?{NUMBER},{NUMBER}(?::{NUMBER},{NUMBER})?")


def is_point(name: str) -> bool:
    """Whether a name is a point `@x,y` or a region `@x0,y0:x1,y1` of an image."""
    return POINT.fullmatch(name) is not None


def region_of(name: str, images: Sequence[SeenImage], parameter: str) -> tuple[int, Box]:
    """The image and the box in pixels of a point or a region, given in shares of the image."""
    found = POINT.fullmatch(name)
    assert found is not None
    number, *edges = found.groups()
    image = int(number or 1) - 1
    if not 0 <= image < len(images):
        raise UsageError(
            f"{option(parameter, name)} is of image {image + 1}, but there "
            f"{'is one' if len(images) == 1 else f'are {len(images)}'}",
            "give one of them",
        )
    x0, y0, x1, y1 = map(float, (*edges[:2], *(edges[2:] if edges[2] else edges[:2])))
    if not (0 <= x0 <= x1 <= 1 and 0 <= y0 <= y1 <= 1):
        raise UsageError(
            f"{option(parameter, name)} lies outside of the image",
            "give shares of its width and height, from 0 to 1",
        )
    width, height = images[image].picture.size
    return image, (x0 * width, y0 * height, x1 * width, y1 * height)


def share_within(view: ImageView, box: Box) -> NDArray[np.float64]:
    """(rows, columns): the share of each cell that lies in a box."""
    along_x = _overlap(view.window[0], view.window[2], view.columns, box[0], box[2])
    along_y = _overlap(view.window[1], view.window[3], view.rows, box[1], box[3])
    return along_y[:, None] * along_x[None]


def _overlap(start: float, end: float, cells: int, low: float, high: float) -> NDArray[np.float64]:
    edges = np.linspace(start, end, cells + 1)
    inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    shares: NDArray[np.float64] = np.clip(inside, 0, None) / (edges[1:] - edges[:-1])
    return shares


def cells(image: SeenImage) -> Iterator[tuple[int, int, int]]:
    """The view, row and column of every cell of an image."""
    for number, view in enumerate(image.views):
        for row in range(view.rows):
            for column in range(view.columns):
                yield number, row, column
