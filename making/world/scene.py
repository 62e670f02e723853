"""A scene: sentences of ordinary forms, and everybody and everything that they mention.

A sentence is made from a frame of `words/clauses.txt`. Its slots become noun phrases; each noun
attends to its adjectives, and what a phrase mentions is remembered, so that a pronoun can stand
for it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from making.world.lexicon import Habit, World, article, groups, habit, plural, read
from making.world.text import Text, Writer

CLASSES = {
    "P": ("man", "woman", "person", "person", "person"),
    "Pk": ("man", "woman", "person"),
    "A": ("animal",), "T": ("thing",), "F": ("food",), "L": ("place",), "G": ("group",),
    "X": ("abstract",), "N": ("plant",), "S": ("stuff",), "B": ("thing", "thing", "animal"),
    "Q": ("person", "person", "man", "woman"), "he": ("man", "person"), "she": ("woman", "person"),
}  # fmt: skip
FORMS = {
    "he": {"he": "he", "him": "him", "his": "his"},
    "she": {"he": "she", "him": "her", "his": "her"},
    "it": {"he": "it", "him": "it", "his": "its"},
    "they": {"he": "they", "him": "them", "his": "their"},
}
PREPOSITIONS = frozenset("in at on near after during before by with to from of".split())
AGREEING = frozenset("s is was has does my who".split())
"""Where these stand in a frame, its nouns stay singular, so that the verb agrees."""
FEW, MANY = (58, 29, 10, 3), (12, 30, 38, 20)
"""How often a noun phrase has none, one, two or three adjectives."""
SLOT = re.compile(r"\{(\.?)(\w+)(?:!(\w))?\}")


@dataclass
class Entity:
    """Somebody or something: the words that name it, its pronouns, and its habits.

    `told`: a word that its habits decide stands in the text already, and would give them away.
    """

    words: list[int]
    pronouns: frozenset[str]
    pronoun: str
    habits: tuple[Habit, ...]
    subject_of: int = -1
    told: bool = False


@dataclass
class Scene:
    """Writes sentences into a text; `adjectives` says how often nouns have how many."""

    world: World
    writer: Writer
    adjectives: Sequence[int] = FEW
    entities: list[Entity] = field(default_factory=list)
    sentences: int = 0
    things: dict[str, list[str]] = field(default_factory=dict)
    subject: Entity | None = None
    avoided: str = ""
    """The pronoun that may not stand for the person mentioned next."""

    def sentence(self, frame: str, *, end: bool = True) -> None:
        """Write a sentence; without `end`, its last mark is left out, for what follows."""
        self.sentences += 1
        parts = frame.split()
        together = parts[1] == "and" and parts[0] == parts[2] == "{P}"
        self.subject = None
        before = len(self.entities)
        several = self.world.chance(0.35) and not AGREEING & set(re.split(r"[ :>]", frame))
        for i, part in enumerate(parts if end else parts[:-1]):
            slot = SLOT.fullmatch(self._plural(part) if several else part)
            if slot and slot[1]:
                if self.subject is not None:
                    self.refer(self.subject, slot[2], slot[3])
            elif slot:
                entity = self.mention(slot[2], slot[3])
                if self.subject is None and (i == 0 or parts[i - 1] not in PREPOSITIONS):
                    self.subject = entity
                    entity.subject_of = self.sentences
            elif part[0] == "<":
                self.writer.say(self.verb(part))
            else:
                self.writer.say(part)
        if together and len(self.entities) == before + 2:
            self._join(self.entities[before:])
        self.subject = None

    def _plural(self, part: str) -> str:
        """The slot of people or things in the place of one, at times."""
        other = {"{P": "{Q", "{T": "{B"}.get(part[:2])
        fits = other and part[2:3] in ("}", "!") and self.world.chance(0.5)
        return f"{other}{part[2:]}" if fits else part

    def verb(self, part: str) -> str:
        """A word for a part such as `<pp:d>`: a verb of this frame in this form."""
        frame, _, form = part[1:-1].partition(":")
        if form:
            return self.world.verb(frame, form)
        return self.world.rng.choice(groups("frames")[frame])

    def _join(self, pair: list[Entity]) -> None:
        """The two subjects of a sentence as one, for which "they" may stand."""
        first, second = pair
        first.subject_of = -1
        words, both = [*first.words, *second.words], (*first.habits, *second.habits)
        joint = Entity(words, frozenset({"they"}), "they", both, self.sentences)
        self.entities.append(joint)

    def mention(self, slot: str, form: str | None) -> Entity:
        """Write a noun phrase, and what it does in this form, if any."""
        phrase = self._person if slot == "P" else self._noun_phrase
        entity = phrase(slot, postmodified=form is None)
        self.entities.append(entity)
        if form:
            self.follow(entity, form, "what follows the noun")
        return entity

    def person(self, pronoun: str) -> Entity:
        """Write a name or a noun for somebody who is called he or she."""
        if self.world.chance(0.5):
            entity = self._noun_phrase(pronoun, postmodified=False)
            entity.pronouns, entity.pronoun = frozenset({pronoun}), pronoun
        else:
            self.avoided = "she" if pronoun == "he" else "he"
            entity = self._person("P", postmodified=False)
            self.avoided = ""
        self.entities.append(entity)
        return entity

    def refer(self, entity: Entity, case: str, form: str | None) -> None:
        """Write a pronoun for an entity, and what follows it."""
        rivals = self._link_pronoun(entity, self.writer.say(FORMS[entity.pronoun][case]))
        if form:
            self.follow(entity, form, "what follows" if not rivals else "what follows (subject)")

    def _link_pronoun(self, entity: Entity, query: int) -> bool:
        """Note what a pronoun stands for; whether others could be meant by its form."""
        rivals = any(entity.pronoun in e.pronouns for e in self.entities if e is not entity)
        self.writer.link("pronouns (subject)" if rivals else "pronouns", query, entity.words)
        return rivals

    def follow(self, entity: Entity, form: str, measure: str) -> None:
        """Write what an entity does: v past, b base, g -ing, n its part, t a gift for it."""
        name = {"v": "past", "b": "base", "g": "ing", "n": "part", "t": "gift"}[form]
        words = {getattr(h, name) for h in entity.habits}
        entity.told = True
        self.writer.answer(measure, self.world.rng.choice(sorted(words)), words)

    def _person(self, slot: str, *, postmodified: bool) -> Entity:
        world, rng = self.world, self.world.rng
        if world.chance(0.5) and self.avoided not in ("he", "she"):
            return self._noun_phrase(slot, postmodified=postmodified)
        name, pronoun = world.name()
        while pronoun == self.avoided:
            name, pronoun = world.name()
        kind, draw = "person", rng.random()
        adjectives = self._count() if draw < 0.45 else 0
        words: list[int] = []
        habits: tuple[Habit, ...] = ()
        if adjectives:
            self.writer.say("the")
            habits = self._adjectives(name, kind, adjectives)
        elif draw > 0.92:
            title = "Mr" if pronoun == "he" else rng.choice(("Mrs", "Miss", "Ms"))
            words.append(self.writer.say(title))
            name = rng.choice(groups("names")["surname"])
        elif draw > 0.86:
            noun = world.noun_of("person")
            words.append(self.writer.say("the", noun))
            habits = (habit(noun, kind), habit(name, kind))
        words.append(self._head(name))
        if 0.76 < draw <= 0.86:
            words.append(self.writer.say(rng.choice(groups("names")["surname"])))
        elif postmodified and 0.72 < draw <= 0.76:
            self.writer.say(",", "the")
            words.append(self.writer.say(world.noun_of("person")))
            self.writer.say(",")
        return Entity(words, frozenset({pronoun}), pronoun, habits or (habit(name, kind),))

    def _noun_phrase(self, slot: str, *, postmodified: bool) -> Entity:
        world, rng = self.world, self.world.rng
        kind = rng.choice(CLASSES[slot])
        noun = world.made_up() if slot in "ATP" and world.chance(0.03) else world.noun_of(kind)
        several = slot in "BQ"
        written = plural(noun) if several else noun
        count = 0 if slot in ("S", "Pk") else self._count()
        habits = self._phrase(written, noun, kind, count, several or slot == "S", slot == "Pk")
        if count and world.chance(0.07):  # "a long fire drill"
            self.writer.say(world.noun_of(rng.choice(("stuff", "thing", "thing", "abstract"))))
        words = [self._head(written)]
        pronouns = _pronouns(kind, several)
        if postmodified and world.chance(0.05) and slot in "PTQB":
            self.writer.say(rng.choice(("from", "in", "near")), "the", world.noun_of("place"))
        own = habits or (habit(noun, kind),)
        return Entity(words, frozenset(pronouns), rng.choice(pronouns), own)

    def _phrase(
        self, written: str, noun: str, kind: str, count: int, bare: bool, known: bool
    ) -> tuple[Habit, ...]:
        """Write a determiner and adjectives; the habits of the adjectives."""
        rng = self.world.rng
        if known:
            return ()
        self._pending = []
        taken = {a for all_ in self.things.values() for a in all_} | {noun}
        adjectives: list[str] = []
        for _ in range(count):
            adjectives.append(self.world.adjective_for(noun, taken))
            taken.add(adjectives[-1])
        very = bool(adjectives) and self.world.chance(0.1)
        first = "very" if very else (adjectives or [written])[0]
        if bare:
            determiner = rng.choice(("", "", "the", "some", "these", "many"))
        else:
            choices = (article(first), article(first), "the", "the", "the", "this", "that", "my")
            determiner = rng.choice(choices)
        if self.world.chance(0.05):
            self._owner()
        else:
            self.writer.say(determiner, *(["very"] if very else []))
        self._say_adjectives(adjectives)
        if adjectives and written not in self.things:
            self.things[written] = adjectives
        return tuple(dict.fromkeys(habit(a, kind) for a in adjectives))

    def _owner(self) -> None:
        """Write somebody's name as a possessive, such as "Anna's"."""
        name, pronoun = self.world.name()
        word = self.writer.say(name)
        self.writer.say("'s")
        own = (habit(name, "person"),)
        self.entities.append(Entity([word], frozenset({pronoun}), pronoun, own))

    def _adjectives(self, name: str, kind: str, count: int) -> tuple[Habit, ...]:
        """The adjectives of a name."""
        adjectives: list[str] = []
        for _ in range(count):
            adjectives.append(self.world.adjective_for(name, {*adjectives, name}))
        self._say_adjectives(adjectives)
        return tuple(dict.fromkeys(habit(a, kind) for a in adjectives))

    def _say_adjectives(self, adjectives: list[str]) -> None:
        count = len(adjectives)
        self._pending = [
            self.writer.say(*_between(self.world, i, count), adjective)
            for i, adjective in enumerate(adjectives)
        ]

    def _head(self, word: str) -> int:
        """Write the noun or name that the adjectives before it describe."""
        query = self.writer.say(word)
        if self._pending:
            self.writer.link("adjectives", query, self._pending)
        self._pending = []
        return query

    def _count(self) -> int:
        return self.world.rng.choices((0, 1, 2, 3), weights=self.adjectives)[0]

    _pending: list[int] = field(default_factory=list)

    def text(self) -> Text:
        return self.writer.text()


@cache
def frames() -> tuple[str, ...]:
    """The frames of sentences."""
    return tuple(line for line in read("clauses") if line)


def _pronouns(kind: str, several: bool) -> tuple[str, ...]:
    if several or kind == "group":
        return ("they",)
    if kind in ("man", "woman"):
        return ("he" if kind == "man" else "she",)
    return ("he", "she") if kind == "person" else ("it",)


def _between(world: World, index: int, count: int) -> list[str]:
    """The words before an adjective: nothing, a comma or "and" after another, perhaps "very"."""
    if index == 0:
        return []
    last = index == count - 1
    between = world.rng.choices(([], [","], ["and"] if last else [","]), weights=(55, 28, 17))[0]
    return between + (["very"] if world.chance(0.06) else [])
