"""Files that stand for what is given: sample texts by name, images and sounds by their suffix.

`sample:mystery` stands for a file that comes with attnviz.
"""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import EllipsisType
from typing import Any

from attnviz.errors import InputError, UsageError, option
from attnviz.records.places import GivenBeside, Media
from attnviz.records.tokens import set_within

SAMPLE = "sample:"
_PACKAGE = Path(__file__).parents[1]
_CHECKOUT = "sample_texts/*.txt", "sample_texts/*.jsonl", "docs/images/shapes-?.png"
"""The samples that the wheel holds in `attnviz/samples/` (see pyproject.toml)."""


_BELOW: ContextVar[Path | EllipsisType | None] = ContextVar("below", default=...)


def within(below: Path | None) -> AbstractContextManager[None]:
    """Read only samples and files below this folder within a `with` block; None: no file at all.

    Relative paths begin at the folder. A text then names no other file, be there one or not.
    """
    return set_within(_BELOW, None if below is None else below.resolve())


def _inside(path: Path, below: Path) -> Path:
    """The path of a file below the folder, links followed; nothing outside of it is touched."""
    whole = below / path
    with suppress(OSError, ValueError, RuntimeError):  # a NUL in it, or a link to itself
        if ".." not in path.parts and whole.is_relative_to(below):
            whole = whole.resolve()
            if whole.is_relative_to(below):
                return whole
    raise InputError(f"{str(path)!r} is not in the folder whose files are read", "name one in it")


def samples() -> dict[str, Path]:
    """The samples, each by its name without a suffix."""
    paths = list((_PACKAGE / "samples").glob("[!R]*"))  # all but its README
    for pattern in () if paths else _CHECKOUT:
        paths += _PACKAGE.parent.glob(pattern)
    return {path.stem: path for path in sorted(paths, key=os.path.basename)}


def place_of(text: str) -> str:
    """The path of the sample that a text names; any other text as it is."""
    with suppress(InputError):  # no sample has this name
        return str(found(Path(text))) if text.startswith(SAMPLE) else text
    return text


def found(path: Path) -> Path:
    """The file of a sample, which may be named with its suffix; any other path as it is.

    A file whose own name begins with `sample:` comes first.

    Raises:
        InputError: there is no such sample, or `within` does not allow the file.
    """
    below, name = _BELOW.get(), str(path).removeprefix(SAMPLE)
    if below is None:
        raise InputError("no file is read here", "give its content")
    if isinstance(below, Path) and name == str(path):
        return _inside(path, below)
    if below is ... and (name == str(path) or os.path.exists(path)):
        return path
    known = samples()
    sample = known.get(Path(name).stem)
    if sample is None or name not in (sample.stem, sample.name):
        wrong = f"there is no sample {name!r}"
        raise InputError(wrong, f"give {SAMPLE} and one of {', '.join(known)}")
    return sample


@dataclass(frozen=True)
class MediumFiles:
    """Files of one kind, which some models read in the place of a text.

    `one`, `alone`: in sentences on a model that `reads one image at a time` or `images alone`;
    `other`: on one that reads others. `option`: the one that gives such a file. `reader`: the
    module and the function that read it, imported when there is one.
    """

    one: str
    alone: str
    other: str
    option: str
    suffixes: tuple[str, ...]
    reader: tuple[str, str]


MEDIA: Mapping[Media, MediumFiles] = {
    "image": MediumFiles(
        one="image",
        alone="images",
        other="image",
        option="image",
        suffixes=(".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
        reader=("attnviz.inputs.images", "picture_of"),
    ),
    "speech": MediumFiles(
        one="sound",
        alone="speech",
        other="recording",
        option="audio",
        suffixes=(".wav", ".flac", ".mp3", ".m4a", ".ogg", ".opus", ".aiff", ".aif"),
        reader=("attnviz.inputs.sounds", "sound_of"),
    ),
}


def medium_of(text: str) -> Media | None:
    """The medium of the file that a text names; None without a file, or for another kind."""
    path = place_of(text)
    suffix = os.path.splitext(path)[1].lower()
    named = (medium for medium, each in MEDIA.items() if suffix in each.suffixes)
    with suppress(InputError):  # a file that is not allowed is none
        return next((medium for medium in named if os.path.isfile(found(Path(text)))), None)
    return None


def read_given(medium: Media, value: Any, *start: float) -> GivenBeside:
    """Read a file, or a value in its place; `start`: the second to begin at."""
    module, name = MEDIA[medium].reader
    read: GivenBeside = getattr(import_module(module), name)(value, *start)
    return read


def given_of(image: Any = (), audio: Any = None, start: float = 0.0) -> tuple[GivenBeside, ...]:
    """The images of a call (files, arrays of bytes, or images of pillow), and its sound."""
    images = image if isinstance(image, list | tuple) else () if image is None else (image,)
    sounds = [] if audio is None else [read_given("speech", audio, start)]
    return (*(read_given("image", each) for each in images), *sounds)


def check_no_medium(text: str, *, beside: bool = False) -> None:
    """Check that a text that is to be read as such names no image or sound.

    `beside`: the model reads images beside a text.
    """
    medium, reads = medium_of(text), "images only with a text" if beside else "text"
    if medium == "image":
        raise UsageError(
            f"{text!r} is an image, and the model reads {reads}",
            f"give it with {option('image')} beside a text, or to a model of images alone",
        )
    if medium == "speech":
        wrong = f"{text!r} is a recording, not a text"
        raise UsageError(wrong, "use show, heads or align, with a model of speech")
