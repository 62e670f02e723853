"""A little mystery: the text tells who is guilty once, and ends with the murderer's name.

"... the duke was stabbed by Anna . ... therefore the murderer was Anna ."

The crime is in the passive ("was stabbed by Anna"), in the active ("Anna stabbed the duke"), or
only a clue names the guilty one ("the knife was found in Anna's bag"). One to five suspects; the
others do harmless things in the same forms.
"""

from making.world.lexicon import World, entries, groups, habits, reserved
from making.world.text import Text, Writer

JOINTS = (",", ",", ", and", "and", ", but", "while", ", while", ";", "when", ", so")
MANY = (0, 0, 0, 0, 1, 1, 2, 3, 5, 8)


def write(world: World) -> Text:
    """One text: one to five suspects, the deed of each, fillers, and the name of the murderer."""
    rng = world.rng
    writer = Writer.drawn("mystery", world)
    count = rng.choice((1, 2, 2, 3, 3, 4, 5))
    while True:
        guilty, *innocent = _names(world, count + 1)
        form, crime = rng.choice(("passive", "active", "clue")), rng.choice(_words("crime"))
        if reserved(guilty, crime) == world.held_out:
            break
    *innocent, victim = innocent
    events = [_filled(world, _words("filler"), guilty, victim) for _ in range(rng.choice(MANY))]
    for name in innocent:
        others = [n for n in innocent if n != name] or [victim]
        events.append(_innocent(world, name, rng.choice(others), rng.choice(innocent)))
    rng.shuffle(events)
    events.insert(rng.randint(0, len(events)), _guilt(world, guilty, victim, form, crime))
    joined = world.chance(0.4)
    for event in events:
        writer.say(event)
        last = event is events[-1]
        writer.say("." if last or not joined or world.chance(0.4) else rng.choice(JOINTS))
    if world.chance(0.2):  # "..., therefore the murderer was"
        writer.unsay()
        writer.say(",")
    _conclude(world, writer, guilty)
    return writer.text()


def _words(kind: str) -> tuple[str, ...]:
    return entries("deeds")[kind]


def name_of(world: World) -> str:
    """A name, at times a rare one."""
    draw = world.rng.random()
    return world.name()[0] if draw < 0.85 else world.rng.choice(groups("rare")["name"])


def _names(world: World, count: int) -> list[str]:
    names: list[str] = []
    while len(names) < count:
        name = name_of(world)
        if name not in names:
            names.append(name)
    return names


def _filled(world: World, choices: tuple[str, ...], name: str, other: str) -> str:
    return filled(world, world.rng.choice(choices), name, other)


def filled(world: World, text: str, name: str, other: str) -> str:
    """A sentence with its slots filled: N and N2 people, the others words of their kind."""
    rng = world.rng
    kinds = {"L": "place", "T": "thing", "F": "food", "A": "animal", "PLANT": "plant"}
    for slot, kind in kinds.items():
        while f"{{{slot}}}" in text:
            text = text.replace(f"{{{slot}}}", world.noun_of(kind), 1)
    deeds = {"W": "weapon", "V": "victim", "C": "container", "K": "garment"}
    for slot, kind in deeds.items():
        while f"{{{slot}}}" in text:
            text = text.replace(f"{{{slot}}}", rng.choice(groups("deeds")[kind]), 1)
    while "{J}" in text:
        text = text.replace("{J}", rng.choice(groups("cases")["valuable"]), 1)
    return text.replace("{N2}", other).replace("{N}", name)


def _guilt(world: World, name: str, victim: str, form: str, crime: str) -> str:
    """The sentence that tells who is guilty."""
    rng = world.rng
    if form == "clue":
        return _filled(world, _words("clue"), name, victim)
    participle, past = crime.split("|")
    person = "{V}" if world.chance(0.6) else world.noun_of(rng.choice(("man", "woman", "person")))
    whom = (
        victim
        if world.chance(0.15)
        else f"{rng.choice(('the', 'the', 'the old', 'his', 'her'))} {person}"
    )
    how = rng.choice(("", "", "", rng.choice(_words("with")), rng.choice(_words("where"))))
    front = rng.choice(_words("with"))
    if world.chance(0.5):
        return _filled(world, _words(form), name, victim)
    if form == "passive":
        choices: tuple[str, ...] = (
            f"{whom} was {participle} by {{N}} {how}",
            f"{whom} was {participle} by {{N}} {how}",
            f"{whom} was {participle} {how} by {{N}}",
            f"{whom} had been {participle} by {{N}} {how}",
            f"{whom} has been {participle} by {{N}} {how}",
            f"{whom} , who was {participle} by {{N}} , died",
            f"it turned out that {whom} was {participle} by {{N}}",
        )
    else:
        choices = (
            f"{{N}} {past} {whom} {how}",
            f"{{N}} {past} {whom} {how}",
            f"{front} {{N}} {past} {whom}",
            f"{{N}} took a {{W}} and {past} {whom}",
            f"{{N}} crept into the {{L}} and {past} {whom}",
            f"{{N}} had {participle} {whom} {how}",
            f"then {{N}} {past} {whom} {how}",
            f"it was {{N}} who {past} {whom}",
            f"{{N}} put poison into the soup of {whom}",
            f"{{N}} put poison in {whom} 's tea",
            f"a witness saw how {{N}} {past} {whom}",
        )
    return _filled(world, choices, name, victim)


def _innocent(world: World, name: str, other: str, third: str) -> str:
    """Something harmless that somebody did: a written sentence, or any person's verb and object."""
    rng = world.rng
    if world.chance(0.3):
        frame = rng.choice(("pt", "pt", "pf", "pl"))
        kind = {"pt": "thing", "pf": "food", "pl": "place"}[frame]
        noun = world.noun_of(kind)
        if world.chance(0.2):
            return f"the {noun} was {world.verb(frame, 'n')} by {name}"
        if world.chance(0.25):
            return f"{name} was {world.verb(frame, 'g')} the {noun}"
        return f"{name} {world.verb(frame, 'd')} the {noun}"
    if world.chance(0.1):
        return f"{name} {rng.choice(habits('person')).past}"
    return _filled(world, _words("harmless"), name, other).replace("{N3}", third)


def _conclude(world: World, writer: Writer, guilty: str) -> None:
    query = writer.say(world.rng.choice(_words("end")))
    keys = [i for i, word in enumerate(writer.words) if word.lower() == guilty.lower()]
    writer.link("mystery", query, keys)
    writer.answer("the murderer", guilty)
    if world.chance(0.8):
        writer.say(".")
