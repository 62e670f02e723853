"""A text of the little world, and the ground truth about its links and answers."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from making.world.lexicon import World

CLOSING = frozenset({",", ".", "?", ":", ";", ")", "!"})
OPENING = frozenset({"("})
VERB = r"(?i:can(?=['’]t\b)|\w+?(?=n['’]t\b)|n['’]t\b)"
"""The verb of a contraction, and its "n't", as the tokenizer cuts them."""
CLITICS = frozenset({"n't", "'s", "'t", "'re", "'ve", "'ll", "'d", "'m"})
SENTENCE_ENDS = frozenset({".", "?", "!"})


@dataclass(frozen=True)
class TrueLink:
    """A ground truth: the word `query` must attend to the words `keys` (indices of words)."""

    behaviour: str
    query: int
    keys: frozenset[int]


@dataclass(frozen=True)
class Answer:
    """A word that the text before it determines; all `accepted` words would be right."""

    measure: str
    word: int
    accepted: frozenset[str]


@dataclass(frozen=True)
class Text:
    """Words and punctuation marks in order, with their links and answers."""

    kind: str
    words: tuple[str, ...]
    links: tuple[TrueLink, ...] = ()
    answers: tuple[Answer, ...] = ()

    @property
    def source(self) -> str:
        """The text as a person would type it."""
        spaces = [" " if _spaced(a, b) else "" for a, b in pairwise(self.words)]
        return "".join(w + s for w, s in zip(self.words, [*spaces, ""], strict=True))


def _spaced(left: str, right: str) -> bool:
    return right not in CLOSING | CLITICS and left not in OPENING


class Writer:
    """Writes a text word by word, and remembers its ground truth.

    With `capitals`, sentences begin with a capital letter; with `lower`, nothing does.
    """

    def __init__(self, kind: str, *, capitals: bool, lower: bool = False) -> None:
        self._kind = kind
        self._capitals = capitals
        self._lower = lower
        self._words: list[str] = []
        self._links: list[TrueLink] = []
        self._answers: list[Answer] = []

    @classmethod
    def drawn(cls, kind: str, world: "World") -> "Writer":
        """A writer with capitals as in print, or with names alone, or wholly in lower case."""
        draw = world.rng.random()
        return cls(kind, capitals=draw < 0.65, lower=draw > 0.88)

    @property
    def words(self) -> tuple[str, ...]:
        """The words written so far."""
        return tuple(self._words)

    def say(self, *phrases: str) -> int:
        """Append the words of phrases; the index of the last word."""
        for phrase in phrases:
            for word in phrase.split():
                self._words.append(self._cased(word))
        return len(self._words) - 1

    def _cased(self, word: str) -> str:
        if self._lower:
            return word.lower()
        starts = not self._words or self._words[-1] in SENTENCE_ENDS
        return word[0].upper() + word[1:] if starts and self._capitals else word

    def unsay(self) -> None:
        """Take the last word back, a mark that another sentence replaces."""
        self._words.pop()

    def link(self, behaviour: str, query: int, keys: list[int]) -> None:
        """Note that the word at `query` must attend to the words at `keys`."""
        self._links.append(TrueLink(behaviour, query, frozenset(keys)))

    def answer(self, measure: str, word: str, accepted: set[str] | None = None) -> int:
        """Append a word that the text so far determines; its index."""
        right = frozenset(self._cased(w) for w in accepted or {word})
        index = self.say(word)
        self._answers.append(Answer(measure, index, right))
        return index

    def text(self) -> Text:
        return Text(self._kind, tuple(self._words), tuple(self._links), tuple(self._answers))


def joined(texts: list[Text]) -> Text:
    """Several texts as one; every link and answer keeps its words."""
    words: list[str] = []
    links: list[TrueLink] = []
    answers: list[Answer] = []
    for text in texts:
        shift = len(words)
        words += text.words
        links += [
            TrueLink(x.behaviour, x.query + shift, frozenset(k + shift for k in x.keys))
            for x in text.links
        ]
        answers += [Answer(a.measure, a.word + shift, a.accepted) for a in text.answers]
    kind = texts[0].kind if len(texts) == 1 else "joined"
    return Text(kind, tuple(words), tuple(links), tuple(answers))
