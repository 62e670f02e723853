"""Texts of natural English, from WordNet, with the links that word lists tell.

The lists of `analyses/english` tell which adjectives stand before their noun and which pronouns
can stand for one word only; the topics of the little world tell which words before an ambiguous
one tell its sense. Two examples may stand in one text, the second about somebody or something in
the first: "The nurse was late. She apologised."

Some texts tell a sense: behind a noun that has several stands the class of the one that is meant,
as the lexicographers' files name it: "they pulled the canoe up on the bank (nature)".
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from attnviz.builtin import evidence
from attnviz.builtin.evidence import AGREES, FEMALE, MALE
from attnviz.builtin.words import Word, beginnings, is_among, is_first_name
from attnviz.records.heads import Occasion
from making.wordnet import FOLDER, WORD, Told, examples, passages, told
from making.world.senses import FRAMES, senses, topics
from making.world.text import Answer, Text, TrueLink

LONGEST = 60
"""The largest number of words of an entry that is used."""
TELLING, REFERRING, CONTINUED = 0.3, 0.15, 0.2
"""The shares of texts that tell a sense, that are chosen for a pronoun, and of two examples."""
FRAMED = 0.5
"""The share of the first in which words of the definition stand in a frame of `world.senses`."""
BEFORE = 12
"""How many words before an ambiguous one may tell its sense."""
EMPTY = frozenset(
    """that with from which used some other than into your their have been such when where what
    being having about something someone especially usually make made very more most this they
    these those over between through under after before each both only like also upon
    """.split()
)
"""Longer words that tell nothing of a sense."""
SUBJECTS = "he", "she", "they"
"""With which a second example may begin; "it" would too often stand for nothing."""
SKEWED = 2.0
"""So many times as often as other words stand those that tell a class before words of it."""


def texts(seed: int | str, folder: Path = FOLDER) -> Iterator[Text]:
    """Texts in random order, without end; several short passages may stand in one."""
    rng = random.Random(f"wordnet {seed}")
    while True:
        draw = rng.random()
        if draw < TELLING and told(folder):
            yield _telling(_drawn(told(folder), rng), rng, folder)
        elif draw < TELLING + REFERRING and referring(folder):
            yield _linked([_finished(rng.choice(referring(folder)), rng)])
        elif draw < TELLING + REFERRING + CONTINUED and continued(folder):
            yield _continued(folder, rng)
        else:
            count = rng.choice((1, 1, 1, 2, 3))
            yield _linked([_finished(rng.choice(passages(folder)), rng) for _ in range(count)])


@cache
def referring(folder: Path) -> tuple[str, ...]:
    """The passages with a pronoun that can stand for one thing only, as the word lists tell."""
    hints = re.compile(rf"\b(?:{'|'.join(AGREES)})\b", re.IGNORECASE)
    hinted = (passage for passage in passages(folder) if hints.search(passage))
    return tuple(p for p in hinted if next(_pronouns(_parsed(WORD.findall(p))), None))


@cache
def continued(folder: Path) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By pronoun: examples in which it can stand for one word, and those that begin with it."""
    first: dict[str, list[str]] = defaultdict(list)
    second: dict[str, list[str]] = defaultdict(list)
    for example in examples(folder):
        words = WORD.findall(example)
        begins = words[0].lower() if words else ""
        families = {AGREES[word.lower()] for word in words if word.lower() in AGREES}
        if begins in SUBJECTS and families == {AGREES[begins]}:
            second[begins].append(example)
        elif not families:
            for pronoun in SUBJECTS:
                if next(_pronouns(_parsed([*words, ".", pronoun, "went"])), None):
                    first[pronoun].append(example)
    return {p: (tuple(first[p]), tuple(second[p])) for p in SUBJECTS if first[p] and second[p]}


def _continued(folder: Path, rng: random.Random) -> Text:
    """Two examples, the second of which begins with a pronoun for a word of the first."""
    first, second = continued(folder)[rng.choice(sorted(continued(folder)))]
    mark = rng.choice((". ", ". ", ". ", ", and ", " because ", ", but ", "; "))
    behind = rng.choice(second)
    behind = behind[0].upper() + behind[1:] if mark == ". " else behind[0].lower() + behind[1:]
    before = rng.choice(first).rstrip(".?! ")
    return _linked([before[0].upper() + before[1:] + mark + behind])


def _linked(drawn: Sequence[str]) -> Text:
    """Passages with the links of their nouns, pronouns and ambiguous words."""
    words = WORD.findall(" ".join(drawn))[: LONGEST * 2]
    parsed = _parsed(words)
    found = (
        *(("adjectives", each) for each in evidence.adjective_occasions(parsed)),
        *(("pronouns", each) for each in _pronouns(parsed)),
        *(("senses", each) for each in _ambiguous(words)),
    )
    links = (
        TrueLink(kind, each.query, frozenset(i for key in each.keys for i in key))
        for kind, each in found
    )
    return Text("wordnet", tuple(words), tuple(links))


def _parsed(words: Sequence[str]) -> list[Word]:
    """The words as the analyses take them, each with its index as its only token."""
    begun = zip(words, beginnings(words), strict=True)
    return [Word(word, (i,), begins) for i, (word, begins) in enumerate(begun)]


def _pronouns(words: Sequence[Word]) -> Iterator[Occasion]:
    """The pronouns for which one noun or name alone can stand; none of a definition's."""
    if any(word.text == ":" for word in words):
        return
    for each in evidence.pronoun_occasions(words):
        same = AGREES[words[each.query].lower]
        first = min(each.positions)
        earlier = any(AGREES.get(word.lower) is same for word in words[:first])
        if len(each.keys) == 1 and not earlier and _is_likely(words[first], same):
            yield each


def _is_likely(word: Word, agrees: Callable[[Word], bool]) -> bool:
    """Whether a word is known to be a person or an animal, where a pronoun needs one."""
    if agrees not in (AGREES["he"], AGREES["she"], AGREES["who"]):
        return True
    lower = word.lower
    known = is_among(lower, "people") or is_among(lower, "animals") or lower in MALE | FEMALE
    return known or is_first_name(lower)


def _ambiguous(words: Sequence[str]) -> Iterator[Occasion]:
    """The ambiguous words before which stand words of one of their topics, and of no other."""
    for i, word in enumerate(words):
        before = range(max(0, i - BEFORE), i)
        keys = {
            topic: [k for k in before if words[k].lower() in _clues(topic) and words[k] != word]
            for topic in senses().get(word.lower(), ())
        }
        telling = [found for found in keys.values() if found]
        if len(telling) == 1:
            yield Occasion((i,), tuple((k,) for k in telling[0]))


@cache
def _clues(topic: str) -> frozenset[str]:
    return frozenset(topics()[topic][1])


def _drawn(uses: Sequence[Told], rng: random.Random) -> Told:
    """A use; a definition is drawn again some times, as there are ten for each example."""
    use = rng.choice(uses)
    for _ in range(4):
        if not use.before.endswith(":"):
            break
        use = rng.choice(uses)
    return use


def _telling(use: Told, rng: random.Random, folder: Path) -> Text:
    """A use of a word, with its class behind it in brackets."""
    clues = [w for w in WORD.findall(use.before.lower()) if w.isalpha() and len(w) > 3]
    clues = [w for w in clues if w not in EMPTY]
    framed = len(clues) > 2 and rng.random() < FRAMED
    before = _frame(clues, rng) if framed else WORD.findall(use.before)[-LONGEST:]
    query = len(before)
    clues = [clue for clue in clues if framed or use.kind in _classes(clue, folder)]
    keys = frozenset(i for i, word in enumerate(before) if word.lower() in clues)
    links = (TrueLink("senses", query, keys),) if keys else ()
    after = [] if framed else WORD.findall(use.after)[:LONGEST]
    words = (*before, use.word, "(", use.kind, ")", *after)
    return Text("wordnet", words, links, (Answer("the class", query + 2, frozenset({use.kind})),))


@cache
def _classes(clue: str, folder: Path) -> frozenset[str]:
    """The classes of nouns before which this word stands much oftener than others do."""
    uses = _uses(folder)
    total = sum(uses[""].values())
    shares = {kind: count / total for kind, count in uses[""].items()}
    own = uses.get(clue, Counter())
    return frozenset(k for k, n in own.items() if n > 1 and n > SKEWED * shares[k] * own.total())


@cache
def _uses(folder: Path) -> Mapping[str, Counter[str]]:
    """How often each word stands before nouns of each class; "" for all words."""
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    for use in told(folder):
        for word in ("", *set(WORD.findall(use.before.lower()))):
            uses[word][use.kind] += 1
    return uses


def _frame(clues: list[str], rng: random.Random) -> list[str]:
    """A frame of an ambiguous word, up to that word, with clues of its definition."""
    left = rng.sample(clues, len(clues))
    fill = {"{n}": "she he I we they".split(), "{x}": "thing man woman place day way".split()}
    written = []
    for part in rng.choice([f for f in FRAMES if f.endswith("{w}")]).split()[:-1]:
        if part == "{c}":
            written.append(left.pop() if left else rng.choice(clues))
        else:
            written.append(rng.choice(fill[part]) if part in fill else part)
    return written


def _finished(passage: str, rng: random.Random) -> str:
    """Most passages as sentences: with a capital letter and a full stop."""
    passage = passage.strip()
    if passage and rng.random() < 0.7:
        passage = passage[0].upper() + passage[1:]
        passage += "" if passage[-1] in ".?!" else "."
    return passage
