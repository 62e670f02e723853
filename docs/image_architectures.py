"""Measure tiny vision-language models for docs/models.md: their rows, and what places hold.

The measurements are those of tests/vision.
"""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from attnviz.records.capture import Kind
from attnviz.records.images import ImageView
from tests.vision.test_places import SHAPES, check, made_local
from tests.vision.test_places import noise as image_of
from tests.vision.test_rows import loaded
from tests.vision.zoo import ZOO, Sighted

HEAD = """| architecture | image tokens of 260 × 90 pixels | weights | pixels |
| --- | --- | --- | --- |
"""
SIZES = ((150, 70), (40, 90), (260, 90))


def image_table() -> str:
    """A row for each architecture; of Llama 3.2 Vision also for its cross-attention."""
    rows = [row(sighted) for sighted in ZOO]
    cross = next(sighted for sighted in ZOO if sighted.name == "mllama")
    return HEAD + "".join([*rows, row(cross, kind="cross")])


def row(sighted: Sighted, kind: Kind | None = None) -> str:
    """One architecture, measured."""
    text = f"Look: {sighted.place} What?"
    with TemporaryDirectory() as folder:
        both = loaded(sighted, Path(folder) / "rows", kind)
        largest = max(both.difference(text, image_of(*size)) for size in SIZES)
        views = both.prepared(text, image_of(260, 90)).empty.images[0].views
        right = pixels(sighted, Path(folder) / "places")
    name = sighted.name if kind is None else f"{sighted.name} (cross-attention)"
    return f"| {name} | {grids(views)} | {largest:.1e} | {right} of {len(SHAPES)} |\n"


def grids(views: tuple[ImageView, ...]) -> str:
    """Views in words: `overview of 4 × 4, 3 tiles of 4 × 4`."""
    counted = Counter((view.name, view.rows, view.columns) for view in views)
    return ", ".join(
        f"{n} {name}s of {rows} × {columns}" if n > 1 else f"{name} of {rows} × {columns}"
        for (name, rows, columns), n in counted.items()
    )


def pixels(sighted: Sighted, folder: Path) -> int:
    """In how many shapes of an image the tokens react to their pixels and to no others."""
    local, right = made_local(sighted, folder), 0
    for shape in SHAPES.values():
        image = image_of(*shape)
        try:
            check(local, image, local.places(image))
        except AssertionError:
            continue
        right += 1
    return right
