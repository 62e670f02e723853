"""Stories: texts that people wrote, with slots for those whom their pronouns stand for.

A line of `words/stories.txt` is such a text: "{1:woman} left {2:things} on the bus, and by Tuesday
[1:he] had stopped looking for [2:him]." A slot becomes a noun phrase of its kind; a pronoun is
written in the masculine, and takes the form of what its number names.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from making.world.lexicon import World, read
from making.world.scene import Entity, Scene
from making.world.text import VERB, Text, Writer

PART = re.compile(
    rf"\{{(\d*):(\w+)\}}|\[(\d+):(\w+)\]|({VERB}|['’](?:s|t|re|ve|ll|d|m)\b|\w+|[^\w\s])"
)
SLOTS: Mapping[str, str] = MappingProxyType(
    {
        "thing": "T", "animal": "A", "food": "F", "place": "L", "plant": "N",
        "things": "B", "animals": "B", "people": "Q",
    }
)  # fmt: skip
PRONOUN = MappingProxyType({"man": "he", "woman": "she"})
OTHER = MappingProxyType({"man": "woman", "woman": "man"})


@cache
def stories() -> tuple[str, ...]:
    """The stories, one a line."""
    return tuple(line for line in read("stories") if line)


def write(world: World) -> Text:
    """One story; in half of them men and women change places."""
    scene = Scene(world, Writer.drawn("stories", world))
    swapped = world.chance(0.5)
    entities: dict[str, Entity] = {}
    for number, kind, of, case, word in PART.findall(world.rng.choice(stories())):
        if word:
            scene.writer.say(word)
        elif case == "who":
            scene.writer.link("pronouns", scene.writer.say("who"), entities[of].words)
        elif case:
            scene.refer(entities[of], case, None)
        else:
            kind = OTHER.get(kind, kind) if swapped else kind
            entity = _mention(scene, kind)
            if number:
                entities[number] = entity
    return scene.text()


def _mention(scene: Scene, kind: str) -> Entity:
    if kind in PRONOUN:
        return scene.person(PRONOUN[kind])
    return scene.mention(SLOTS[kind], None)
