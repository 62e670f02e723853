"""Nouns and the adjectives before them, as far as word lists and the words around them tell."""

from collections.abc import Iterator, Sequence

from attnviz.analyses.lexicon import (
    is_adjective,
    is_adverb,
    is_function,
    is_noun,
    is_plural,
    is_verb,
    may_be_adjective,
    may_be_noun,
)
from attnviz.analyses.words import Word
from attnviz.records.exhibit import Occasion

DETERMINERS = frozenset(
    """a an the this that these those some any no every each either neither both all several few
    many much my your his her its our their whose another other such same one two three four five
    six seven eight nine ten 's first second third last next only""".split()
)
OBJECTS = frozenset("a an the my your his her its our their some no me him it us them".split())
PREPOSITIONS = frozenset(
    """of in on at by with from into onto upon about above across after against along among
    around before behind below beneath beside between beyond despite during except inside like near
    off out over past through toward towards under until via within without as than
    very quite rather so too""".split()
)
BETWEEN = frozenset(", and or but very quite rather so too really extremely -".split())
"""What may stand between two adjectives of one noun."""
COPULAS = frozenset("am is are was were be been being 's".split())


def adjective_occasions(words: Sequence[Word]) -> Iterator[Occasion]:
    """The nouns of a text that have adjectives before them."""
    i = 0
    while i < len(words):
        chain = _chain(words, i)
        noun = _noun_after(words, chain) if chain else None
        if noun is not None:
            yield Occasion(words[noun].tokens, tuple(words[a].tokens for a in chain))
        i = chain[-1] + 1 if chain else i + 1


def _chain(words: Sequence[Word], i: int) -> list[int]:
    """The adjectives that begin here and belong together; empty where none does."""
    if not _is_first(words, i):
        return []
    chain, at = [i], i + 1
    while at < len(words):
        after = at
        while after < len(words) and _is_between(words[after]):
            after += 1
        if not _is_adjective_before_content(words, after):
            break
        chain.append(after)
        at = after + 1
    return chain


def _is_first(words: Sequence[Word], i: int) -> bool:
    """Whether a chain can begin here."""
    word = words[i]
    if not word.is_word or (word.capital and not word.begins and not is_adjective(word.lower)):
        return False
    if is_adjective(word.lower):
        return word.lower != "better" or not i or words[i - 1].lower != "had"
    return may_be_adjective(word.lower) and _opens(words, i)


def _opens(words: Sequence[Word], i: int) -> bool:
    """Whether a word that may be another part of speech is an adjective, by the one before it.

    A participle or verb form needs more before it: "without adding milk", "and chopped parsley".
    """
    lower, before = words[i].lower, "" if words[i].begins else words[i - 1].lower
    if before in DETERMINERS:
        return True
    if lower.endswith("ing"):
        return False
    if before in PREPOSITIONS or is_adverb(before):
        return True
    if lower.endswith("ed") or is_verb(lower):
        return False
    return before in ("", ",", "and", "or", "but") or is_verb(before)


def _is_between(word: Word) -> bool:
    return word.lower in BETWEEN or is_adverb(word.lower)


def _is_adjective_before_content(words: Sequence[Word], i: int) -> bool:
    if i + 1 >= len(words) or not may_be_adjective(words[i].lower):
        return False
    after = words[i + 1]
    return _is_between(after) or (after.is_word and not is_function(after.lower))


def _noun_after(words: Sequence[Word], chain: Sequence[int]) -> int | None:
    """The head noun right after a chain: the last of several, as in "old stone bridge"."""
    at = chain[-1] + 1
    determined = chain[0] > 0 and words[chain[0] - 1].lower in DETERMINERS
    linked = chain[0] > 0 and words[chain[0] - 1].lower in COPULAS
    if at >= len(words) or not _is_head(words[at], determined=determined):
        return None
    if linked and words[at].capital:  # "was happy Tom said"
        return None
    if _has_object(words, at):
        return None
    while at + 1 < len(words) and _goes_on(words, at):
        at += 1
    return at


def _is_head(word: Word, *, determined: bool) -> bool:
    lower = word.lower
    if not word.is_word or is_function(lower) or is_adverb(lower):
        return False
    if is_adjective(lower) and not may_be_noun(lower):
        return False
    if is_noun(lower) or may_be_noun(lower):
        return True
    return determined and not is_verb(lower)


def _goes_on(words: Sequence[Word], at: int) -> bool:
    """Whether a noun is followed by another that it describes."""
    noun, after = words[at], words[at + 1]
    known = may_be_noun(after.lower) or is_plural(after.lower)
    apart = is_function(after.lower) or is_adjective(after.lower)
    verb = _has_object(words, at + 1)
    return after.is_word and known and not apart and not verb and not is_plural(noun.lower)


def _has_object(words: Sequence[Word], at: int) -> bool:
    """Whether a word in -s is a verb, by the object after it: "the old server needs a disk"."""
    after = words[at + 1].lower if at + 1 < len(words) else ""
    return words[at].lower.endswith("s") and not words[at].lower.endswith("ss") and after in OBJECTS
