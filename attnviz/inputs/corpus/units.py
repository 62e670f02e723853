"""The lines and paragraphs that begin in a part of a stream, in memory that has a bound."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from attnviz.inputs.places import reading

LONGEST = 1 << 24
"""The most bytes of a text; a tokenizer takes a hundred times as much memory."""
PART = 1 << 20
"""The most bytes of a line that are read at a time."""
BLANK = (b"\n", b"\r\n")
BEFORE = 3
"""Bytes before a part that say whether a paragraph begins with it: the longest `\\n\\r\\n`."""


@dataclass
class Unit:
    """A line or a paragraph, and the byte at which it begins; too long, it has no parts.

    `most`: the bytes that are read of it.
    """

    at: int
    most: int
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def too_long(self) -> bool:
        """Whether it has more bytes than are read of it."""
        return self.size > self.most

    def add(self, data: bytes) -> None:
        """Its next bytes; they are not kept where it is too long."""
        self.size += len(data)
        if self.too_long:
            self.parts.clear()
        else:
            self.parts.append(data)


class Units:
    """Iterates over the units that begin from the byte `start` up to, and without, `end`.

    Empty lines separate paragraphs. `most`: the bytes of the longest unit that is read. `at`: the
    byte up to which all units were given, which is told where reading fails.

    Raises:
        InputError: during iteration, the stream cannot be read.
    """

    def __init__(
        self,
        stream: BinaryIO,
        path: str,
        start: int,
        end: float,
        *,
        paragraphs: bool,
        most: int,
    ) -> None:
        self._stream, self._path, self._paragraphs = stream, path, paragraphs
        self._start, self._end, self._most = start, end, most
        self.at = start

    def __iter__(self) -> Iterator[Unit]:
        unit: Unit | None = None
        within = self._start > 0  # a unit that began before
        for at, data, first in self._parts():
            blank = self._paragraphs and first and data in BLANK
            if first and (blank or not self._paragraphs):
                if unit is not None:
                    self.at = at
                    yield unit
                unit, within = None, False
            if unit is None:
                if at >= self._end:
                    return
                within = within or (not blank and at < self._start)
                if within or blank:
                    continue
                unit = Unit(at, self._most)
                self.at = at
            elif unit.too_long and at >= self._end:
                break  # the rest of it is of no use
            unit.add(data)
        if unit is not None:
            yield unit

    def _parts(self) -> Iterator[tuple[int, bytes, bool]]:
        """Lines, in parts where they are long: the byte, the bytes, whether a line begins."""
        at = max(0, self._start - BEFORE)
        first = at == 0
        with reading(self._path):
            if at:
                self._stream.seek(at, os.SEEK_SET)
            while data := self._stream.readline(PART):
                yield at, data, first
                at, first = at + len(data), data.endswith(b"\n")
