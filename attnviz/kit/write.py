"""Writing a result: its format, its rows, and its file, completely or not at all."""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from attnviz.errors import OutputError, UsageError, nearest, option
from attnviz.records.places import LABEL
from attnviz.records.rows import SCHEMA, joined, made_to_dict, to_json

if TYPE_CHECKING:
    from rich.console import RenderableType

Piece: TypeAlias = "RenderableType | str | bytes"
"""A part of an output, in the order in which it is written or shown."""


ROWS: tuple[str, ...] = ("jsonl", "csv", "tsv")
PICTURES: tuple[str, ...] = ("png", "svg", "pdf")
FORMATS = ("txt", "json", *ROWS, "npz", "npy", "html", *PICTURES)


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
        return self.name in ("npz", "npy", "png", "pdf")


VIEWS: Mapping[str, str] = {
    "table": "each query's strongest keys",
    "heatmap": "coloured cells",
    "grid": "every head in miniature",
    "text": "the words, shaded by the attention of one query",
    "links": "the strongest links of all heads",
    "image": "the image, under the attention to it",
}
"""Each view, and its content."""
if TYPE_CHECKING:
    View: TypeAlias = str
else:
    View = Literal[tuple(VIEWS)]


def choose_format(output: Path | None, name: str | None, stdout_is_terminal: bool) -> Format:
    """The format that an output file and the name of a format choose together.

    With a file, its suffix decides. Without either, the format is `txt`, for people to read in
    the terminal. A file without a suffix (`/dev/stdout`, a pipe) needs the name of a format.
    """
    if name is not None and name.lower() not in FORMATS:
        hint = f"{nearest(name, FORMATS)} formats are {_known()}".lstrip()
        raise UsageError(f"there is no format {name!r}", hint)
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
            f"{nearest(suffix, FORMATS)} suffixes are {_known('.')}".lstrip(),
        )
    if named not in (None, Format(suffix)):
        raise UsageError(
            f"{shown} and {option('format', named.name)} disagree",
            f"leave {option('format')} out, or name the file with the suffix {named.suffix}",
        )
    return Format(suffix)


def _known(dot: str = "") -> str:
    return ", ".join(dot + name for name in FORMATS)


# Rows with the same fields, as JSON, JSON lines, CSV or TSV.


SEPARATORS = {"csv": ",", "tsv": "\t"}
# The start of a cell that a spreadsheet reads as a formula (OWASP, "CSV Injection").
FORMULA = re.compile(r"[=+\-@\t\r]")


def record_chunks(
    records: Sequence[Mapping[str, object]],
    form: str,
    command: str,
    *,
    header: bool = True,
    made: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Write the rows (at least one, all with the same keys), one on each line.

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
    """A text as in `cell`, with unprintable characters escaped as in JSON."""
    return cell(text if text.isprintable() else to_json(text)[1:-1], separator)


def cell(text: str, separator: str) -> str:
    """A text as one cell: never a formula, quoted if it holds the separator or a quote.

    A text that a spreadsheet would compute (`=1+1`) gets an apostrophe in front, which marks
    it as text there. The name of a part of an image (`@r3c5`) is unchanged: it calls no function,
    and names at most another cell.
    """
    guarded = f"'{text}" if FORMULA.match(text) and not LABEL.fullmatch(text) else text
    if separator in guarded or '"' in guarded or "\n" in guarded or "\r" in guarded:
        return '"' + guarded.replace('"', '""') + '"'
    return guarded


# A file, written completely or not at all: a temporary file, then a rename.

ELSEWHERE = "choose another place"
ERRORS = {
    errno.ENOSPC: ("no space is left to write {}", f"make room, or {ELSEWHERE}"),
    errno.EDQUOT: ("no space is left to write {}", f"make room, or {ELSEWHERE}"),
    errno.ENAMETOOLONG: (
        "the name {} is too long",
        f"choose a shorter one with {option('output')}",
    ),
    errno.ENOTDIR: ("{} is inside something that is not a folder", ELSEWHERE),
    errno.EEXIST: ("{} is not a folder", ELSEWHERE),
    errno.EACCES: ("there is no permission to write {}", ELSEWHERE),
    errno.EPERM: ("there is no permission to write {}", ELSEWHERE),
    errno.EROFS: ("{} is on a read-only disk", ELSEWHERE),
}
"""The fault of a path and the remedy, for each error of a system."""
LINKS_AT_MOST = 40  # as the Linux kernel


def write_bytes(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write bytes, or chunks as they arrive, to a file, which is then complete or untouched.

    The bytes go to a new file in the same folder, which takes the file's name when it is complete.
    If anything happens before (an error, Ctrl-C), the new file is gone and an old one stays as it
    was; a process that is killed leaves the new one behind, hidden. A replaced file keeps its
    permissions. A symbolic link stays, and its target is written. A path that is not a regular
    file (a pipe, `/dev/stdout`) is written to directly.
    """
    chunks = (data,) if isinstance(data, bytes) else data
    old = check_target(path)
    if _is_device(path, old):
        with as_output_error(path):
            sink = path.open("ab", buffering=0)  # append: for >> in the shell
        with sink:
            fill(path, sink, chunks)
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".attnviz-{secrets.token_hex(8)}.tmp")
    try:
        with as_output_error(path):
            sink = temporary.open("xb", buffering=0)  # less the umask, as tempfile is not
        with sink:
            if old is not None:
                with contextlib.suppress(OSError):  # a file system without permissions
                    temporary.chmod(stat.S_IMODE(old.st_mode))
            fill(path, sink, chunks)
            with as_output_error(path):
                os.fsync(sink.fileno())
        with as_output_error(path):
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def encoded(pieces: Iterable[object]) -> Iterator[bytes]:
    """Chunks of text as UTF-8, and bytes as they are."""
    for piece in pieces:
        assert isinstance(piece, str | bytes)
        yield piece.encode() if isinstance(piece, str) else piece


def check_target(path: Path) -> os.stat_result | None:
    """Check early, before anything slow, that a file can be written; touches nothing.

    Returns:
        the status of the file that is there now, if any.
    """
    shown = repr(str(path))
    with as_output_error(path):
        try:
            old = os.stat(path)
        except FileNotFoundError:
            old = None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise OutputError(f"{shown} is a folder", "give the name of a file in it")
    if old is not None and not os.access(path, os.W_OK):
        raise OutputError(f"there is no permission to write {shown}", ELSEWHERE)
    if _is_device(path, old):
        return old
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OutputError(
            f"the folder {str(folder)!r} does not exist", "make it first, or " + ELSEWHERE
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"there is no permission to write in the folder {str(folder)!r}", ELSEWHERE
        )
    return old


def check_folder(path: Path) -> None:
    """Check early that a folder exists, or can be made; touches nothing."""
    with as_output_error(path):
        nearest = path
        while not nearest.exists():
            nearest = nearest.parent
        if not nearest.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "")


def make_folder(path: Path) -> None:
    """Make a folder, and its parents, if they do not exist."""
    with as_output_error(path):
        path.mkdir(parents=True, exist_ok=True)


def is_terminal(path: Path) -> bool:
    """Whether writing to the path would show on a terminal (`/dev/tty`)."""
    try:
        if not stat.S_ISCHR(os.stat(path).st_mode):
            return False
        with open(os.open(path, os.O_WRONLY | os.O_NOCTTY), "wb", buffering=0) as device:
            return device.isatty()
    except OSError:
        return False


def _is_device(path: Path, old: os.stat_result | None) -> bool:
    """Whether a path must be written to directly, and never replaced.

    `/dev/stdout` leads to standard output, which may be a regular file that the shell has
    open; that file must not be replaced either.
    """
    if old is None:
        return False
    if not stat.S_ISREG(old.st_mode):
        return True
    step = os.path.abspath(path)
    for _ in range(LINKS_AT_MOST):
        if step.startswith(("/dev/fd/", "/dev/std", "/proc/")):
            return True
        if not os.path.islink(step):
            return False
        step = os.path.normpath(os.path.join(os.path.dirname(step), os.readlink(step)))
    return False


def fill(path: Path, sink: BinaryIO, chunks: Iterable[bytes]) -> None:
    """Write the chunks; errors of the code that makes them pass unchanged."""
    for chunk in chunks:
        rest = memoryview(chunk)
        with as_output_error(path):
            while rest:
                rest = rest[sink.write(rest) :]


@contextlib.contextmanager
def as_output_error(path: Path) -> Iterator[None]:
    """Raise an OutputError in place of a system's error; a BrokenPipeError passes unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        code = error.errno if isinstance(error, OSError) else errno.EINVAL
        why = os.strerror(code).lower() if code else str(error)
        wrong, hint = ERRORS.get(code or 0, (f"{{}} cannot be written: {why}", ELSEWHERE))
        raise OutputError(wrong.replace("{}", repr(str(path))), hint) from error


# Writing chunks to an open stream, such as standard output.


def write_stream(stream: BinaryIO, chunks: Iterable[str | bytes]) -> None:
    """Write chunks to a stream as they arrive, text as UTF-8, and flush at the end.

    A stream of lines calls this once for each line, so that every answer leaves at once.
    """
    with as_stdout_error():
        for chunk in chunks:
            stream.write(chunk.encode("utf-8") if isinstance(chunk, str) else chunk)
        stream.flush()


@contextlib.contextmanager
def as_stdout_error() -> Iterator[None]:
    """Raise an OutputError for an error of standard output; a BrokenPipeError passes unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # the error of a file, not of standard output
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "no space is left there" if full else os.strerror(error.errno or errno.EIO).lower()
        raise OutputError(
            f"standard output cannot be written: {why}",
            "make room, or send the output elsewhere" if full else "send the output elsewhere",
        ) from error
