"""The read-outs of a model as its lesson page carries them, which reads typed texts with them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnviz.builtin.evidence import AGREES
from attnviz.builtin.words import listed
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
