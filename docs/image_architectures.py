"""Measure tiny vision-language models for docs/models.md: their rows, and what places hold.

The measurements are those of tests/vision.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from attnviz.records.capture import Kind
from attnviz.records.places import ImageView
from tests.vision import test_encoders
from tests.vision.beside import MODELS, Beside
from tests.vision.encoders import ENCODERS, Encoder
from tests.vision.test_beside import difference, local_of, prepared
from tests.vision.test_image_patches import SHAPES, check, made_local
from tests.vision.test_image_patches import noise as image_of
from tests.vision.test_rows import loaded
from tests.vision.zoo import ZOO, Sighted

HEAD = """| architecture | image tokens of 260 × 90 pixels | weights | pixels |
| --- | --- | --- | --- |
"""
SIZES = ((150, 70), (40, 90), (260, 90))


def image_table() -> str:
    """A row for each architecture; of those with cross-attention to an image also for that."""
    rows = [row(sighted) for sighted in ZOO]
    cross = next(sighted for sighted in ZOO if sighted.name == "mllama")
    return HEAD + "".join([*rows, row(cross, kind="cross"), *map(beside_row, BESIDE)])


def beside_row(made: Beside) -> str:
    """One that reads an image beside a text, measured."""
    kind: Kind | None = "cross" if made.name == "blip" else None
    largest = max(difference(made, image_of(*size), kind) for size in SIZES)
    (image,), right = prepared(made, image_of(260, 90)).empty.images, 0
    for shape in SHAPES.values():
        with suppress(AssertionError):
            local, places = local_of(made, image_of(*shape))
            check(local, image_of(*shape), places)
            right += 1
    name = f"{made.name} (cross-attention)" if kind else made.name
    return f"| {name} | {grids(image.views)} | {largest:.1e} | {right} of {len(SHAPES)} |\n"


BESIDE = (MODELS[0], MODELS[3])
"""Of several models of one architecture the first."""


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


ENCODER_HEAD = """| architecture | tokens of 260 × 90 pixels | weights | pixels |
| --- | --- | --- | --- |
"""


def encoder_table() -> str:
    """A row for each architecture that reads an image alone."""
    return ENCODER_HEAD + "".join(map(encoder_row, ENCODERS))


def encoder_row(encoder: Encoder) -> str:
    """One of them, measured."""
    with TemporaryDirectory() as folder:
        made, right = test_encoders.loaded(encoder, Path(folder) / "model"), 0
        largest = max(made.difference(image_of(*size)) for size in SIZES)
        for shape in SHAPES.values():
            with suppress(AssertionError):
                check(made, image_of(*shape), made.places(image_of(*shape)))
                right += 1
        empty = made.prepared(image_of(260, 90)).empty
        (view,), own = empty.images[0].views, [t.label for t in empty.key_tokens if not t.patch]
    kinds = Counter(label.rstrip("0123456789 ]").removeprefix("[") for label in own)
    beside = [f"{n} {kind}" if n > 1 else kind for kind, n in kinds.items()]
    tokens = ", ".join([*beside, f"{view.rows} × {view.columns} patches"])
    return f"| {encoder.name} | {tokens} | {largest:.1e} | {right} of {len(SHAPES)} |\n"
