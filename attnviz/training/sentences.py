"""The annotated sentences of `tests/sentences`, whose README gives their format."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnviz.analyses.words import Word

LINKED = ("adjectives", "pronouns", "senses")
BEHAVIOURS = (*LINKED, "mystery")
ENGLISH = (*BEHAVIOURS, "none", "plain")
STRANGE = "strange"


@dataclass(frozen=True)
class Sentence:
    """A text with its annotation; `links` are a word and its true keys, as the annotator names
    them: `word`, or `word/2` for its second occurrence."""

    text: str
    links: tuple[tuple[str, tuple[str, ...]], ...] = ()
    answer: str = ""


def read_sentences(folder: Path, name: str) -> list[Sentence]:
    """The sentences of one file."""
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_sentence(json.loads(line)) for line in lines if line]


def _sentence(entry: Mapping[str, Any]) -> Sentence:
    links = tuple((link[0], tuple(link[1])) for link in entry.get("links", ()))
    return Sentence(entry["text"], links, entry.get("answer", ""))


def true_links(sentence: Sentence, words: Sequence[Word]) -> dict[int, set[int]]:
    """The token positions of the annotated links: of each query its last, of its keys all.

    The query of a mystery is its last word, and every mention of the guilty one is a true key.
    """
    if sentence.answer:
        named = [word for word in words if word.text == sentence.answer]
        return {words[-1].tokens[-1]: {at for word in named for at in word.tokens}}
    found: dict[int, set[int]] = {}
    for query, keys in sentence.links:
        at, to = _find(words, query), [_find(words, key) for key in keys]
        if at is not None:
            found.setdefault(at.tokens[-1], set()).update(t for w in to if w for t in w.tokens)
    return found


def _find(words: Sequence[Word], name: str) -> Word | None:
    text, _, number = name.partition("/")
    same = [word for word in words if word.text == text]
    at = int(number or 1) - 1
    return same[at] if at < len(same) else None
