"""Measures on annotated sentences of ordinary English, which no grammar made.

`tests/sentences/` holds them in two halves, written by hand before the model was trained, by
people who had seen neither its grammar nor its words; its README gives the format.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.data.card import Figure
from attnviz.data.head import Head
from attnviz.training.probe import WorldProbe
from attnviz.training.world.senses import senses, topics

FOLDER = Path("tests/sentences")
DEVELOPMENT, HELD_OUT = "development", "held_out"
BOS = 0


@dataclass(frozen=True)
class Marked:
    """A text's run with one annotated link, as positions of tokens.

    patterns: (layer, head, n, n); `query` and `keys` are the tokens of the words.
    """

    patterns: NDArray[np.float32]
    query: Sequence[int]
    keys: Sequence[Sequence[int]]
    tags: tuple[str, ...]
    words: tuple[str, ...]


def lines(half: str, behaviour: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The annotated texts of one half, one object each."""
    text = (folder / half / f"{behaviour}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def links(probe: WorldProbe, half: str, behaviour: str) -> Iterator[Marked]:
    """Every annotated link of one behaviour, with the patterns of its text."""
    for line in lines(half, behaviour):
        ids, spans = probe.encoder.typed(line["text"])
        patterns, _ = probe.run(ids)
        for query, keys, *tags in line["links"]:
            yield Marked(
                patterns,
                _tokens(line["text"], query, spans),
                [_tokens(line["text"], key, spans) for key in keys],
                tuple(tags),
                (query, *keys),
            )


def _tokens(text: str, word: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """The positions of a word's tokens; `word/2` is its second occurrence."""
    name, _, nth = word.partition("/")
    found = list(re.finditer(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z-])", text))
    start, end = found[int(nth or 1) - 1].span()
    return [i for i, (a, b) in enumerate(spans) if a < end and b > start]


@dataclass(frozen=True)
class Links:
    """What all heads do on annotated links; each array is (links, layer, head)."""

    mass: NDArray[np.float64]
    top: NDArray[np.bool_]
    all_top: NDArray[np.bool_]
    keys: NDArray[np.int64]
    tags: list[tuple[str, ...]]
    words: list[tuple[str, ...]]


def measured_links(probe: WorldProbe, half: str, behaviour: str) -> Links:
    """Mass on the keys, whether the strongest key is one, and whether all keys are strongest.

    The last two leave out the query itself and BOS.
    """
    mass, top, all_top, keys, tags, words = [], [], [], [], [], []
    for link in links(probe, half, behaviour):
        rows = link.patterns[:, :, link.query[-1]].astype(np.float64)  # (layer, head, n)
        true = [t for key in link.keys for t in key]
        mass.append(rows[..., true].sum(-1))
        others = rows.copy()
        others[..., [BOS, *link.query]] = -1
        top.append(np.isin(others.argmax(-1), true))
        false = np.delete(others, true, axis=-1).max(-1)  # (layer, head)
        weakest = np.min([others[..., list(key)].max(-1) for key in link.keys], axis=0)
        all_top.append(weakest > false)
        keys.append(len(link.keys))
        tags.append(link.tags)
        words.append(link.words)
    return Links(np.array(mass), np.array(top), np.array(all_top), np.array(keys), tags, words)


def new_clues(words: tuple[str, ...]) -> bool:
    """Whether no clue of an ambiguous word is one that training gives it."""
    word, *clues = (w.partition("/")[0].lower() for w in words)
    known = {clue for topic in senses().get(word, ()) for clue in topics()[topic][1]}
    return not known & set(clues)


def mystery(probe: WorldProbe, half: str) -> dict[str, list[bool]]:
    """By form and number of suspects, whether the murderer's name is predicted."""
    found: dict[str, list[bool]] = {}
    for line in lines(half, "mystery"):
        ids, spans = probe.encoder.typed(line["text"])
        name = [ids[i] for i in _tokens(line["text"], line["answer"] + "/1", spans)]
        right = True
        for expected in name:
            _, predicted = probe.run(ids)
            right = right and predicted[-1] == expected
            ids = [*ids, expected]
        for group in (line["form"], f"{line['suspects']} suspects", "all"):
            found.setdefault(group, []).append(right)
    return found


def best_head(links: Links) -> Head:
    """The head with the most mass and the most complete sets."""
    score = links.mass.mean(0) + links.all_top.mean(0)
    return Head(*(int(i) for i in np.unravel_index(score.argmax(), score.shape)))


def figures(probe: WorldProbe, half: str, heads: dict[str, Head]) -> Iterator[Figure]:
    """The bars on ordinary English, for the heads of the card."""
    found = measured_links(probe, half, "adjectives")
    at = (slice(None), *_index(heads["adjectives"]))
    several = found.keys > 1
    yield _figure("adjectives", "mass", found.mass[at], 0.90)
    yield _figure("adjectives", "two or three: all strongest", found.all_top[at][several], 0.88)
    found = measured_links(probe, half, "pronouns")
    at = (slice(None), *_index(heads["pronouns"]))
    decided = np.array([t[0] == "decided" for t in found.tags])
    wrong = decided & np.array([t[1] == "wrong" for t in found.tags])
    yield _figure("pronouns", "mass", found.mass[at][decided], 0.70)
    yield _figure("pronouns", "top-1", found.top[at][decided], 0.80)
    yield _figure("pronouns", "nearest noun is wrong: top-1", found.top[at][wrong], 0.70)
    yield _figure("pronouns", "the subject is meant: top-1", found.top[at][~decided], None)
    for group, right in mystery(probe, half).items():
        measure = "the murderer" + ("" if group == "all" else f", {group}")
        yield _figure("mystery", measure, np.array(right), 0.95 if group == "all" else None)
    found = measured_links(probe, half, "senses")
    at = (slice(None), *_index(heads["senses"]))
    new = np.array([new_clues(words) for words in found.words])
    yield _figure("senses", "mass, clues not used in training", found.mass[at][new], 0.65)
    yield _figure("senses", "mass, all clues", found.mass[at], None)


def _index(head: Head) -> tuple[int, int]:
    return head.layer, head.head


def _figure(behaviour: str, measure: str, values: Any, bar: float | None) -> Figure:
    return Figure(behaviour, measure, round(float(np.mean(values)), 4), bar, len(values))
