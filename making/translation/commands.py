"""Commands: do, do not, let us, please."""

from making.translation.complements import any_verb, complement
from making.translation.conjugation import imperative
from making.translation.lexicon import Verb
from making.translation.nominal import PEOPLE, Np
from making.translation.noun_phrases import noun_phrase
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import please, statement, with_adjuncts
from making.translation.verb_phrases import STATES, Complement
from making.world.lexicon import World


def command(world: World) -> Part:
    verb = any_verb(world)
    while verb.base in STATES | {"be"} or verb.base.startswith("be ") or not _commands(verb):
        verb = any_verb(world)
    you = Np(Part(), "m", 1)
    negated = world.chance(0.25)
    together = world.chance(0.2)
    you.person = 3 if together else 1
    extra = complement(world, verb, you, negated=negated)
    if extra.negative or (
        extra.clitics
        and any(w.word in (("te",) if not together else ("nous", "te")) for _, w in extra.clitics)
    ):
        extra = (
            Complement(noun_phrase(world, PEOPLE).part)
            if "np" in verb.frames[0] and PEOPLE.split("|")[0] in verb.frames[0]
            else Complement()
        )
        if "0" not in verb.frames and not extra.part.french:
            return statement(world)
    main = english(verb.base.replace("one's", "our" if together else "your"))
    front = english("let 's") if together else []
    not_words = (
        english("not")
        if together
        else english(world.rng.choice(("don't", "don't", "don't", "never", "do not")))
    )
    infinitive, *tail = verb.french.split(" ")
    form = Word(imperative(infinitive, 3 if together else 1), tuple(front + main), content=True)
    tail_words = french(" ".join(tail), main)
    words = [main[0], *extra.inner, *main[1:], *extra.part.english]
    clitics = [w for _, w in sorted(extra.clitics, key=lambda pair: pair[0])]
    keys = tuple(main)
    if negated:
        if verb.reflexive:
            clitics = [Word("nous" if together else "te", keys), *clitics]
        no = "jamais" if not_words[0].word == "never" else "pas"
        heard = [
            Word("ne", tuple(not_words)),
            *clitics,
            form,
            Word(no, tuple(not_words)),
            *tail_words,
        ]
        said = Part(
            (front + not_words if together else not_words) + words, heard + extra.part.french
        )
    else:
        after = {"me": "-moi", "te": "-toi"}
        order = sorted(clitics, key=lambda w: w.word not in ("le", "la", "les"))
        joined = [Word(after.get(w.word, "-" + w.word), w.of) for w in order]
        if verb.reflexive:
            joined = [Word("-nous" if together else "-toi", keys), *joined]
        said = Part(front + words, [form, *joined, *tail_words, *extra.part.french])
    said.reserved = extra.part.reserved
    said = said + with_adjuncts(world, "future" if world.chance(0.3) else "present", time=0.08)
    draw = world.rng.random()
    if together or draw > 0.28:
        return said
    if draw < 0.2:
        return said + (please() if world.chance(0.6) else part("please", "s'il te plaît"))
    return _please_first(said)


def _please_first(said: Part) -> Part:
    words = english("please")
    return Part(
        words + said.english,
        [*said.french, Word(",", tuple(words)), *french("s'il te plaît", words)],
        said.reserved,
    )


def _commands(verb: Verb) -> bool:
    return verb.french.split()[0] not in (
        "pouvoir",
        "devoir",
        "falloir",
        "valoir",
        "coûter",
        "sembler",
        "appartenir",
        "mourir",
        "naître",
        "en",
        "y",
    )
