"""People and animals with names, and pronouns whose referent decides the next word.

"The sleepy Tom met the hungry Anna. She ate." The attribute stands before the name, so that the
name is the position where both are known.

A pronoun refers to the last name of its gender, subject or object. A name without gender (made
up, or any capitalised word) is used only where it is the only one for its pronoun.
"""

from dataclasses import dataclass, replace

from attnviz.training.world.lexicon import FEMALE, MALE, PLACES, World, common, reserved
from attnviz.training.world.text import Text, Writer

DEEDS = dict(
    pair.split(":")
    for pair in """
    sleepy:yawned hungry:ate thirsty:drank angry:shouted sad:wept happy:smiled cold:shivered
    scared:hid sick:coughed bored:sighed tired:rested proud:boasted lazy:slept busy:worked
    curious:listened late:hurried guilty:confessed rich:paid strong:lifted clumsy:stumbled
    funny:laughed brave:fought shy:blushed nervous:trembled lonely:wrote wounded:bled
    baker:baked sailor:sailed singer:sang painter:painted dancer:danced teacher:taught
    hunter:hunted farmer:ploughed thief:stole swimmer:swam driver:drove pilot:flew cook:cooked
    runner:ran reader:read poet:rhymed judge:judged preacher:prayed builder:built rider:rode
    barber:shaved drummer:drummed climber:climbed digger:dug fisher:fished tailor:sewed
    cleaner:swept jumper:jumped speaker:spoke student:studied
    """.split()
)
KINDS = """
dog cat horse cow sheep goat pig rabbit fox wolf bear lion tiger monkey owl duck goose frog
turtle parrot robot knight soldier doctor nurse lawyer king queen wizard witch clown monk
ghost pirate captain gardener spy baron
""".split()
PETS = "Bark Rex Bruno Max".split()
ALONE = (
    "{who} was in the {place} .",
    "{who} came home .",
    "{who} was here .",
    "{who} went to the {place} .",
    "{who} lived near the {place} .",
    "{who} stood by the {place} .",
    "{who} is very {trait} .",
)
TOGETHER = ("met", "saw", "greeted", "helped", "followed", "knew", "thanked", "visited", "liked")
TRAITS = "cute nice old young kind clever small tall loud quiet pretty wise".split()
FILLERS = (
    "it rained .",
    "it was late .",
    "the {place} was dark .",
    "time passed .",
    "the sun was low .",
    "nobody knew why .",
)
LINKS = ("", "", "", "then", "soon", "after that ,", "at night")


@dataclass(frozen=True)
class Person:
    """A name, its pronoun ("he" or "she"), its attribute with the consequence, and its index."""

    name: str
    pronoun: str
    attribute: str
    consequence: str
    word: int = -1


def write(world: World) -> Text:
    """One text: one to five people, then one to three sentences that begin with a pronoun."""
    rng = world.rng
    count = rng.choices((1, 2, 3, 4, 5), weights=(14, 38, 25, 14, 9))[0]
    writer = Writer("pronouns", capitals=world.chance(0.5))
    if count == 1 and world.chance(0.6):
        return _one_sentence(world, writer)
    people = _introduce(world, writer, _people(world, count))
    if world.chance(0.35):
        writer.say(rng.choice(FILLERS).format(place=rng.choice(PLACES)))
    present = sorted({person.pronoun for person in people})
    for pronoun in rng.sample(present, k=min(len(present), rng.choice((1, 2)))):
        meant = [person for person in people if person.pronoun == pronoun][-1]
        writer.say(rng.choice(LINKS))
        _consequence(writer, pronoun, meant, several=count > 1)
        writer.say(".")
    return writer.text()


def write_pair(world: World) -> Text:
    """The shortest form: one or two people of different gender, and a pronoun for each.

    "The sleepy Tom met the hungry Anna. She ate. He yawned." The referent depends on the gender
    of the names alone, so that many such texts teach it quickly.
    """
    writer = Writer("pairs", capitals=world.chance(0.5))
    first, second = _people(world, 2)
    while first.pronoun == second.pronoun:
        first, second = _people(world, 2)
    if world.chance(0.3):
        _introduce(world, writer, [first])
        writer.answer("the pronoun", first.pronoun)
        writer.answer("what follows (one name)", first.consequence)
        writer.say(".")
        return writer.text()
    people = _introduce(world, writer, [first, second])
    world.rng.shuffle(people)
    for person in people:
        _consequence(writer, person.pronoun, person, several=True)
        writer.say(".")
    return writer.text()


def _one_sentence(world: World, writer: Writer) -> Text:
    """ "The dog Bark is very cute and he is a dog": one name and its pronoun in one sentence."""
    person = _people(world, 1)[0]
    if world.chance(0.15):
        person = replace(person, name=world.rng.choice(PETS), pronoun="he")
    named = world.chance(0.7)
    kind = world.rng.choice(KINDS) if world.chance(0.6) else world.noun()
    if named:
        writer.say("the", kind)
    name = writer.say(person.name)
    writer.say("is very", world.rng.choice(TRAITS), world.rng.choice(("and", ", and", "because")))
    writer.link("pronouns", writer.say(person.pronoun), [name])
    writer.say("is a")
    if named:
        writer.answer("what follows (one name)", kind)
    else:
        writer.say(kind)
    if world.chance(0.8):
        writer.say(".")
    return writer.text()


def _people(world: World, count: int) -> list[Person]:
    rng = world.rng
    people: list[Person] = []
    taken: set[str] = set()
    while len(people) < count:
        pronoun = rng.choice(("he", "she"))
        name = rng.choice(MALE if pronoun == "he" else FEMALE)
        attribute = rng.choice(sorted(DEEDS))
        if name in taken or attribute in taken or reserved(attribute, name) != world.held_out:
            continue
        taken |= {name, attribute}
        people.append(Person(name, pronoun, attribute, DEEDS[attribute]))
    if world.chance(0.4):
        _make_strange(world, people)
    return people


def _make_strange(world: World, people: list[Person]) -> None:
    """Give the only person of a gender a name without gender."""
    for i, person in enumerate(people):
        if sum(p.pronoun == person.pronoun for p in people) == 1:
            longer = world.rng.choice(common("common")[:1500])
            name = world.made_up() if world.chance(0.5) else longer
            people[i] = replace(person, name=name.capitalize())
            return


def _introduce(world: World, writer: Writer, people: list[Person]) -> list[Person]:
    """Name each person once, alone or as the object of another; the people with their indices."""
    rng = world.rng
    named: list[Person] = []
    waiting = list(people)
    while waiting:
        named.append(_named(writer, waiting.pop(0)))
        if waiting and world.chance(0.45):
            writer.say(rng.choice(TOGETHER))
            named.append(_named(writer, waiting.pop(0)))
            writer.say(".")
        else:
            rest = rng.choice(ALONE).removeprefix("{who} ")
            writer.say(rest.format(place=rng.choice(PLACES), trait=rng.choice(TRAITS)))
    return named


def _named(writer: Writer, person: Person) -> Person:
    writer.say("the", person.attribute)
    return replace(person, word=writer.say(person.name))


def _consequence(writer: Writer, pronoun: str, meant: Person, *, several: bool) -> None:
    query = writer.say(pronoun)
    writer.link("pronouns" if several else "pronouns (one name)", query, [meant.word])
    measure = "what follows" if several else "what follows (one name)"
    writer.answer(measure, meant.consequence)
