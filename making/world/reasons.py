"""Reasons: the last word tells whom or what they are about.

"The animal did not cross the street because it was too tired", or "too wide": a reader of the
words up to "it" cannot know; at the last word the answer is the animal, or the street.
"""

from making.world.lexicon import World, reserved
from making.world.scene import Entity, Scene
from making.world.text import Text, Writer

LIVING = """
tired hungry thirsty sleepy scared afraid lazy shy angry sad nervous ill sick weak bored curious
frightened exhausted worried proud greedy stubborn jealous impatient anxious unhappy lonely clumsy
injured wounded upset fat old young slow small
""".split()
OF = {
    "L": """wide narrow steep crowded muddy icy noisy dusty flooded dangerous busy blocked empty
        dark deep quiet remote foggy huge damp haunted distant high rough smoky unsafe wild hilly
        bumpy ruined""".split(),
    "T": """heavy expensive broken wet dirty sharp rusty full cheap loose fragile thick stiff
        slippery damaged torn blunt light hollow bent cracked valuable ugly greasy faded""".split(),
    "F": """bitter salty sour spicy raw burnt stale rotten cold hot sweet greasy mouldy ripe dry
        overcooked sticky""".split(),
}
"""Adjectives for what is acted on, by its slot: a place, a thing, food."""
FRAMES = {"L": "pl", "T": "pt", "F": "pf"}
AUXILIARIES = "did could would does will can".split()
JOINS = "because because because as since".split()
SECOND = {
    "past": "was was was was looked seemed became had_been got".split(),
    "present": "is is is looks seems".split(),
}
DEGREES = "too too too too so very really quite rather much_too".split()
ENDS = (".", ".", ".", "", "today .", "that day .", "again .", "for {P} .")


def write(world: World) -> Text:
    """One text: somebody does, or does not do, something, and a reason."""
    rng = world.rng
    scene = Scene(world, Writer.drawn("reasons", world))
    say = scene.writer.say
    slot = rng.choice("LLTTF")
    subject = scene.mention(rng.choice("AAP"), None)
    auxiliary = rng.choice(AUXILIARIES)
    if world.chance(0.75):
        say(auxiliary, "not", world.verb(FRAMES[slot], "b"))
    else:
        say(world.verb(FRAMES[slot], "d"))
    acted_on = scene.mention(slot, None)
    about, other = rng.sample((subject, acted_on), 2)
    say(*([","] if world.chance(0.1) else []), rng.choice(JOINS))
    pronoun = say(about.pronoun)
    if about.pronoun not in other.pronouns:
        scene.writer.link("pronouns", pronoun, about.words)
    verbs = SECOND["present" if auxiliary in ("does", "will", "can") else "past"]
    say(*(rng.choice(verbs) + " " + rng.choice(DEGREES)).replace("_", " ").split())
    _predicate(scene, about, LIVING if about is subject else OF[slot])
    for part in rng.choice(ENDS).split():
        if part == "{P}":
            scene.mention("P", None)
        else:
            say(part)
    return scene.text()


def _predicate(scene: Scene, about: Entity, adjectives: list[str]) -> None:
    """Write an adjective for this one; the pair is reserved in held-out texts."""
    noun = scene.writer.words[about.words[-1]].lower()
    taken = {word for known in scene.things.values() for word in known}
    fitting = [a for a in adjectives if a not in taken]
    adjective = scene.world.rng.choice(
        [a for a in fitting if reserved(a, noun) == scene.world.held_out] or fitting
    )
    scene.writer.link("predicates", scene.writer.say(adjective), about.words)
