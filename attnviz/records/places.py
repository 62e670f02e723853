"""Images and sounds beside a text or in its place, and the part that a token represents.

A processor turns an image, or parts of it, into sheets of pixels (an overview, tiles), and each
sheet becomes a grid of tokens. A sheet shows a rectangle of the image, in its pixels, which may
reach beyond it: there the model saw padding. A sound becomes frames, each of which is one token;
those behind its end are padding.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option, readable

if TYPE_CHECKING:
    from attnviz.records.tokens import Token

Pixels: TypeAlias = NDArray[np.uint8]
"""An image (height, width, 3): red, green, blue; rows from the top."""
Media: TypeAlias = Literal["image", "speech"]
"""The media that models read beside a text, or in its place."""
Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels from the upper left corner of the image."""
Waveform: TypeAlias = NDArray[np.float32]
"""Waveform of one channel (n), from -1 to 1."""
Span: TypeAlias = tuple[float, float]
"""From a second of the sound up to another."""


@dataclass(frozen=True)
class Patch:
    """The part of an image that a token stands for: a cell in the grid of one of its views.

    `image`, `view`: their numbers, from 0. `box`: in shares of the image's width and height, which
    may lie beyond 0 and 1 where the model saw padding.
    """

    image: int
    view: int
    row: int
    column: int
    box: Box = (0.0, 0.0, 0.0, 0.0)

    def holds(self, x: float, y: float) -> bool:
        """Whether a point of the image, in shares, lies in it."""
        x0, y0, x1, y1 = self.box
        across, down = x0 <= x < x1 or x0 < x == 1 <= x1, y0 <= y < y1 or y0 < y == 1 <= y1
        return across and down  # the right and the lower edge belong to the image, too

    def within(self, box: Box) -> float:
        """The share of it that lies in a box in shares of the image."""
        x0, y0, x1, y1 = self.box
        across, down = min(x1, box[2]) - max(x0, box[0]), min(y1, box[3]) - max(y0, box[1])
        return max(0.0, across) * max(0.0, down) / ((x1 - x0) * (y1 - y0))


@dataclass(frozen=True, eq=False)
class RawImage:
    """An image as it was given: its name, its pixels, and what was done to read it.

    `changes`: such as "turned as its EXIF data say".
    """

    medium: ClassVar[Media] = "image"
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

    `bos`, `special`: as `TextTokenizer.encode` takes them; None: as the model was trained. `whole`:
    it is what a chat template made, with the model's own marks.
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
        """(height, width): which pixels lie in a view."""
        width, height = self.raw.size
        inside = np.zeros((height, width), np.bool_)
        for view in self.views:
            left, top, right, bottom = (max(0, round(edge)) for edge in view.window)
            inside[top:bottom, left:right] = True
        return inside


@dataclass(frozen=True, eq=False)
class RawSound:
    """A sound as it was given, or a part of it.

    `rate`: samples a second. `begin`: the second at which the samples begin, of `seconds` that
    there are in all. `changes`: what was done to read it, such as "2 channels mixed".
    """

    medium: ClassVar[Media] = "speech"
    name: str
    samples: Waveform
    rate: int
    seconds: float
    begin: float = 0.0
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class HeardSound:
    """What a model heard of a sound, from `begin` to `end`, of `seconds` that there are in all.

    `frame`: the seconds from one frame to the next. `rate`: the file's, and `heard_rate` the
    model's. `window`: the seconds that the model always takes, padded where there are fewer; 0: as
    many as there are. `envelope` (bins, 2): the lowest and the highest sample of each part.
    """

    name: str
    rate: int
    heard_rate: int
    seconds: float
    begin: float
    end: float
    frame: float
    window: float
    changes: tuple[str, ...] = ()
    envelope: Waveform = field(default_factory=lambda: np.zeros((0, 2), np.float32))

    @property
    def facts(self) -> str:
        """`sound of 3.20 s at 16,000 Hz resampled from 44,100, a frame is 0.02 s`."""
        heard = self.end - self.begin
        part = f"{self.begin:.2f}–{self.end:.2f} s of {self.seconds:.2f} s"
        whole = self.begin == 0 and self.end >= self.seconds - HARDLY
        rate = f" resampled from {self.rate:,}" if self.rate != self.heard_rate else ""
        of = f"{heard:.2f} s" if whole else part
        parts = [f"sound of {of} at {self.heard_rate:,} Hz{rate}", *self.changes]
        parts.append(f"a frame is {self.frame:g} s")
        if self.window > heard + HARDLY:
            parts.append(f"padded to {self.window:g} s")
        return ", ".join(map(readable, parts))

    @property
    def notes(self) -> list[str]:
        """A note if the model did not read the rest of it."""
        if self.end >= self.seconds - HARDLY:
            return []
        heard = f"the model reads {self.end - self.begin:.2f} s of {self.seconds:.2f} s"
        return [f"{heard}; {option('start', f'{self.end:g}')} continues from there"]


GivenBeside: TypeAlias = RawImage | RawSound
HARDLY = 0.005
"""Seconds that are not worth a word."""


MARK = "<image>"
"""Stands in a text for an image, whatever the model's own mark is."""


# The names of places, as labels have them and as a user gives them.

Matches: TypeAlias = list[tuple[int, ...]]
"""The places that a name stands for: for each, the positions of its tokens."""
PADDING = "[padding]"
"""The name of frames in which there is no sound."""
CLASS = "[class", "[CLS"
"""The beginnings of the names of tokens from which a model reads an image's class."""
OWN: Mapping[str, str | tuple[str, ...]] = {
    "cls": CLASS,
    "class": CLASS,
    "register": "[register",
    "distillation": "[distillation",
    "detection": "[detection",
}
"""How the labels of a model's own tokens beside an image begin, by the names that stand for all."""


LABEL = re.compile(r"@(?:[0-9]+:)?(?:t[0-9]+)?r[0-9]+c[0-9]+")
"""The names that `label_of` gives."""


def label_of(place: Patch, images: Sequence[SeenImage]) -> str:
    """The name of an image token: `@r3c5`; `@2:r3c5` of a second image, `@t1r3c5` of a tile."""
    image, views = f"{place.image + 1}:" if len(images) > 1 else "", images[place.image].views
    tiles = [i for i, view in enumerate(views) if view.name != "overview"]
    named = len(views) > 1 and place.view in tiles
    tile = f"t{tiles.index(place.view) + 1}" if named else ""
    return f"@{image}{tile}r{place.row}c{place.column}"


NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?|-?\.[0-9]+)"
POINT = re.compile(rf"@(?:([0-9]+):)?{NUMBER},{NUMBER}(?::{NUMBER},{NUMBER})?")


def _patches_at(tokens: "Sequence[Token]", found: re.Match[str], parameter: str) -> Matches:
    """The patches in a region, or around a point, in shares of the image.

    Of a region those whose middle lies in it; of one that holds none, those around its middle.
    """
    name, (number, *edges) = found[0], found.groups()
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
    patches = ((token.index, token.patch) for token in tokens)
    own = [(i, patch) for i, patch in patches if patch and patch.image == image]
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
            "give a place that was not cropped away",
        )
    return [(i,) for i in inside]


def _middle_in(patch: Patch, box: Box) -> bool:
    x, y = (patch.box[0] + patch.box[2]) / 2, (patch.box[1] + patch.box[3]) / 2
    return box[0] <= x < box[2] and box[1] <= y < box[3]


SECONDS = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)s"
TIME = re.compile(rf"{SECONDS}(?::{SECONDS})?")
NEAR = 1e-6


def time_label(seconds: float, frame: float) -> str:
    """The name of a frame by its first second: `0.42s`, with as many digits as frames need."""
    fine = abs(frame * 100 - round(frame * 100)) > NEAR
    return f"{seconds:.{3 if fine else 2}f}s"


def _frames_at(tokens: "Sequence[Token]", found: re.Match[str], parameter: str) -> Matches:
    """The frame that a time lies in, or those that reach into a range of times."""
    begin = float(found[1]) + NEAR
    end = float(found[2]) - NEAR if found[2] else begin
    spans = [(token.index, *token.time) for token in tokens if token.time is not None]
    frames: Matches = [(i,) for i, first, last in spans if last > begin and first <= end]
    if not frames or begin > end + NEAR:
        raise UsageError(
            f"{option(parameter, found[0])} lies outside of what the model heard",
            f"give seconds from {spans[0][1]:.2f}s to {spans[-1][2]:.2f}s",
        )
    return frames


def at_place(tokens: "Sequence[Token]", name: str, parameter: str) -> Matches | None:
    """The tokens at a point or in a region of an image, or at a time; None: it names no place."""
    if point := POINT.fullmatch(name):
        return _patches_at(tokens, point, parameter)
    time = TIME.fullmatch(name)
    timed = time and any(token.time for token in tokens)
    return _frames_at(tokens, time, parameter) if time and timed else None


IMAGE = re.compile(r"image(?: ([0-9]{1,4}))?")
"""The name of all tokens of each image, or of one of several, counted from 1."""


def wholes_named(tokens: "Sequence[Token]", name: str) -> Matches | None:
    """All tokens of each image that a name stands for; None: there is none, or it names none."""
    numbers = sorted({token.image for token in tokens if token.image is not None})
    asked = IMAGE.fullmatch(name)
    if not (asked and numbers):
        return None
    return [
        tuple(token.index for token in tokens if token.image == number)
        for number in numbers
        if asked[1] in (None, str(number + 1))
    ]


def own_named(tokens: "Sequence[Token]", name: str) -> Matches:
    """The tokens of a model's own, beside those of an image, that a name stands for."""
    own = OWN.get(name.lower())
    return [(t.index,) for t in tokens if own and t.special and t.label.startswith(own)]


def place_not_there(tokens: "Sequence[Token]", name: str, parameter: str) -> UsageError | None:
    """The error for the name of a place that no token has; None where it names no place."""
    if grid := _grid_of(tokens, name):
        return UsageError(f"{option(parameter, name)} is not in the image", f"the grid is {grid}")
    if name.lower() not in OWN or not all(token.special for token in tokens):
        return None
    kind = "class" if name.lower() == "cls" else name.lower()
    return UsageError(
        f"{option(parameter, name.lower())}: this model has no {kind} token beside its patches",
        f"name a patch ({option(parameter, '@r3c5')}, or {option(parameter, '@.5,.5')} for the "
        "middle), or nothing for the mean over all",
    )


def _grid_of(tokens: "Sequence[Token]", name: str) -> str:
    """The `8 × 8` rows and columns beside a cell `@r9c9` that is not there."""
    cell = re.fullmatch(r"(@.*r)[0-9]+c[0-9]+", name)
    own = re.compile(re.escape(cell[1]) + "[0-9]") if cell else None
    grid = [token.patch for token in tokens if own and token.patch and own.match(token.label)]
    return f"{max(p.row for p in grid) + 1} × {max(p.column for p in grid) + 1}" if grid else ""


def wholes_of(tokens: "Sequence[Token]") -> dict[str, str]:
    """The name of each image, and `64 parts of the image, @r0c0 to @r7c7`: what it consists of."""
    parts: dict[int, list[str]] = {}
    for token in tokens:
        if token.image is not None:
            parts.setdefault(token.image, []).extend([token.label] if token.patch else [])
    several, told = len(parts) > 1, dict[str, str]()
    for n, own in parts.items():
        name, the = (f"image {n + 1}", "") if several else ("image", "the ")
        what = f"{len(own)} part{'s' if len(own) > 1 else ''} of {the}{name}"
        told[name] = f"{what}, {own[0]} to {own[-1]}" if own else name
    return told


BESIDE = "the model reads its images in layers of cross-attention, beside the tokens of the text"


def lie_beside(images: Sequence[SeenImage], tokens: "Sequence[Token]") -> bool:
    """Whether images with known places have none of their patches among some tokens.

    Such a text attends to them in layers of cross-attention.
    """
    return any(image.views for image in images) and not any(token.patch for token in tokens)


def class_rows(tokens: "Sequence[Token]") -> tuple[int, ...]:
    """The tokens that a model reads the class of an image from."""
    return tuple(token.index for token in tokens if token.label.startswith(CLASS))
