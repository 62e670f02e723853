"""A prompt: its text, and the segments that it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import UsageError, option
from attnviz.inputs.decoding import check_not_blank
from attnviz.inputs.segments import By, named, numbered
from attnviz.records.prompt import TAKEN, Segment, partition

BETWEEN = "\n\n"
"""Stands between documents, and between the last one and the question."""
QUESTION = "question"


@dataclass(frozen=True)
class Document:
    """A text that stands before the question, and its name."""

    name: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """What a model reads before it answers; every character of it belongs to a segment.

    `template`: of a chat, the name of the template that made it. `notes`: what is to be said of it.
    """

    text: str
    segments: tuple[Segment, ...]
    template: str | None = None
    notes: tuple[str, ...] = ()


def with_documents(question: str, documents: Sequence[Document]) -> Prompt:
    """The documents in order, then the question, with a blank line between any two.

    Line ends at the end of a document are dropped; the blank lines between count for none.
    Documents of the same name are numbered.

    Raises:
        InputError: a document is empty.
    """
    for document in documents:
        check_not_blank(document.text, f"the document {document.name!r}")
    trimmed = [Document(each.name, each.text.rstrip("\r\n")) for each in documents]
    parts = [*trimmed, Document(QUESTION, question)]
    names = [part.name for part in parts]
    text, segments = "", list[Segment]()
    for i, part in enumerate(parts):
        text += BETWEEN if text else ""
        several = part.name in TAKEN or names.count(part.name) > 1
        number = f" {names[: i + 1].count(part.name)}" if several else ""
        segments.append(Segment(part.name + number, ((len(text), len(text) + len(part.text)),)))
        text += part.text
    return Prompt(text, partition(text, segments, blanks=True))


def cut_prompt(text: str, by: By | None, wanted: Sequence[str]) -> Prompt:
    """A prompt with the segments that a user names, or cut into sentences, lines or paragraphs.

    Raises:
        UsageError: both are asked for, or a segment cannot be read.
        InputError: a segment holds nothing of the prompt, or two overlap.
    """
    if by and wanted:
        raise UsageError(
            f"{option('by')} cuts a prompt that has no other segments",
            f"leave it or {option('segments')} out",
        )
    segments = named(text, wanted) if wanted else numbered(text, by or "sentence")
    return Prompt(text, partition(text, segments))
