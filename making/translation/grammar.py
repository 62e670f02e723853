"""Sentence pairs of everyday English: English, its French, and which word stands for which.

The sentences are put together from the hand-written lists in `words/` by the modules beside this
one: noun phrases, verb phrases, sentences with verbs and with be. The simple past is a passé
composé; questions have est-ce que; `you` is tu.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from making.translation import (
    being,
    clauses,
    commands,
    comparing,
    fragments,
    lessons,
    questions,
    statements,
)
from making.translation.lexicon import formulae
from making.translation.parts import CUTS, Part, Phrase, finished, part
from making.world.lexicon import World

__all__ = ["CUTS", "Phrase", "pairs"]

LONGEST = 16
TEMPLATES: dict[Callable[[World], Part], float] = {
    statements.statement: 23, statements.works: 0.5, clauses.while_doing: 0.8,
    statements.would_love: 0.4, statements.body: 0.8, statements.been_to: 0.7,
    statements.born: 0.5, statements.prefer_to: 0.3, questions.when_is: 0.7, lessons.girl_who: 0.7,
    statements.short_statement: 7, questions.yes_no: 6, questions.wh_question: 8,
    commands.command: 6, statements.would_like: 1.5, statements.have_got: 1,
    statements.there_is: 3, clauses.that_clause: 3, clauses.joined: 3,
    clauses.relative_sentence: 1.6, clauses.passive: 1.2, clauses.since: 0.8,
    clauses.clause_adverb_first: 1.5, questions.let_me: 2, clauses.at_time: 1, being.quality: 7,
    being.job: 3, being.located: 3.5, being.weather: 0.8, being.that_is: 4,
    comparing.compared: 2.2, comparing.superlative: 1.2, questions.age: 1, questions.clock_now: 0.8,
    questions.where_is: 3, fragments.formula: 8, fragments.bare: 4, fragments.single: 8,
    lessons.character: 0.8, lessons.murderer: 0.3, lessons.deed: 2.5,
}  # fmt: skip
"""The kinds of sentences, and how often each is drawn."""


def pairs(seed: int | str, *, held_out: bool = False, invents: bool = True) -> Iterator[Phrase]:
    """Sentence pairs without end, a pure function of the seed; `invents`: also with new words.

    A held-out sentence has adjectives only on nouns that training never puts them on; a sentence
    that is not `reserved` has no adjective on a noun.
    """
    world = World(random.Random(f"translation {seed} {held_out}"), held_out, invents)
    templates, weights = list(TEMPLATES), list(TEMPLATES.values())
    while True:
        (template,) = world.rng.choices(templates, weights)
        said = template(world)
        if 0 < len(said.english) <= LONGEST:
            phrase = _written(world, said)
            if not _contradicts(phrase):
                yield phrase


def _written(world: World, said: Part) -> Phrase:
    """With or without final mark and capital letter, alike in both languages."""
    last = said.english[-1].word
    if last == "?" and world.chance(0.06):
        said = Part(said.english[:-1], [w for w in said.french if w.word != "?"], said.reserved)
    elif last not in ".?!" and world.chance(0.62):
        mark = world.rng.choice("." * 9 + "!")
        said += part(mark, mark)
    phrase = finished(said)
    if not world.chance(0.55) and not phrase.english[0][0].isupper():
        return phrase
    first, *others = phrase.french
    return replace(
        phrase,
        english=(_capital(phrase.english[0]), *phrase.english[1:]),
        french=(replace(first, word=_capital(first.word)), *others),
    )


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


def _contradicts(phrase: Phrase) -> bool:
    """Whether a fixed phrase is these words, with other French."""
    heard = _plain(word.word for word in phrase.french)
    return _fixed().get(_plain(phrase.english), heard) != heard


@cache
def _fixed() -> dict[str, str]:
    """The fixed phrases; of those that are alike but for their marks, the first."""
    fixed: dict[str, str] = {}
    for said, heard in formulae():
        phrase = finished(fragments.aligned(said, heard))
        fixed.setdefault(_plain(phrase.english), _plain(word.word for word in phrase.french))
    return fixed


def _plain(words: Iterable[str]) -> str:
    return " ".join(words).lower().rstrip(" .!?")
