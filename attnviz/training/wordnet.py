"""Natural English: the definitions and example sentences of WordNet 3.0.

They are read from the files that Debian's package `wordnet-base` installs (`data.noun` and so
on), which is needed for the training alone. Princeton University's licence stands in
`words/NOTICE`.
"""

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attnviz.errors import InputError
from attnviz.training.world.text import Text

FOLDER = Path("/usr/share/wordnet")
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
EXAMPLE = re.compile(r'"([^"]+)"')
WORD = re.compile(r"\w+|['’](?:s|t|re|ve|ll|d|m)\b|[^\w\s]")
LONGEST = 60
"""The largest number of words of an entry that is used."""


@cache
def entries(folder: Path = FOLDER) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Every sense: a word, its definition and its examples.

    Raises:
        InputError: the folder holds no WordNet.
    """
    return tuple(entry for name in FILES for entry in _read(folder / name))


def _read(path: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise InputError(f"no WordNet in {path.parent}", "install Debian's wordnet-base") from None
    for line in lines:
        if line.startswith("  "):  # the licence
            continue
        fields, _, gloss = line.partition(" | ")
        word = fields.split(" ")[4].replace("_", " ").partition("(")[0]
        definition = EXAMPLE.sub("", gloss).strip(" ;")
        yield word, definition, tuple(EXAMPLE.findall(gloss))


@cache
def passages(folder: Path = FOLDER) -> tuple[str, ...]:
    """A definition with its word, and each example, as short texts."""
    found: list[str] = []
    for word, definition, examples in entries(folder):
        found.append(f"{word}: {definition}")
        found += examples
    return tuple(found)


def texts(seed: int | str, folder: Path = FOLDER) -> Iterator[Text]:
    """Passages in random order, without end; several short ones may stand in one text."""
    rng = random.Random(f"wordnet {seed}")
    known = passages(folder)
    while True:
        count = rng.choice((1, 1, 1, 2, 3))
        drawn = [_finished(rng.choice(known), rng) for _ in range(count)]
        words = WORD.findall(" ".join(drawn))[: LONGEST * 2]
        yield Text("wordnet", tuple(words))


def _finished(passage: str, rng: random.Random) -> str:
    """Most passages as sentences: with a capital letter and a full stop."""
    passage = passage.strip()
    if passage and rng.random() < 0.7:
        passage = passage[0].upper() + passage[1:]
        passage += "" if passage[-1] in ".?!" else "."
    return passage
