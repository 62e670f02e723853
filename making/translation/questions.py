"""Questions, ages and times."""

from making.translation.adjuncts import hour, time_phrase
from making.translation.being import ANYTHING, be, etre, to_do
from making.translation.complements import any_verb, complement, usable
from making.translation.conjugation import conjugate
from making.translation.lexicon import Verb, table
from making.translation.nominal import (
    NUMBERS,
    PEOPLE,
    THINGS,
    Np,
    from_table,
    name,
    pronoun_subject,
)
from making.translation.noun_phrases import noun_phrase, personal, subject
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import NEVER_NEGATED, TIMES, please, tense_for, verbal
from making.translation.verb_phrases import Complement, clause, is_form
from making.world.lexicon import World

BE_OLD = Verb("be", "is", "was", "been", "being", "avoir")
WHERE = (("where", "où"), ("where", "où"), ("where", "où"), ("who", "qui"), ("how", "comment"))


def yes_no(world: World) -> Part:
    """`do you have any friends ?`."""
    who = personal(world, subject(world, pronouns=0.78))
    said = verbal(world, who, asked=True, negative=0.04)
    if world.chance(0.6):
        for word in said.english:
            word.word = "any" if word.word == "some" else word.word
    return said.sentence(asked=True)


def wh_question(world: World) -> Part:
    """A question with where, what, who, which."""
    draw = world.rng.random()
    who = subject(world, pronouns=0.75)
    while who.impersonal or who.kind == "indefinite":
        who = subject(world, pronouns=0.75)
    if draw < 0.42:
        return _where_question(world, who)
    if draw < 0.64:
        return _what_question(world, who)
    if draw < 0.78:
        asker = Np(part("who", "qui"), kind="wh")
        return verbal(world, asker, negative=0.03).statement() + part("?", "?")
    return _which_question(world, who)


def _where_question(world: World, who: Np) -> Part:
    """`where do you live`: où est-ce que tu habites."""
    rows = table("question")
    left, right, _ = world.rng.choices(rows, [float(row[2]) for row in rows])[0]
    verb = any_verb(world)
    while verb.with_be and left != "why":
        verb = any_verb(world)
    tense = tense_for(world, verb)
    extra = Complement()
    if "0" not in verb.frames or not world.chance(0.6):
        extra = complement(world, verb, who).affirmed
    negated = left == "why" and world.chance(0.3) and tense not in NEVER_NEGATED
    negation = "not" if negated else ""
    said = clause(world, who, verb, tense, extra, asked=True, negation=negation)
    return part(left, right) + said.sentence(asked=True)


def _what_question(world: World, who: Np) -> Part:
    """`what do you eat`: qu'est-ce que tu manges."""
    verb = world.rng.choice(usable("np"))
    people = set(verb.objects.split("|")) <= set(PEOPLE.split("|"))
    tense = tense_for(world, verb)
    said = clause(world, who, verb, tense, Complement(), asked=True)
    tail = time_phrase(world, TIMES.get(tense, "any")) if world.chance(0.15) else Part()
    if people or world.chance(0.12):
        return part("who", "qui") + said.question() + tail + part("?", "?")
    first = english("what") + said.auxiliary
    heard = [*french("qu'est-ce que", first), *said.french]
    return Part(first + who.part.english + said.english, heard) + tail + part("?", "?")


def _which_question(world: World, who: Np) -> Part:
    """`which book did you read`, `how many books`."""
    verb = world.rng.choice(usable("np"))
    what = noun_phrase(world, verb.objects, plain=True, determiner="the")
    if what.noun is None or what.kind == "name" or what.first != "the":
        return _what_question(world, who)
    tense = tense_for(world, verb)
    said = clause(world, who, verb, tense, Complement(), asked=True).sentence(asked=True)
    if (what.plural or what.noun.mass) and world.chance(0.7):
        first = part("how many" if what.many else "how much", "combien de")
    else:
        first = part(world.rng.choice(("which", "what")), which(what))
    return first + Part(what.part.english[1:], what.part.french[1:]) + said


def let_me(world: World) -> Part:
    """`can you help me`, `could you open the window , please`."""
    who = Np(part("you", "tu"), person=1, kind="pron")
    if world.chance(0.3):
        who = Np(part("I", "je"), person=0, kind="pron")
    verb = any_verb(world, doing=True)
    tense = world.rng.choice(("can", "can", "could"))
    extra = complement(world, verb, who).affirmed
    said = clause(world, who, verb, tense, extra, asked=True).question()
    return said + (please() if world.chance(0.25) else Part()) + part("?", "?")


def age(world: World) -> Part:
    """`she is ten years old`: elle a dix ans."""
    who = personal(world, subject(world))
    said, heard = world.rng.choice(NUMBERS[:-1])
    words, years = english(said), english("years old")
    asked = world.chance(0.08)
    if world.chance(0.25) and who.noun is None and who.first != "it":
        years = ()
    ans = Word("ans", years or words, content=True)
    extra = Complement(Part(words + years, [*french(heard, words), ans]))
    tense = world.rng.choices(("present", "past", "future"), (85, 9, 6))[0]
    return clause(world, who, BE_OLD, tense, extra, asked=asked).sentence(asked=asked)


def clock_now(world: World) -> Part:
    """`it is eight o'clock`, `it's time to go`, `today is Monday`."""
    draw = world.rng.random()
    it = part("it", "il") + part("is" if world.chance(0.5) else "'s", "est")
    if draw < 0.6:
        return it + hour(world)
    if draw < 0.75:
        return it + part("time", "l'heure") + to_do(world)
    if draw >= 0.9:
        return it + part("already", "déjà") + hour(world)
    day = from_table(world, "day", content=True)
    if world.chance(0.5):
        today = part("today", "aujourd'hui") + Part((), [Word(",")])
        return today + part("is", "CE est") + day
    return part("it", "CE") + part("is", "est") + day


def where_is(world: World) -> Part:
    """`where is my phone ?`, `how old is she ?`, `what color is it ?`, `whose is this ?`."""
    draw = world.rng.random()
    past = world.chance(0.15)
    if draw < 0.4:
        return _asked(world, *world.rng.choice(WHERE), past=past)
    if draw < 0.58:
        return _which_is(world, past=past)
    if draw < 0.78:
        return _how_old(world) if world.chance(0.5) else _how_big(world)
    if draw < 0.88:
        what = _plain(world, THINGS + "|animal", ("my", "the", "this"))
        color = part(world.rng.choice(("what color", "what colour")), "de quelle couleur")
        return color + _is(what) + what.part + part("?", "?")
    what = _plain(world, THINGS + "|animal", ("this",))
    this, *noun = what.part.english
    whose, is_ = part("whose", "à qui"), _is(what)
    said = (*whose.english, *noun, *is_.english, this)
    return Part(said, whose.french + is_.french + what.part.french) + part("?", "?")


def _plain(world: World, classes: str, determiners: tuple[str, ...]) -> Np:
    """A noun phrase without adjectives to ask for."""
    determiner = determiners[0] if len(determiners) == 1 else world.rng.choice(determiners)
    return noun_phrase(world, classes, subject=True, plain=True, determiner=determiner)


def _is(who: Np, *, past: bool = False) -> Part:
    return part(
        is_form(who.english_person, past=past), etre("past" if past else "present", who.person)
    )


def _inverted(who: Np, *, after_vowel: bool) -> Part:
    """A pronoun after its verb: -il, -t-il."""
    (pronoun,) = who.part.french
    link = "-t-" if after_vowel and who.person == 2 else "-"
    return Part(who.part.english, [Word(link + pronoun.word, pronoun.of)])


def _asked(world: World, said: str, heard: str, *, past: bool) -> Part:
    """`where is he`, `how are your parents`: comment vont tes parents."""
    pronoun = world.chance(0.4)
    if pronoun:
        who = pronoun_subject(world, but=("I", "it"))
    elif world.chance(0.12):
        who = name(world)
    else:
        classes = {"who": "person|relative|job", "how": "relative|event|time|food|job"}
        who = _plain(world, classes.get(said, ANYTHING), ("my", "my", "the", "this"))
    is_ = _is(who, past=past)
    if is_.english[0].word == "is" and not world.chance(0.75):
        is_ = part("'s", is_.french[0].word)
    going = said == "how" and not past and (who.noun is None or who.person_like)
    if going:
        is_.french = [Word(conjugate("aller", "present", who.person), is_.english)]
    body = _inverted(who, after_vowel=going) if pronoun else who.part
    return part(said, heard) + is_ + body + part("?", "?")


def _which_is(world: World, *, past: bool) -> Part:
    """`what is your name`: quel est ton nom."""
    what = noun_phrase(
        world,
        f"{THINGS}|abstract|event|food|color|animal",
        subject=True,
        plain=world.chance(0.7),
        determiner="my" if world.chance(0.6) else "the",
    )
    is_ = _is(Np(what.part, person=what.english_person), past=past)  # plural as in English
    if is_.english[0].word == "is" and not world.chance(0.7):
        is_ = part("'s", is_.french[0].word)
    return part("what", which(what)) + is_ + what.part + part("?", "?")


def which(what: Np) -> str:
    """quel, as the noun has it."""
    return ("quel" if what.gender == "m" else "quelle") + ("s" if what.plural else "")


def _how_old(world: World) -> Part:
    """`how old is she`: quel âge a-t-elle."""
    if world.chance(0.6):
        who = pronoun_subject(world, but=("I", "it"))
        body = _inverted(who, after_vowel=True)
    else:
        who = _plain(world, "relative|person", ("my", "the", "this"))
        body = who.part
    return _asked_how("how old", "quel âge", "avoir", who, body)


def _how_big(world: World) -> Part:
    """`how much is this car`: combien coûte cette voiture."""
    who = _plain(world, ANYTHING, ("my", "the", "this"))
    rows = (("how much", "combien", "coûter"), ("how big", "quelle taille", "faire"))
    return _asked_how(*world.rng.choice(rows), who, who.part)


def _asked_how(said: str, heard: str, infinitive: str, who: Np, body: Part) -> Part:
    verb = part(is_form(who.english_person), conjugate(infinitive, "present", who.person))
    return part(said, heard) + verb + body + part("?", "?")


def when_is(world: World) -> Part:
    """`my birthday is in June`, `when is the party ?`."""
    what = _plain(world, "event", ("my", "the"))
    past = world.chance(0.25)
    if world.chance(0.4):
        return part("when", "quand") + _is(what, past=past) + what.part + part("?", "?")
    extra = time_phrase(world, "past" if past else "future")
    tense = "past" if past else world.rng.choice(("present", "future"))
    return be(world, what, extra, tense=tense).statement()
