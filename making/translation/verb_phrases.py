"""A clause: a verb with its tense, negation and adverbs, each language in its own order."""

from dataclasses import dataclass, field
from typing import cast

from making.translation.conjugation import Tense, conjugate, past_participle
from making.translation.lexicon import Verb, table
from making.translation.nominal import Np
from making.translation.parts import Part, Word, Words, english, french, part
from making.world.lexicon import World

TENSES = {name: columns for name, *columns in table("tense")}
"""The English auxiliary (and modal), the form after it, the French modal and tense, a weight."""
LIKELY = {name: float(columns[-1]) for name, columns in TENSES.items()}
IMPERFECT = frozenset("have know want need seem hope wish belong cost own feel live be".split())
AUXILIARIES = "do does did could should would must is are was were have has".split()
NOT = {**{word: word + "n't" for word in AUXILIARIES}, "will": "won't", "can": "can't"}
SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "have": "'ve", "has": "'s",
         "would": "'d"}  # fmt: skip
THIRD = {"do": "does", "have": "has", "want": "wants"}
PAST = {"have": "had", "want": "wanted", "use": "used"}
BE = Verb("be", "is", "was", "been", "being", "être")
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")


def is_form(person: int, *, past: bool = False) -> str:
    if past:
        return "was" if person in (0, 2) else "were"
    return "am" if person == 0 else "is" if person == 2 else "are"


def negation_of(words: Words) -> tuple[list[Word], list[Word]]:
    """ne and pas that stand for these words; without words, nothing."""
    return (french("ne", words), french("pas", words)) if words else ([], [])


@dataclass
class Complement:
    """What stands after the verb; `clitics`: pronouns before the French verb."""

    part: Part = field(default_factory=Part)
    clitics: list[Word] = field(default_factory=list)
    inner: Words = ()  # between verb and particle: turn IT off
    agreement: str = ""  # of the participle with a pronoun before it
    negative: Word | None = None  # rien, personne

    @property
    def affirmed(self) -> "Complement":
        """Itself, or nothing in place of nobody and nothing."""
        return Complement() if self.negative else self

    def english_after(self, verb: Words) -> Words:
        """The verb with its particles, and the complement."""
        return (*verb[:1], *self.inner, *verb[1:], *self.part.english)


@dataclass
class Clause:
    """A clause whose English auxiliary can be moved before its subject."""

    subject: Np
    auxiliary: Words
    english: Words
    french: list[Word]
    reserved: bool = False

    def statement(self) -> Part:
        said = self.subject.part.english + self.auxiliary + self.english
        return Part(said, self.french, self.reserved)

    def question(self) -> Part:
        said = self.auxiliary + self.subject.part.english + self.english
        asked = [*french("est-ce que", self.auxiliary), *self.french]
        return Part(said, asked, self.reserved)

    def sentence(self, *, asked: bool) -> Part:
        return self.question() + part("?", "?") if asked else self.statement()


@dataclass
class _Group:
    """The words of the English verb group, and what French makes of its adverbs."""

    auxiliary: Words
    main: Words  # the verb and its particles
    modal: Words
    lone: bool  # a form of be that is its own auxiliary
    middle: Words = ()  # not, never, an adverb
    closing: list[Word] = field(default_factory=list)  # pas, jamais
    often: list[Word] = field(default_factory=list)


def clause(
    world: World,
    who: Np,
    verb: Verb,
    tense: str,
    complement: Complement,
    *,
    negation: str = "",
    asked: bool = False,
    adverb: tuple[str, str] | None = None,
    beside: tuple[str, str] | None = None,
) -> Clause:
    """The clause; negation: not, never, no longer. adverb: one that stands beside the verb;
    beside: one that does so in French only (I like it a lot: je l'aime beaucoup)."""
    group = _group(who, verb, tense, bare=negation != "not" and not asked)
    _negate(world, group, who, tense, negation=negation, asked=asked)
    if adverb:
        often = part(*adverb)
        group.middle += often.english
        group.often += often.french
    late = part(*beside) if beside else Part()
    group.often += late.french
    said = (*group.middle, *group.modal, *complement.english_after(group.main), *late.english)
    heard = _french(who, verb, tense, complement, group, asked=asked)
    reserved = who.part.reserved or complement.part.reserved
    return Clause(who, group.auxiliary, said, heard, reserved)


def _group(who: Np, verb: Verb, tense: str, *, bare: bool) -> _Group:
    """Auxiliary, modal and verb; bare: do and did are left out."""
    helper, form = TENSES[tense][:2]
    auxiliary, *modal = helper.split()
    third = who.english_person == 2
    shape = {"ing": verb.ing, "participle": verb.participle}.get(form, verb.base)
    lone = form in ("finite", "past") and verb.base.split()[0] == "be"
    if lone:
        auxiliary, shape = (
            is_form(who.english_person, past=form == "past"),
            verb.base.removeprefix("be").strip(),
        )
    elif bare and auxiliary in ("do", "did"):
        if modal and (third or auxiliary == "did"):
            modal[0] = (PAST if auxiliary == "did" else THIRD)[modal[0]]
        elif form == "past":
            shape = verb.past
        elif form == "finite" and third:
            shape = verb.third
        auxiliary = ""
    elif auxiliary in ("be", "was"):
        auxiliary = is_form(who.english_person, past=auxiliary == "was")
    elif third:
        auxiliary = THIRD.get(auxiliary, auxiliary)
    main = english(shape.replace("one's", who.possessive))
    return _Group(english(auxiliary), main, english(" ".join(modal)), lone)


def _negate(
    world: World, group: _Group, who: Np, tense: str, *, negation: str, asked: bool
) -> None:
    """Add not or never to the group, and contract its auxiliary."""
    auxiliary = group.auxiliary[0].word if group.auxiliary else ""
    pronoun = who.kind == "pron"
    if negation == "not":
        if auxiliary in NOT and world.chance(0.75):
            cannot = auxiliary == "can" and not world.chance(0.9)
            group.auxiliary = source = english("cannot" if cannot else NOT[auxiliary])
        else:
            group.middle = source = english("not")
            if not asked and pronoun and auxiliary in SHORT and world.chance(0.6):
                group.auxiliary = english(SHORT[auxiliary])
        group.closing = french("pas", source)
        return
    if not asked and auxiliary in SHORT:
        chance = 0.5 if pronoun else 0.12 if auxiliary == "is" else 0.0
        if tense == "would":
            chance = 0.4 if pronoun else 0
        if world.chance(chance):
            group.auxiliary = english(SHORT[auxiliary])
    if negation:
        group.middle = english(negation)
        group.closing = french("jamais" if negation == "never" else "plus", group.middle)


def _french(
    who: Np, verb: Verb, tense: str, complement: Complement, group: _Group, *, asked: bool
) -> list[Word]:
    infinitive, *tail = verb.french.split(" ")
    of = group.auxiliary if group.lone else group.main
    clitics = complement.clitics
    if verb.reflexive:
        clitics = [Word(REFLEXIVE[who.person], of), *clitics]
    negative = complement.negative
    closing = [word for word in group.closing if not (negative and word.word == "pas")]
    denied = closing[0].of if closing else negative.of if negative else ()
    ne, _ = negation_of(who.part.english if who.impersonal and not denied else denied)
    late = [negative] if negative else []
    if negative and negative.word == "rien":
        closing, late = [*closing, negative], []
    if (
        tail
        and tail[0] in ("un", "une", "du", "des")
        and closing
        and closing[0].word in ("pas", "plus", "jamais")
    ):
        tail[0] = "de"
    finite, *after = _verb_words(who, verb, tense, complement, group, asked=asked)
    if TENSES[tense][2]:
        after += [*clitics, Word(infinitive, of, content=True)]
        clitics = []
    tail_words = french(" ".join(tail), group.main or group.auxiliary)
    return [
        *who.part.french, *ne, *clitics, finite, *closing, *group.often, *after,
        *(Word(word.word, word.of, content=len(word.word) > 2) for word in tail_words),
        *late, *complement.part.french,
    ]  # fmt: skip


def _verb_words(
    who: Np, verb: Verb, tense: str, complement: Complement, group: _Group, *, asked: bool
) -> list[Word]:
    """The conjugated verb (or modal), and the participle after it."""
    modal, time = TENSES[tense][2:4]
    infinitive, *tail = verb.french.split(" ")
    if tense == "past" and (verb.base in IMPERFECT or verb.with_be):
        time = "imperfect"
    if tense == "could" and asked:
        time = "conditional"
    of = group.auxiliary if group.lone else group.auxiliary + group.main
    if modal:
        of = group.auxiliary + group.modal
    elif group.modal:
        of = group.main
    if time != "perfect":
        finite = conjugate(modal or infinitive, cast(Tense, time), who.person)
        return [Word(finite, of, content=True)]
    auxiliary, agreement = "avoir", complement.agreement
    if modal:
        agreement = ""
    elif verb.auxiliary == "e" or verb.reflexive:
        auxiliary = "être"
        its_object = tail and tail[0] in ("le", "la", "les", "un", "une", "des", "de")
        if not (verb.reflexive and its_object):
            agreement = who.agreement
    participle = agreeing(past_participle(modal or infinitive), agreement)
    return [
        Word(conjugate(auxiliary, "present", who.person), of),
        Word(participle, of, content=True),
    ]


def agreeing(participle: str, agreement: str) -> str:
    """The participle with its ending: pris has no second s."""
    return participle + ("" if agreement == "s" and participle.endswith("s") else agreement)
