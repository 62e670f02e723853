"""Measures on the annotated sentences of ordinary English, which no grammar made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnviz.records.heads import Figure, Head
from making import wordnet
from making.measures import BOS
from making.probe import WorldProbe
from making.sentences import Annotated, Marked, Sentence, marked, read_sentences
from making.world.senses import senses, topics

TEXTS = "ordinary English"


@dataclass(frozen=True)
class Links:
    """What every head does on annotated links.

    `mass` (links, layer, head): the row's share on the true keys. `top`: the strongest key is a
    true one. `all_top`: all true words are stronger than every other token. The last two leave
    out the query itself and BOS.
    """

    mass: NDArray[np.float64]
    top: NDArray[np.bool_]
    all_top: NDArray[np.bool_]
    links: tuple[Annotated, ...]

    def tagged(self, *tags: str) -> NDArray[np.bool_]:
        """Which links have these tags, (links)."""
        return np.array([set(tags) <= set(link.tags) for link in self.links])


def measured(probe: WorldProbe, folder: Path, behaviour: str) -> Links:
    """The measures of all heads on the links of one behaviour's sentences."""
    found: list[tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]] = []
    links: list[Annotated] = []
    for sentence in read_sentences(folder, behaviour):
        ids, spans = probe.encoder.typed(sentence.text)
        patterns, _ = probe.run(ids)
        for link in sentence.links:
            found.append(_measures(patterns, marked(sentence.text, link, spans)))
            links.append(link)
    mass, top, all_top = (np.array(each) for each in zip(*found, strict=True))
    return Links(mass, top, all_top, tuple(links))


def _measures(
    patterns: NDArray[np.float32], link: Marked
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Mass, top and all_top of one link, each (layer, head)."""
    rows = patterns[:, :, link.query[-1]].astype(np.float64)  # (layer, head, n)
    true = [token for key in link.keys for token in key]
    others = rows.copy()
    others[..., [BOS, *link.query]] = -1
    false = np.delete(others, true, axis=-1).max(-1)  # (layer, head)
    weakest = np.min([others[..., list(key)].max(-1) for key in link.keys], axis=0)
    return rows[..., true].sum(-1), np.isin(others.argmax(-1), true), weakest > false


def names_the_murderer(probe: WorldProbe, sentence: Sentence) -> bool:
    """Whether the guilty name, with all its tokens, is what the model predicts."""
    ids, spans = probe.encoder.typed(sentence.text)
    first_mention = marked(sentence.text, sentence.links[0], spans).keys[0]
    for expected in [ids[at] for at in first_mention]:
        _, predicted = probe.run(ids)
        if predicted[-1] != expected:
            return False
        ids = [*ids, expected]
    return True


def _has_new_clues(link: Annotated, database: Path) -> bool:
    """Whether training puts no clue of this ambiguous word before it to tell its sense."""
    word, *clues = (name.partition("/")[0].lower() for name in (link.query, *link.keys))
    known = {clue for topic in senses().get(word, ()) for clue in topics()[topic][1]}
    return not (known | _told_by(word, database)) & set(clues)


@cache
def _told_by(word: str, database: Path) -> frozenset[str]:
    """The words that stand before this one where the texts of a WordNet tell its sense."""
    uses = (use.before for use in wordnet.told(database) if use.word == word)
    return frozenset(clue for before in uses for clue in wordnet.WORD.findall(before.lower()))


def figures(
    probe: WorldProbe, folder: Path, heads: Mapping[str, Head], database: Path = wordnet.FOLDER
) -> Iterator[Figure]:
    """The figures of the card's heads on the sentences of a folder, each with its bar.

    `database`: the WordNet that the model was trained on.
    """
    yield from _adjectives(probe, folder, heads["adjectives"])
    yield from _pronouns(probe, folder, heads["pronouns"])
    yield from _mystery(probe, folder, heads["mystery"])
    yield from _senses(probe, folder, heads["senses"], database)


def _adjectives(probe: WorldProbe, folder: Path, head: Head) -> Iterator[Figure]:
    found = measured(probe, folder, "adjectives")
    mass, complete = found.mass[:, *head], found.all_top[:, *head]
    several = np.array([len(link.keys) > 1 for link in found.links])
    yield _figure("adjectives", "mass", mass, 0.90)
    yield _figure("adjectives", "two or three: all strongest", complete[several], 0.88)


def _pronouns(probe: WorldProbe, folder: Path, head: Head) -> Iterator[Figure]:
    found = measured(probe, folder, "pronouns")
    mass, top = found.mass[:, *head], found.top[:, *head]
    decided, wrong = found.tagged("decided"), found.tagged("decided", "wrong")
    yield _figure("pronouns", "mass", mass[decided], 0.70)
    yield _figure("pronouns", "top-1", top[decided], 0.80)
    yield _figure("pronouns", "the nearest noun is wrong: top-1", top[wrong], 0.70)
    yield _figure("pronouns", "the subject is meant: top-1", top[~decided])


def _mystery(probe: WorldProbe, folder: Path, head: Head) -> Iterator[Figure]:
    found = measured(probe, folder, "mystery")
    sentences = read_sentences(folder, "mystery")
    right = np.array([names_the_murderer(probe, sentence) for sentence in sentences])
    yield _figure("mystery", "the murderer", right, 0.95)
    for tag in sorted({tag for link in found.links for tag in link.tags}):
        yield _figure("mystery", f"the murderer, {tag}", right[found.tagged(tag)])
    yield _figure("mystery", "mass", found.mass[:, *head])


def _senses(probe: WorldProbe, folder: Path, head: Head, database: Path) -> Iterator[Figure]:
    found = measured(probe, folder, "senses")
    mass = found.mass[:, *head]
    new = np.array([_has_new_clues(link, database) for link in found.links])
    yield _figure("senses", "mass, clues not used in training", mass[new], 0.65)
    yield _figure("senses", "mass, all clues", mass)


def _figure(
    behaviour: str,
    measure: str,
    values: NDArray[np.float64] | NDArray[np.bool_],
    bar: float | None = None,
) -> Figure:
    return Figure(behaviour, measure, round(float(values.mean()), 4), bar, values.size, TEXTS)
