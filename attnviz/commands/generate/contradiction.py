"""What documents say in the place of an answer's words, from the runs that a check makes anyway.

At each token of the answer stands its rival: the likeliest token of the documents' words of content
there, or, at a negation, what follows it. Documents contradict a word where they raise the rival,
more than any unrelated text does, and not the word.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from attnviz.builtin.words import is_function
from attnviz.commands.generate.answer import Answer
from attnviz.commands.generate.runs import AnswerRuns
from attnviz.records.capture import NOTHING
from attnviz.records.grounding import Contradiction, Grounds, RaisedWord
from attnviz.records.tokens import Sampling

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

LIKELY, APART, DOUBLED = np.log(0.1), np.log(10), np.log(2)
"""Nats: a rival's least log-probability, its least lead, and the least change that counts."""
WRITTEN = 8
"""Tokens of a rival to write: its word ends in them, and an insertion shows the word behind it."""
STEM = 4
"""Letters of a word of which another one may be a form."""
NEAR = 8
"""Letters before a word to look at for the end of a sentence."""
NEGATIONS = frozenset({"not", "never"})
UNTESTED = frozenset(
    "no nor neither none nobody nothing nowhere without hardly cannot seldom rarely".split()
)
"""Negations that no single word takes back."""
NO_BLANKS = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts that put no blanks between words: Thai, Lao, Khmer, Japanese, Chinese."""
WORD = re.compile(r"\d[\d.,:/-]*\d|\w[\w'’-]*")


@dataclass(frozen=True)
class SaidWord:
    """A word of the answer: its tokens from `first` up to, but without, `after`."""

    text: str
    first: int
    after: int
    begins: bool

    @property
    def negates(self) -> bool:
        return _negates(self.text)

    @property
    def says_little(self) -> bool:
        return _says_little(self.text, begins=self.begins)


def words_of(answer: Answer) -> list[SaidWord]:
    """The words of an answer, and its numbers whole, without marks."""
    tokens, words = answer.capture.query_tokens, list[SaidWord]()
    for part in answer.parts("sentence"):
        own = tokens[part.first : part.after]
        start = own[0].start if own else 0
        text = answer.capture.texts[0][start : own[-1].end if own else 0]
        for found, begins in _words_in(text):
            a, b = start + found.start(), start + found.end()
            places = [part.first + i for i, t in enumerate(own) if t.start < b and a < t.end]
            if places:
                words.append(SaidWord(found[0], places[0], places[-1] + 1, begins))
    return words


def _words_in(text: str) -> Iterator[tuple["re.Match[str]", bool]]:
    """The words of a text, and whether each begins a sentence."""
    for found in WORD.finditer(text):
        before = text[max(0, found.start() - NEAR) : found.start()].rstrip(" \"“'(")
        yield found, not before or before[-1] in ".!?:\n"


def contents_of(model: "LoadedModel", texts: Sequence[str]) -> list[int]:
    """The ids of the tokens of texts' words of content, and negations, with a blank or without."""
    words = [(each[0], begins) for text in texts for each, begins in _words_in(text)]
    told = (w for w, begins in words if _negates(w) or not _says_little(w, begins=begins))
    written = (form for each in dict.fromkeys(told) for form in (each, f" {each}"))
    return list(dict.fromkeys(id_ for form in written for id_ in model.tokenizer.ids(form)))


def rivals_of(
    model: "LoadedModel", ids: Sequence[int], answer: Answer, contents: Sequence[int]
) -> list[int]:
    """The rival at each place of an answer: the likeliest of `contents`, or behind a negation.

    Without `contents`, the answer's own tokens.
    """
    new = [each.id for each in answer.capture.query_tokens]
    rivals = model.likeliest(ids, new, contents) if contents else [*new]
    for word, after in pairwise(words_of(answer)):
        if word.negates:
            rivals[word.first] = new[after.first]
    return rivals


def raised_words(
    words: Sequence[SaidWord], given: Grounds, question: str, documents: Sequence[str]
) -> tuple[RaisedWord, ...]:
    """The words of content that documents could give, and whether they stand there, and are raised.

    Neither words of the question nor those that are likely anyway.
    """
    asked, told = WORD.findall(question), {w for text in documents for w in WORD.findall(text)}
    own = (w for w in words if not w.says_little and not any(_alike(w.text, a) for a in asked))
    return tuple(
        RaisedWord(each.first, raised and any(_alike(each.text, other) for other in told))
        for each in own
        if (raised := given.raised(each.first, each.after, DOUBLED)) is not None
    )


def contradictions(
    runs: AnswerRuns,
    words: Sequence[SaidWord],
    given: Grounds,
    rivals: Grounds,
    answer: Answer,
    documents: Sequence[str],
    raised: Sequence[RaisedWord],
    *,
    torn: bool = False,
) -> Iterator[Contradiction]:
    """The first word of each statement that the documents contradict.

    Args:
        runs: of the answer.
        words: of the answer.
        given: log-probabilities of its tokens.
        rivals: those of the rivals.
        answer: with its statements.
        documents: their texts.
        raised: whether they raise the words of content.
        torn: also where a rival is less ahead, but only of words that documents could give.
    """
    if not len(given.unrelated):
        return
    parted = {i for i in _parted(given, rivals) if runs.new[i] != runs.rivals[i]}
    told = {each.casefold() for text in documents for each in WORD.findall(text)}
    lead, least = rivals.whole - given.whole, 0 if torn else APART
    likely = {i for i in parted if rivals.whole[i] >= LIKELY and lead[i] >= least}
    tried = {each.place for each in raised} if torn else {each.first for each in words}
    for part in answer.parts("sentence"):
        own = [each for each in words if part.first <= each.first < part.after]
        negation = next((i for i, each in enumerate(own[:-1]) if each.negates), None)
        instead = (
            said
            for word in own[:negation]  # rivals behind a negation are not the documents'
            if word.first in tried
            for place in range(word.first, word.after)
            if place in likely and (said := _instead(runs, word, place, answer, told))
        )
        found = next(instead, None)
        if not found and negation is not None and own[negation].first in parted:
            found = _without_negation(own[negation:], {w.place: w.raised for w in raised})
        if found:
            yield replace(found, probability=float(np.exp(rivals.whole[found.place])))


def _without_negation(
    words: Sequence[SaidWord], raised: Mapping[int, bool]
) -> Contradiction | None:
    """What the documents say in the place of a negation, the first of these words.

    They have to raise names and numbers behind it, and half of all words there: “not built by Ann”
    says nothing against “built by Tom”.
    """
    word, after, *_ = words
    behind = [each for each in words[1:] if each.first in raised]
    given = [raised[each.first] for each in behind]
    named = (raised[w.first] for w in behind if w.text[0].isupper() or _has_digit(w.text))
    if not all(named) or 2 * sum(given) < len(given):
        return None
    return Contradiction(f"{word.text} {after.text}", after.text, word.first)


def _parted(given: Grounds, rivals: Grounds) -> list[int]:
    """Where documents raise the rival, and its odds against the token, beyond all noise."""
    rise, noise = rivals.whole - rivals.without, rivals.unrelated - rivals.without
    shift = rise - (given.whole - given.without)
    other = noise - (given.unrelated - given.without)
    raised = rise > np.maximum(noise.max(axis=0), 0)
    return np.flatnonzero(raised & (shift > np.maximum(other.max(axis=0), DOUBLED))).tolist()


def _instead(
    runs: AnswerRuns, word: SaidWord, place: int, answer: Answer, told: Collection[str]
) -> Contradiction | None:
    """What the documents, whose words are `told`, say in the place of a word, if anything."""
    if word.says_little and not _negates(runs.model.tokenizer.decoded([runs.rivals[place]])):
        return None
    tokens = answer.capture.query_tokens[word.first : place]
    before = "".join(each.text for each in tokens).lstrip()
    instead = _replaces(word, before + _written(runs, place))
    return Contradiction(word.text, instead, place) if instead.casefold() in told else None


def _written(runs: AnswerRuns, place: int) -> str:
    """The rival at a place, and what the model writes behind it, with the documents."""
    if place in runs.told:
        return runs.told[place]
    written = list[int]()

    def go_on(id_: int) -> bool:
        written.append(id_)
        return True

    before = [*runs.ids, *runs.new[:place], runs.rivals[place]]
    room = runs.model.tokenizer.context - len(before)
    if room > 0:
        sampling = Sampling(min(WRITTEN, room))
        runs.model.generate(before, sampling, NOTHING, lambda _: None, go_on)
    runs.told[place] = runs.model.tokenizer.decoded([runs.rivals[place], *written])
    return runs.told[place]


def _replaces(word: SaidWord, told: str) -> str:
    """The word that stands there instead; empty where it adds to the word, or bends it."""
    found = WORD.findall(told)
    if not found:
        return ""
    instead, *more = found
    one, other = word.text.casefold(), instead.casefold()
    if other in NEGATIONS:
        return str(instead)
    if _has_digit(one) or _has_digit(other):
        both = _has_digit(one) and _has_digit(other)
        return str(instead) if both and one != other else ""
    if _says_little(instead, begins=word.begins):
        return ""
    bends = one.startswith(other) or other.startswith(one)
    of_one_kind = word.begins or word.text[0].isupper() == instead[0].isupper()
    added = one in (each.casefold() for each in more)  # “of Halden takes”, not “takes”
    return "" if bends or added or not of_one_kind else str(instead)


def is_untested(statement: str) -> bool:
    """Whether a statement has a negation that no single word takes back, or no blanks."""
    words = {each.casefold() for each in WORD.findall(statement)}
    contracted = re.search(r"n ?['’] ?t\b", statement, re.IGNORECASE)
    return bool(words & UNTESTED or contracted or NO_BLANKS.search(statement))


def _alike(word: str, other: str) -> bool:
    """Whether they are one word, or one is bent: “open” and “opened”."""
    one, two = sorted((word.casefold(), other.casefold()), key=len)
    return one == two or (len(one) >= STEM and two.startswith(one))


def _negates(word: str) -> bool:
    return word.strip().casefold() in NEGATIONS


def _says_little(word: str, *, begins: bool) -> bool:
    """Whether it is a function word; “May” and “Will” within a sentence are none."""
    return is_function(word.lower() if begins else word) and not _has_digit(word)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
