"""Times and places that any sentence can have."""

from making.translation.complements import joined
from making.translation.lexicon import adverbs
from making.translation.nominal import NUMBERS
from making.translation.noun_phrases import noun_phrase
from making.translation.parts import Part, english, french, part
from making.world.lexicon import World

DAYS = (
    ("Monday", "lundi"), ("Tuesday", "mardi"), ("Wednesday", "mercredi"), ("Thursday", "jeudi"),
    ("Friday", "vendredi"), ("Saturday", "samedi"), ("Sunday", "dimanche"),
)  # fmt: skip
MONTHS = (
    ("January", "janvier"), ("February", "février"), ("March", "mars"), ("April", "avril"),
    ("May", "mai"), ("June", "juin"), ("July", "juillet"), ("August", "août"),
    ("September", "septembre"), ("October", "octobre"), ("November", "novembre"),
    ("December", "décembre"),
)  # fmt: skip
ORDINALS = (
    ("first", "premier"), ("second", "deux"), ("third", "trois"), ("fourth", "quatre"),
    ("fifth", "cinq"), ("tenth", "dix"), ("twelfth", "douze"), ("fifteenth", "quinze"),
    ("twentieth", "vingt"),
)  # fmt: skip
HOURS = tuple(NUMBERS.items())[:10]
PLACES = (
    ("in", "dans", "room"), ("in", "dans", "place|building|nature"),
    ("in", "dans", "room|building"),
    ("at", "à", "building|place"), ("on", "sur", "furniture"), ("under", "sous", "furniture|plant"),
    ("in", "à", "city|country"), ("in", "à", "city|country"),
    ("behind", "derrière", "building|furniture"),
    ("in front of", "devant", "building"), ("near", "près de", "building|place|nature"),
    ("next to", "à côté de", "building|furniture"), ("with", "avec", "person|relative|job"),
    ("with", "avec", "person|relative|job"), ("without", "sans", "person|relative|job"),
    ("for", "pour", "person|relative|job"), ("to", "à", "place|building"),
    ("from", "de", "city|country"),
    ("like", "comme", "animal|person"), ("between", "entre", "person|relative"),
    ("across from", "en face de", "building"),
    ("at", "à", "building"), ("in", "dans", "vehicle"), ("with", "avec", "animal|tool"),
)  # fmt: skip
FIXED = (
    ("at home", "à la maison"), ("near here", "près d'ici"),
    ("at school", "à l'école"), ("at work", "au travail"),
    ("here", "ici"), ("there", "là-bas"), ("outside", "dehors"), ("upstairs", "en haut"),
    ("in bed", "au lit"), ("on holiday", "en vacances"), ("on vacation", "en vacances"),
    ("in class", "en classe"), ("on the train", "dans le train"), ("on the bus", "dans le bus"),
    ("in the street", "dans la rue"), ("on the street", "dans la rue"), ("at church", "à l'église"),
    ("at university", "à l'université"), ("at the beach", "à la plage"), ("downstairs", "en bas"),
    ("in town", "en ville"), ("everywhere", "partout"), ("at my place", "chez moi"),
    ("at the doctor's", "chez le médecin"), ("on the left", "à gauche"),
    ("on the right", "à droite"),
    ("on the phone", "au téléphone"), ("on the wall", "au mur"), ("in the sun", "au soleil"),
    ("in the sky", "dans le ciel"), ("on the floor", "par terre"), ("inside", "à l'intérieur"),
)  # fmt: skip


def place_phrase(world: World, *, only_places: bool = False) -> Part:
    if world.chance(0.25):
        return fixed(*world.rng.choice(FIXED))
    choices = (
        [row for row in PLACES if row[0] not in ("to", "for", "from", "without", "between", "like")]
        if only_places
        else PLACES
    )
    left, right, classes = world.rng.choice(choices)
    what = noun_phrase(
        world,
        classes,
        plain=world.chance(0.8),
        determiner=world.rng.choice(("the", "the", "the", "a", "my", "this")),
    )
    return joined(world, english(left), right, what)


def fixed(left: str, right: str) -> Part:
    return part(left, right)


def time_phrase(world: World, tense: str) -> Part:
    """A time that goes with this tense: past, future, present or any."""
    draw = world.rng.random()
    if draw < 0.55:
        fit = [
            a
            for a in adverbs()
            if a.kind in ("time", "frequency")
            and a.position == "end"
            and a.tense in (tense, "any", "present" if tense == "any" else tense)
        ]
        some = world.rng.choice(fit)
        if tense in ("past", "future") and world.chance(0.7):
            some = world.rng.choice([a for a in fit if a.tense == tense])
        return part(some.english, some.french)
    if draw < 0.78:
        return day(world, tense)
    return clock_time(world)


def day(world: World, tense: str) -> Part:
    english_day, french_day = world.rng.choice(DAYS)
    month, mois = world.rng.choice(MONTHS)
    draw = world.rng.random()
    if draw < 0.35:
        return part("on", "") + part(english_day, french_day)
    if draw < 0.45:
        moment = world.rng.choice(
            (("morning", "matin"), ("afternoon", "après-midi"), ("evening", "soir"))
        )
        return part("on", "") + part(english_day, french_day) + part(*moment)
    if draw < 0.55:
        return part("every", "tous LES") + part(english_day, french_day + "s")
    if draw < 0.62 and tense == "any":
        return part("on", "le") + part(english_day + "s", french_day)
    if draw < 0.7 and tense == "past":
        return part(f"last {english_day}", f"{french_day} dernier")
    if draw < 0.7 and tense == "future":
        return part(f"next {english_day}", f"{french_day} prochain")
    if draw < 0.92:
        return part("in", "en") + part(month, mois)
    ordinal, number = world.rng.choice(ORDINALS)
    if world.chance(0.5):
        return part("on the", "le") + part(ordinal, number) + part("of", "") + part(month, mois)
    count = world.rng.randint(1, 31)
    say = "premier" if count == 1 else str(count)
    on, mon, num = english("on"), english(month), english(str(count))
    return Part(on + mon + num, [*part("", "le").french, *french(say, num), *french(mois, mon)])


def hour(world: World) -> Part:
    """`eight o'clock`, `half past seven`: huit heures, sept heures et demie."""
    said, heard = world.rng.choice((*HOURS, ("one", "une"), ("eleven", "onze")))
    hours = "heure" if heard == "une" else "heures"
    draw = world.rng.random()
    number = english(said)
    base = [*french(heard, number), *french(hours, number)]
    if draw < 0.45:
        clock = english("o'clock")
        return Part(number + clock, [*french(heard, number), *french(hours, clock)])
    if draw < 0.62:
        return Part(number, base)
    if draw < 0.72:
        half = english("half past")
        return Part(half + number, [*base, *french("et demie", half)])
    if draw < 0.78:
        quarter = english(world.rng.choice(("a quarter past", "quarter past")))
        return Part(quarter + number, [*base, *french("et quart", quarter)])
    if draw < 0.84:
        quarter = english(world.rng.choice(("a quarter to", "quarter to")))
        return Part(quarter + number, [*base, *french("moins le quart", quarter)])
    minutes, heard_minutes = world.rng.choice(
        (("five", "cinq"), ("ten", "dix"), ("twenty", "vingt"), ("twenty-five", "vingt-cinq"))
    )
    if draw < 0.9:
        words = english(minutes + " past")
        return Part(words + number, [*base, *french(heard_minutes, words)])
    if draw < 0.96:
        words = english(minutes + " to")
        return Part(words + number, [*base, *french("moins " + heard_minutes, words)])
    words = english("thirty")
    return Part(number + words, [*base, *french("trente", words)])


def clock_time(world: World) -> Part:
    if world.chance(0.1):
        return part("at", "à") + part(*world.rng.choice((("noon", "midi"), ("midnight", "minuit"))))
    part_of_day = Part()
    if world.chance(0.12):
        part_of_day = part(
            *world.rng.choice((("in the morning", "du matin"), ("in the evening", "du soir")))
        )
    return part("at", "à") + hour(world) + part_of_day
