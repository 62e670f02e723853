"""Sample texts by name: `sample:mystery` names a file that comes with attnviz."""

import os
from contextlib import suppress
from pathlib import Path

from attnviz.errors import InputError

SAMPLE = "sample:"
_PACKAGE = Path(__file__).parents[1]
_CHECKOUT = "sample_texts/*.txt", "sample_texts/*.jsonl", "docs/images/shapes-?.png"
"""The files that the wheel has in `attnviz/samples/` (see pyproject.toml)."""


def samples() -> dict[str, Path]:
    """The samples, each by its name without a suffix."""
    paths = list((_PACKAGE / "samples").glob("[!R]*"))  # all but its README
    for pattern in () if paths else _CHECKOUT:
        paths += _PACKAGE.parent.glob(pattern)
    return {path.stem: path for path in sorted(paths, key=os.path.basename)}


def place_of(text: str) -> str:
    """The path of the sample that a text names; any other text is unchanged."""
    with suppress(InputError):  # no sample has this name
        return str(found(Path(text))) if text.startswith(SAMPLE) else text
    return text


def found(path: Path) -> Path:
    """The file of a sample, which may be named with its suffix; any other path is unchanged.

    An existing file whose own name begins with `sample:` takes precedence.

    Raises:
        InputError: there is no such sample.
    """
    name = str(path).removeprefix(SAMPLE)
    if name == str(path) or os.path.exists(path):
        return path
    known = samples()
    sample = known.get(Path(name).stem)
    if sample is None or name not in (sample.stem, sample.name):
        wrong = f"there is no sample {name!r}"
        raise InputError(wrong, f"give {SAMPLE} and one of {', '.join(known)}")
    return sample
