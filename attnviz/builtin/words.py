"""The part of speech of an English word by the bundled lists, and whom it can stand for.

The lists in `english/` come from WordNet (`making/english.py` makes them) but for those of
function words, dates, first names and words with several senses, which were written by hand.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from attnviz.records.tokens import Token

# A word keeps its inner hyphens and apostrophes ("old-fashioned", "don't"); "'s" is apart.
WORD = re.compile(r"[’']s\b|[^\W_]+(?:(?:-|[’'](?!s\b))[^\W_]+)*|[^\w\s]|_")


@dataclass(frozen=True)
class Word:
    """A word or a punctuation mark, with the positions of its tokens.

    `begins`: it is the first word of a sentence, where a capital means nothing.
    """

    text: str
    tokens: tuple[int, ...]
    begins: bool = False

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        """Whether it is made of letters."""
        return any(character.isalpha() for character in self.text) and self.text[0] not in "'’"

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


def words_of(text: str, tokens: Sequence[Token]) -> tuple[Word, ...]:
    """The words of a text that have tokens, in order; one that was cut off in part is left out."""
    spans = [_span(token) for token in tokens]
    words: list[Word] = []
    first = 0
    for match, begins in zip(WORD.finditer(text), beginnings(WORD.findall(text)), strict=True):
        start, end = match.span()
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        mine = tuple(i for i in range(first, last) if spans[i][1] > start)
        if mine and spans[mine[0]][0] <= start and spans[mine[-1]][1] >= end:
            words.append(Word(match[0], mine, begins))
    return tuple(words)


def beginnings(words: Iterable[str]) -> Iterator[bool]:
    """Whether each of a text's words and marks begins a sentence."""
    begins = True
    for word in words:
        yield begins
        begins = word in ".!?:" or (begins and not Word(word, ()).is_word)


def _span(token: Token) -> tuple[int, int]:
    """The characters of a token without the blanks around it; an empty span where it has none."""
    blank = len(token.text) - len(token.text.lstrip())
    end = token.start + len(token.text.rstrip())
    return (token.start + blank, end) if end > token.start else (token.end, token.end)


ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"))
COMPARED = (("ier", "y"), ("iest", "y"), ("er", ""), ("est", ""), ("er", "e"), ("est", "e"))
KINDS = ("people", "animals", "groups")
LISTS = (*"function adjectives adjectives_too adverbs nouns nouns_too verbs".split(), *KINDS)
SINGULAR = frozenset("news means series species lens gas bias alas perhaps always".split())


@cache
def listed(name: str) -> frozenset[str]:
    """A list of `english/`, read when it is first needed."""
    text = (files("attnviz.builtin") / "english" / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def is_function(word: str) -> bool:
    """Whether it is a function word, a number or one of the commonest adverbs."""
    last = word.rsplit("-", 1)[-1]  # "twenty-seven"
    return last in listed("function") or not any(c.isalpha() for c in word)


def is_number(word: str) -> bool:
    """Whether it is a cardinal number below eleven, or digits: "one mole of carbon"."""
    return word in NUMBERS or word.isdecimal()


NUMBERS = frozenset("one two three four five six seven eight nine ten".split())


def is_adverb(word: str) -> bool:
    adjective = word in listed("adjectives") or word in listed("nouns")
    return word in listed("adverbs") or (word.endswith("ly") and not adjective)


def is_adjective(word: str) -> bool:
    """Whether it is mainly an adjective: "blue", "bigger", "old-fashioned"."""
    if is_function(word):
        return False
    adjectives = listed("adjectives")
    if word in adjectives:
        return True
    if word in listed("nouns") or word in listed("verbs"):
        return False
    if any(stem in adjectives for stem in _stems(word, COMPARED)):
        return True
    return "-" in word and word.rsplit("-", 1)[1].endswith(("ed", "ing", "en"))


def may_be_adjective(word: str) -> bool:
    """Whether it is an adjective in some places: "gold", "open", "broken", "leaking"."""
    if is_function(word):
        return False
    if is_adjective(word) or word in listed("adjectives_too"):
        return True
    if word.endswith("en") and is_verb(word):  # "stolen"
        return True
    return word not in listed("nouns") and word.endswith(("ed", "ing"))


def is_verb(word: str) -> bool:
    """Whether it is mainly a verb, or an inflection of one."""
    if word in listed("nouns") or word in listed("adjectives"):
        return False
    verbs = listed("verbs")
    if word in verbs or word.endswith(("ed", "ing")):
        return True
    return any(stem in verbs and stem not in listed("nouns") for stem in _stems(word, ENDINGS))


def is_noun(word: str) -> bool:
    """Whether it may be a noun: the lists call it nothing else, as they do unknown words."""
    if word in listed("nouns") or is_plural(word):
        return word not in listed("function")
    return not (is_function(word) or is_adverb(word) or is_verb(word) or is_adjective(word))


def may_be_noun(word: str) -> bool:
    """Whether it is a noun, or a verb or adjective that is also one: "call", "drill"."""
    return any(word in listed(name) for name in ("nouns", "nouns_too", *KINDS))


def is_plural(word: str) -> bool:
    """Whether it is the plural of a noun, also of one that the lists lack."""
    if word in IRREGULAR_PLURALS:
        return True
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return False
    if word in SINGULAR or is_first_name(word):
        return False
    stems = _stems(word, ENDINGS[:3])
    if any(may_be_noun(stem) for stem in stems):
        return True
    return not any(is_known(stem) for stem in [word, *stems])


def is_known(word: str) -> bool:
    """Whether any list of a part of speech has it."""
    return any(word in listed(name) for name in LISTS)


def is_first_name(word: str) -> bool:
    """Whether it is a common first name, whatever else it is: "grace", "mark"."""
    return word in listed("female") or word in listed("male")


IRREGULAR_PLURALS = frozenset(
    "men women children people police mice geese feet teeth wolves".split()
)


def is_among(word: str, name: str) -> bool:
    """Whether a noun, or its singular, stands in a list: "people", "animals", "groups"."""
    members = listed(name)
    return any(each in members for each in _singulars(word))


def has_senses(word: str) -> bool:
    """Whether it is a noun with quite different meanings: "bank", "moles"."""
    return is_among(word, "senses")


@cache
def _groups(name: str) -> Mapping[str, frozenset[str]]:
    """A list of `english/` whose lines are `name: words`."""
    text = (files("attnviz.builtin") / "english" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.partition(":") for line in text.splitlines())
    return {group: frozenset(words.split()) for group, _, words in lines}


def clues() -> Mapping[str, frozenset[str]]:
    """By topic, the words that belong to it."""
    return _groups("clues")


@cache
def clues_of(word: str) -> Mapping[str, frozenset[str]]:
    """By each sense of a noun, the words that tell this one and none of its other senses."""
    topics = next((_groups("topics")[w] for w in _singulars(word) if w in _groups("topics")), ())
    clues = {topic: _groups("clues")[topic] for topic in topics}
    return {
        topic: words - {word}.union(*(clues[other] for other in topics if other != topic))
        for topic, words in clues.items()
    }


def _singulars(word: str) -> list[str]:
    return [word, *_stems(word, ENDINGS[:3])]


def _stems(word: str, endings: tuple[tuple[str, str], ...]) -> list[str]:
    """The stems of a word without each of these endings, also with a doubled letter undone."""
    stems = []
    for ending, instead in endings:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending)
            stems.append(stem + instead)
            if not instead and len(stem) > 2 and stem[-1] == stem[-2]:
                stems.append(stem[:-1])
    return stems
