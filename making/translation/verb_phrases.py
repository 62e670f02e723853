"""A clause: a verb with its tense, negation and adverbs, each language in its own order."""

from dataclasses import dataclass, field

from making.translation.conjugation import Tense, conjugate, past_participle
from making.translation.lexicon import Verb
from making.translation.nominal import Np
from making.translation.parts import English, Part, Word, english, french
from making.world.lexicon import World

TENSES: dict[str, tuple[str, str, str, str]] = {
    "present": ("do", "finite", "", "present"),
    "past": ("did", "past", "", "perfect"),
    "future": ("will", "base", "", "future"),
    "going": ("be going to", "base", "aller", "present"),
    "prog": ("be", "ing", "", "present"),
    "was-ing": ("was", "ing", "", "imperfect"),
    "can": ("can", "base", "pouvoir", "present"),
    "could": ("could", "base", "pouvoir", "imperfect"),
    "must": ("must", "base", "devoir", "present"),
    "should": ("should", "base", "devoir", "conditional"),
    "may": ("may", "base", "pouvoir", "present"),
    "might": ("might", "base", "pouvoir", "conditional"),
    "would": ("would", "base", "", "conditional"),
    "would-like": ("would like to", "base", "vouloir", "conditional"),
    "have-to": ("do have to", "base", "devoir", "present"),
    "had-to": ("did have to", "base", "devoir", "perfect"),
    "want-to": ("do want to", "base", "vouloir", "present"),
    "wanted-to": ("did want to", "base", "vouloir", "imperfect"),
    "perfect": ("have", "participle", "", "perfect"),
    "used-to": ("did use to", "base", "", "imperfect"),
}
LIKELY = {
    "present": 34, "past": 26, "future": 9, "going": 7, "prog": 16, "was-ing": 5, "can": 7,
    "could": 3, "must": 3, "should": 3, "may": 0.4, "might": 0.4, "would": 0.8,
    "would-like": 4, "have-to": 4, "had-to": 0.8, "want-to": 5, "wanted-to": 1, "perfect": 5,
    "used-to": 0.6,
}  # fmt: skip
STATES = frozenset(
    "have know want need like love hate prefer believe understand remember seem own belong "
    "contain cost hope wish mean recognize feel deserve matter".split()
)
IMPERFECT = frozenset("have know want need seem hope wish belong cost own feel live be".split())
NOT = {"do": "don't", "does": "doesn't", "did": "didn't", "will": "won't", "can": "can't",
       "could": "couldn't", "should": "shouldn't", "would": "wouldn't", "must": "mustn't",
       "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "have": "haven't",
       "has": "hasn't"}  # fmt: skip
SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "have": "'ve", "has": "'s",
         "would": "'d"}  # fmt: skip
BE = Verb("be", "is", "was", "been", "being", "être", False, "a", ())
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")


def is_form(person: int, *, past: bool = False) -> str:
    if past:
        return "was" if person in (0, 2) else "were"
    return "am" if person == 0 else "is" if person == 2 else "are"


@dataclass
class Complement:
    """What stands after the verb; `clitics`: pronouns before the French verb, in order."""

    part: Part = field(default_factory=Part)
    clitics: list[tuple[int, Word]] = field(default_factory=list)
    inner: list[English] = field(default_factory=list)  # between verb and particle: turn IT off
    agreement: str = ""  # of the participle with a pronoun before it
    negative: Word | None = None  # rien, personne
    asked: str = ""


@dataclass
class Clause:
    """A clause whose English auxiliary can be moved before its subject."""

    subject: Np
    auxiliary: list[English]
    english: list[English]
    french: list[Word]
    reserved: bool = False

    def statement(self) -> Part:
        said = self.subject.part.english + self.auxiliary + self.english
        return Part(said, self.french, self.reserved)

    def question(self) -> Part:
        said = self.auxiliary + self.subject.part.english + self.english
        asked = [*french("est-ce que", self.auxiliary), *self.french]
        return Part(said, asked, self.reserved)


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
    last = english(beside[0]) if beside else []
    auxiliary, main, negative, often, modal = _english(
        world, who, verb, tense, negation=negation, asked=asked, adverb=adverb
    )
    often = often + french(beside[1], last) if beside else often
    head, *particle = main
    rest = [] if "empty" in modal else main
    if complement.inner:
        rest = [head, *complement.inner, *particle]
    english_rest = modal["before"] + rest + complement.part.english + last
    return Clause(
        who,
        auxiliary,
        english_rest,
        _french(who, verb, tense, complement, auxiliary, main, negative, often, modal, asked=asked),
        who.part.reserved or complement.part.reserved,
    )


def _english(
    world: World,
    who: Np,
    verb: Verb,
    tense: str,
    *,
    negation: str,
    asked: bool,
    adverb: tuple[str, str] | None,
) -> tuple[list[English], list[English], list[Word], list[Word], dict[str, list[English]]]:
    """Auxiliary; verb with its particles; pas, jamais; the adverb; words of the modal."""
    helper, form = TENSES[tense][:2]
    words = helper.split()
    be = verb.base.split()[0] == "be"
    third = who.english_person == 2
    first = words[0]
    modal = words[1:]
    mine = {0: "my", 1: "your", 2: "her" if who.gender == "f" else "his", 3: "our"}.get(
        who.person, "their"
    )
    no = negation == "not"
    if first == "be" or first == "was":
        first = is_form(who.english_person, past=first == "was")
    elif first == "do" and third:
        first = "does"
    elif first == "have" and third:
        first = "has"
    shape = {
        "base": verb.base,
        "ing": verb.ing,
        "participle": verb.participle,
        "past": verb.past,
        "finite": verb.base,
    }[form]
    lone = False  # a finite verb without auxiliary
    if be and form in ("finite", "past"):
        first = is_form(who.english_person, past=form == "past")
        shape = verb.base
        main = english(shape)[1:]
        front = english(first)
        lone = True
    elif words[0] in ("do", "did") and not no and not asked:
        if modal:
            finite = modal[0]
            if words[0] == "do":
                finite = {"have": "has", "want": "wants"}[finite] if third else finite
            else:
                finite = {"have": "had", "want": "wanted", "use": "used"}[finite]
            modal = [finite, *modal[1:]]
        elif form == "finite":
            shape = verb.third if third else verb.base
        front, main = [], english(shape.replace("one's", mine))
    else:
        if form in ("finite", "past"):
            shape = verb.base
        front, main = english(first), english(shape.replace("one's", mine))
    pronoun = who.kind == "pron"
    negative: list[Word] = []
    middle: list[English] = []
    if no:
        if first in NOT and world.chance(0.75):
            short = english(NOT[first] if first != "can" or world.chance(0.9) else "cannot")
            front = short
            negative = [Word("pas", tuple(short))]
        else:
            nots = english("not")
            if front and not asked and pronoun and first in SHORT and world.chance(0.6):
                front = english(SHORT[first])
            front = front if first != "can" else english("can")
            negative = [Word("pas", tuple(nots))]
            middle = nots
    elif front and not asked and first in SHORT:
        chance = 0.5 if pronoun else 0.12 if first == "is" else 0.0
        if tense == "would":
            chance = 0.4 if pronoun else 0
        if world.chance(chance):
            front = english(SHORT[first])
    if negation in ("never", "no longer", "anymore"):
        nots = english(negation)
        negative = french("jamais" if negation == "never" else "plus", nots)
        middle = nots
    often: list[Word] = []
    if adverb:
        words_of = english(adverb[0])
        middle = middle + words_of
        often = french(adverb[1], words_of)
    modals = english(" ".join(modal))
    key = {"before": middle + modals, "modal": modals, "front": list(front)}
    if be and lone:
        key["be"] = list(front)
    return front, main or list(front), negative, often, key if main else {**key, "empty": front}


def _french(
    who: Np,
    verb: Verb,
    tense: str,
    complement: Complement,
    front: list[English],
    main: list[English],
    negative: list[Word],
    often: list[Word],
    modal: dict[str, list[English]],
    *,
    asked: bool,
) -> list[Word]:
    _, _, helper, time = TENSES[tense]
    infinitive, *tail = verb.french.split(" ")
    if (
        time == "perfect"
        and tense == "past"
        and (verb.base.split()[0] in IMPERFECT)
        and (verb.base in IMPERFECT or verb.base.startswith("be "))
    ):
        time = "imperfect"
    if tense == "could" and asked:
        time = "conditional"
    person = who.person
    of = tuple(dict.fromkeys(main)) if main else tuple(front)
    if modal.get("be"):
        of = tuple(modal["be"])
    said = tuple(dict.fromkeys((*front, *of))) if not modal["modal"] and not helper else of
    clitics = [word for _, word in sorted(complement.clitics, key=lambda pair: pair[0])]
    if verb.reflexive:
        clitics = [Word(REFLEXIVE[person], of), *clitics]
    ne: list[Word] = []
    closing = list(negative)
    if complement.negative:
        closing = [w for w in closing if w.word != "pas"]
    if closing or complement.negative or who.impersonal:
        source = (
            closing[0].of
            if closing
            else complement.negative.of
            if complement.negative
            else tuple(who.part.english)
        )
        ne = [Word("ne", source)]
    if complement.negative and complement.negative.word == "rien":
        closing = [*closing, complement.negative]
    if (
        closing
        and tail
        and tail[0] in ("un", "une", "du", "des")
        and closing[0].word in ("pas", "plus", "jamais")
    ):
        tail = ["de", *tail[1:]]
    tail_words = french(" ".join(tail), main if main else front, content=False)
    tail_words = [Word(w.word, w.of, content=len(w.word) > 2) for w in tail_words]
    late = (
        [complement.negative]
        if complement.negative and complement.negative.word == "personne"
        else []
    )
    subject = who.part.french
    if helper:
        of_modal = tuple(dict.fromkeys((*front, *modal["modal"])))
        if time == "perfect":
            heard = _perfect_words(helper, "avoir", person, of_modal, "")
        else:
            heard = [Word(conjugate(helper, _tense(time), person), of_modal, content=True)]
        return [
            *subject, *ne, heard[0], *closing, *often, *heard[1:], *clitics,
            Word(infinitive, of, content=True), *tail_words, *late, *complement.part.french,
        ]  # fmt: skip
    if time == "perfect":
        auxiliary = "être" if verb.auxiliary == "e" or verb.reflexive else "avoir"
        agreement = complement.agreement
        if auxiliary == "être" and not (
            verb.reflexive and tail and tail[0] in ("le", "la", "les", "un", "une", "des", "de")
        ):
            agreement = ("e" if who.gender == "f" else "") + ("s" if who.plural else "")
        heard = _perfect_words(infinitive, auxiliary, person, said, agreement)
        return [
            *subject,
            *ne,
            *clitics,
            heard[0],
            *closing,
            *often,
            *heard[1:],
            *tail_words,
            *late,
            *complement.part.french,
        ]
    finite = Word(conjugate(infinitive, _tense(time), person), said, content=True)
    return [
        *subject,
        *ne,
        *clitics,
        finite,
        *closing,
        *often,
        *tail_words,
        *late,
        *complement.part.french,
    ]


def _tense(name: str) -> Tense:
    return name  # type: ignore[return-value]


def _perfect_words(
    infinitive: str, auxiliary: str, person: int, of: tuple[English, ...], agreement: str
) -> list[Word]:
    participle = past_participle(infinitive)
    if agreement.endswith("s") and participle.endswith("s") and not agreement.startswith("e"):
        agreement = ""
    return [
        Word(conjugate(auxiliary, "present", person), of),
        Word(participle + agreement, of, content=True),
    ]
