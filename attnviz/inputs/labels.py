"""Labelled links from a file of JSON lines: `{"text": …, "links": [[query, [keys…]], …]}`."""

import json
from collections.abc import Iterator
from pathlib import Path

from attnviz.data.labels import LabelledText
from attnviz.errors import InputError
from attnviz.inputs.text import Stdin, read_lines

HINT = 'give {"text": "…", "links": [["query", ["key", "key"]]]} on each line'


def read_labels(path: Path, stdin: Stdin) -> Iterator[LabelledText | InputError]:
    """The labelled texts of a file, one for each line; for a bad line, its error.

    Raises:
        InputError: the file cannot be read.
    """
    for number, line in read_lines(None, path, stdin):
        try:
            yield line if isinstance(line, InputError) else labelled(number, _json(number, line))
        except InputError as error:
            yield error


def _json(number: int, line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number} is not JSON ({error})", HINT) from None


def labelled(number: int, content: object) -> LabelledText:
    """The labelled text of an object with a `text` and its `links`; `number`: of its line.

    Raises:
        InputError: it is none.
    """
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError(f"line {number} has no text", HINT)
    links = content.get("links")
    if not isinstance(links, list) or not links:
        raise InputError(f"line {number} has no links", HINT)
    pairs = []
    for link in links:
        if not isinstance(link, list) or len(link) != 2:
            raise InputError(f"line {number} has a link that is not [query, [keys]]", HINT)
        pairs.append((_names(link[0], number), _names(link[1], number)))
    return LabelledText(number, content["text"], tuple(pairs))


def _names(given: object, number: int) -> tuple[str, ...]:
    """One name of tokens or several; a whole number is a position."""
    names = given if isinstance(given, list) else [given]
    kinds = {type(name) for name in names}  # a bool is a number to isinstance
    if not names or not kinds <= {str, int}:
        raise InputError(f"line {number} has a link that names no token", HINT)
    return tuple(map(str, names))
