"""Sentences in the making: English words, and French words that point at them.

A French word points at the English words themselves, wherever they come to stand, so that each
language is put together in its own order. What French makes of neighbouring words (l', du, au,
cet, mon amie) is done at the end. Marks: `LE LA LES` are articles (which contract), `CE` is the
pronoun; `*` begins a word before which nothing is elided; `beau/bel` has a form for vowels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

# elided French words and the tails of English contractions are words of their own, and so are the
# pronouns after a hyphen; other words with hyphens are whole
CUTS = (
    r"[Aa]ujourd['’]hui|[Oo]['’]clock\b|"
    r"(?:[Qq]uelqu|[Qq]u|[Ll]orsqu|[Pp]uisqu|[Jj]usqu|[cdjlmnstCDJLMNST])['’]|"
    r"['’](?:s|re|ve|ll|d|m)\b|-t-(?:il|elle|on)\b|"
    r"-(?:moi|toi|le|la|les|lui|leur|nous|vous|en|y|je|tu|il|elle|on|ils|elles|ce)\b|"
    r"\p{L}[\p{L}\p{M}]*(?:-(?!(?:moi|toi|le|la|les|lui|leur|nous|vous|en|y|je|tu|il|elle|on|ils|"
    r"elles|ce|t)\b)\p{L}[\p{L}\p{M}]*)*(?:(?<=n)['’]t\b)?|\p{N}+|\n{2,}|[^ \n]"
)


@dataclass(frozen=True)
class French:
    """A French word, the English words (indices) that it stands for, and whether it is a
    content word: noun, adjective, verb or name."""

    word: str
    keys: frozenset[int]
    content: bool = False


@dataclass(frozen=True)
class Phrase:
    """English words and their French, each in its own order.

    `reserved`: the phrase has an adjective on a noun that training never puts it on.
    """

    english: tuple[str, ...]
    french: tuple[French, ...]
    reserved: bool = False


@dataclass(eq=False)
class English:
    """One English word at its place: two of the same spelling are two."""

    word: str


Words: TypeAlias = tuple[English, ...]


@dataclass(frozen=True)
class Word:
    """A French word and the English words that it stands for."""

    word: str
    of: Words = ()
    content: bool = False


@dataclass
class Part:
    """A part of a sentence in both languages."""

    english: Words = ()
    french: list[Word] = field(default_factory=list)
    reserved: bool = False

    def __add__(self, other: Part) -> Part:
        return Part(
            self.english + other.english,
            self.french + other.french,
            self.reserved or other.reserved,
        )


def english(text: str) -> Words:
    return tuple(English(word) for word in text.split())


def french(text: str, of: Words, *, content: bool = False) -> list[Word]:
    """French words that all stand for the same English words."""
    return [Word(word, of, content) for word in _APOSTROPHE.sub("' ", text).split()]


_APOSTROPHE = re.compile(r"(?<!aujourd)(?<!\bo)'(?=\w)")


def part(left: str, right: str, *, content: bool = False) -> Part:
    """English words and the French words that stand for all of them together."""
    words = english(left)
    return Part(words, french(right, words, content=content))


_ELIDED = {"je", "ne", "de", "me", "te", "se", "que", "le", "la", "jusque", "lorsque", "puisque"}
_ARTICLES = {"LE", "LA", "LES"}
_CONTRACTED = {("de", "LE"): "du", ("de", "LES"): "des", ("à", "LE"): "au", ("à", "LES"): "aux"}
_FEMININE = {"ma": "mon", "ta": "ton", "sa": "son"}
_NO_ELISION = {"onze", "onzième", "oui", "yaourt", "yaourts", "huit", "huitième", "week-end", "un_"}


def vowel(word: str) -> bool:
    """Whether French elides before a word."""
    if word in _NO_ELISION or not word or word[0] in "*H":
        return False
    return word[0].lower() in "aeiouéèêâîôûœh" or word == "y"


def smooth(words: Sequence[Word]) -> list[Word]:
    """The words with the forms that they take beside each other."""
    left = _without_doubled(words)
    done: list[Word] = []
    i = 0
    while i < len(left):
        word, following = left[i], left[i + 1].word if i + 1 < len(left) else ""
        after = left[i + 2].word if i + 2 < len(left) else ""
        pair = (word.word.lower(), following)
        if pair in _CONTRACTED and not (following == "LE" and vowel(after)):
            both = (*word.of, *left[i + 1].of)
            done.append(Word(_CONTRACTED[pair], tuple(dict.fromkeys(both))))
            i += 2
            continue
        done.append(replace(word, word=_beside(word.word, following)))
        i += 1
    return done


def _without_doubled(words: Sequence[Word]) -> list[Word]:
    """`de de LE pain` is `de pain`: no partitive article after de; `de des` neither."""
    left: list[Word] = []
    for word in words:
        before = [w.word for w in left[-2:]]
        if word.word in _ARTICLES and before == ["de", "de"]:
            left.pop()
            left[-1] = replace(left[-1], of=(*left[-1].of, *word.of))
            continue
        if word.word == "des" and before[-1:] == ["de"]:
            continue
        left.append(word)
    return left


def _beside(word: str, following: str) -> str:
    if "/" in word and len(word) > 1:
        plain, before_vowel = word.split("/")
        return before_vowel if vowel(following) else plain
    if word in _ARTICLES:
        return "l'" if word != "LES" and vowel(following) else word.lower()
    if word == "CE":
        return "c'" if following[:1] in ("e", "é") else "ce"
    if word == "ce" and vowel(following):
        return "cet"
    if word in _FEMININE and vowel(following):
        return _FEMININE[word]
    if word == "si" and following in ("il", "ils"):
        return "s'"
    if word in _ELIDED and vowel(following):
        return word[:-1] + "'"
    return word.removeprefix("*")


_CUT = re.compile(
    CUTS.replace(r"[\p{L}\p{M}]", r"\w").replace(r"\p{L}", r"[^\W\d_]").replace(r"\p{N}", r"\d")
)


def cut(text: str) -> list[str]:
    """A text cut as the tokenizer cuts it."""
    return _CUT.findall(text)


def finished(sentence: Part) -> Phrase:
    """The words of a sentence at their places."""
    places: dict[English, list[int]] = {}
    left: list[str] = []
    for word in sentence.english:
        pieces = cut(word.word)
        places[word] = list(range(len(left), len(left) + len(pieces)))
        left += pieces
    right = []
    for said in smooth(sentence.french):
        keys = frozenset(at for word in said.of for at in places.get(word, ()))
        # an elided word stands alone, before the word that it leans on
        pieces = [said.word] if said.word.endswith("'") else cut(said.word)
        right += [French(piece, keys, said.content) for piece in pieces]
    return Phrase(tuple(left), tuple(right), sentence.reserved)
