"""Crimes and mischief of every day: the text tells who did it once, and ends with that suspect.

"The butler was polishing silver . It was the gardener who took the watch . The thief was" the
gardener; or everybody else is cleared. A suspect is a name, a noun ("the butler", at times
"a butler" before) or somebody's relative ("my brother"). The deed is told in the active, in the
passive, after "it was", or by a clue alone; the others do harmless things.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from making.world.lexicon import World, article, entries, groups, reserved
from making.world.mystery import JOINTS, filled, name_of
from making.world.text import Text, Writer

CRIMES = "kill", "theft", "mischief"
OTHERS = ("alibi", "alibi", "alibi", "harmless")


@dataclass(frozen=True)
class Suspect:
    """Somebody as the end names them, and as the text does at first; `head`: the last word."""

    named: str
    first: str

    @property
    def head(self) -> str:
        return self.named.split()[-1]


def write(world: World) -> Text:
    """One text: two to four suspects, what each did, and who is guilty."""
    rng = world.rng
    writer = Writer.drawn("cases", world)
    crime = rng.choice(CRIMES)
    count = rng.choice((2, 2, 2, 3, 3, 4))
    while True:
        guilty, *innocent = _suspects(world, count)
        deed = rng.choice(_words(f"{crime}.deed"))
        if reserved(guilty.head, deed) == world.held_out:
            break
    _say(world, writer, _events(world, crime, deed, guilty, innocent))
    query = writer.say(*_end(world, crime))
    keys = [i for i, word in enumerate(writer.words) if word.lower() == guilty.head.lower()]
    writer.link("mystery", query, keys)
    for word in guilty.named.split():
        writer.answer("the guilty one", word)
    if world.chance(0.8):
        writer.say(".")
    return writer.text()


def _events(
    world: World, crime: str, deed: str, guilty: Suspect, innocent: Sequence[Suspect]
) -> list[str]:
    """What happened: the deed, or a list of suspects of whom all but one are cleared."""
    rng, other = world.rng, innocent[0].named
    told = [*innocent, rng.choice(innocent)] if world.chance(0.2) else innocent
    if world.chance(0.12):
        everyone = rng.sample([guilty, *innocent], len(innocent) + 1)
        first, last = everyone[:-1], everyone[-1]
        names = f"{' , '.join(each.named for each in first)} and {last.named}"
        begins, events = [rng.choice(_words("listed")).replace("{ALL}", names)], list[str]()
        events += [_cleared(world, each, _another(world, each, innocent)) for each in told]
    else:
        begins, events = [], [_guilt(world, crime, deed, guilty, other)]
        events += [_alibi(world, each, _another(world, each, innocent)) for each in told]
    scenes = rng.choice((0, 0, 0, 1, 1, 2))
    scene = _words(f"{crime}.scene")
    events += [filled(world, rng.choice(scene), other, other) for _ in range(scenes)]
    return begins + rng.sample(events, len(events))


def _cleared(world: World, suspect: Suspect, other: str) -> str:
    if world.chance(0.3):
        return _alibi(world, suspect, other)
    return filled(world, world.rng.choice(_words("cleared")), suspect.named, other)


def _words(kind: str) -> tuple[str, ...]:
    return entries("cases")[kind]


def _say(world: World, writer: Writer, events: list[str]) -> None:
    joined = world.chance(0.5)
    for i, event in enumerate(events):
        writer.say(event)
        last = i == len(events) - 1
        writer.say("." if last or not joined or world.chance(0.4) else world.rng.choice(JOINTS))
    if world.chance(0.1):  # "... , so the thief was"
        writer.unsay()
        writer.say(",")


def _end(world: World, crime: str) -> tuple[str, ...]:
    end = world.rng.choice(_words(f"end.{crime}"))
    asked = f"who did it ? {world.rng.choice(('it was', end))}"
    return (asked,) if world.chance(0.06) else (end,)


def _suspects(world: World, count: int) -> list[Suspect]:
    """Different people, mostly of one kind."""
    share = world.rng.choice((0.1, 0.5, 0.9))
    found: list[Suspect] = []
    while len(found) < count:
        suspect = _named(world) if world.chance(share) else _noun(world)
        if all(suspect.head != each.head for each in found):
            found.append(suspect)
    return found


def _named(world: World) -> Suspect:
    name = name_of(world)
    if world.chance(0.08):
        title = world.rng.choice("Mr Mrs Miss Dr Uncle Aunt Lady Lord Inspector Captain".split())
        name = f"{title} {world.rng.choice(groups('names')['surname'])}"
    return Suspect(name, name)


def _noun(world: World) -> Suspect:
    rng, draw = world.rng, world.rng.random()
    if draw < 0.12:
        phrase = rng.choice(_words("owned"))
        return Suspect(phrase, phrase)
    if draw < 0.3:
        noun = rng.choice(_words("suspect2"))
    elif draw < 0.8:
        noun = rng.choice(groups("cases")["suspect"])
    else:
        noun = world.noun_of(rng.choice(("person", "person", "man", "woman")))
    return Suspect(f"the {noun}", f"{article(noun) if world.chance(0.15) else 'the'} {noun}")


def _guilt(world: World, crime: str, deed: str, guilty: Suspect, other: str) -> str:
    """The sentence that tells who is guilty."""
    active, _, passive = (part.strip() for part in deed.partition("|"))
    who = guilty.first
    if world.chance(0.28):
        return filled(world, world.rng.choice(_words(f"{crime}.clue")), who, other)
    draw = world.rng.random()
    if passive and draw < 0.4:
        return filled(world, passive, who, other)
    if active.startswith("{N} ") and draw < 0.6:
        who, active = guilty.named, "it was {N} who" + active.removeprefix("{N}")
    return filled(world, active, who, other)


def _another(world: World, suspect: Suspect, among: Sequence[Suspect]) -> str:
    """Somebody else in the story, or nobody of it."""
    others = [each.named for each in among if each is not suspect]
    return world.rng.choice(others) if others else name_of(world)


def _alibi(world: World, suspect: Suspect, other: str) -> str:
    kind = world.rng.choice(OTHERS)
    source = entries("deeds")[kind] if kind == "harmless" else _words(kind)
    choices = [each for each in (world.rng.choice(source) for _ in range(8)) if "{N3}" not in each]
    return filled(world, choices[0] if choices else "{N} was asleep", suspect.first, other)
