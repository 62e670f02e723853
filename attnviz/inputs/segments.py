"""A prompt cut into segments: by sentences, lines or paragraphs, or as a user names them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from attnviz.errors import InputError, UsageError, option
from attnviz.records.positions import SECONDS, compiled, is_expression
from attnviz.records.prompt import TAKEN, Segment, Slice

By: TypeAlias = Literal["sentence", "line", "paragraph"]
# possessive, and never begun within a run: a text may be nothing but dots
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”’）]*")
_ENDS: Mapping[By, "re.Pattern[str]"] = MappingProxyType(
    {"line": re.compile(r"\n"), "paragraph": re.compile(r"\n[^\S\n]*\n")}
)
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No|Fig|[A-Z]))\.$")
_LONGEST = len("Prof.\n")


def cut(text: str, by: By) -> Iterator[Slice]:
    """The slices of a text, each without the blanks around it; empty ones are left out.

    A sentence ends behind `.`, `!`, `?` or `…` before a blank (not behind a common abbreviation),
    behind their Chinese forms, and where a line ends.
    """
    start = 0
    for end in [*_ends(text, by), len(text)]:
        inner = text[start:end]
        if inner.strip():
            first = start + len(inner) - len(inner.lstrip())
            yield first, start + len(inner.rstrip())
        start = end


def _ends(text: str, by: By) -> Iterator[int]:
    """Where the parts end, but for the last."""
    if by != "sentence":
        yield from (found.end() for found in _ENDS[by].finditer(text))
        return
    for found in re.finditer(rf"{_SENTENCE_END.pattern}|\n", text):
        if not _ABBREVIATION.search(text, max(0, found.end() - _LONGEST), found.end()):
            yield found.end()


def numbered(text: str, by: By) -> tuple[Segment, ...]:
    """A segment for each part of a text, named by its number from 1."""
    return tuple(Segment(str(n), (slice_,)) for n, slice_ in enumerate(cut(text, by), start=1))


def named(text: str, wanted: Sequence[str]) -> tuple[Segment, ...]:
    """The segments that a user names: `NAME=/regular expression/` or `NAME=START:END`.

    Raises:
        UsageError: one cannot be read.
        InputError: one holds nothing of the text.
    """
    names = [each.partition("=")[0] for each in wanted]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two segments are named {name!r}", "give each another name")
        if name in TAKEN:
            raise UsageError(f"the name {name!r} is taken", "give the segment another one")
    return tuple(_segment(text, each) for each in wanted)


def _segment(text: str, wanted: str) -> Segment:
    name, _, where = wanted.partition("=")
    if not name or not where:
        raise UsageError(
            f"{option('segments', repr(wanted))} has no {'place' if name else 'name'}",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    slices: tuple[Slice, ...] = ()
    if is_expression(where):
        slices = tuple(_found(text, where))
    elif found := re.fullmatch(r"([0-9]{0,9}):([0-9]{0,9})", where):
        start, end = int(found[1] or 0), int(found[2] or len(text))
        slices = ((start, min(end, len(text))),) if start < min(end, len(text)) else ()
    else:
        raise UsageError(
            f"{option('segments', repr(wanted))} does not say where the segment is",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    if not slices:
        raise InputError(
            f"{option('segments', repr(wanted))} holds nothing of the prompt",
            f"the length of the prompt is {len(text):,}",
        )
    return Segment(name, slices)


def _found(text: str, expression: str) -> Iterator[Slice]:
    """Where a regular expression between slashes matches more than nothing."""
    try:
        found = list(compiled(expression, "segments").finditer(text, timeout=SECONDS))
    except TimeoutError:
        raise UsageError(
            f"{option('segments', expression)} takes too long to search for", "simplify it"
        ) from None
    yield from (each.span() for each in found if each.end() > each.start())
