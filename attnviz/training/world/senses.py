"""Words with several senses, which the words before them decide.

"American shrew mole", "one mole of carbon dioxide", "take a biopsy of the mole": the next words
(a verb, an "of", a gloss in brackets) depend on the sense, often at once, so that the ambiguous
word itself must attend to its clues.
"""

from attnviz.training.world.lexicon import PLACES, World, article, reserved
from attnviz.training.world.text import Text, Writer

CLUES = {
    # sense: words that show it, and stand before the ambiguous word
    "animal": "zoo shrew fur cage nest vet burrow claws hunter American African hairy furry",
    "unit": "one two three four five six ten twelve half twenty",
    "skin": "biopsy doctor dermatologist cream skin surgeon cancer tissue",
    "money": "loan cash savings robbery credit manager debt account",
    "shore": "river boat water fishing muddy stream flood swimmers",
    "game": "player team score coach stadium referee champion league",
    "tool": "hammer workshop carpenter screw steel toolbox factory engineer",
    "plant": "leaf root branch gardener botanist bush flower soil",
    "sound": "loud noise heard barking echo howling",
    "time": "calendar winter weather March month year",
    "metal": "mattress steel coil spiral bounced wire",
    "machine": "computer keyboard screen builder concrete lifted electric driver",
    "hand": "finger wrist glove fist thumb arm",
    "jewel": "wedding gold diamond finger bride silver",
    "light": "candle smoke lamp burnt cigarette fireplace",
    "paper": "ink letter envelope wrote desk author",
    "car": "road engine luggage driver parked tyre",
    "kitchen": "juice lemonade glass milk poured thirsty",
}
FOLLOWED_BY = {
    "animal": "slept", "unit": "of", "skin": "itched", "money": "opened", "shore": "flooded",
    "game": "won", "tool": "rusted", "plant": "grew", "sound": "rang", "time": "began",
    "metal": "stretched", "machine": "stopped", "hand": "ached", "jewel": "shone",
    "light": "burned", "paper": "leaked", "car": "closed", "kitchen": "spilled",
}  # fmt: skip
GLOSSES = {
    "animal": "animal", "unit": "unit", "skin": "spot", "money": "business", "shore": "land",
    "game": "sport", "tool": "tool", "plant": "plant", "sound": "sound", "time": "season",
    "metal": "coil", "machine": "machine", "hand": "limb", "jewel": "jewel", "light": "fire",
    "paper": "stationery", "car": "vehicle", "kitchen": "drink",
}  # fmt: skip
SENSES = {
    "mole": "animal unit skin",
    "bank": "money shore",
    "bat": "animal game",
    "bark": "plant sound",
    "spring": "time metal shore",
    "crane": "animal machine",
    "mouse": "animal machine",
    "seal": "animal paper",
    "pitcher": "kitchen game",
    "match": "light game",
    "nail": "tool hand",
    "trunk": "animal plant car",
    "palm": "plant hand",
    "ring": "jewel sound",
    "bolt": "tool light",
    "pen": "paper animal",
    "foot": "unit hand",
    "pound": "unit animal money",
    "stone": "unit jewel",
    "yard": "unit plant",
    "jam": "kitchen car",
    "club": "game tool",
}
STUFF = """
carbon dioxide:water:iron:oxygen:gold:salt:sugar:flour:grass:helium:cloth:silver:copper:gas
""".strip().split(":")
FRAMES = (
    "the {clue} {word}",
    "the {clue} {word}",
    "{clue} {word}",
    "a {clue} {word}",
    "the {clue} saw the {word}",
    "take a {clue} of the {word}",
    "because of the {clue} the {word}",
    "after the {clue} , the {word}",
    "the {clue} was near the {word}",
    "with the {clue} came a {word}",
    "the {clue} is about the {word}",
    "the {clue} and the {clue} of the {word}",
    "the {clue} of the {clue} said that the {word}",
    "the {clue} {clue} {word}",
    "{clue} {clue} {word}",
)
UNIT_FRAMES = (
    "{clue} {word}",
    "{clue} {word}",
    "there was {clue} {word}",
    "take {clue} {word}",
    "it is about {clue} {word}",
    "we need exactly {clue} {word}",
)
FILLERS = ("it was late .", "look at this .", "nobody was in the {place} .", "", "", "here is", "")


def write(world: World) -> Text:
    """One text: one to three ambiguous words, each with its clues, then perhaps their meanings."""
    rng = world.rng
    writer = Writer("senses", capitals=world.chance(0.4))
    meanings: dict[str, str] = {}
    count = rng.choice((1, 1, 2, 2, 3))
    while len(meanings) < count:
        word = rng.choice(sorted(SENSES.keys() - meanings.keys()))
        sense = rng.choice(SENSES[word].split())
        if sense not in meanings.values() and _clues(world, word, sense):
            meanings[word] = sense
            _use(world, writer, word, sense)
    for word in rng.sample(sorted(meanings), k=rng.randint(0, len(meanings))):
        gloss = GLOSSES[meanings[word]]
        writer.say("here", word, "means")
        writer.answer("the gloss", gloss)
        writer.say(".")
    return writer.text()


def _use(world: World, writer: Writer, word: str, sense: str) -> None:
    rng = world.rng
    if world.chance(0.3):
        writer.say(rng.choice(FILLERS).format(place=rng.choice(PLACES)))
    keys: list[int] = []
    clues = _clues(world, word, sense)
    rng.shuffle(clues)
    frames = UNIT_FRAMES if sense == "unit" else FRAMES
    frame = rng.choice([f for f in frames if f.count("{clue}") <= len(clues)])
    for part in frame.split():
        if part == "{clue}":
            keys.append(writer.say(clues.pop()))
        elif part != "{word}":
            writer.say(part)
    writer.link("senses", writer.say(word), keys)
    _follow(world, writer, sense)


def _clues(world: World, word: str, sense: str) -> list[str]:
    """The clues that a word may have: held-out texts have the pairs that training never has."""
    return [clue for clue in CLUES[sense].split() if reserved(clue, word) == world.held_out]


def _follow(world: World, writer: Writer, sense: str) -> None:
    """The words that the sense decides, after the word or after a few neutral words."""
    rng = world.rng
    draw = rng.random()
    if sense == "unit" and draw < 0.8:
        writer.answer("what follows", "of")
        writer.say(rng.choice(STUFF))
    elif draw < 0.5:
        writer.answer("what follows", FOLLOWED_BY[sense])
    elif draw < 0.75:
        writer.say("(")
        writer.answer("the gloss", GLOSSES[sense])
        writer.say(")")
    elif draw < 0.9:
        writer.say(",", article(GLOSSES[sense]))
        writer.answer("the gloss", GLOSSES[sense])
    if world.chance(0.85):
        writer.say(".")
