"""A prompt: its text and its segments."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.inputs.beside import IMAGES, PAIR, check_fields, json_of
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.records.places import MARK
from attnviz.records.positions import SECONDS, compiled, is_expression
from attnviz.records.rows import ABSENT
from attnviz.records.tokens import RESTS, TAKEN, TEMPLATE, Segment, Slice, partition

# A prompt cut into segments: by sentences, lines or paragraphs, or as a user names them.

By: TypeAlias = Literal["sentence", "line", "paragraph"]
Source: TypeAlias = Literal["document", "question", "system"]
# possessive, and never begun within a run: a text may be nothing but dots
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”’）]*")
_ENDS: Mapping[By, "re.Pattern[str]"] = {
    "line": re.compile(r"\n"),
    "paragraph": re.compile(r"\n[^\S\n]*\n"),
}
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No|Fig|[A-Z]))\.$")
_LONGEST = len("Prof.\n")


def cut(text: str, by: By) -> Iterator[Slice]:
    """Cut a text into slices, each without the blanks around it; empty ones are left out.

    A sentence ends after `.`, `!`, `?` or `…` before a blank (not after a common abbreviation),
    after their Chinese forms, and at the end of a line.
    """
    start = 0
    for end in [*_ends(text, by), len(text)]:
        inner = text[start:end]
        if inner.strip():
            first = start + len(inner) - len(inner.lstrip())
            yield first, start + len(inner.rstrip())
        start = end


def _ends(text: str, by: By) -> Iterator[int]:
    if by != "sentence":
        yield from (end.end() for end in _ENDS[by].finditer(text))
        return
    for end in re.finditer(rf"{_SENTENCE_END.pattern}|\n", text):
        if not _ABBREVIATION.search(text, max(0, end.end() - _LONGEST), end.end()):
            yield end.end()


def named(
    text: str, wanted: Sequence[str], within: Sequence[Slice] | None = None
) -> tuple[Segment, ...]:
    """The segments that a user names: `NAME=/regular expression/` or `NAME=START:END`.

    `within`: the slices to search, each by itself, or None for the whole text.

    Raises:
        UsageError: one cannot be read.
    """
    names = [each.partition("=")[0] for each in wanted]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two segments are named {name!r}", "give each another name")
        if name in TAKEN:
            raise UsageError(f"the name {name!r} is taken", "give the segment another one")
    return tuple(_segment(text, each, within) for each in wanted)


def _segment(text: str, wanted: str, within: Sequence[Slice] | None) -> Segment:
    name, _, where = wanted.partition("=")
    if not name or not where:
        raise UsageError(
            f"{option('segments', repr(wanted))} has no {'place' if name else 'name'}",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    slices: tuple[Slice, ...] = ()
    if is_expression(where):
        slices = tuple(
            (start + a, start + b)
            for start, end in within or ((0, len(text)),)
            for a, b in _matches(text[start:end], where)
        )
    elif within is not None:
        raise UsageError(
            f"{option('segments', repr(wanted))} counts characters, which a chat template moves",
            "give NAME=/regular expression/",
        )
    elif numbers := re.fullmatch(r"([0-9]{0,9}):([0-9]{0,9})", where):
        start, end = int(numbers[1] or 0), int(numbers[2] or len(text))
        slices = ((start, min(end, len(text))),) if start < min(end, len(text)) else ()
    else:
        raise UsageError(
            f"{option('segments', repr(wanted))} does not say where the segment is",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    if not slices:
        raise InputError(
            f"{option('segments', repr(wanted))} matches nothing in the prompt",
            f"the length of the prompt is {len(text):,}",
        )
    return Segment(name, slices)


def _matches(text: str, expression: str) -> Iterator[Slice]:
    """The slices that a regular expression between slashes matches, empty ones left out."""
    try:
        matches = list(compiled(expression, "segments").finditer(text, timeout=SECONDS))
    except TimeoutError:
        raise UsageError(
            f"{option('segments', expression)} takes too long to search for", "simplify it"
        ) from None
    yield from (match.span() for match in matches if match.end() > match.start())


BETWEEN = "\n\n"
"""The separator between documents, and between the last one and the question."""
QUESTION = "question"


@dataclass(frozen=True)
class Document:
    """A text before the question, and its name."""

    name: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """The text that a model reads before it answers; every character belongs to a segment.

    `template`: the name of the template that made a chat's prompt. `notes`: remarks on it. `id`:
    the user's own name of it; `ABSENT` for a plain text. `asking`: the names of segments that ask
    for the answer or instruct the model, so that they are not documents; `instructing`: those that
    instruct. `unread`: keys of the chat or the question that are not read. `images`: the names of
    segments that are images.
    """

    text: str
    segments: tuple[Segment, ...]
    template: str | None = None
    notes: tuple[str, ...] = ()
    id: Any = ABSENT
    asking: frozenset[str] = frozenset()
    instructing: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def source(self, name: str) -> Source | None:
        """The kind of source that a segment is, or None for text between the others."""
        if name in RESTS:
            return None
        if name in self.instructing:
            return "system"
        last = [each.name for each in self.segments if each.name not in RESTS][-1]
        return "question" if name in (self.asking or {last}) else "document"

    @property
    def question(self) -> str:
        """The text that asks for the answer, if it is known, or else the last segment."""
        named = [each for each in self.segments if self.source(each.name) == "question"]
        return " ".join(self.text[a:b].strip() for each in named for a, b in each.slices)


def with_documents(question: str, documents: Sequence[Document]) -> Prompt:
    """The documents in order, then the question, with a blank line between any two.

    Line ends at the end of a document are dropped; the blank lines between belong to none.
    Documents of the same name are numbered.
    """
    for document in documents:
        check_encodable(document.name)
        check_not_blank(document.text, f"the document {document.name!r}")
    trimmed = [Document(each.name, each.text.rstrip("\r\n")) for each in documents]
    parts = [*trimmed, Document(QUESTION, question)]
    text, segments = "", list[Segment]()
    for name, part in zip(told_apart([part.name for part in parts], TAKEN), parts, strict=True):
        text += BETWEEN if text else ""
        segments.append(Segment(name, ((len(text), len(text) + len(part.text)),)))
        text += part.text
    asking = frozenset((segments[-1].name,))
    return Prompt(text, partition(text, segments, blanks=True), asking=asking)


def told_apart(names: Sequence[str], taken: Collection[str] = ()) -> Iterator[str]:
    """The names, with a number on each that is repeated or taken."""
    for i, name in enumerate(names):
        several = name in taken or names.count(name) > 1
        yield f"{name} {names[: i + 1].count(name)}" if several else name


def cut_parts(
    text: str, parts: Sequence[Segment], by: By | None, wanted: Sequence[str]
) -> tuple[Segment, ...]:
    """The parts of a chat, cut, or without the segments that a user names, which come first.

    A piece is named by its number in its part: `user 2`, `tool 1.3`. It has the blanks after it.
    """
    _check_one_cut(by, wanted)
    if by:
        return tuple(piece for part in parts for piece in _pieces(text, part, by))
    own = named(text, wanted, [slice_ for part in parts for slice_ in part.slices])
    for segment in own:
        if segment.name in {part.name for part in parts}:
            raise UsageError(f"the name {segment.name!r} is taken", "give the segment another one")
    gone = sorted(slice_ for segment in own for slice_ in segment.slices)
    left = (Segment(each.name, tuple(_outside(each.slices, gone))) for each in parts)
    return (*own, *(segment for segment in left if segment.slices))


def _pieces(text: str, part: Segment, by: By) -> Iterator[Segment]:
    slices = list[Slice]()
    for start, end in part.slices:
        later = [start + first for first, _ in cut(text[start:end], by)][1:]
        slices += pairwise([start, *later, end])
    point = "." if part.name[-1:].isdigit() else " "
    for n, slice_ in enumerate(slices, start=1):
        yield Segment(f"{part.name}{point}{n}" if len(slices) > 1 else part.name, (slice_,))


def _outside(slices: Iterable[Slice], gone: Iterable[Slice]) -> Iterator[Slice]:
    """The rest of slices without others, which are sorted."""
    for start, end in slices:
        for first, after in gone:
            if start < after and first < end:
                if start < first:
                    yield start, first
                start = after
        if start < end:
            yield start, end


def cut_prompt(text: str, by: By | None, wanted: Sequence[str]) -> Prompt:
    """A prompt with the segments that a user names, or cut into sentences, lines or paragraphs.

    Raises:
        UsageError: both are asked for, or a segment cannot be read.
    """
    _check_one_cut(by, wanted)
    numbered = enumerate(cut(text, by or "sentence"), start=1)
    cuts = (Segment(str(n), (slice_,)) for n, slice_ in numbered)
    segments = named(text, wanted) if wanted else tuple(cuts)
    return Prompt(text, partition(text, segments))


def cut_around_images(text: str, by: By | None, wanted: Sequence[str]) -> Prompt:
    """Cut a prompt with `<image>` in it, which counts as blanks in the segments."""
    return replace(cut_prompt(text.replace(MARK, " " * len(MARK)), by, wanted), text=text)


def before_text(prompt: Prompt, images: int) -> Prompt:
    """The prompt after this number of `<image>`."""
    marks = MARK * images
    moved = tuple(
        Segment(each.name, tuple((a + len(marks), b + len(marks)) for a, b in each.slices))
        for each in prompt.segments
    )
    return replace(prompt, text=marks + prompt.text, segments=moved)


def seen_prompt(prompt: Prompt, text: str, spans: Sequence[Slice]) -> Prompt:
    """The prompt as the model reads it, with a segment for each image.

    Args:
        prompt: with `<image>` in place of each image, or the model's own mark.
        text: the same with the model's own mark.
        spans: the places of these in it.

    Raises:
        ModelError: it is another text.
    """
    marks, starts = _aligned(prompt.text, text, spans)
    begins = [0, *(end for _, end in marks)]

    def moved(at: int) -> int:
        piece = sum(at >= end for _, end in marks)
        return starts[piece] + at - begins[piece]

    names = told_apart([name_of_images(prompt.segments)] * len(spans))
    places = [(moved(start), moved(end)) for start, end in marks]
    own = [Segment(name, (place,)) for name, place in zip(names, places, strict=True)]
    left = [
        Segment(each.name, tuple(_outside(((moved(a), moved(b)) for a, b in each.slices), places)))
        for each in prompt.segments
        if each.name not in RESTS
    ]
    parts = [*own, *(each for each in left if each.slices)]
    if prompt.template is not None:
        segments = partition(text, parts, TEMPLATE, blanks=True)
    else:
        segments = partition(text, [_from(each, places, text) for each in parts])
    return replace(prompt, text=text, segments=segments, images=tuple(each.name for each in own))


def _aligned(before: str, text: str, spans: Sequence[Slice]) -> tuple[list[Slice], list[int]]:
    """The marks in a prompt, and the beginning of each piece between them in the text that is read.

    A processor may put something before a piece, such as the beginning token of PaliGemma.
    """
    own = text[slice(*spans[0])]
    found = ([m.span() for m in re.finditer(re.escape(mark), before)] for mark in (MARK, own))
    marks = next((each for each in found if len(each) == len(spans)), [])
    edges = [0, *(edge for mark in marks for edge in mark), len(before)]
    pieces = [before[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    longer = (len(text) - len(before)) // len(spans)
    starts = [a + longer * n for n, a in enumerate(edges[::2])]
    if any(text[a : a + len(p)] != p for a, p in zip(starts, pieces, strict=True)):
        within = zip([0, *(b for _, b in spans)], [*(a for a, _ in spans), len(text)], strict=True)
        starts = [text.find(p, a, b) for p, (a, b) in zip(pieces, within, strict=False)]
    if len(marks) != len(spans) or -1 in starts:
        raise ModelError("the model's image processor changes the text", "use another model")
    return marks, starts


def _from(segment: Segment, places: Sequence[Slice], text: str) -> Segment:
    """A segment with the blanks between it and an image before it, which belong to no image."""
    ends = [end for _, end in places]

    def begun(start: int) -> int:
        return next((end for end in ends if end <= start and not text[end:start].strip()), start)

    return Segment(segment.name, tuple((begun(a), b) for a, b in segment.slices))


def name_of_images(segments: Sequence[Segment]) -> str:
    """The name of image segments: one that none of the others begins with."""
    names = ("image", "picture", "image file")
    return next(n for n in names if not any(each.name.startswith(n) for each in segments))


def _check_one_cut(by: By | None, wanted: Sequence[str]) -> None:
    if by and wanted:
        raise UsageError(
            f"{option('by')} cannot cut a prompt with named segments",
            f"leave it or {option('segments')} out",
        )


# Prompts from lines of JSON: `{"text": …, "answer": …, "versus": …, "source": …}`.

PROMPT_HINT = (
    'give {"text": "…", "text_pair": "…", "answer": "…", "versus": "…", "source": "…", '
    '"query": "…", "key": "…"}, of which text is needed'
)
TOKENS = "query", "key"
"""Fields that name a token; a number is its position."""
FIELDS = "text", PAIR, "answer", "versus", "source", *TOKENS


def read_prompt(line: str) -> dict[str, str]:
    """The fields of one line: a text, the tokens to measure after it, and a source of vectors.

    Raises:
        InputError: it is not such an object.
    """
    content = json_of(line, PROMPT_HINT)
    if isinstance(content, list):
        raise InputError("it is a list", "write each of its objects on a separate line")
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError("there is no text", PROMPT_HINT)
    content |= {name: str(content[name]) for name in TOKENS if type(content.get(name)) is int}
    wrong = [name for name in FIELDS if not isinstance(content.get(name), str | None)]
    if wrong:
        raise InputError(f"{wrong[0]} is not a text", PROMPT_HINT)
    if not content.keys().isdisjoint(IMAGES):
        raise InputError(f"{option('pairs')} cannot read images", f"use {option('lines')}")
    check_fields(content, FIELDS)
    return {name: content[name] for name in FIELDS if content.get(name) is not None}
