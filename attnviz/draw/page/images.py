"""Images on a page: each is one column of the map, with the weights of its patches over it."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.overlay import size_of
from attnviz.draw.page import packed
from attnviz.errors import readable
from attnviz.records.apply import pooled, with_wholes
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit, whole_map
from attnviz.records.merging import WHOLE, groups_of
from attnviz.records.places import Pixels, class_rows
from attnviz.records.tokens import Token

LARGEST = 1024
"""Pixels of a side to which an image is reduced."""
LEVELS = 255


@dataclass(frozen=True, eq=False)
class PageImages:
    """The original exhibit, with a column for each image token, behind one with whole images.

    `patches`: the places of keys that stand for a part of an image; `top`: their largest weight.
    Without text, the patches of an image are tokens of the page, and its queries, too.
    """

    exhibit: Exhibit
    patches: tuple[int, ...]
    top: float

    @property
    def facts(self) -> Mapping[str, object]:
        """The input of the page's script: images, and the boxes of patches in shares of theirs."""
        capture, boxes = self.exhibit.capture, []
        for key in self.patches:
            patch = capture.key_tokens[key].patch
            assert patch is not None
            boxes.append([patch.image, *(round(edge, 4) for edge in patch.box)])
        groups = groups_of(capture, WHOLE)[1]
        numbers = [capture.key_tokens[group.start].image for group in groups]
        images = [
            {
                "uri": min(_encoded(image.raw.pixels), key=len),
                "about": about(capture, number),
                "hatched": hatched(capture, number),
                "width": image.raw.size[0],
                "height": image.raw.size[1],
                "key": numbers.index(number),
            }
            for number, image in enumerate(capture.images)
        ]
        keys = self.patches if capture.image_alone else ()
        return {"images": images, "patches": boxes, "top": self.top, "keys": keys}

    def heats(self) -> Iterator[str]:
        """Yield the weights of each head's queries on all patches, packed for a page."""
        if self.exhibit.capture.image_alone:
            return
        queries = groups_of(self.exhibit.capture, WHOLE)[0]
        keys = [range(i, i + 1) for i in range(len(self.patches))]
        for head_map in self.exhibit.maps:
            weights = whole_map(head_map).weights[:, list(self.patches)]
            yield packed(heat_levels(pooled(weights[None], queries, keys)[0], self.top))


def heat_levels(weights: FloatArray, top: float) -> NDArray[np.uint8]:
    """Weights up to `top` as levels of a byte, on a square-root scale."""
    shares: FloatArray = np.sqrt(np.clip(weights, 0, None) / np.float32(top))
    return np.rint(shares * LEVELS).astype(np.uint8)


def whole_images(exhibit: Exhibit) -> tuple[Exhibit, PageImages | None]:
    """An exhibit with each image in a text as one token, and the weights over images."""
    capture = exhibit.capture
    patches = tuple(i for i, token in enumerate(capture.key_tokens) if token.patch is not None)
    if not patches:
        return exhibit, None
    maps = [whole_map(head_map) for head_map in exhibit.maps]
    top = max(float(each.weights[:, list(patches)].max(initial=0)) for each in maps) or 1.0
    shown = exhibit if capture.image_alone else with_wholes(exhibit)
    return shown, PageImages(exhibit, patches, top)


def what_of(captured: Capture) -> str:
    """The noun for the source of a page's queries."""
    sound = captured.sound is not None and all(token.time for token in captured.query_tokens)
    return "image" if captured.image_alone else "sound" if sound else "text"


def opening_rows(tokens: Sequence[Token], query: int | None) -> tuple[int | None, int | None]:
    """The first query of an image's page: the class token, or all patches, up to the second."""
    own, patches = class_rows(tokens), [token.index for token in tokens if token.patch]
    if own or not patches:
        return own[0] if own else query, None
    return patches[0], patches[-1] + 1


def about(capture: Capture, number: int) -> str:
    """An image in words: `a.png, 400 × 300 pixels as 8 × 8 tokens`, and its hatched part."""
    name = readable(capture.images[number].raw.name)
    return f"{name}, {size_of(capture, number)}{hatched(capture, number)}"


def hatched(capture: Capture, number: int) -> str:
    """The meaning of an image's hatched part, or "" without one."""
    return "" if capture.images[number].shown().all() else " (hatched: not seen by the model)"


def stage(capture: Capture, number: int, *, pointed: bool = False) -> str:
    """An image as a part of a page; `pointed`: its places can be pointed at."""
    said = escape(about(capture, number))
    more = ' tabindex="0" role="img" aria-label="the image: arrow keys move over it"'
    return (
        f'<figure class="stage" data-image="{number}"><div><img alt="{said}">'
        f"<canvas{more if pointed else ''}></canvas></div><figcaption>{said}</figcaption></figure>"
    )


def section(capture: Capture) -> str:
    """The section of a page's images, which words of the text highlight."""
    stages = (stage(capture, number, pointed=True) for number in range(len(capture.images)))
    return f'<section id="images" aria-label="The images">{"".join(stages)}</section>'


def _encoded(pixels: Pixels) -> Iterator[str]:
    """An image of at most `LARGEST` pixels a side as PNG, and as JPEG."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((LARGEST, LARGEST))
    kinds: Sequence[tuple[str, dict[str, object]]] = (("PNG", {}), ("JPEG", {"quality": 85}))
    for kind, options in kinds:
        image.save(made := BytesIO(), kind, **options)
        yield f"data:image/{kind.lower()};base64,{base64.b64encode(made.getvalue()).decode()}"
