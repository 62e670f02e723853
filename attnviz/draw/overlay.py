"""Attention to images for pictures and terminals: panels, the heat in each, sentences."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option, readable
from attnviz.records.apply import with_wholes
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit, Map, whole_map
from attnviz.records.images import heat_of, sinks_in
from attnviz.records.places import BESIDE, SeenImage, class_rows
from attnviz.records.transforms import Additions, Relative

NAME_ONE = f"put it before the text, or name a patch: {option('query', '@r3c5')}"
MOST_PANELS = 24
"""The most panels of a picture."""
LEAST_ALPHA, MOST_ALPHA = 0.2, 0.75
"""The opacity of the colours of the weakest and of the strongest weight on an image."""
LUMA, TINT, CONTRAST, GROUND = (0.299, 0.587, 0.114), 0.35, 0.5, 140
"""The grey of a colour (ITU-R BT.601); the parts of colour and of contrast around a grey that an
image keeps under weights."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One row of one head, laid over one image: a grid (rows, columns) of weights for each view.

    `share`: the part of the row's weight that is on the image; `sinks`: the part of that on its
    sinks. `signed`: weights may be below 0.
    """

    map: Map
    query: int
    number: int
    image: SeenImage
    grids: tuple[FloatArray, ...]
    share: float
    sinks: float
    signed: bool = False

    @property
    def most(self) -> float:
        """The strongest weight of a token; for values with a sign, the farthest from 0."""
        return max((float(np.nanmax(np.abs(grid), initial=0)) for grid in self.grids), default=0.0)

    @property
    def peak(self) -> float:
        """The strongest weight of a pixel; weights of several views over it are added up."""
        if len(self.grids) == 1:
            return self.most
        return float(np.abs(np.nan_to_num(density(self.image, self.grids, PEAK))).max())


PEAK = 512, 512
"""The number of pixels at which the strongest weight of several views is searched for."""


def scale_name(exhibit: Exhibit, panels: Sequence[Panel]) -> str:
    """The name of the colours' values: weights, or with several views their sums over a pixel."""
    several = any(len(panel.grids) > 1 for panel in panels)
    each = f"{exhibit.value_name} per area, views added (1: all on one of the finest tokens)"
    return each if several else exhibit.value_name


def panels_of(exhibit: Exhibit) -> list[Panel]:
    """A panel for each head, query and image: for queries of text, unless others are named."""
    capture = exhibit.capture
    if not capture.images:
        raise UsageError("there is no image", "give one")
    if not any(image.views for image in capture.images):
        raise UsageError("the pixels of the image's tokens are not known", "choose another view")
    if capture.beside:
        raise UsageError(BESIDE, f"show it with {option('kind', 'cross')}")
    asked = len(exhibit.queries) < len(capture.query_tokens)
    queries = [query for query in exhibit.queries if asked or _reads_images(capture, query)]
    if not queries:  # the mean over the patches of an image without text
        queries = [q for q in exhibit.queries if capture.query_tokens[q].patch is None]
    numbers = [number for number, image in enumerate(capture.images) if image.views]
    panels = list[Panel]()
    for head_map in exhibit.maps:
        sinks = {number: sinks_of(exhibit, head_map, number) for number in numbers}
        panels += [
            _panel(exhibit, head_map, query, number, sinks[number])
            for query in queries
            for number in numbers
        ]
    return panels


def of_whole_image(exhibit: Exhibit) -> Exhibit:
    """An exhibit of only an image with the rows of its class, else the mean over its patches.

    It is unchanged if queries are named, or if there is text.
    """
    if not exhibit.capture.image_alone or len(exhibit.queries) < len(exhibit.capture.query_tokens):
        return exhibit
    rows = class_rows(exhibit.capture.query_tokens)
    return replace(exhibit, queries=rows) if rows else with_wholes(exhibit, "patches")


def _reads_images(capture: Capture, query: int) -> bool:
    """Whether a query is a token of text that may attend to an image."""
    tokens = capture.key_tokens[: capture.allowed_count()[query]]
    return not capture.query_tokens[query].inset and any(token.inset for token in tokens)


def _panel(
    exhibit: Exhibit, head_map: Map, query: int, number: int, sinks: NDArray[np.bool_]
) -> Panel:
    """Make a panel; `sinks` (n_keys): those of this image in this head."""
    capture, image = exhibit.capture, exhibit.capture.images[number]
    row = whole_map(head_map).weights[query]
    own = np.array([token.image == number for token in capture.key_tokens])
    share, on_sinks = float(row[own].sum()), float(row[sinks].sum())
    patches = [token.patch for token in capture.key_tokens]
    return Panel(
        map=head_map,
        query=query,
        number=number,
        image=image,
        grids=heat_of(image, number, patches, row),
        share=share,
        sinks=on_sinks / share if share else 0.0,
        signed=capture.signed,
    )


def sinks_of(exhibit: Exhibit, head_map: Map, number: int) -> NDArray[np.bool_]:
    """A mask (n_keys) of image tokens that nearly every token of the text attends to strongly."""
    capture = exhibit.capture
    weights = whole_map(head_map).weights
    own = np.array([token.image == number for token in capture.key_tokens])
    sinks = np.zeros(len(own), np.bool_)
    if capture.image_alone:  # tokens that all others attend to may be the image's subject
        return sinks
    text = [q for q, token in enumerate(capture.query_tokens) if not token.inset]
    sinks[own] = sinks_in(weights[text][:, own])
    return sinks


def density(image: SeenImage, grids: Sequence[FloatArray], size: tuple[int, int]) -> FloatArray:
    """The weight of each pixel's tokens, each divided by its area, shape (height, width) of `size`.

    An image that is read in several views has several tokens over a pixel, whose densities add up;
    the unit is the area of the finest tokens. NaN where there is no token.
    """
    width, height = size
    across, down = image.raw.size[0] / width, image.raw.size[1] / height
    x = (np.arange(width) + 0.5) * across
    y = (np.arange(height) + 0.5) * down
    total, seen = np.zeros((height, width), np.float32), np.zeros((height, width), np.bool_)
    areas = [_cell_area(view.window, view.rows, view.columns) for view in image.views]
    for view, grid, area in zip(image.views, grids, areas, strict=True):
        x0, y0, x1, y1 = view.window
        columns = np.floor((x - x0) / (x1 - x0) * view.columns).astype(int)
        rows = np.floor((y - y0) / (y1 - y0) * view.rows).astype(int)
        in_x, in_y = (columns >= 0) & (columns < view.columns), (rows >= 0) & (rows < view.rows)
        inside = np.ix_(np.flatnonzero(in_y), np.flatnonzero(in_x))
        part = grid[np.ix_(rows[in_y], columns[in_x])] * np.float32(min(areas) / area)
        total[inside] += np.nan_to_num(part)
        seen[inside] |= ~np.isnan(part)
    return np.where(seen, total, np.float32(np.nan))


def veiled(pixels: NDArray[Any], share: FloatArray, colors: NDArray[Any]) -> FloatArray:
    """Faded pixels (…, 3) under the colours of weights; `share` (…): of the strongest, 0 to 1.

    Over the image's own colours, weights would have colours that are on no colour bar.
    """
    grey = (pixels @ np.array(LUMA, np.float32))[..., None]
    faded = GROUND + CONTRAST * (grey + TINT * (pixels - grey) - GROUND)
    alpha = (LEAST_ALPHA + (MOST_ALPHA - LEAST_ALPHA) * share)[..., None]
    return np.asarray(faded * (1 - alpha) + colors * alpha, np.float32)


def mean_color(panels: Sequence[Panel]) -> FloatArray:
    """The mean colour (3) of the images, on which the legend shows the colours of weights."""
    means = [panel.image.raw.pixels.mean(axis=(0, 1)) for panel in panels]
    return np.asarray(np.mean(means, axis=0), np.float32)


def _cell_area(window: tuple[float, float, float, float], rows: int, columns: int) -> float:
    x0, y0, x1, y1 = window
    return (x1 - x0) * (y1 - y0) / (rows * columns)


# Sentences.


def shown_panels(exhibit: Exhibit, where: str) -> tuple[list[Panel], list[str]]:
    """The panels to draw `where`, a picture or a terminal, and a note if the last are left out.

    Raises:
        UsageError: there is none.
    """
    panels = panels_of(exhibit)
    if not panels:
        raise UsageError("no token of the text comes after the image", NAME_ONE)
    left = len(panels) - MOST_PANELS
    if left <= 0:
        return panels, []
    said = f"{left:,} panel{'s' * (left > 1)}"
    note = f"the {where} shows the first {MOST_PANELS} panels, and leaves {said} out"
    return panels[:MOST_PANELS], [note]


def panel_title(panel: Panel, exhibit: Exhibit) -> str:
    """A panel's title: `circle: .41 on the image, 12% of it on sinks`."""
    several = len(exhibit.capture.images) > 1
    which = f"image {panel.number + 1}" if several else "the image"
    token = readable(exhibit.capture.query_tokens[panel.query].label)
    head = f"{panel.map.label} " if len(exhibit.maps) > 1 else ""
    if exhibit.capture.transformed_by(Additions):
        return f"{head}“{token}”: patches add {panel.share:+.3f} to the cosine"
    if exhibit.capture.transformed_by(Relative):
        return f"{head}{token}: up to {panel.most:.1f} times the neutral prompt"
    sinks = f", {panel.sinks:.0%} of it on sinks" if panel.sinks >= 0.005 else ""
    own = _on_own_tokens(panel, exhibit.capture)
    return f"{head}{token}: {panel.share:.2f} on {which}{sinks}{own}"


def _on_own_tokens(panel: Panel, capture: Capture) -> str:
    """`, 0.20 on registers, 0.10 on [class]`: the part of a row on a model's own tokens."""
    shares = Counter[str]()
    row = whole_map(panel.map).weights[panel.query].tolist() if capture.image_alone else []
    for token, weight in zip(capture.key_tokens, row, strict=bool(row)):
        if token.patch is None:
            shares[re.sub(r"\[(\w+) \d+\]", r"\1s", readable(token.label))] += weight
    return "".join(
        f", {share:.2f} on {name}" for name, share in shares.most_common() if share >= 0.005
    )


def image_facts(capture: Capture) -> str:
    """`image of 400 × 300 pixels as 8 × 8 tokens, 25% of it cropped away`."""
    numbers = range(len(capture.images))
    return "; ".join(f"{capture.inset_name(n)} of {size_of(capture, n)}" for n in numbers)


def size_of(capture: Capture, number: int) -> str:
    """An image's size: `400 × 300 pixels as 8 × 8 tokens, 25% of it cropped away`."""
    image = capture.images[number]
    width, height = image.raw.size
    whole = f"{width:,} × {height:,} pixels"
    if not image.views:
        own = sum(token.image == number for token in capture.key_tokens)
        return f"{whole} as {own:,} tokens"
    lost = 1 - float(image.shown().mean())
    cropped = f", {lost:.0%} of it cropped away" if lost >= 0.005 else ""
    padded = ", padded" if _is_padded(image) else ""
    changes = "".join(f", {change}" for change in image.raw.changes)
    return f"{whole} as {grids_of(image, ' tokens')}{cropped}{padded}{changes}"


def grids_of(image: SeenImage, unit: str = "") -> str:
    """The tokens of an image: `8 × 8, and 4 tiles of 8 × 8`; `unit` follows the first number."""
    whole_views = [view for view in image.views if view.name == "overview"]
    parts = [f"{view.rows} × {view.columns}{unit}" for view in whole_views]
    if grids := [view for view in image.views if view.name == "tiles"]:
        parts += [f"tiles of {grids[0].rows} × {grids[0].columns}"]
    if tiles := [view for view in image.views if view.name == "tile"]:
        tile = "tiles" if len(tiles) > 1 else "tile"
        parts += [f"{len(tiles)} {tile} of {tiles[0].rows} × {tiles[0].columns}"]
    if not whole_views:
        parts[-1] += unit
    return ", and ".join(parts)


def _is_padded(image: SeenImage) -> bool:
    """Whether a view shows more than a pixel beyond the image."""
    width, height = image.raw.size
    windows = [view.window for view in image.views]
    return any(
        x0 < -1 or y0 < -1 or x1 > width + 1 or y1 > height + 1 for x0, y0, x1, y1 in windows
    )
