"""WordNet 3.0: senses with their words, definitions and example sentences.

They are read from the files that Debian's package `wordnet-base` installs (`data.noun` and so
on), which is needed for the training alone. Princeton University's licence stands in
`words/NOTICE`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attnviz.errors import InputError
from making.world.text import VERB

FOLDER = Path("/usr/share/wordnet")
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
EXAMPLE = re.compile(r'"([^"]+)"')
WORD = re.compile(rf"{VERB}|\w+|['’](?:s|t|re|ve|ll|d|m)\b|[^\w\s]")
NOUNS = (
    "thing act animal object quality body thought speech event feeling food group place motive "
    "nature person effect plant property process number relation shape state stuff time"
).split()
"""The classes of nouns: those of the lexicographers' files 3 to 28, each in a common word."""
FIRST_NOUN = 3


@dataclass(frozen=True)
class Entry:
    """A sense: the words that have it, its class if they are nouns, its definition, examples."""

    words: tuple[str, ...]
    kind: str
    definition: str
    examples: tuple[str, ...]


@cache
def entries(folder: Path = FOLDER) -> tuple[Entry, ...]:
    """Every sense.

    Raises:
        InputError: the folder holds no WordNet.
    """
    return tuple(entry for name in FILES for entry in _read(folder / name))


def _read(path: Path) -> Iterator[Entry]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise InputError(f"no WordNet in {path.parent}", "install Debian's wordnet-base") from None
    for line in lines:
        if line.startswith("  "):  # the licence
            continue
        fields, _, gloss = line.partition(" | ")
        _, file, part, count, *rest = fields.split(" ")
        words = [word.partition("(")[0].replace("_", " ") for word in rest[::2][: int(count, 16)]]
        kind = NOUNS[int(file) - FIRST_NOUN] if part == "n" else ""
        definition = EXAMPLE.sub("", gloss).strip(" ;")
        yield Entry(tuple(words), kind, definition, tuple(EXAMPLE.findall(gloss)))


@cache
def examples(folder: Path = FOLDER) -> tuple[str, ...]:
    """Every example."""
    return tuple(example for entry in entries(folder) for example in entry.examples)


@cache
def passages(folder: Path = FOLDER) -> tuple[str, ...]:
    """A definition with its word, and each example, as short texts."""
    found: list[str] = []
    for entry in entries(folder):
        found.append(f"{entry.words[0]}: {entry.definition}")
        found += entry.examples
    return tuple(found)


@dataclass(frozen=True)
class Told:
    """A noun with several senses: what stands before it, its class there, what stands behind it."""

    before: str
    word: str
    kind: str
    after: str = ""


@cache
def told(folder: Path = FOLDER) -> tuple[Told, ...]:
    """Every definition and example of a noun that has senses of several classes."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for entry in entries(folder):
        for word in entry.words:
            kinds[word].add(entry.kind)
    found: list[Told] = []
    for entry in entries(folder):
        ambiguous = [w for w in entry.words if entry.kind and len(kinds[w] - {""}) > 1]
        for word in (w for w in ambiguous if w.isalpha() and w.islower()):
            found.append(Told(f"{entry.definition} :", word, entry.kind))
            for example in entry.examples:
                before, here, after = example.partition(f" {word} ")
                if here and " " in before:
                    found.append(Told(before, word, entry.kind, after))
    return tuple(found)
