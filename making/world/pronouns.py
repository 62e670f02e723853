"""Pronouns: he, she, it, they, him, her, his, their, who. What follows depends on who is meant.

"The sleepy nurse met Tom near the bridge. She slept." Where gender, number, or person and thing
leave one candidate, that one is meant; otherwise the subject of the sentence before.
"""

from making.world.lexicon import World
from making.world.scene import Entity, Scene, frames
from making.world.text import Text, Writer

ALONE = "{P} was in {L} .", "{P} came home .", "{P} <pt:d> {T} .", "{P} <pp:d> {P} ."
INLINE = (
    "because {he!v} .", "because {he!v} .", "and {he!v} .", ", and {he!v} .", ", but {he!v} .",
    ", so {he!v} .", "when {he!v} .", "while {he!v} .", "before {he!v} .", "after {he!v} .",
    "until {he!v} .", "as {he!v} .", ", and we heard {him!g} .", "and saw {him!g} .",
    "and we like {his!n} .", ", but {his!n} was gone .", "with {his!n} .", "and {his!n} .",
    "and gave {him!t} .", "because {his!n} was old .", ", although {he!v} .", "; {he!v} .",
    "so that {he!v} .", "where {he!v} .", "if {he!v} .", ", then {he!v} .", "; then {he!v} .",
)  # fmt: skip
SENTENCES = (
    ". {he!v} .", ". {he!v} .", ". {he!v} .", ". so {he!v} .", ". then {he!v} .",
    ". soon {he!v} .", ". later {he!v} .", ". at night {he!v} .", ". after that , {he!v} .",
    ". I saw {him!g} .", ". we heard {him!g} .", ". nobody stopped {him!g} .",
    ". we gave {him!t} .", ". somebody sent {him!t} .", ". I bought {him!t} .",
    ". let {him!b} .", ". we helped {him!b} .", ". they made {him!b} .", ". I watched {him!b} .",
    ". {his!n} was new .", ". {his!n} was in {L} .", ". I found {his!n} .", ". we saw {his!n} .",
    ". this is {his!n} .", ". where is {his!n} ?", ". did {he!b} ?", ". why did {he!b} ?",
    ". {he} was {!g} .", ". {he} is {!g} .", ". {he} always {!v} .", ". {he} then {!v} .",
    ". {he} soon {!v} .", ". {he} never {!v} .", ". {he} <pt:d> {T} .", ". {he} was <trait> .",
    ". {he} <pl:d> {L} .", ". we <pp:d> {him!g} .", ". I <pp:d> {him!g} yesterday .",
    ". \" {he!v} , \" I said .", ". when {he!v} , we left .", ". because {he!v} , we stayed .",
    ". if {he!v} , call me .", ". everyone knew that {he!v} .", ". I think {he!v} .",
)  # fmt: skip
RELATIVE = ", who {!v} , <pl:d> {L} .", "who {!v} <pt:d> {T} .", "who {!v} ."
PETS = "Bark Rex Bruno Max".split()
OTHERS = (
    ", but {P} <pp:d> {him!g} .", ", so {P} gave {him!t} .", ", and {P} heard {him!g} .",
    ". {P} saw {him!g} .", ". {A} saw {him!g} .", ". {P} let {him!b} .", ", so {P} let {him!b} .",
    ". then {P} found {his!n} .", ". {P} likes {his!n} .", ". when {P!v} , {he!v} .",
    ", and {P} <pt:d> {his!n} .", ", but {P} liked {his!n} .", ". {P} sent {him!t} .",
    ", so {P} <pp:d> {him!g} .", ". {P} thinks {he!v} .", ". {P} said that {he!v} .",
    ". {T} hit {him!g} .", ". {P} <pp:d> {his!n} .", ". {P} <pt:d> {his!n} in {L} .",
    ", so {P} <pt:d> {him!t} .", ", and {P} <pt:d> {him!g} in {L} .", ". {Q} <pp:d> {him!g} .",
    ", but {Q} <pt:d> {his!n} .", ". for {X} {he!v} .", ", and {P} put {him!g} into {T} .",
    ". {P} told {him!b} .", ", so {P} brought {him!t} .", ". can you <pp:b> {him!g} ?",
    ". please <pt:b> {him!g} .", ". {P} took {him!g} to {L} .", ". {P} is with {him!g} .",
    ". {P} paid {him!t} .", ". {P} talked about {him!g} .", ". {P} waited for {him!g} .",
    ". we bought {T} and {he!v} .", ", and {L} made {him!b} .", ". in {L} {he!v} .",
    ". after {X} {he!v} .", ". with {T} {he!v} .", ". near {P} {he!v} .",
)  # fmt: skip
"""With somebody else between, who may not be what the pronoun stands for."""
TRAITS = "cute nice old young kind clever small tall loud quiet pretty wise".split()


def write(world: World) -> Text:
    """One text: one to three sentences, then one to three clauses with a pronoun."""
    rng = world.rng
    scene = Scene(world, Writer.drawn("pronouns", world))
    if world.chance(0.07):
        return _one_sentence(world, scene.writer)
    if world.chance(0.06):
        _relative(scene)
        return scene.text()
    for _ in range(rng.choices((0, 1, 2), weights=(55, 30, 15))[0]):
        scene.sentence(rng.choice(frames()))
    scene.sentence(_frame(world), end=False)
    for i in range(rng.choices((1, 2, 3), weights=(55, 30, 15))[0]):
        entity = chosen(scene)
        if entity is None:
            break
        if i:
            scene.writer.unsay()
        inline = i == 0 and world.chance(0.5)
        choices = OTHERS if world.chance(0.25) else INLINE if inline else SENTENCES
        continued(scene, entity, rng.choice(choices))
    else:
        return scene.text()
    scene.writer.say(".") if scene.writer.words[-1] not in ".?" else None
    return scene.text()


def write_pair(world: World) -> Text:
    """The shortest form: one or two people, and at once a pronoun for one of them."""
    scene = Scene(world, Writer.drawn("pairs", world))
    frame = world.rng.choice(
        ("{P} <pp:d> {P} .", "{P} was in {L} .", "{P} <pp:d> {A} .", "{A} was here .")
    )
    scene.sentence(frame, end=False)
    entity = chosen(scene)
    if entity is None:
        scene.writer.say(".")
        return scene.text()
    continued(scene, entity, world.rng.choice(SENTENCES[:4]))
    return scene.text()


def _frame(world: World) -> str:
    """A statement, as after a question or a request a pronoun would be unclear; and nothing in it
    tells what a pronoun for somebody in it is followed by."""
    while True:
        frame = world.rng.choice(frames())
        if frame.endswith(" .") and frame[0] in "{iotwydb" and "!" not in frame:
            return frame


def chosen(scene: Scene) -> Entity | None:
    """Whom or what a pronoun can mean now, one that is not the nearest if possible; or None.

    It has no word of its habits yet: a pronoun could take what follows it from there.
    """
    rng = scene.world.rng
    clear = [
        entity
        for entity in scene.entities
        if not entity.told
        and all(entity is e or entity.pronoun not in e.pronouns for e in scene.entities)
    ]
    subjects = [e for e in scene.entities if e.subject_of == scene.sentences and not e.told]
    if subjects and (not clear or rng.random() < 0.3):
        return subjects[0]
    if not clear:
        return None
    far = [entity for entity in clear if entity is not scene.entities[-1]]
    return rng.choice(far) if far and rng.random() < 0.6 else rng.choice(clear)


def continued(scene: Scene, entity: Entity, frame: str) -> None:
    """Write a clause with a pronoun for the entity."""
    for part in frame.split():
        if part.startswith("{!"):
            scene.follow(entity, part[2], "what follows later")
        elif part.startswith("{he") or part.startswith("{hi"):
            case, _, form = part[1:-1].partition("!")
            scene.refer(entity, case, form or None)
        elif part.startswith("{"):
            slot, _, form = part[1:-1].partition("!")
            other(scene, entity, slot, form or None)
        elif part.startswith("<"):
            scene.writer.say(scene.verb(part))
        else:
            scene.writer.say(part)


def other(scene: Scene, entity: Entity, slot: str, form: str | None) -> None:
    """Mention something else, for which the entity's pronoun may not stand."""
    scene.avoided = entity.pronoun
    scene.mention(slot, form)
    scene.avoided = ""


def _relative(scene: Scene) -> None:
    """ "The hungry nurse from the village, who ate, left": who, and what it stands for."""
    entity = scene.mention("P", None)
    query = scene.writer.say(*scene.world.rng.choice((("who",), (",", "who"))))
    scene.writer.link("pronouns", query, entity.words)
    scene.follow(entity, "v", "what follows")
    continued(scene, entity, "and <pl:d> {L} ." if scene.world.chance(0.5) else ".")


def _one_sentence(world: World, writer: Writer) -> Text:
    """ "The dog Bark is very cute and he is a dog": one name and its pronoun in one sentence."""
    name, pronoun = (world.rng.choice(PETS), "he") if world.chance(0.3) else world.name()
    named = world.chance(0.7)
    kind = world.noun_of(world.rng.choice(("animal", "animal", "person")))
    keys = [writer.say("the", kind)] if named else []
    keys.append(writer.say(name))
    writer.say("is very", world.rng.choice(TRAITS), world.rng.choice(("and", ", and", "because")))
    writer.link("pronouns", writer.say(pronoun), keys)
    writer.say("is a")
    if named:
        writer.answer("what follows later", kind)
    else:
        writer.say(kind)
    if world.chance(0.8):
        writer.say(".")
    return writer.text()
