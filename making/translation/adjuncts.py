"""Times and places that any sentence can have."""

from making.translation.complements import joined
from making.translation.lexicon import adverbs, table
from making.translation.nominal import NUMBERS, from_table
from making.translation.noun_phrases import noun_phrase
from making.translation.parts import Part, english, french, part
from making.world.lexicon import World

NOT_PLACES = ("to", "for", "from", "without", "between", "like")


def place_phrase(world: World, *, only_places: bool = False) -> Part:
    if world.chance(0.25):
        return from_table(world, "set place")
    rows = [row for row in table("place") if not (only_places and row[0] in NOT_PLACES)]
    left, right, classes = world.rng.choice(rows)
    plain = world.chance(0.8)
    determiner = world.rng.choice(("the", "the", "the", "a", "my", "this"))
    what = noun_phrase(world, classes, plain=plain, determiner=determiner)
    return joined(world, english(left), right, what)


def time_phrase(world: World, tense: str) -> Part:
    """A time that goes with this tense: past, future, present or any."""
    draw = world.rng.random()
    if draw < 0.55:
        tenses = (tense, "any", "present" if tense == "any" else tense)
        times = [a for a in adverbs() if a.kind in ("time", "frequency") and a.position == "end"]
        fit = [a for a in times if a.tense in tenses]
        some = world.rng.choice(fit)
        if tense in ("past", "future") and world.chance(0.7):
            some = world.rng.choice([a for a in fit if a.tense == tense])
        return part(some.english, some.french)
    return _day(world, tense) if draw < 0.78 else clock_time(world)


def _day(world: World, tense: str) -> Part:
    """`on Monday`, `last Monday`, `in June`, `on June 3`."""
    said, heard = world.rng.choice(table("day"))
    month, mois = world.rng.choice(table("month"))
    draw = world.rng.random()
    if draw < 0.35:
        return part("on", "") + part(said, heard)
    if draw < 0.45:
        return part("on", "") + part(said, heard) + from_table(world, "part of day")
    if draw < 0.55:
        return part("every", "tous LES") + part(said, heard + "s")
    if draw < 0.62 and tense == "any":
        return part("on", "le") + part(said + "s", heard)
    if draw < 0.7 and tense == "past":
        return part(f"last {said}", f"{heard} dernier")
    if draw < 0.7 and tense == "future":
        return part(f"next {said}", f"{heard} prochain")
    if draw < 0.92:
        return part("in", "en") + part(month, mois)
    ordinal, number = world.rng.choice(table("ordinal"))
    if world.chance(0.5):
        return part("on the", "le") + part(ordinal, number) + part("of", "") + part(month, mois)
    count = str(world.rng.randint(1, 31))
    on, named, at = english("on"), english(month), english(count)
    day = french("premier" if count == "1" else count, at)
    return Part(on + named + at, [*french("le", ()), *day, *french(mois, named)])


def hour(world: World) -> Part:
    """`eight o'clock`, `half past seven`: huit heures, sept heures et demie."""
    said, heard = world.rng.choice((*NUMBERS[:10], ("one", "une"), ("eleven", "onze")))
    hours = "heure" if heard == "une" else "heures"
    draw = world.rng.random()
    if draw < 0.45:
        return part(said, heard) + part("o'clock", hours)
    whole = part(said, f"{heard} {hours}")
    if draw < 0.62:
        return whole
    if draw < 0.72:
        return _turned(part("half past", "et demie"), whole)
    if draw < 0.78:
        past = world.rng.choice(("a quarter past", "quarter past"))
        return _turned(part(past, "et quart"), whole)
    if draw < 0.84:
        to = world.rng.choice(("a quarter to", "quarter to"))
        return _turned(part(to, "moins le quart"), whole)
    minutes, number = world.rng.choice(table("minutes"))
    if draw < 0.9:
        return _turned(part(f"{minutes} past", number), whole)
    if draw < 0.96:
        return _turned(part(f"{minutes} to", f"moins {number}"), whole)
    return whole + part("thirty", "trente")


def _turned(first: Part, second: Part) -> Part:
    """English first and second, French second and first."""
    return Part(first.english + second.english, second.french + first.french)


def clock_time(world: World) -> Part:
    if world.chance(0.1):
        return part("at", "à") + from_table(world, "noon")
    half = from_table(world, "half of day") if world.chance(0.12) else Part()
    return part("at", "à") + hour(world) + half
