"""The annotated sentences of `tests/sentences`, whose README gives their format.

They are written by hand, in two halves, by people who had seen neither the grammar of the
training's texts nor its words.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SENTENCES = Path("tests/sentences")
DEVELOPMENT, HELD_OUT = "development", "held_out"
LINKED = ("adjectives", "pronouns", "senses")
BEHAVIOURS = (*LINKED, "mystery")
EVERYDAY = "everyday"
"""Sentences in which the links of all behaviours are annotated."""
ENGLISH = (*BEHAVIOURS, "none", "plain")
STRANGE = "strange"


@dataclass(frozen=True)
class Annotated:
    """A word and its true keys, as the annotator names them: `word`, or `word/2` for its second
    occurrence. A pronoun's `tags` are "decided" or "subject", and "right" or "wrong" for the
    nearest noun or name; a mystery's are its form and its number of suspects."""

    query: str
    keys: tuple[str, ...]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sentence:
    """A text with its annotation; `answer` is the guilty name of a mystery, else empty."""

    text: str
    links: tuple[Annotated, ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class Accusation:
    """A crime that a person told, up to "the thief was": who is suspected, and who did it."""

    text: str
    suspects: tuple[str, ...]
    answer: str


def read_accusations(folder: Path) -> list[Accusation]:
    """The crimes of a folder; none where it has no such file. After "was", "a" becomes "the"."""
    path = folder / "culprits.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    told = [json.loads(line) for line in lines]
    return [
        Accusation(
            each["text"],
            tuple(re.sub("^an? ", "the ", suspect) for suspect in each["suspects"]),
            each["answer"],
        )
        for each in told
    ]


@dataclass(frozen=True)
class Marked:
    """An annotated link as tokens: the query's, and those of each key."""

    query: tuple[int, ...]
    keys: tuple[tuple[int, ...], ...]


def read_sentences(folder: Path, name: str) -> list[Sentence]:
    """The sentences of one file."""
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_sentence(json.loads(line)) for line in lines if line]


def _sentence(entry: Mapping[str, Any]) -> Sentence:
    text, answer = entry["text"], entry.get("answer", "")
    if answer:
        suspects = entry["suspects"]
        tags = (entry["form"], f"{suspects} suspect{'s' * (suspects > 1)}")
        # the last word asks, and every mention of the guilty one is a true key
        query = _numbered(text, text.split()[-1], -1)
        keys = tuple(f"{answer}/{n + 1}" for n in range(len(_found(text, answer))))
        return Sentence(text, (Annotated(query, keys, tags),), answer)
    links = (Annotated(link[0], tuple(link[1]), tuple(link[2:])) for link in entry.get("links", ()))
    return Sentence(text, tuple(links))


def marked(text: str, link: Annotated, spans: Sequence[tuple[int, int]]) -> Marked:
    """The tokens of an annotated link.

    Args:
        text: the annotated text.
        link: one of its links.
        spans: the first character of each token, and the one after its last; a blank before a
            word may be part of its token.
    """
    keys = tuple(_tokens(text, key, spans) for key in link.keys)
    return Marked(_tokens(text, link.query, spans), keys)


def _tokens(text: str, name: str, spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    word, _, number = name.partition("/")
    start, end = _found(text, word)[int(number or 1) - 1].span()
    return tuple(i for i, (a, b) in enumerate(spans) if a < end and b > start)


def _found(text: str, word: str) -> list[re.Match[str]]:
    """The occurrences of a word in a text, but for those inside of another word."""
    return list(re.finditer(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z-])", text))


def _numbered(text: str, word: str, at: int) -> str:
    count = len(_found(text, word))
    return f"{word}/{range(1, count + 1)[at]}"
