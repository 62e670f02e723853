"""A little mystery: the text tells who is guilty once, and ends with the murderer's name.

"... the duke was stabbed by Anna . ... therefore the murderer was Anna ."

Up to a hundred tokens lie between. The crime is in the passive ("was stabbed by Anna") or in the
active, with the weapon first ("with a dagger Anna stabbed the duke") or the deed first and a clue
later ("Anna stabbed the duke . ... the bloody dagger belonged to Anna ."), so that the guilty
name can be known as such at its own position. Others do harmless things in the same forms.
"""

from attnviz.training.world.lexicon import FEMALE, MALE, PLACES, World, article, common, reserved
from attnviz.training.world.text import Text, Writer

CRIMES = "stabbed poisoned shot strangled killed murdered drowned attacked".split()
WEAPONS = "dagger knife gun rope sword pistol axe hammer poison candlestick".split()
VICTIMS = "duke lord butler countess baron professor colonel lady banker count king queen".split()
HARMLESS = """
washed:cup read:book painted:wall cooked:soup cleaned:floor opened:window fed:dog watered:garden
baked:cake wrote:letter fixed:clock mended:shirt played:piano sold:house brushed:horse drank:tea
""".split()
PARTICIPLES = {"wrote": "written", "drank": "drunk"}
TOOLS = "broom cloth brush spoon bucket lamp basket ladder needle pencil towel bottle".split()
FILLERS = (
    "it was a dark night .",
    "the wind was cold .",
    "nobody heard a sound in the {place} .",
    "the police came to the {place} .",
    "the inspector looked at the {noun} and asked many questions .",
    "there was a {adjective} {noun} in the {place} .",
    "the {place} was empty .",
    "a clock was ticking in the {place} .",
    "everyone was afraid .",
    "at last the {noun} was found under the {noun} .",
    "the old {noun} was quiet .",
)
ENDINGS = (
    "therefore the murderer was",
    "therefore , the murderer was",
    "so the murderer was",
    "it was clear that the murderer was",
    "in the end the inspector said that the murderer was",
    "thus the killer was",
)
MANY = (0, 0, 1, 1, 2, 3, 4, 6, 8, 10)


def write(world: World) -> Text:
    """One text: two to five suspects, the deed of each, fillers, and the name of the murderer."""
    rng = world.rng
    writer = Writer("mystery", capitals=world.chance(0.5))
    count = rng.choice((2, 3, 3, 4, 5))
    (guilty, *innocent), crime = _names(world, count), rng.choice(CRIMES)
    while reserved(guilty, crime) != world.held_out:
        (guilty, *innocent), crime = _names(world, count), rng.choice(CRIMES)
    events = [[_filler(world)] for _ in range(rng.choice(MANY))]
    events += [[_harmless(world, name)] for name in innocent]
    rng.shuffle(events)
    deed, clue = _guilt(world, guilty, crime)
    at = rng.randint(0, len(events)) if world.chance(0.5) else rng.randint(0, min(1, len(events)))
    events.insert(at, [deed])
    if clue:
        events.insert(rng.randint(at + 1, len(events)), [clue])
    if world.chance(0.3):
        writer.say(f"there was a murder in the {rng.choice(PLACES)} .")
    for event in events:
        writer.say(*event)
    _conclude(world, writer, guilty)
    return writer.text()


def _names(world: World, count: int) -> list[str]:
    names: set[str] = set()
    while len(names) < count:
        draw = world.rng.random()
        if draw < 0.75:
            names.add(world.rng.choice(MALE + FEMALE))
        elif draw < 0.9:
            names.add(world.rng.choice(common("common")[200:1500]).capitalize())
        else:
            names.add(world.made_up().capitalize())
    shuffled = sorted(names)
    world.rng.shuffle(shuffled)
    return shuffled


def _guilt(world: World, name: str, crime: str) -> tuple[str, str | None]:
    """The sentence about the crime, and a clue that must come later, or None."""
    rng = world.rng
    victim, weapon = rng.choice(VICTIMS), rng.choice(WEAPONS)
    place = rng.choice(("", "", f" in the {rng.choice(PLACES)}"))
    armed = f"with {article(weapon)} {weapon}"
    draw = rng.random()
    if draw < 0.5:
        how = rng.choice(("", "", f" {armed}"))
        return f"the {victim} was {crime}{how} by {name}{place} .", None
    if draw < 0.8:
        return f"{armed} {name} {crime} the {victim}{place} .", None
    return f"{name} {crime} the {victim}{place} .", f"the bloody {weapon} belonged to {name} ."


def _harmless(world: World, name: str) -> str:
    rng = world.rng
    verb, thing = rng.choice(HARMLESS).split(":")
    tool, place = rng.choice(TOOLS), rng.choice(PLACES)
    return rng.choice(
        (
            f"the {thing} was {PARTICIPLES.get(verb, verb)} by {name} .",
            f"the {thing} was {PARTICIPLES.get(verb, verb)} by {name} in the {place} .",
            f"with {article(tool)} {tool} {name} {verb} the {thing} .",
            f"{name} {verb} the {thing} .",
            f"{name} was in the {place} .",
            f"the old {tool} belonged to {name} .",
        )
    )


def _filler(world: World) -> str:
    return world.rng.choice(FILLERS).format(
        place=world.rng.choice(PLACES), noun=world.noun(), adjective=world.adjective()
    )


def _conclude(world: World, writer: Writer, guilty: str) -> None:
    query = writer.say(world.rng.choice(ENDINGS))
    keys = [i for i, word in enumerate(writer.words) if word == guilty]
    writer.link("mystery", query, keys)
    writer.answer("the murderer", guilty)
    if world.chance(0.8):
        writer.say(".")
