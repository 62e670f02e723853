"""Whether a behaviour of a head can occur in a text, and where: evidence from only its words.

A text has evidence of a behaviour where bundled word lists find a query for it and a key before
that query. The lists are of English, and they err; what a head does there is seen from its
pattern (`kit/choose.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from types import MappingProxyType
from typing import Literal

import numpy as np

from attnviz.builtin.words import (
    Word,
    clues_of,
    has_senses,
    is_adjective,
    is_adverb,
    is_among,
    is_first_name,
    is_function,
    is_known,
    is_noun,
    is_number,
    is_plural,
    is_verb,
    listed,
    may_be_adjective,
    may_be_noun,
    words_of,
)
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Behaviour, Evidence, FoundLink, Occasion


def evidence(capture: Capture) -> Evidence:
    """The occasions of each behaviour in a capture's text.

    Attention from one sequence to another, or in both directions, shows none of these.
    """
    if not capture.one_sequence or not capture.causal:
        return MappingProxyType({})
    words = words_of(capture.text, capture.query_tokens)
    occasions_of = {behaviour: tuple(find(words)) for behaviour, find in FINDERS.items()}
    return MappingProxyType(
        {name: occasions for name, occasions in occasions_of.items() if occasions}
    )


# Nouns with their adjectives, as far as word lists show.

DETERMINERS = frozenset(
    """a an the this that these those some any no every each either neither both all several few
    many much my your his her its our their whose another other such same one two three four five
    six seven eight nine ten 's first second third last next only""".split()
)
SINGULAR = frozenset("a an this that my your his her its our their 's another".split())
"""Determiners that an adjective does not follow without a noun."""
OBJECTS = frozenset("a an the my your his her its our their some no me him it us them".split())
PREPOSITIONS = frozenset(
    """of in on at by with from into onto upon about above across after against along among
    around before behind below beneath beside between beyond despite during except inside like near
    off out over past through toward towards under until via within without as than
    very quite rather so too""".split()
)
BETWEEN = frozenset(", and or but very quite rather so too really extremely -".split())
"""Words that may stand between two adjectives of one noun."""
COPULAS = frozenset("am is are was were be been being 's".split())


def adjective_occasions(words: Sequence[Word]) -> Iterator[Occasion]:
    """The nouns of a text that have adjectives before them."""
    i = 0
    while i < len(words):
        chain = _chain(words, i)
        noun = _noun_after(words, chain) if chain else None
        if noun is not None:
            yield Occasion(words[noun].tokens, tuple(words[a].tokens for a in chain), "all")
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
    if words[at].capital and words[at - 1].capital and not words[at - 1].begins:  # "Main Street"
        return None
    if linked and words[at].capital:  # "was happy Tom said"
        return None
    if is_adjective(words[at].lower) and not determined:  # "old little round": no noun yet
        return None
    if _has_object(words, at):
        return None
    while at + 1 < len(words) and _goes_on(words, at):
        at += 1
    # "the clever hide", "the poor need": a verb that is also a noun, after an adjective used as one
    article = words[chain[0] - 1].lower if chain[0] else ""
    return None if is_verb(words[at].lower) and article not in SINGULAR else at


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


# Pronouns, and the nouns and names before them that they can stand for.

FEMALE = frozenset(
    """woman girl mother mum mom mummy aunt sister daughter wife widow queen princess lady niece
    grandmother gran grandma granny nun actress waitress hostess bride madam duchess countess
    heroine witch nanny mrs miss ms""".split()
)
MALE = frozenset(
    """man boy father dad daddy uncle brother son husband widower king prince gentleman nephew
    grandfather grandad grandpa monk waiter groom sir duke count hero wizard policeman fisherman
    fireman postman salesman mr""".split()
)
SMALL = frozenset("baby babies child kid infant toddler".split())
"""People whom some call "it"."""
SUBJECTS = frozenset("i you he she we they it to who will would can could should must".split())
"""Words that stand before a verb: "they ring", "to ring"."""
WEATHER = frozenset("rain rains rained raining snow snows snowed snowing seems seemed".split())
AFTER_IT = frozenset("is was 's will be would has had".split())
EMPTY = frozenset(
    """late early time true clear obvious evident likely unlikely certain possible impossible
    necessary important hard easy difficult noon midnight dark cold hot warm sunny windy raining
    snowing monday tuesday wednesday thursday friday saturday sunday""".split()
)
"""Words after "it is" where "it" stands for nothing."""
BE = frozenset("is was 's be been isn't wasn't".split())
CLAUSE_ENDS = frozenset("and but or when so such than like".split())
"""Words before which a clause ends in "that" or "who" that does not belong to "it was"."""
POINTS = frozenset("in on at near to from with of by for under behind as about not".split()) | BE
"""Words after which "that" points: "it was in that box"."""


def is_name(word: Word) -> bool:
    """Whether a word is a name: by a capital within a sentence, or by the lists of first names."""
    lower = word.lower
    if lower in listed("dates") or not word.is_word:
        return False
    first = is_first_name(lower)
    if word.capital and not word.begins:
        return first or not (is_function(lower) or is_adjective(lower))
    known = is_known(lower)
    if word.capital:
        return first or not (known or is_plural(lower) or is_verb(lower) or is_adverb(lower))
    return first and not known


def is_female(word: Word) -> bool:
    named = is_name(word) and word.lower in listed("female") - listed("male")
    return _last_part(word) in FEMALE or named


def is_male(word: Word) -> bool:
    named = is_name(word) and word.lower in listed("male") - listed("female")
    return _last_part(word) in MALE or named


def _last_part(word: Word) -> str:
    """The part of a compound that says what it is: "great-grandfather"."""
    return word.lower.rsplit("-", 1)[-1]


def is_person(word: Word) -> bool:
    sexed = is_male(word) or is_female(word)
    animal = is_among(word.lower, "animals")
    return sexed or is_name(word) or (is_among(word.lower, "people") and not animal)


def _is_being(word: Word) -> bool:
    return is_person(word) or is_among(word.lower, "animals")


def _is_thing(word: Word) -> bool:
    return not is_plural(word.lower) and (not is_person(word) or word.lower in SMALL)


def _is_he(word: Word) -> bool:
    return _is_being(word) and not is_female(word) and not is_plural(word.lower)


def _is_she(word: Word) -> bool:
    return _is_being(word) and not is_male(word) and not is_plural(word.lower)


def _is_several(word: Word) -> bool:
    return is_plural(word.lower) or is_among(word.lower, "groups")


AGREES: Mapping[str, Callable[[Word], bool]] = {
    **dict.fromkeys(("he", "him", "his", "himself"), _is_he),
    **dict.fromkeys(("she", "her", "hers", "herself"), _is_she),
    **dict.fromkeys(("it", "its", "itself"), _is_thing),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), _is_several),
    "who": _is_being,
}
"""The pronouns, and the nouns and names that each agrees with."""


def pronoun_occasions(words: Sequence[Word]) -> Iterator[Occasion]:
    """The pronouns of a text that can stand for a noun or name before them."""
    for i, word in enumerate(words):
        agrees = AGREES.get(word.lower)
        if agrees is None or not _stands_for_something(words, i):
            continue
        before = [k for k in range(i) if _is_noun_or_name(words, k)]
        keys = [k for k in before if agrees(words[k])]
        if agrees in (_is_he, _is_she):  # an animal, where nobody else can be meant
            keys = [k for k in keys if is_person(words[k])] or keys
            sexed = is_male if agrees is _is_he else is_female
            keys = [k for k in keys if sexed(words[k])] or keys  # of "the doctor" and "Tom", Tom
        if agrees is _is_several:
            keys = sorted({*keys, *_joined(words, before)}) or [
                k for k in before if is_person(words[k])
            ]
        if not keys and agrees in (_is_he, _is_she):
            keys = [k for k in before if _may_be_called(words, k, agrees)]
        if keys:
            meant: Literal["one", "some"] = "some" if agrees is _is_several else "one"
            yield Occasion(word.tokens, tuple(words[k].tokens for k in keys), meant)


def _is_noun_or_name(words: Sequence[Word], i: int) -> bool:
    word, before = words[i], words[i - 1].lower if i else ""
    lower = word.lower
    if not word.is_word or is_function(lower) or lower in listed("dates") or before in SUBJECTS:
        return False
    return is_name(word) or is_noun(lower) or (before in DETERMINERS and may_be_noun(lower))


def _may_be_called(words: Sequence[Word], i: int, agrees: Callable[[Word], bool]) -> bool:
    """Whether a noun without any article may be somebody's name: "Bark is cute and he"."""
    other = is_female if agrees is _is_he else is_male
    opens = not i or words[i - 1].lower in (".", "!", "?", ",", "and")
    verb = i + 1 < len(words) and words[i + 1].lower in ("is", "was", "'s", "has", "had")
    return opens and verb and not is_plural(words[i].lower) and not other(words[i])


def _joined(words: Sequence[Word], nouns: Sequence[int]) -> Iterator[int]:
    """Both of "Tom and Anna", "the cook and the maid"."""
    for first in nouns:
        for second in nouns:
            between = [word.lower for word in words[first + 1 : second]]
            if between[:1] in (["and"], [","]) and all(
                w in ("and", ",", "the", "a", "an", "my", "his", "her") for w in between
            ):
                yield from (first, second)


def _stands_for_something(words: Sequence[Word], i: int) -> bool:
    """Whether a pronoun can refer back: not "it rains", "it is late", nor "Who ...?"."""
    after = [word.lower for word in words[i + 1 : i + 5]]
    if words[i].lower == "who":
        if not i:
            return False
        return _is_noun_or_name(words, i - 2 if words[i - 1].text == "," and i > 1 else i - 1)
    if words[i].lower != "it" or not after:
        return True
    if after[0] in WEATHER or _is_cleft(words, i):
        return False
    return not (after[0] in AFTER_IT and bool(EMPTY & set(after[1:])))


def _is_cleft(words: Sequence[Word], i: int) -> bool:
    """Whether "it" stands for what follows: "it was the maid who stole it", "it is sad that"."""
    behind = [word.lower if word.is_word or word.lower in BE else "." for word in words[i + 1 :]]
    clause = list(takewhile(lambda word: word != "." and word not in CLAUSE_ENDS, behind))
    if not BE & {words[i - 1].lower if i else "", *clause[:3]}:
        return False
    pairs = pairwise(["it", *clause])
    return "who" in clause or any(w == "that" and before not in POINTS for before, w in pairs)


# Mysteries, nouns with several meanings, and words that occur again.

CULPRITS = frozenset(
    """murderer killer thief culprit robber burglar poisoner assassin kidnapper criminal attacker
    blackmailer forger arsonist vandal villain""".split()
)
ASKING = frozenset(
    (
        "guilty one", "guilty person", "guilty party", "one who did it", "person who did it",
        "? it", "one to blame", "one who took it", "one who stole it",
    )
)  # fmt: skip
LOOK_BACK, LOOK_AHEAD = 12, 8
"""The number of words before and after an ambiguous word that may show its meaning."""


def _mystery(words: Sequence[Word]) -> Iterator[Occasion]:
    """The last word of a text that ends in "the murderer was", and the people before it."""
    told = next((n for n in range(1, 7) if _asks_who(words[-n:])), 0)
    if not told:
        return
    people = [word.tokens for word in words[:-told] if _may_be_name(word) or _is_somebody(word)]
    if people:
        yield Occasion(words[-1].tokens, tuple(people), "one")


def _asks_who(end: Sequence[Word]) -> bool:
    """Whether a text that ends in these words asks who is guilty: "the thief was"."""
    *asked, last = [word.lower for word in end] or [""]
    if last not in ("was", "is", "be"):
        return False
    asked = asked[:-1] if last == "be" else asked  # "must be"
    return " ".join(asked) in ASKING or (len(asked) == 1 and asked[0] in CULPRITS)


def _is_somebody(word: Word) -> bool:
    return is_among(word.lower, "people") and not is_plural(word.lower)


def _may_be_name(word: Word) -> bool:
    """Whether a word may be a name in a text without capitals, too: also one that is unknown."""
    lower = word.lower
    if is_name(word) or is_first_name(lower):
        return True
    known = is_known(lower) or is_plural(lower) or is_verb(lower) or is_adverb(lower)
    return word.is_word and not known


def _senses(words: Sequence[Word]) -> Iterator[Occasion]:
    """Nouns with several meanings, and the words a little before them that show one of these.

    Where words before or behind the noun show another of its meanings, too, nothing is sure.
    """
    for i, word in enumerate(words):
        if not (has_senses(word.lower) and _is_used_as_noun(words, i)):
            continue
        before, after = words[max(0, i - LOOK_BACK) : i], words[i + 1 : i + 1 + LOOK_AHEAD]
        near = [w for w in (*before, *after) if w is words[i - 1] or not is_number(w.lower)]
        told = {
            sense: [w for w in near if w.lower in clues and not is_name(w)]
            for sense, clues in clues_of(word.lower).items()
        }
        senses = [clues for clues in told.values() if clues]
        keys = [w.tokens for w in senses[0] if w in before] if len(senses) == 1 else []
        if keys:
            yield Occasion(word.tokens, tuple(keys))


def _is_used_as_noun(words: Sequence[Word], i: int) -> bool:
    """Whether a word that may be a verb or a name, too, is none here, by the word before it."""
    before = words[i - 1].lower if i else ""
    if is_name(words[i]):
        return False
    if before in SUBJECTS or is_function(words[i].lower):
        return False
    noun = words[i].lower in listed("nouns") or not is_verb(words[i].lower)
    return noun or before in DETERMINERS or is_adjective(before)


def _induction(words: Sequence[Word]) -> Iterator[Occasion]:
    """Words that occur again, and the token that followed each earlier occurrence.

    A function word counts only where the word before it is repeated, too.
    """
    for i, word in enumerate(words):
        same = [
            k
            for k in range(i)
            if words[k].lower == word.lower
            and (is_content(word) or (k and words[k - 1].lower == words[i - 1].lower))
        ]
        followers = sorted({words[k].tokens[-1] + 1 for k in same if word.is_word})
        keys = tuple((at,) for at in followers if at < word.tokens[0])
        if keys:
            yield Occasion(word.tokens, keys)


def is_content(word: Word) -> bool:
    lower = word.lower
    return word.is_word and not is_function(lower) and not is_adverb(lower)


FINDERS: Mapping[Behaviour, Callable[[Sequence[Word]], Iterator[Occasion]]] = {
    "mystery": _mystery,
    "adjectives": adjective_occasions,
    "pronouns": pronoun_occasions,
    "senses": _senses,
    "induction": _induction,
}


# What a head does of it.


@dataclass(frozen=True)
class Limits:
    """The shares of a row that have to be on all plausible keys, and on the strongest of them:
    where one of several is meant it is `chosen`, where all are it is a part of `strongest`."""

    all_keys: float = 0.4
    strongest: float = 0.5
    chosen: float = 0.65


LIMITS = Limits()


def acts_of(
    weights: FloatArray, occasions: Iterable[Occasion], limits: Limits = LIMITS
) -> list[tuple[FoundLink, ...]]:
    """The rows in which a head shows a behaviour, the clearest first: their strongest links.

    All links of a row go to plausible keys of its occasion, no other token has more weight, and
    the `limits` are reached. Where only one key is meant, there is one link. A link is one to a
    word: its weight is the sum over the word's tokens, its key the strongest of these. `weights`
    (n, n): the head's pattern; rows need not sum to 1.
    """
    acts = []
    for occasion in occasions:
        row = weights[occasion.query].astype(np.float64)  # (n)
        plausible, whole = list(occasion.positions), row.sum()
        links = sorted(_to_words(occasion, row), key=lambda link: -link.weight)
        several = {"one": limits.chosen, "all": limits.strongest / len(links)}
        least = (
            limits.strongest if len(links) == 1 else several.get(occasion.meant, limits.strongest)
        )
        enough = row[plausible].sum() >= limits.all_keys * whole
        row[plausible] = 0
        told = tuple(link for link in links if link.weight > row.max())
        if told and enough and told[0].weight >= least * whole:
            acts.append(told[:1] if occasion.meant == "one" else told)
    return sorted(acts, key=lambda links: -links[0].weight)


def _to_words(occasion: Occasion, row: FloatArray) -> Iterator[FoundLink]:
    for word in occasion.keys:
        strongest = max(word, key=lambda token: float(row[token]))
        yield FoundLink(occasion.query, strongest, float(row[list(word)].sum()))
