"""Commands: do, do not, let us, please."""

from making.translation.complements import any_verb, complement
from making.translation.conjugation import imperative
from making.translation.lexicon import Verb
from making.translation.nominal import PEOPLE, Np
from making.translation.noun_phrases import noun_phrase
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import please, statement, with_adjuncts
from making.translation.verb_phrases import Complement
from making.world.lexicon import World

NO_COMMANDS = (
    "pouvoir", "devoir", "falloir", "valoir", "coûter", "sembler", "appartenir", "mourir",
    "naître", "en", "y",
)  # fmt: skip
NOT = ("don't", "don't", "don't", "never", "do not")


def command(world: World) -> Part:
    verb = any_verb(world, doing=True)
    while verb.base == "be" or verb.french.split()[0] in NO_COMMANDS:
        verb = any_verb(world, doing=True)
    negated, together = world.chance(0.25), world.chance(0.2)
    extra = complement(world, verb, Np(Part(), person=3 if together else 1), negated=negated)
    itself = ("nous", "te") if together else ("te",)
    if extra.negative or any(word.word in itself for word in extra.clitics):
        extra = Complement()
        if verb.frames[0].startswith("np") and "person" in verb.frames[0]:
            extra = Complement(noun_phrase(world, PEOPLE).part)
        elif "0" not in verb.frames:
            return statement(world)
    never = "not" if together else world.rng.choice(NOT)
    said = _told(verb, extra, never if negated else "", together=together)
    said += with_adjuncts(world, "future" if world.chance(0.3) else "present", time=0.08)
    draw = world.rng.random()
    if together or draw > 0.28:
        return said
    if draw < 0.2:
        return said + (please() if world.chance(0.6) else part("please", "s'il te plaît"))
    words = english("please")
    polite = [Word(",", words), *french("s'il te plaît", words)]
    return Part(words + said.english, [*said.french, *polite], said.reserved)


def _told(verb: Verb, extra: Complement, never: str, *, together: bool) -> Part:
    """`don't do it`, `let's do it`: the pronouns follow the verb, unless there is a negation."""
    main = english(verb.base.replace("one's", "our" if together else "your"))
    let, nots = english("let 's" if together else ""), english(never)
    infinitive, *tail = verb.french.split(" ")
    form = Word(imperative(infinitive, 3 if together else 1), let + main, content=True)
    rest = [*french(" ".join(tail), main), *extra.part.french]
    if never:
        oneself = [Word("nous" if together else "te", main)] if verb.reflexive else []
        no = Word("jamais" if never == "never" else "pas", nots)
        heard = [Word("ne", nots), *oneself, *extra.clitics, form, no, *rest]
    else:
        oneself = [Word("-nous" if together else "-toi", main)] if verb.reflexive else []
        after = {"me": "-moi", "te": "-toi"}
        joined = [Word(after.get(w.word, "-" + w.word), w.of) for w in extra.clitics]
        heard = [form, *oneself, *joined, *rest]
    return Part(let + nots + extra.english_after(main), heard, extra.part.reserved)
