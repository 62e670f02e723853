"""The data of a lesson page on words and vectors: read-outs, and the words of each behaviour.

The page applies them to texts that are typed.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from attnviz.builtin.evidence import (
    AGREES,
    BETWEEN,
    CULPRITS,
    DETERMINERS,
    FINDERS,
    OBJECTS,
    is_content,
    is_female,
    is_male,
    is_name,
    is_person,
)
from attnviz.builtin.words import (
    Word,
    clues,
    clues_of,
    has_senses,
    is_adjective,
    is_adverb,
    is_among,
    is_first_name,
    is_function,
    is_noun,
    is_plural,
    listed,
    may_be_adjective,
    may_be_noun,
)
from attnviz.draw.page import packed_numbers
from attnviz.models.folder.readouts import read_maps
from attnviz.records.heads import ReadOut

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def carried_readouts(
    model: "LoadedModel", width: int
) -> tuple[Sequence[Mapping[str, object]], str]:
    """The read-outs of a model with streams of this width, and all of their maps, packed.

    The maps stand one after another, in the order of the read-outs and of their heads.
    """
    readouts = model.card.readouts
    maps = read_maps(model.tokenizer.folder, readouts, width)
    held = [readout for readout in readouts if (readout.name, readout.heads[0].head) in maps]
    if not held:
        return [], ""
    numbers = [maps[each.name, at.head].ravel() for each in held for at in each.heads]
    return [_described(each) for each in held], packed_numbers(
        np.concatenate(numbers).view(np.uint32).astype(np.int64)
    )


def _described(readout: ReadOut) -> Mapping[str, object]:
    return {
        "name": readout.name,
        "queries": _queries(readout.behaviour),
        "classes": readout.classes,
        "n": readout.n,
        "chance": readout.chance,
        "token": readout.token,
        "heads": [
            {
                "layer": each.head.layer,
                "head": each.head.head,
                "right": [each.before, each.added, each.after],
            }
            for each in readout.heads
        ],
    }


def _queries(behaviour: str) -> Sequence[str]:
    """The words that a read-out is for; none: nouns with one of its classes before them."""
    if behaviour == "senses":
        return sorted(listed("senses"))
    return list(AGREES) if behaviour == "pronouns" else []


def _noun(word: str) -> bool:
    if is_function(word) or is_adjective(word):
        return False
    return is_first_name(word) or is_noun(word) or may_be_noun(word)


PRONOUNS = "he", "she", "it", "they", "who"


def _bits(*which: bool) -> int:
    return sum(bit << at for at, bit in enumerate(which))


def _kinds(text: str) -> Mapping[str, int]:
    """By behaviour or pronoun, the bits of a word: 1 as the query, 2 as a key, and others for what
    `page/fits.js` asks besides."""
    word = Word(text, (), begins=True)
    lower, noun, name = word.lower, word.is_word and _noun(word.lower), is_name(word)
    person = (noun or name) and is_person(word)
    sexed = {"he": person and is_male(word), "she": person and is_female(word)}
    adjective = may_be_adjective(lower), lower in BETWEEN or is_adverb(lower), is_adjective(lower)
    return {
        "adjectives": _bits(noun, *adjective, noun and is_plural(lower)),
        "determiners": _bits(lower in DETERMINERS, lower in OBJECTS),
        "mystery": _bits(
            lower in ("was", "is", "be"), name or is_among(lower, "people"), lower in CULPRITS
        ),
        "induction": _bits(is_content(word)),
        **{
            pronoun: _bits(
                AGREES.get(lower) is AGREES[pronoun],
                (noun or name) and AGREES[pronoun](word),
                person,
                sexed.get(pronoun, False),
            )
            for pronoun in PRONOUNS
        },
    }


def kinds_of_words(model: "LoadedModel") -> Mapping[str, object]:
    """What a page knows of the words of a model's tokens; nothing if no head is named for words.

    For each kind (`_kinds`) a digit of base 32 for each id: its bits. `senses`: by ambiguous word
    its topics; `clues`: by topic the words of it.
    """
    if not {each.behaviour for each in model.card.heads} & {*FINDERS}:
        return {}
    ordinary = {*model.tokenizer.ordinary_ids()}
    words = [
        model.tokenizer.label(id_) if id_ in ordinary else "" for id_ in range(max(ordinary) + 1)
    ]
    return _tables(tuple(words))


@lru_cache(4)
def _tables(words: Sequence[str]) -> Mapping[str, object]:
    found = [_kinds(word) for word in words]
    kinds = {name: "".join(DIGITS[each[name]] for each in found) for name in found[0]}
    ambiguous = (word.lower() for word in words if has_senses(word.lower()))
    senses = {word: [*clues_of(word)] for word in ambiguous}
    return {**kinds, "senses": senses, "clues": {t: sorted(all_) for t, all_ in clues().items()}}


DIGITS = "0123456789abcdefghijklmnopqrstuv"
