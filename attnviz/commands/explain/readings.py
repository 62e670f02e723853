"""The data of a lesson page on words and vectors: read-outs, and the words of each behaviour.

The page applies them to texts that are typed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from attnviz.builtin.evidence import AGREES
from attnviz.builtin.words import (
    has_senses,
    is_adjective,
    is_among,
    is_first_name,
    is_function,
    is_noun,
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


_KINDS: Mapping[str, tuple[Callable[[str], bool], Callable[[str], bool]]] = MappingProxyType(
    {
        "adjectives": (_noun, may_be_adjective),
        "pronouns": (AGREES.__contains__, _noun),
        "senses": (has_senses, lambda word: not is_function(word)),
        "mystery": (
            lambda word: word in ("was", "is", "be"),
            lambda word: is_first_name(word) or is_among(word, "people"),
        ),
    }
)


def words_of_links(model: "LoadedModel", behaviours: Iterable[str]) -> Mapping[str, str]:
    """The tokens that may be in each behaviour's links, by their words.

    A digit for each id: 1 as the query, 2 as the key, 3 as both, 0 as neither.
    """
    told = _KINDS.keys() & {*behaviours}
    if not told:
        return {}
    ordinary = {*model.tokenizer.ordinary_ids()}
    words = [
        model.tokenizer.label(id_).lower() if id_ in ordinary else ""
        for id_ in range(max(ordinary) + 1)
    ]
    return {
        name: "".join(str(queries(word) + 2 * keys(word)) if word else "0" for word in words)
        for name, (queries, keys) in _KINDS.items()
        if name in told
    }
