"""The formats in which a result can be written, and the rule that picks one."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from attnviz.errors import UsageError


@dataclass(frozen=True)
class Format:
    """One format: its `name` is what `--format` takes, and its file suffix without the dot.

    `binary` formats are refused on a terminal; `picture` ones are drawn, not written out.
    """

    name: str
    binary: bool = False
    picture: bool = False

    @property
    def suffix(self) -> str:
        return f".{self.name}"


TERMINAL = Format("txt")

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            TERMINAL,
            Format("json"),
            Format("jsonl"),
            Format("csv"),
            Format("tsv"),
            Format("npz", binary=True),
            Format("html"),
            Format("png", binary=True, picture=True),
            Format("svg", picture=True),
            Format("pdf", binary=True, picture=True),
        )
    }
)


def choose_format(output: Path | None, name: str | None, stdout_is_terminal: bool) -> Format:
    """The format that `-o` and `--format` ask for together.

    With `-o` the suffix decides. Without either it is `txt`, what a person reads in
    the terminal. A file without any suffix (`/dev/stdout`, a pipe) needs `--format`.

    Raises:
        UsageError: an unknown format or suffix, a suffix and a format that disagree,
            or a binary format that would go to a terminal.
    """
    named = None if name is None else _named(name)
    if output is not None:
        return _of_file(output, named)
    chosen = named or TERMINAL
    if chosen.binary and stdout_is_terminal:
        raise UsageError(
            f"{chosen.name} is not text, and a terminal cannot show it",
            f"write it to a file with -o FILE{chosen.suffix}, or with > FILE{chosen.suffix}",
        )
    return chosen


def _named(name: str) -> Format:
    found = FORMATS.get(name.lower())
    if found is None:
        raise UsageError(f"there is no format {name!r}", f"{_nearest(name)}formats are {_known()}")
    return found


def _of_file(output: Path, named: Format | None) -> Format:
    shown = repr(str(output))
    suffix = output.suffix.lower().removeprefix(".")
    if str(output) == "-":
        raise UsageError("-o - names no file", "leave -o out to write to standard output")
    if not suffix:
        if named is not None:
            return named
        raise UsageError(
            f"{shown} has no suffix that tells the format", f"add one or give --format: {_known()}"
        )
    found = FORMATS.get(suffix)
    if found is None:
        raise UsageError(
            f"the suffix of {shown} is not one that attnviz writes",
            f"{_nearest(suffix)}suffixes are {_known('.')}",
        )
    if named not in (None, found):
        raise UsageError(
            f"{shown} and --format {named.name} disagree",
            f"leave --format out, or name the file with the suffix {named.suffix}",
        )
    return found


def _known(dot: str = "") -> str:
    return ", ".join(dot + name for name in FORMATS)


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), FORMATS, n=1, cutoff=0.6)
    return f"did you mean {close[0]}? " if close else ""
