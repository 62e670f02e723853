"""Standard input as a file, which can be cut into shards and read by several processes."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from attnviz.errors import InputError, OutputError, UsageError, option
from attnviz.inputs import text as inputs_text
from attnviz.inputs.corpus.units import PART
from attnviz.inputs.text import Stdin, as_input_error


def spool(stdin: Stdin, path: Path) -> Path:
    """Write standard input into a file, complete or not at all.

    Args:
        stdin: it is read to its end.
        path: the file without a suffix; JSON lines get `.jsonl`, everything else `.txt`.

    Returns:
        the file. One that holds the same bytes already stays as it is, so that its time is kept.

    Raises:
        InputError: standard input is a terminal or closed, or cannot be read.
        UsageError: the file is there, with other bytes.
        OutputError: it cannot be written.
    """
    if stdin.stream is None or stdin.is_terminal:
        state = "closed" if stdin.stream is None else "a terminal"
        raise InputError(f"standard input is {state}", "send the corpus through a pipe")
    partial = path.with_name(f".{path.name}.partial")
    try:
        with _writing(path):
            partial.unlink(missing_ok=True)  # a pipe of this name would be waited for
            with partial.open("xb") as file:
                _copy(stdin.stream, file)
        with _writing(path):
            target = path.with_name(path.name + (".jsonl" if _is_json(partial) else ".txt"))
            for old in (path.with_name(path.name + suffix) for suffix in (".jsonl", ".txt")):
                if old.exists() and not (old == target and _same(old, partial)):
                    raise UsageError(
                        f"{str(old)!r} holds what another scan read from standard input",
                        f"give another folder with {option('output')}",
                    )
            if not target.exists():
                os.replace(partial, target)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return target


def _copy(stream: BinaryIO, file: BinaryIO) -> None:
    while True:
        with as_input_error(None):
            data = stream.read(PART)
        if not data:
            return
        file.write(data)


def _is_json(path: Path) -> bool:
    """Whether the first line that is not blank is a JSON object."""
    with path.open("rb") as file:
        while line := file.readline(inputs_text.LARGEST):
            if line.strip():
                try:
                    return isinstance(json.loads(line), dict)
                except (ValueError, RecursionError):
                    return False
    return False


def _same(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        while data := first.read(PART):
            if data != second.read(PART):
                return False
    return True


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (os.strerror(error.errno) if error.errno else str(error)).lower()
        raise OutputError(
            f"standard input cannot be kept as {str(path)!r}: {why}", "choose another place"
        ) from error
