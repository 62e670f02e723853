"""The formats of a written result, and the rule that picks one."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from attnviz.errors import UsageError, option
from attnviz.records.rows import SCHEMA, joined, made_to_dict, to_json

if TYPE_CHECKING:
    from rich.console import RenderableType


Piece: TypeAlias = "RenderableType | str | bytes"
"""A part of an output, in the order in which it is written or shown."""


ROWS: tuple[str, ...] = ("jsonl", "csv", "tsv")
PICTURES: tuple[str, ...] = ("png", "svg", "pdf")
FORMATS = ("txt", "json", *ROWS, "npz", "html", *PICTURES)


@dataclass(frozen=True)
class Format:
    """One format; its `name` is also its file suffix, without the dot."""

    name: str

    @property
    def suffix(self) -> str:
        return f".{self.name}"

    @property
    def picture(self) -> bool:
        """Whether it is drawn."""
        return self.name in PICTURES

    @property
    def binary(self) -> bool:
        """Whether a terminal cannot show it."""
        return self.name in ("npz", "png", "pdf")


VIEWS: Mapping[str, str] = MappingProxyType(
    {
        "table": "each query's strongest keys",
        "heatmap": "coloured cells",
        "grid": "every head in miniature",
        "text": "the words, shaded by the attention of one query",
        "links": "the strongest links of all heads",
    }
)
"""Each view, and what it shows."""
if TYPE_CHECKING:
    View: TypeAlias = str
else:
    View = Literal[tuple(VIEWS)]


def choose_format(output: Path | None, name: str | None, stdout_is_terminal: bool) -> Format:
    """The format that an output file and the name of a format choose together.

    With a file, its suffix decides. Without either, the format is `txt`, for people to read in
    the terminal. A file without a suffix (`/dev/stdout`, a pipe) needs the name of a format.

    Raises:
        UsageError: the format or the suffix is unknown, they disagree, or a binary format
            would go to a terminal.
    """
    if name is not None and name.lower() not in FORMATS:
        raise UsageError(f"there is no format {name!r}", f"{_nearest(name)}formats are {_known()}")
    named = None if name is None else Format(name.lower())
    if output is not None:
        return _of_file(output, named)
    chosen = named or Format("txt")
    if chosen.binary and stdout_is_terminal:
        file = f"FILE{chosen.suffix}"
        raise UsageError(
            f"{chosen.name} is not text, and a terminal cannot show it",
            f"write it to a file with {option('output', file)}, or with > {file}",
        )
    return chosen


def _of_file(output: Path, named: Format | None) -> Format:
    shown = repr(str(output))
    suffix = output.suffix.lower().removeprefix(".")
    if str(output) == "-":
        raise UsageError(
            f"{option('output', '-')} does not name a file",
            f"leave {option('output')} out to write to standard output",
        )
    if not suffix:
        if named is not None:
            return named
        raise UsageError(
            f"{shown} has no suffix that sets the format",
            f"add one or give {option('format')}: {_known()}",
        )
    if suffix not in FORMATS:
        raise UsageError(
            f"the suffix of {shown} is not a format that attnviz writes",
            f"{_nearest(suffix)}suffixes are {_known('.')}",
        )
    if named not in (None, Format(suffix)):
        raise UsageError(
            f"{shown} and {option('format', named.name)} disagree",
            f"leave {option('format')} out, or name the file with the suffix {named.suffix}",
        )
    return Format(suffix)


def _known(dot: str = "") -> str:
    return ", ".join(dot + name for name in FORMATS)


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), FORMATS, n=1, cutoff=0.6)
    return f"did you mean {close[0]}? " if close else ""


# Rows with the same fields, as JSON, JSON lines, CSV or TSV.


SEPARATORS = {"csv": ",", "tsv": "\t"}
# The start of a cell that a spreadsheet takes for a formula (OWASP, "CSV Injection").
FORMULA = re.compile(r"[=+\-@\t\r]")


def record_chunks(
    records: Sequence[Mapping[str, object]],
    form: str,
    command: str,
    *,
    header: bool = True,
    made: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """The rows (at least one, all with the same keys), one on each line.

    json is one object, with the schema, the command and how they were `made`. In csv and tsv None
    is an empty cell, and a list is joined by spaces.
    """
    if form == "json":
        yield f'{{\n"schema": {to_json(SCHEMA)},\n"command": {to_json(command)},\n'
        yield f'"made": {to_json(made or made_to_dict(()))},\n"rows": [\n'
        yield ",\n".join(map(to_json, records)) + "\n]\n}\n"
    elif form == "jsonl":
        yield from (to_json(record) + "\n" for record in records)
    else:
        separator = SEPARATORS[form]
        if header:
            yield separator.join(records[0]) + "\n"
        for record in records:
            yield separator.join(_cell(value, separator) for value in record.values()) + "\n"


def _cell(value: object, separator: str) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return printable_cell(joined(value), separator)
    if not isinstance(value, str):
        return to_json(value)
    return printable_cell(value, separator)  # so that no escape code reaches a terminal


def printable_cell(text: str, separator: str) -> str:
    """The same as `cell`, escaped as in JSON where it cannot be printed."""
    return cell(text if text.isprintable() else to_json(text)[1:-1], separator)


def cell(text: str, separator: str) -> str:
    """A text as one cell: never a formula, quoted where it holds the separator or a quote.

    A text that a spreadsheet would compute (`=1+1`) gets an apostrophe in front, which marks
    it as text there.
    """
    guarded = f"'{text}" if FORMULA.match(text) else text
    if separator in guarded or '"' in guarded or "\n" in guarded or "\r" in guarded:
        return '"' + guarded.replace('"', '""') + '"'
    return guarded
