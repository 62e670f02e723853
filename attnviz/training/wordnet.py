"""Natural English: the definitions and example sentences of WordNet 3.0.

They are read from the files that Debian's package `wordnet-base` installs (`data.noun` and so
on), which is needed for the training alone. Princeton University's licence stands in
`words/NOTICE`.

Some texts tell a sense: behind a noun that has several stands the class of the one that is meant,
as the lexicographers' files name it: "they pulled the canoe up on the bank (nature)".
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attnviz.errors import InputError
from attnviz.training.world.text import Answer, Text

FOLDER = Path("/usr/share/wordnet")
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
EXAMPLE = re.compile(r'"([^"]+)"')
WORD = re.compile(r"\w+|['’](?:s|t|re|ve|ll|d|m)\b|[^\w\s]")
LONGEST = 60
"""The largest number of words of an entry that is used."""
NOUNS = (
    "thing act animal object quality body thought speech event feeling food group place motive "
    "nature person effect plant property process number relation shape state stuff time"
).split()
"""The classes of nouns: those of the lexicographers' files 3 to 28, each in a common word."""
FIRST_NOUN = 3
TELLING = 0.25
"""The share of texts that tell a sense."""


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


def texts(seed: int | str, folder: Path = FOLDER) -> Iterator[Text]:
    """Texts in random order, without end; several short passages may stand in one."""
    rng = random.Random(f"wordnet {seed}")
    while True:
        if rng.random() < TELLING and told(folder):
            yield _telling(_drawn(told(folder), rng))
            continue
        count = rng.choice((1, 1, 1, 2, 3))
        drawn = [_finished(rng.choice(passages(folder)), rng) for _ in range(count)]
        words = WORD.findall(" ".join(drawn))[: LONGEST * 2]
        yield Text("wordnet", tuple(words))


def _drawn(uses: Sequence[Told], rng: random.Random) -> Told:
    """A use; a definition is drawn again some times, as there are ten for each example."""
    use = rng.choice(uses)
    for _ in range(4):
        if not use.before.endswith(":"):
            break
        use = rng.choice(uses)
    return use


def _telling(use: Told) -> Text:
    """A use of a word, with its class in brackets behind it."""
    before = WORD.findall(use.before)[-LONGEST:]
    words = (*before, use.word, "(", use.kind, ")", *WORD.findall(use.after)[:LONGEST])
    answer = Answer("the class", len(before) + 2, frozenset({use.kind}))
    return Text("wordnet", words, answers=(answer,))


def _finished(passage: str, rng: random.Random) -> str:
    """Most passages as sentences: with a capital letter and a full stop."""
    passage = passage.strip()
    if passage and rng.random() < 0.7:
        passage = passage[0].upper() + passage[1:]
        passage += "" if passage[-1] in ".?!" else "."
    return passage
