"""Whether a behaviour of a head can occur in a text, and where: evidence from its words alone.

A text has evidence of a behaviour where bundled word lists find a query for it and a key before
that query. The lists are of English, and they err; what a head does there is seen from its
pattern (`default_head.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from attnviz.builtin import claims
from attnviz.builtin.words import (
    Word,
    has_senses,
    is_adjective,
    is_adverb,
    is_first_name,
    is_function,
    is_known,
    is_number,
    is_plural,
    is_verb,
    listed,
    words_of,
)
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Behaviour, Evidence, FoundLink, Occasion

CULPRITS = frozenset(
    """murderer killer thief culprit robber burglar poisoner assassin kidnapper criminal attacker
    blackmailer forger arsonist vandal villain""".split()
)
LOOK_BACK = 12  # words between an ambiguous word and what tells its meaning


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


def _mystery(words: Sequence[Word]) -> Iterator[Occasion]:
    """The last "was" of a text that ends in "the murderer was", and the names before it."""
    if len(words) < 3 or words[-1].lower not in ("was", "is") or words[-2].lower not in CULPRITS:
        return
    names = [word.tokens for word in words[:-2] if _may_be_name(word)]
    if names:
        yield Occasion(words[-1].tokens, tuple(names))


def _may_be_name(word: Word) -> bool:
    """Whether a word may be a name in a text without capitals, too: also one that is unknown."""
    lower = word.lower
    if claims.is_name(word) or is_first_name(lower):
        return True
    known = is_known(lower) or is_plural(lower) or is_verb(lower) or is_adverb(lower)
    return word.is_word and not known


def _senses(words: Sequence[Word]) -> Iterator[Occasion]:
    """Nouns with several meanings, and the content words and numbers a little before them.

    The noun's own adjectives are left out: "a wet board" shows another behaviour.
    """
    adjectives_of = {noun.word: noun.keys for noun in claims.adjective_occasions(words)}
    for i, word in enumerate(words):
        if not (has_senses(word.lower) and _is_used_as_noun(words, i)):
            continue
        before = words[max(0, i - LOOK_BACK) : i]
        telling = [w for w in before if _is_content(w) or is_number(w.lower)]
        own = adjectives_of.get(word.tokens, ())
        keys = [w.tokens for w in telling if w.lower != word.lower and w.tokens not in own]
        if keys:
            yield Occasion(word.tokens, tuple(keys))


def _is_used_as_noun(words: Sequence[Word], i: int) -> bool:
    """Whether a word that may be a verb or a name, too, is none here, by the word before it."""
    before = words[i - 1].lower if i else ""
    if claims.is_name(words[i]):
        return False
    if before in claims.SUBJECTS or is_function(words[i].lower):
        return False
    noun = words[i].lower in listed("nouns") or not is_verb(words[i].lower)
    return noun or before in claims.DETERMINERS or is_adjective(before)


def _induction(words: Sequence[Word]) -> Iterator[Occasion]:
    """Words that occur again, and the token that followed each earlier occurrence.

    A function word counts only where the word before it is repeated, too.
    """
    for i, word in enumerate(words):
        same = [
            k
            for k in range(i)
            if words[k].lower == word.lower
            and (_is_content(word) or (k and words[k - 1].lower == words[i - 1].lower))
        ]
        followers = sorted({words[k].tokens[-1] + 1 for k in same if word.is_word})
        keys = tuple((at,) for at in followers if at < word.tokens[0])
        if keys:
            yield Occasion(word.tokens, keys)


def _is_content(word: Word) -> bool:
    lower = word.lower
    return word.is_word and not is_function(lower) and not is_adverb(lower)


FINDERS: Mapping[Behaviour, Callable[[Sequence[Word]], Iterator[Occasion]]] = MappingProxyType(
    {
        "mystery": _mystery,
        "adjectives": claims.adjective_occasions,
        "pronouns": claims.pronoun_occasions,
        "senses": _senses,
        "induction": _induction,
    }
)


LEAST = 0.4
"""The share of a row that has to lie on plausible keys."""


def acts_of(weights: FloatArray, occasions: Iterable[Occasion]) -> list[FoundLink]:
    """The strongest link of each row in which a head shows a behaviour, the strongest first.

    In such a row the strongest link of all goes to a plausible key of its occasion, and the
    plausible keys have enough of the row. `weights` (n, n): the head's pattern; rows need not sum
    to 1.
    """
    acts = []
    for occasion in occasions:
        row = weights[occasion.query].astype(np.float64)  # (n)
        key, on_keys = int(row.argmax()), row[list(occasion.positions)].sum()
        if key in occasion.positions and on_keys > 0 and on_keys >= LEAST * row.sum():
            acts.append(FoundLink(occasion.query, key, float(row[key])))
    return sorted(acts, key=lambda act: -act.weight)
