"""Image files, read and checked: the result is red, green and blue in eight bits each."""

import warnings
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from attnviz.errors import InputError, UsageError
from attnviz.inputs.given import found
from attnviz.records.places import RawImage

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
LARGEST_FILE = 1 << 28
"""The most bytes of an image file."""
MOST_PIXELS = 1 << 26
"""The most pixels of an image: those of 8,192 × 8,192."""
DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")
"""Modes whose numbers go up to 65,535."""
MOST_DEEP = 65_535
BLACK_AND_WHITE = 257
"""The divisor that turns 65,535 into 255."""


def picture_of(image: Any) -> RawImage:
    """Read an image that is given as a file, as an array (height, width, 3), or as one of pillow.

    Bytes are the content of a file. An image that was already read is unchanged.
    """
    if isinstance(image, RawImage):
        return image
    if isinstance(image, str | PathLike):
        return read_picture(Path(image))
    if isinstance(image, bytes):
        return _read(BytesIO(image), Path("image"))
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise UsageError(
                f"an array of shape {image.shape} and type {image.dtype} is not an image",
                "give one of shape (height, width, 3) and type uint8",
            )
        return RawImage("image", np.ascontiguousarray(image))
    from PIL import Image

    if isinstance(image, Image.Image):
        return _picture(Path(getattr(image, "filename", "") or "image"), image)
    raise UsageError(
        f"a value of type {type(image).__name__} is not an image",
        "give a file, an array or an image of pillow",
    )


def read_picture(path: Path) -> RawImage:
    """Read the first frame of an image file, turned by its EXIF data, on white if transparent.

    Raises:
        InputError: there is no such file, or it is not an image that can be read in full.
    """
    origin = repr(str(path))
    file = found(path)
    try:
        if not file.is_file():
            why = "is a folder" if file.is_dir() else "does not exist"
            raise InputError(f"the image {origin} {why}", "give the path of an image file")
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(f"the image {origin} is larger than 256 MiB", "save it smaller")
        with file.open("rb") as stream:
            return replace(_read(stream, path), name=file.name)
    except OSError as error:
        raise _unreadable(path, error) from None


def _read(stream: BinaryIO, path: Path) -> RawImage:
    """Read the content of an image file."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():  # its size is checked here
            warnings.simplefilter("ignore")
            with Image.open(stream, formats=FORMATS) as image:
                return _picture(path, image)
    except UnidentifiedImageError:
        raise _no_image(path, stream) from None
    except Image.DecompressionBombError:  # pillow's own limit is above this one
        raise _too_large(path) from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"the image {str(path)!r} cannot be read ({str(error)[:120] or type(error).__name__})",
        "save it again as PNG or JPEG",
    )


def _too_large(path: Path) -> InputError:
    return InputError(
        f"the image {str(path)!r} has more than {MOST_PIXELS:,} pixels, the most that are read",
        "save it smaller",
    )


def _no_image(path: Path, stream: BinaryIO) -> InputError:
    origin = repr(str(path))
    stream.seek(0)
    if b"<svg" in stream.read(1024).lower():
        return InputError(f"{origin} is an SVG drawing, which has no pixels", "save it as PNG")
    return InputError(
        f"{origin} is not an image that attnviz reads", f"give one of {', '.join(FORMATS)}"
    )


def _picture(path: Path, image: Any) -> RawImage:
    """Read the picture in an open image."""
    from PIL import ImageOps

    width, height = image.size
    if width * height > MOST_PIXELS:
        raise _too_large(path)
    changes = list[str]()
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        changes.append(f"the first of {frames} frames")
    image.load()
    if image.getexif().get(ORIENTATION, 1) in range(2, 9):
        image = ImageOps.exif_transpose(image)
        changes.append("turned as its EXIF data say")
    pixels = _eight_bits(path, image, changes)
    return RawImage(path.name, np.ascontiguousarray(pixels), tuple(changes))


ORIENTATION = 0x0112
"""The EXIF tag of a camera's orientation."""


def _eight_bits(path: Path, image: Any, changes: list[str]) -> Any:
    """Convert an image to (height, width, 3) in eight bits, and add each step to `changes`."""
    from PIL import Image

    if image.mode in ("F", "I") and (image.mode == "F" or image.getextrema()[1] > MOST_DEEP):
        raise InputError(
            f"the numbers in the image {str(path)!r} are not colours of 8 or 16 bits",
            "save it as PNG",
        )
    if image.mode in DEEP:
        changes.append("16 bits made 8")
        grey = np.asarray(image).astype(np.float64) / BLACK_AND_WHITE
        return np.repeat(np.clip(grey.round(), 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        clear = image.convert("RGBA")
        if clear.getchannel("A").getextrema()[0] < 255:
            changes.append("its clear parts made white")
        image = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
