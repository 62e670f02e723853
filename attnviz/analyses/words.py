"""A text's words, put together from its tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.data.tokens import Token

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
    first, begins = 0, True
    for found in WORD.finditer(text):
        start, end = found.span()
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        mine = tuple(i for i in range(first, last) if spans[i][1] > start)
        word = Word(found[0], mine, begins)
        if mine and spans[mine[0]][0] <= start and spans[mine[-1]][1] >= end:
            words.append(word)
        begins = found[0] in ".!?:" or (begins and not word.is_word)
    return tuple(words)


def _span(token: Token) -> tuple[int, int]:
    """The characters of a token without the blanks around it; an empty span where it has none."""
    blank = len(token.text) - len(token.text.lstrip())
    end = token.start + len(token.text.rstrip())
    return (token.start + blank, end) if end > token.start else (token.end, token.end)
