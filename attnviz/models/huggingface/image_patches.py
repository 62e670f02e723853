"""The pixels of an image that each image token stands for, measured rather than computed.

A processor is given an image whose red and green are coordinates. What comes out says which part
of the image each of its sheets shows, be it resized, cropped, padded or tiled. How the sheets
become tokens is the model's own order: row by row, sheet by sheet; where the model packs them in a
way of its own (LLaVA-NeXT), its own function packs the coordinates of the patches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnviz.errors import InputError
from attnviz.records.places import Box, ImageView, Patch, RawImage, SeenImage

PixelSheet: TypeAlias = NDArray[np.float32]
"""(3, height, width): x and y in pixels of the image, and `INSIDE` where it shows the image."""
Patches: TypeAlias = tuple[Patch | None, ...]
"""The place of each image token of one image, in order; None for one that has none."""

INSIDE = 200
"""The blue of the image of coordinates, which no processor pads with."""
FEW = 8
"""Pixels of a side below which coordinates are too coarse to measure by."""


class TooCoarse(Exception):
    """Raised when a sheet shows too few pixels of the image to measure where they are."""


def seen_image(
    processor: Any, model: Any, raw: RawImage, number: int, count: int
) -> tuple[SeenImage, Patches]:
    """The views of the image `number`, and the patches of its `count` image tokens.

    There is no view where the model makes its tokens in a way that is not known here, or from too
    few pixels to measure their places.
    """
    try:
        sheets, windows, made = _measured(processor, raw)
    except TooCoarse:
        return SeenImage(raw, ()), (None,) * count
    own = getattr(model.base_model, "pack_image_features", None)
    ways = [_packed(model, own, windows, made)] if own else []
    ways.append(_row_by_row(sheets, windows, count, raw))
    for views, cells in ways:
        if len(cells) == count:
            return SeenImage(raw, tuple(views)), _boxed(cells, views, raw, number)
    return SeenImage(raw, ()), (None,) * count


def _boxed(
    cells: Sequence[Patch | None], views: Sequence[ImageView], raw: RawImage, number: int
) -> Patches:
    """The patches of the image `number`, with their boxes."""
    width, height = raw.size

    def boxed(cell: Patch) -> Patch:
        x0, y0, x1, y1 = views[cell.view].box(cell.row, cell.column)
        box = x0 / width, y0 / height, x1 / width, y1 / height
        return replace(cell, image=number, box=box)

    return tuple(cell and boxed(cell) for cell in cells)


@dataclass(frozen=True)
class SheetGrid:
    """The sheet of an image, among several the overview, as the vision side reads it.

    `number`: its number among them; `patches`: those of its tokens, in order.
    """

    number: int
    view: ImageView
    patches: Patches


def sheet_grid(processor: Any, model: Any, raw: RawImage) -> SheetGrid:
    """The patches of the overview of an image, or of its first sheet.

    Raises:
        InputError: they cannot be measured.
    """
    try:
        sheets, windows, made = _measured(processor, raw)
    except TooCoarse:
        raise InputError(
            f"the image {raw.name} is too small to locate its patches", "give a larger one"
        ) from None
    names = _named(windows, raw.size)
    number = names.index("overview") if "overview" in names else 0
    size = getattr(model.config, "vision_config", model.config).patch_size
    high, wide = (size, size) if isinstance(size, int) else size
    rows, columns = sheets[number].shape[1] // high, sheets[number].shape[2] // wide
    merge = processor.image_processor.merge_size if "image_grid_thw" in made else 1
    order = np.arange(rows * columns).reshape(rows // merge, merge, columns // merge, merge)
    cells = order.transpose(0, 2, 1, 3).ravel().tolist()  # those that are merged follow each other
    (x0, y0, x1, y1), (_, height, width) = windows[number], sheets[number].shape
    right, low = x0 + (x1 - x0) * columns * wide / width, y0 + (y1 - y0) * rows * high / height
    view = ImageView(names[number], (x0, y0, right, low), rows, columns)  # what no patch holds ends
    patches = [Patch(0, 0, cell // columns, cell % columns) for cell in cells]
    return SheetGrid(number, view, _boxed(patches, [view], raw, 0))


# What a processor makes of coordinates.


def _measured(
    processor: Any, raw: RawImage
) -> tuple[list[PixelSheet], list[Box], Mapping[str, Any]]:
    """The sheets of an image of coordinates, what each shows, and all that is made of it."""
    width, height = raw.size
    whole = (0.0, 0.0, float(width), float(height))
    sheets, made = _sheets(processor, raw, whole)
    windows = [_window(sheet, whole, raw.size) for sheet in sheets]
    if len(sheets) == 1 and (part := _part(windows[0], whole)) != whole:  # more finely
        windows = [_window(_sheets(processor, raw, part)[0][0], part, raw.size)]
    return sheets, windows, made


def _sheets(processor: Any, raw: RawImage, part: Box) -> tuple[list[PixelSheet], Mapping[str, Any]]:
    """The sheets of an image of coordinates within a part of it, and all that is made of it."""
    from PIL import Image

    (width, height), (x0, y0, x1, y1) = raw.size, part
    x = np.clip((np.arange(width, dtype=np.float32) + 0.5 - x0) / (x1 - x0), 0, 1)
    y = np.clip((np.arange(height, dtype=np.float32) + 0.5 - y0) / (y1 - y0), 0, 1)
    draw = np.random.default_rng(0)  # rounded at random, so that means are exact

    pixels = np.full((height, width, 3), INSIDE, np.uint8)
    for channel in (0, 1):
        for row in range(height):  # one at a time, as images may be large
            share = (x, y[row])[channel] * np.float32(255)
            pixels[row, :, channel] = (share + draw.random(width, np.float32)).clip(0, 255)
    image = Image.fromarray(pixels)
    del pixels
    plain = {"do_normalize": False, "do_rescale": False, "return_tensors": "pt"}
    merged = processor._merge_kwargs(tokenizer_init_kwargs={}, **plain)
    made, _ = processor._process_images([image], **merged["images_kwargs"])
    scale = np.array([(x1 - x0) / 255, (y1 - y0) / 255, 1], np.float32)[:, None, None]
    first = np.array([x0, y0, 0], np.float32)[:, None, None]
    return [first + sheet * scale for sheet in _pixels(made, processor)], made


def _part(window: Box, whole: Box) -> Box:
    """A part of the image around a window that is small in it."""

    def around(low: float, high: float, most: float) -> tuple[float, float]:
        if high - low > most / 2:
            return 0.0, most
        more = (high - low) / 2 + 2
        return max(0.0, low - more), min(most, high + more)

    (x0, x1), (y0, y1) = (around(window[i], window[i + 2], whole[i + 2]) for i in (0, 1))
    return x0, y0, x1, y1


def _pixels(made: Mapping[str, Any], processor: Any) -> list[PixelSheet]:
    """The sheets (3, height, width) in what a processor makes of one image."""
    pixels = next(value for name, value in made.items() if name.startswith("pixel_values"))
    if "image_grid_thw" in made:  # patches in groups that are merged (Qwen-VL)
        _, rows, columns = made["image_grid_thw"][0].tolist()
        merge = processor.image_processor.merge_size
        size = processor.image_processor.patch_size
        patches = torch.as_tensor(pixels).view(
            rows // merge, columns // merge, merge, merge, 3, -1, size, size
        )
        sheet = patches[:, :, :, :, :, 0].permute(4, 0, 2, 5, 1, 3, 6)
        return [sheet.reshape(3, rows * size, columns * size).float().numpy()]
    if "image_position_ids" in made or "spatial_shapes" in made:  # patches (Gemma 4, SigLIP 2)
        size = processor.image_processor.patch_size
        if "spatial_shapes" in made:
            rows, columns = torch.as_tensor(made["spatial_shapes"][0]).tolist()
        else:  # with their columns and rows
            at = torch.as_tensor(made["image_position_ids"][0])
            columns, rows = (at.amax(dim=0) + 1).tolist()
        patches = torch.as_tensor(pixels[0])[: rows * columns].view(rows, columns, size, size, 3)
        sheet = patches.permute(4, 0, 2, 1, 3).reshape(3, rows * size, columns * size)
        return [sheet.float().numpy()]
    several = [torch.as_tensor(each) for each in pixels]
    flat = [sheet for each in several for sheet in each.reshape((-1, *each.shape[-3:]))]
    if "image_sizes" in made and len(flat) == 1:  # what is behind it fills up a batch (Pixtral)
        height, width = torch.as_tensor(made["image_sizes"][0]).tolist()
        if height <= flat[0].size(1) and width <= flat[0].size(2):
            flat = [flat[0][:, :height, :width]]
    return [sheet.float().numpy() for sheet in flat if (sheet[2] == INSIDE).any()]


def _window(sheet: PixelSheet, part: Box, size: tuple[int, int]) -> Box:
    """The rectangle of the image, in its pixels, that a sheet shows; coordinates: as `_sheets`."""
    inside = np.abs(sheet[2] - INSIDE) < 0.5
    x0, x1 = _line(sheet[0], inside, (part[0], part[2]), size[0])
    y0, y1 = _line(sheet[1].T, inside.T, (part[1], part[3]), size[1])
    return x0, y0, x1, y1


def _line(
    coordinates: NDArray[np.float32],
    inside: NDArray[np.bool_],
    ends: tuple[float, float],
    size: int,
) -> tuple[float, float]:
    """The places of the first and the last edge of the columns, along one side of the image.

    Coordinates rise evenly between the `ends`; they are bent near them, where the kernel that
    resized the image was cut off.

    Raises:
        TooCoarse: there are too few to measure.
    """
    columns = np.flatnonzero(inside.any(axis=0))
    first, last, n = int(columns[0]), int(columns[-1]) + 1, inside.shape[1]
    sums = np.where(inside, coordinates, 0).sum(axis=0, dtype=np.float64)
    means = sums[columns] / inside[:, columns].sum(axis=0)
    if size >= FEW:
        step = max(1.0, float(means[-1] - means[0]) / max(1, len(columns) - 1))
        margin = 3 * step if len(columns) > FEW else 0.5
        margin = min(margin, (ends[1] - ends[0]) / 4)
        even = (means > ends[0] + margin) & (means < ends[1] - margin)
        if even.sum() > 2:
            slope, offset = map(float, np.polyfit(columns[even] + 0.5, means[even], 1))
            return _snapped(offset, size, slope), _snapped(slope * n + offset, size, slope)
    slope = size / (last - first)
    if max(means[0] - ends[0], ends[1] - means[-1]) > 0.75 * max(1, slope):
        raise TooCoarse  # not all of this side is there, and nothing shows how much
    return -first * slope, (n - first) * slope


def _snapped(end: float, size: int, slope: float) -> float:
    """An edge, at the image's own where it is that up to the error of the measurement."""
    nearest = min((0.0, float(size)), key=lambda edge: abs(edge - end))
    return nearest if abs(nearest - end) < max(0.25, 0.25 * slope) else float(end)


# How sheets become tokens.

Packing: TypeAlias = tuple[list[ImageView], list[Patch | None]]
"""The views, and the patch of each token, of the image 0."""


def _named(windows: Sequence[Box], size: tuple[int, int]) -> list[str]:
    """The names of sheets: of several, those that show the whole image are overviews."""
    if len(windows) == 1:
        return ["overview"]
    width, height = size
    whole = [x0 < 1 and y0 < 1 and x1 > width - 1 and y1 > height - 1 for x0, y0, x1, y1 in windows]
    first = whole.index(True) if True in whole else None
    return ["overview" if number == first else "tile" for number in range(len(windows))]


def _row_by_row(
    sheets: Sequence[PixelSheet], windows: Sequence[Box], count: int, raw: RawImage
) -> Packing:
    """Sheet after sheet, each row by row; perhaps with a class token before each."""
    for before in (0, 1):
        each, left = divmod(count, len(sheets))
        _, height, width = sheets[0].shape
        rows = round(sqrt((each - before) * height / width))
        columns = (each - before) // max(rows, 1)
        if left == 0 and rows * columns == each - before > 0 and rows * width == columns * height:
            break
    else:
        return [], []
    names = _named(windows, raw.size)
    views = [ImageView(name, at, rows, columns) for name, at in zip(names, windows, strict=True)]
    cells: list[Patch | None] = []
    for number in range(len(views)):
        cells += [None] * before
        cells += [Patch(0, number, i // columns, i % columns) for i in range(rows * columns)]
    return views, cells


def _packed(model: Any, pack: Any, windows: Sequence[Box], made: Mapping[str, Any]) -> Packing:
    """The overview row by row, and the tiles as one grid, as the model's own function packs them.

    It is given the middle of each patch, and a mark of its own in the place of a new line.
    """
    vision = model.config.vision_config
    side = vision.image_size // vision.patch_size
    middles = (torch.arange(side) + 0.5) / side

    def patches(window: Box) -> Tensor:
        x0, y0, x1, y1 = window
        x, y = x0 + middles * (x1 - x0), y0 + middles * (y1 - y0)
        return torch.stack([x.repeat(side), y.repeat_interleave(side)], dim=-1)  # (side², 2)

    features = torch.stack([patches(window) for window in windows])
    more = {"vision_feature_select_strategy": "full"} if "next" in model.config.model_type else {}
    packed = pack(
        [features], made["image_sizes"], image_newline=torch.full((2,), torch.nan), **more
    )[0][0]
    base, rest = packed[: side * side], packed[side * side :]
    views = [ImageView("overview", windows[0], side, side)]
    cells: list[Patch | None] = [Patch(0, 0, i // side, i % side) for i in range(len(base))]
    lines = rest[:, 0].isnan().nonzero()[:, 0].tolist()
    columns, rows = lines[0] if lines else 0, len(lines)
    if len(windows) == 1 or not columns:  # tiles of a narrow image may be only new lines
        return views, cells + [None] * len(rest)
    grid = rest.view(rows, columns + 1, 2)[:, :columns]
    views.append(ImageView("tiles", _around(grid), rows, columns))
    for row in range(rows):
        cells += [Patch(0, 1, row, column) for column in range(columns)] + [None]
    return views, cells


def _around(grid: Tensor) -> Box:
    """The rectangle around cells (rows, columns, 2) whose middles are given."""

    def ends(line: Tensor) -> tuple[float, float]:
        half = float(line[-1] - line[0]) / max(1, len(line) - 1) / 2
        return float(line[0]) - half, float(line[-1]) + half

    (x0, x1), (y0, y1) = ends(grid[0, :, 0]), ends(grid[:, 0, 1])
    return x0, y0, x1, y1
