"""The regions of images that an answer rests on: each is made grey, and the image read again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from rich.text import Text

from attnviz.commands.generate.answer import Answer
from attnviz.console import Display
from attnviz.draw.terminal.cells import Column, folded, listing
from attnviz.draw.titles import amount
from attnviz.errors import ModelError
from attnviz.records.capture import FloatArray
from attnviz.records.grounding import Deletion, Doubles
from attnviz.records.images import Occlusion, PixelBox
from attnviz.records.places import RawImage, SeenImage
from attnviz.records.reasoning import MATTERS

if TYPE_CHECKING:
    from attnviz.models.loaded import ReadInput

See: TypeAlias = Callable[[Sequence[RawImage]], "ReadInput"]
"""Reads the same prompt with other images, of the same sizes."""
SIDE = 4
"""Regions along each side of what the model saw of an image."""
MANY = 20
"""More runs than this are announced before they are made."""
STRONGEST = 3
"""The number of regions to name."""


def regions_of(image: SeenImage) -> list[PixelBox]:
    """The cells of a grid over what the model saw of an image, row by row."""
    rows, columns = (np.flatnonzero(image.shown().any(axis=axis)) for axis in (1, 0))
    if not rows.size:  # it is not known what it saw
        rows, columns = (np.arange(n) for n in reversed(image.raw.size))
    ys, xs = (
        np.unique(np.linspace(each[0], each[-1] + 1, SIDE + 1).round().astype(int)).tolist()
        for each in (rows, columns)
    )
    return [(x0, y0, x1, y1) for y0, y1 in pairwise(ys) for x0, x1 in pairwise(xs)]


def made_grey(raw: RawImage, box: PixelBox) -> RawImage:
    """The image with a region in the mean colour of the whole."""
    pixels, (x0, y0, x1, y1) = raw.pixels.copy(), box
    pixels[y0:y1, x0:x1] = raw.pixels.mean(axis=(0, 1)).round().astype(np.uint8)
    return replace(raw, pixels=pixels)


def runs_of(images: Sequence[SeenImage]) -> int:
    """The number of runs of a check: one for each region, and one for each whole image."""
    return sum(1 + len(regions_of(image)) for image in images)


def without_regions(
    see: See, answer: Answer, ids: Sequence[int], whole: Doubles
) -> tuple[tuple[Deletion, ...], tuple[Occlusion, ...]]:
    """The changes of an answer when images, and regions of them, are made grey.

    Args:
        see: reads its prompt again.
        answer: what is measured.
        ids: of its prompt.
        whole: the log-probability of each of its tokens as it stands (m).
    """
    images = [each.raw for each in answer.capture.images]
    new = [token.id for token in answer.capture.query_tokens]

    def changes(number: int, box: PixelBox) -> tuple[float, ...]:
        others = [*images[:number], made_grey(images[number], box), *images[number + 1 :]]
        seen = see(others)
        if [token.id for token in seen.tokens] != list(ids):
            raise ModelError("the model reads a grey image as other tokens", "leave it unchecked")
        found = seen.model.log_probabilities([ids], new)[0].astype(np.float64)
        return tuple((found - whole).tolist())

    shares = dict(zip([c.name for c in answer.columns], answer.mean_shares(), strict=True))
    effects, occlusions = list[Deletion](), list[Occlusion]()
    for number, (name, image) in enumerate(zip(answer.images, answer.capture.images, strict=True)):
        width, height = image.raw.size
        effects.append(Deletion(name, shares[name][1], changes(number, (0, 0, width, height))))
        boxes = regions_of(image)
        attention = _attention(answer, number, boxes)
        for i, box in enumerate(boxes):
            own = tuple(attention[:, i].tolist()) if image.views else ()
            occlusions.append(Occlusion(name, number, box, own, changes(number, box)))
    return tuple(effects), tuple(occlusions)


def _attention(answer: Answer, number: int, boxes: Sequence[PixelBox]) -> FloatArray:
    """(m, boxes): the weight of each token of the answer on each region; a patch counts in part."""
    width, height = answer.capture.images[number].raw.size
    column = next(c for c in answer.columns if c.name == answer.images[number])
    patches = [answer.capture.key_tokens[key].patch for key in column.keys.tolist()]
    parts = [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in boxes]
    within = np.array([[0.0 if p is None else p.within(each) for each in parts] for p in patches])
    weights: FloatArray = answer.carried[:, column.keys] @ within
    return weights


# What people see of it.


def by_image(occlusions: Sequence[Occlusion]) -> list[list[Occlusion]]:
    """The regions of each image."""
    numbers = dict.fromkeys(each.image for each in occlusions)
    return [[each for each in occlusions if each.image == number] for number in numbers]


def map_of(own: Sequence[Occlusion], to: str = "–") -> tuple[list[str], list[list[str]]]:
    """The changes of the regions of an image as they lie: pixels across, and a row for each down.

    `to`: stands between two pixels.
    """
    across = sorted({(each.box[0], each.box[2]) for each in own})
    down = sorted({(each.box[1], each.box[3]) for each in own})
    cells = [f"{each.change:+z.2f}" for each in own]
    rows = [cells[i : i + len(across)] for i in range(0, len(cells), len(across))]
    return [f"{a}{to}{b}" for a, b in across], [
        [f"{a}{to}{b}", *row] for (a, b), row in zip(down, rows, strict=True)
    ]


def shown_regions(occlusions: Sequence[Occlusion], display: Display) -> Iterator[Text]:
    """A map of each image, its regions as they lie, and the strongest ones by their pixels."""
    for own in by_image(occlusions):
        head, rows = map_of(own, "–" if display.unicode else "-")
        said = f"{own[0].segment}: change (nats) where a region is made grey, by its pixels"
        yield Text()
        yield from folded(Text(said), display.width)
        columns = [Column(""), *(Column(each, right=True) for each in head)]
        yield from listing(columns, rows, display.width)
        yield from folded(Text(about_regions(own)), display.width)


def about_regions(own: Sequence[Occlusion]) -> str:
    """The regions of an image whose loss costs the answer most."""
    lost = [each for each in own if each.change < -MATTERS]
    if not lost:
        return f"no region of {own[0].segment} costs the answer {MATTERS:g} nats"
    most = sorted(lost, key=lambda each: each.change)[:STRONGEST]
    told = (
        f"x {x0} to {x1}, y {y0} to {y1} ({each.change:+z.2f}{_attended(each)})"
        for each in most
        for x0, y0, x1, y1 in [each.box]
    )
    return f"costliest of {amount(len(own), 'region')}: {'; '.join(told)}"


def _attended(each: Occlusion) -> str:
    return "" if each.share is None else f", attention {each.share:.2f}"
