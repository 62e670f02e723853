"""Sentences with be: qualities, jobs, places, it is."""

from collections.abc import Callable

from making.translation.adjuncts import place_phrase, time_phrase
from making.translation.complements import any_verb, complement
from making.translation.lexicon import nouns_of
from making.translation.nominal import PEOPLE, PLACES, THINGS, Np, name, pronoun_subject
from making.translation.noun_phrases import (
    OTHERWISE,
    adjective_for,
    adjectives_of,
    built,
    noun_phrase,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.translation.verb_phrases import BE, Clause, Complement, clause
from making.world.lexicon import World, article

TENSES = {"present": 62, "past": 24, "future": 8, "going": 2, "perfect": 1, "must": 1, "want-to": 2}
ANYTHING = f"{PEOPLE}|{THINGS}|{PLACES}|animal|food|drink|body|nature|weather|event|abstract"
DEGREES = (
    ("very", "très"), ("very", "très"), ("very", "très"), ("too", "trop"), ("so", "si"),
    ("really", "vraiment"), ("quite", "assez"), ("a little", "un peu"), ("a bit", "un peu"),
    ("always", "toujours"), ("often", "souvent"), ("already", "déjà"), ("almost", "presque"),
)  # fmt: skip


def tense_for(world: World) -> str:
    return world.rng.choices(list(TENSES), list(TENSES.values()))[0]


def be(
    world: World,
    who: Np,
    extra: Part,
    *,
    asked: bool = False,
    tense: str = "",
    negative: float = 0.16,
) -> Clause:
    negation = "not" if world.chance(negative) and not who.impersonal else ""
    if negation and world.chance(0.1) and not asked:
        negation = world.rng.choice(("never", "no longer"))
    return clause(
        world, who, BE, tense or tense_for(world), Complement(extra), negation=negation, asked=asked
    )


def someone_or_something(world: World) -> Np:
    if world.chance(0.5):
        who = pronoun_subject(world)
        while who.part.english[0].word == "it":
            who = pronoun_subject(world)
        return who
    if world.chance(0.15):
        return subject(world, pronouns=0)
    return noun_phrase(world, ANYTHING, subject=True, plain=world.chance(0.85))


def said_of(world: World, who: Np) -> Part:
    """An adjective or two for a subject, in some degree."""
    first, second = adjective_for(world, who), adjective_for(world, who)
    said = part(first.english, _form(first.french(who.gender, plural=who.plural)), content=True)
    said.reserved = world.held_out and who.noun is not None
    degree = Part()
    if world.chance(0.33):
        degree = part(*world.rng.choice(DEGREES))
    if world.chance(0.1) and second != first:
        other = part(
            second.english, _form(second.french(who.gender, plural=who.plural)), content=True
        )
        said = said + part("and", "et") + other
    return degree + said


def _form(word: str) -> str:
    return word.split("/")[0]


def quality(world: World) -> Part:
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    extra = said_of(world, who)
    some = extra.english[0].word in ("almost", "already", "a", "so", "quite", "often")
    said = be(world, who, extra, asked=asked, negative=0 if some else 0.16)
    if asked:
        return said.question() + part("?", "?")
    tail = time_phrase(world, "any") if world.chance(0.07) else Part()
    return said.statement() + tail


def job(world: World) -> Part:
    """`she is a doctor`: elle est médecin. `he is my friend`: c'est mon ami."""
    draw = world.rng.random()
    who = (
        pronoun_subject(world)
        if world.chance(0.6)
        else subject(world, pronouns=0, classes="relative|person")
    )
    while who.impersonal or who.part.english[0].word == "it":
        who = pronoun_subject(world)
    if draw < 0.6:
        noun = world.rng.choice(nouns_of("job"))
        single = noun.feminine[0] if noun.feminine and who.gender == "f" else noun.french
        plural = noun.feminine[1] if noun.feminine and who.gender == "f" else noun.french_plural
        words = english(noun.english_plural if who.plural else noun.english)
        heard = french(plural if who.plural else single, words, content=True)
        first = english(article(noun.english)) if not who.plural else []
        extra = Part(first + words, heard)
        asked = world.chance(0.12)
        said = be(world, who, extra, asked=asked)
        return said.question() + part("?", "?") if asked else said.statement()
    feminine = who.gender == "f"
    what = person_noun(world, feminine=feminine, plural=who.plural)
    return identity(world, who, what)


def person_noun(world: World, *, feminine: bool, plural: bool) -> Np:
    """`a good friend`: with the gender of who it is."""
    while True:
        noun = world.rng.choice(nouns_of("person|relative|job"))
        if noun.mass or noun.plural_only:
            continue
        if noun.feminine and feminine:
            noun = type(noun)(noun.english, noun.english_plural, *noun.feminine, "f", noun.classes)
        elif not noun.feminine and (noun.gender == "f") != feminine and not plural:
            continue
        break
    many = adjectives_of(world, noun, world.rng.choices((0, 1), (65, 35))[0])
    kind = world.rng.choice(("my", "my", "a" if many or "relative" not in noun.classes else "my"))
    if not many and "job" in noun.classes:
        kind = "my"
    return built(world, noun, many, kind, plural=plural)


def identity(world: World, who: Np, what: Np) -> Part:
    """`he is my brother`: c'est mon frère; but `I am your friend`: je suis ton ami."""
    if who.kind == "pron" and who.person in (2, 5):
        tense = world.rng.choices(("present", "past"), (80, 20))[0]
        verb = {
            ("present", 2): "est",
            ("present", 5): "sont",
            ("past", 2): "était",
            ("past", 5): "étaient",
        }[tense, who.person]
        front = english(
            {
                "present": "is" if who.person == 2 else "are",
                "past": "was" if who.person == 2 else "were",
            }[tense]
        )
        if tense == "present" and world.chance(0.45):
            front = english("'s" if who.person == 2 else "'re")
        nots = english("not") if world.chance(0.12) else []
        ne = [Word("ne", tuple(nots))] if nots else []
        pas = [Word("pas", tuple(nots))] if nots else []
        heard = [Word("CE", tuple(who.part.english)), *ne, Word(verb, tuple(front)), *pas]
        return Part(who.part.english + front + nots, heard) + what.part
    return be(
        world, who, what.part, tense=world.rng.choice(("present", "present", "past"))
    ).statement()


def located(world: World) -> Part:
    """`the cat is under the table`."""
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    said = be(world, who, place_phrase(world, only_places=True), asked=asked)
    tail = time_phrase(world, "any") if world.chance(0.08) else Part()
    return said.question() + tail + part("?", "?") if asked else said.statement() + tail


NOT_OF_IT = OTHERWISE | frozenset("cool windy sunny cloudy foggy rainy snowy dark nice".split())
WEATHER = (
    ("hot", "fait", "chaud"), ("cold", "fait", "froid"), ("warm", "fait", "chaud"),
    ("cool", "fait", "frais"), ("nice", "fait", "beau"), ("sunny", "fait", "beau"),
    ("dark", "fait", "nuit"), ("late", "est", "tard"), ("early", "est", "tôt"),
    ("windy", "y", "du vent"), ("too late", "est", "trop tard"),
    ("very cold", "fait", "très froid"),
    ("very hot", "fait", "très chaud"), ("so cold", "fait", "si froid"),
    ("too hot", "fait", "trop chaud"), ("raining", "pleut", ""), ("snowing", "neige", ""),
)  # fmt: skip
WEATHER_VERBS = {
    "fait": ("fait", "faisait", "fera"), "est": ("est", "était", "sera"),
    "y": ("y a", "y avait", "y aura"), "pleut": ("pleut", "pleuvait", "pleuvra"),
    "neige": ("neige", "neigeait", "neigera"),
}  # fmt: skip


def weather(world: World) -> Part:
    """`it is cold`: il fait froid; `it was late`: il était tard."""
    said, verb, heard = world.rng.choice(WEATHER)
    tense = world.rng.choices((0, 1, 2), (60, 28, 12))[0]
    asked, negated = world.chance(0.15), world.chance(0.18)
    front = english(("is", "was", "will")[tense])
    if negated:
        front = english(("isn't", "wasn't", "won't")[tense])
    elif tense != 1 and not asked and world.chance(0.45):
        front = english("'s" if tense == 0 else "'ll")
    it, rest = english("it"), english("be" if tense == 2 else "")
    words = english(said)
    extra = french("de vent" if verb == "y" and negated else heard, words, content=True)
    ne = [Word("ne", tuple(front))] if negated else []
    pas = [Word("pas", tuple(front))] if negated else []
    of = (*front, *rest) if heard else (*front, *rest, *words)
    finite = french(WEATHER_VERBS[verb][tense], of, content=not heard)
    first = french("est-ce que", front) if asked else []
    left = front + it if asked else it + front
    whole = Part(left + rest + words, [*first, *french("il", it), *ne, *finite, *pas, *extra])
    if world.chance(0.35) and said not in ("late", "early", "too late"):
        times = {0: ("today", "aujourd'hui"), 1: ("yesterday", "hier"), 2: ("tomorrow", "demain")}
        whole = whole + part(
            *world.rng.choice((times[tense], ("outside", "dehors"), ("here", "ici")))
        )
    return whole + part("?", "?") if asked else whole


def that_is(world: World) -> Part:
    """`it is good`: c'est bon; `this is my book`; `these are my keys`; `it is mine`."""
    draw = world.rng.random()
    tense = world.rng.choices(("present", "past", "future"), (76, 18, 6))[0]
    negated, asked = world.chance(0.18), world.chance(0.2)
    plural = world.chance(0.1)
    if draw < 0.5:
        plural = False
        fake = Np(Part(), "m", 2)
        thing = Np(Part(), "m", 2, world.rng.choice(nouns_of("thing|food|abstract|small")))
        if world.held_out:
            thing = fake
        extra = said_of(world, thing)
        while any(word.word in NOT_OF_IT for word in extra.english):
            extra = said_of(world, thing)
        extra.reserved = False
        if extra.english[-1].word == "great":
            extra = part("great", "super", content=True)
        if world.chance(0.12):
            extra = part(
                *world.rng.choice(
                    (
                        ("far", "loin"),
                        ("here", "ici"),
                        ("there", "là"),
                        ("near here", "près d'ici"),
                        ("far from here", "loin d'ici"),
                    )
                )
            )
        if world.chance(0.15):
            extra = extra + to_do(world)
    elif draw < 0.85:
        plural = world.chance(0.2)
        what = noun_phrase(
            world,
            f"{THINGS}|{PEOPLE}|animal|food|abstract|event|building",
            determiner="my" if world.chance(0.4) else "",
        )
        while what.kind == "name":
            what = noun_phrase(world, THINGS)
        plural = what.plural
        extra = what.part
    elif draw < 0.93:
        extra = part(
            *world.rng.choice(
                (
                    ("mine", "à moi"),
                    ("yours", "à toi"),
                    ("his", "à lui"),
                    ("hers", "à elle"),
                    ("ours", "à nous"),
                    ("theirs", "à eux"),
                    ("me", "moi"),
                    ("you", "toi"),
                    ("us", "nous"),
                )
            )
        )
        plural = False
    else:
        who = name(world)
        extra = who.part
        plural = False
    said = world.rng.choice(
        ("it", "it", "it", "this", "that") if not plural else ("they", "these", "those")
    )
    pronoun = english(said)
    shape = {
        ("present", False): "is",
        ("present", True): "are",
        ("past", False): "was",
        ("past", True): "were",
    }.get((tense, plural), "will")
    verb = {
        ("present", False): "est",
        ("present", True): "sont",
        ("past", False): "était",
        ("past", True): "étaient",
    }.get((tense, plural), "sera" if not plural else "seront")
    front = english(shape)
    rest = english("be") if shape == "will" else []
    ne: list[Word] = []
    pas: list[Word] = []
    nots = []
    if negated:
        if world.chance(0.6):
            front = english(
                {
                    "is": "isn't",
                    "are": "aren't",
                    "was": "wasn't",
                    "were": "weren't",
                    "will": "won't",
                }[shape]
            )
            source = tuple(front)
        else:
            nots = english("not")
            if (
                not asked
                and world.chance(0.6)
                and shape in ("is", "are")
                and said not in ("this", "these", "those")
            ):
                front = english("'s" if shape == "is" else "'re")
            source = tuple(nots)
        ne, pas = [Word("ne", source)], [Word("pas", source)]
    elif not asked and shape in ("is", "will") and said in ("it", "that") and world.chance(0.5):
        front = english("'s" if shape == "is" else "'ll")
    keys = tuple(front + rest)
    ce = Word("CE", tuple(pronoun))
    heard = [ce, *ne, Word(verb, keys), *pas]
    left = (front + pronoun if asked else pronoun + front) + nots + rest
    if asked:
        heard = [*french("est-ce que", front), *heard]
    return Part(left, heard) + extra + (part("?", "?") if asked else Part())


def to_do(world: World) -> Part:
    """`(it is easy) to learn`: de apprendre."""
    verb = any_verb(world)
    while verb.base.startswith("be ") or verb.reflexive:
        verb = any_verb(world)
    inner = complement(world, verb, Np(Part(), "m", 2), depth=1)
    to, main = english("to"), english(verb.base.replace("one's", "your"))
    infinitive, *tail = verb.french.split(" ")
    clitics = [w for _, w in sorted(inner.clitics, key=lambda pair: pair[0])]
    if inner.negative:
        inner = Complement()
    heard = [
        Word("de", tuple(to)),
        *clitics,
        Word(infinitive, tuple(main), content=True),
        *french(" ".join(tail), main),
    ]
    words = [main[0], *inner.inner, *main[1:]]
    return Part(to + words, heard) + inner.part


def told(world: World) -> Part:
    """A statement with be, short enough for a that-clause."""
    while True:
        said = world.rng.choice((quality, quality, that_is, job, located))(world)
        if said.english[-1].word != "?":
            return said


def girl_who(world: World, relative: Callable[[World], Np]) -> Part:
    """`the girl who lives here is my friend`."""
    who = relative(world)
    extra = (
        said_of(world, who)
        if world.chance(0.5)
        else person_noun(world, feminine=who.gender == "f", plural=who.plural).part
    )
    return be(world, who, extra, tense=world.rng.choice(("present", "past"))).statement()
