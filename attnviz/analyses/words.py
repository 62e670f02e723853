"""A text's words, put together from its tokens."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attnviz.records.tokens import Token

# A word keeps its inner hyphens and apostrophes ("old-fashioned", "don't"); "'s" is apart.
WORD = re.compile(r"[’']s\b|[^\W_]+(?:(?:-|[’'](?!s\b))[^\W_]+)*|[^\w\s]|_")


@dataclass(frozen=True)
class Word:
    """A word or a punctuation mark, with the positions of its tokens.

    `begins`: it is the first word of a sentence, where a capital means nothing.
    """

    text: str
    tokens: tuple[int, ...]
    begins: bool = False

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        """Whether it is made of letters."""
        return any(character.isalpha() for character in self.text) and self.text[0] not in "'’"

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


def words_of(text: str, tokens: Sequence[Token]) -> tuple[Word, ...]:
    """The words of a text that have tokens; one that was cut off in part is left out.

    Args:
        text: the text whose slices the tokens are.
        tokens: in order; special ones belong to no word.
    """
    spans = [_span(token) for token in tokens]
    words: list[Word] = []
    first = 0
    for found, begins in zip(WORD.finditer(text), beginnings(WORD.findall(text)), strict=True):
        start, end = found.span()
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        mine = tuple(i for i in range(first, last) if spans[i][1] > start)
        if mine and spans[mine[0]][0] <= start and spans[mine[-1]][1] >= end:
            words.append(Word(found[0], mine, begins))
    return tuple(words)


def beginnings(words: Iterable[str]) -> Iterator[bool]:
    """Whether each of a text's words and marks begins a sentence."""
    begins = True
    for word in words:
        yield begins
        begins = word in ".!?:" or (begins and not Word(word, ()).is_word)


def _span(token: Token) -> tuple[int, int]:
    """The characters of a token without the blanks around it; an empty span where it has none."""
    blank = len(token.text) - len(token.text.lstrip())
    end = token.start + len(token.text.rstrip())
    return (token.start + blank, end) if end > token.start else (token.end, token.end)
