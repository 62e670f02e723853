"""Words with several senses, which the words before them decide.

"The team lost the match", "she lit a candle with the match": what follows the word (what its kind
of thing does, or a gloss) depends on the sense, often at once, so that the ambiguous word itself
must attend to its clues.
"""

import re
from functools import cache

from making.world.lexicon import World, article, common, groups, read, reserved
from making.world.scene import SLOT, Scene, frames
from making.world.text import Text, Writer

FRAMES = (
    "the {c} {w}", "the {c} {w}", "{c} {w}", "a {c} {w}", "the {c} saw the {w}",
    "because of the {c} the {w}", "after the {c} , the {w}", "the {c} was near the {w}",
    "with the {c} came a {w}", "the {c} is about the {w}", "the {c} and the {c} of the {w}",
    "the {c} of the {c} said that the {w}", "the {c} {c} {w}", "{c} {c} {w}",
    "the {c} {c} the {w}", "the {c} {c} the {c} {w}", "{n} {c} the {w}", "{n} {c} a {w}",
    "{n} {c} the {c} {w}", "{n} {c} the {c} with the {w}", "{n} {c} the {c} near the {w}",
    "the {c} in the {x} {c} the {w}", "we {c} the {c} and the {w}", "I {c} my {c} at the {w}",
    "the {x} of the {c} was near the {w}", "when the {c} {c} , the {w}", "they {c} a {x} {w}",
    "the {c} {x} was on the {w}", "{n} went to the {c} and {c} the {w}", "our {c} {w}",
    "to {c} the {c} you need a {w}", "there was a {c} by the {w}", "it was {c} , so the {w}",
    "the {c} {c} his {w}", "the {c} {c} her {w}", "the {c} took a {w} and", "{n} 's {c} {w}",
    "{n} , a {c} , {c} the {w}", "the {c} was {c} by the {w}", "{n} {c} in the {x} and the {w}",
    "is the {c} on the {w}", "did the {c} {c} the {w}", "please {c} the {w}", "{c} the {w}",
)  # fmt: skip
UNIT_FRAMES = (
    "{c} {w}", "{c} {w}", "there was {c} {w}", "take {c} {w}", "it is about {c} {w}",
    "we need exactly {c} {w}", "{n} bought {c} {w}",
)  # fmt: skip
STUFF = """
carbon dioxide:water:iron:oxygen:gold:salt:sugar:flour:grass:helium:cloth:silver:copper:gas
""".strip().split(":")


@cache
def topics() -> dict[str, tuple[list[str], list[str]]]:
    """Topic: what its things do (past, -ing, kind), and the words that tell it."""
    found = {}
    for line in read("topics"):
        if "|" in line:
            name, forms, clues = (part.strip() for part in line.split("|"))
            own = [w for w in clues.split() if len(w) > 1]
            words = _related([*own, *groups("clues").get(name, ())], name)
            found[name] = (forms.split() if name != "unit" else ["of", "of", "unit"], words)
    return found


CLASS_OF = {"animal": "animal", "kitchen": "food", "plant": "plant"}


def _related(clues: list[str], topic: str) -> list[str]:
    """The clues of a topic, their other forms among the common words, and a class of nouns."""
    stems = {_stem(clue) for clue in clues}
    forms = [word for word in common("common") if len(word) > 2 and _stem(word) in stems]
    nouns = groups("classes")[CLASS_OF[topic]] if topic in CLASS_OF else ()
    return list(dict.fromkeys([*clues, *forms, *nouns]))


@cache
def _stem(word: str) -> str:
    """A word without an ending of verbs or plurals; a short word is its own stem."""
    stem = re.sub(r"(ings?|ed|es|s)$", "", word.lower())
    if len(stem) < 3:
        return word.lower()
    return re.sub(r"(.)\1$", r"\1", stem).removesuffix("e")


@cache
def senses() -> dict[str, tuple[str, ...]]:
    """Ambiguous word: the topics of its senses."""
    return dict(groups("senses"))


def write(world: World) -> Text:
    """One text: one to three ambiguous words, each with its clues, then perhaps their meanings."""
    rng = world.rng
    writer = Writer.drawn("senses", world)
    meanings: dict[str, tuple[str, list[int]]] = {}
    words = sorted(senses())
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        word = rng.choice(words)
        sense = rng.choice(senses()[word])
        if word not in meanings and len(clues_of(world, word, sense)) > 2:
            meanings[word] = sense, _use(world, writer, word, sense)
    for word in rng.sample(sorted(meanings), k=min(len(meanings), rng.choice((0, 0, 0, 1, 3)))):
        sense, keys = meanings[word]
        writer.say("here")
        writer.link("senses (later)", writer.say(word), keys)
        writer.say("means")
        writer.answer("the gloss", topics()[sense][0][2])
        writer.say(".")
    return writer.text()


def clues_of(world: World, word: str, sense: str) -> list[str]:
    """The clues that a word may have: held-out texts have the pairs that training never has."""
    all_clues = topics()[sense][1]
    return [c for c in all_clues if c != word and reserved(c, word) == world.held_out]


def _use(world: World, writer: Writer, word: str, sense: str) -> list[int]:
    """Write a clause with the word; its clues."""
    rng = world.rng
    clues = clues_of(world, word, sense)
    rng.shuffle(clues)
    if world.chance(0.25):
        Scene(world, writer).sentence(rng.choice(frames()))
    told = sense != "unit" and world.chance(0.55)
    keys = _in_a_sentence(world, writer, clues) if told else []
    frame = rng.choice(UNIT_FRAMES if sense == "unit" else FRAMES)
    if keys:
        frame = rng.choice(("the {w}", "the {w}", "and the {w}", "with a {w}", "{n} saw the {w}"))
    for part in frame.split():
        if part == "{c}":
            keys.append(writer.say(clues.pop()))
        elif part == "{w}":
            query = writer.say(word)
        elif part == "{n}":
            writer.say(world.name()[0] if world.chance(0.5) else rng.choice(("he", "she", "I")))
        elif part == "{x}":
            writer.say(world.noun())
        else:
            writer.say(part)
    writer.link("senses", query, keys)
    _follow(world, writer, sense)
    return keys


def _in_a_sentence(world: World, writer: Writer, clues: list[str]) -> list[int]:
    """An ordinary sentence, some of whose nouns are clues; their positions."""
    frame = world.rng.choice([f for f in frames() if 2 <= f.count("{") <= 4 and "." in f])
    keys: list[int] = []
    slots = [p for p in frame.split() if SLOT.fullmatch(p) and not p.startswith("{.")]
    chosen = world.rng.sample(range(len(slots)), k=min(len(slots), world.rng.choice((1, 1, 2))))
    scene, seen = Scene(world, writer), -1
    for part in frame.split()[: -1 if world.chance(0.7) else None]:
        if part in slots:
            seen += 1
            if seen in chosen and len(clues) > 3:
                writer.say(world.rng.choice(("the", "the", "a", "my")))
                keys.append(writer.say(clues.pop()))
            else:
                scene.mention(part[1], None)
        elif part.startswith("<"):
            writer.say(scene.verb(part))
        elif not part.startswith("{"):
            writer.say(part)
    return keys


def _follow(world: World, writer: Writer, sense: str) -> None:
    """The words that the sense decides, after the word or after a few neutral words."""
    rng = world.rng
    past, ing, gloss = topics()[sense][0]
    draw = rng.random()
    if sense == "unit" and draw < 0.8:
        writer.answer("what follows", "of")
        writer.say(rng.choice(STUFF))
    elif draw < 0.5:
        writer.answer("what follows", past)
    elif draw < 0.65:
        writer.answer("what follows", ing)
    elif draw < 0.8:
        writer.say("(")
        writer.answer("the gloss", gloss)
        writer.say(")")
    elif draw < 0.9:
        writer.say(",", article(gloss))
        writer.answer("the gloss", gloss)
    if world.chance(0.85):
        writer.say(".")
