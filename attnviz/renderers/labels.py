"""Token labels: repeated ones numbered, able to stand alone, in ASCII where needed."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from string import punctuation

from attnviz.errors import in_quotes, readable
from attnviz.records.tokens import SPECIAL_LABEL, Token


def distinct_labels(tokens: Sequence[Token], *, unicode: bool = True) -> tuple[str, ...]:
    """One label per token; where a label occurs more than once, `the#1`, `the#2` and so on.

    The number is the one that a user types to name the token. Without `unicode`, letters beyond
    ASCII are written as escapes.
    """
    named = told_apart([standing(token.label) for token in tokens])
    return tuple(named if unicode else map(ascii_only, named))


def told_apart(labels: Sequence[str]) -> list[str]:
    """The labels, those that occur more than once with a number each."""
    total, seen = Counter(labels), Counter[str]()
    named = []
    for label in labels:
        seen[label] += 1
        named.append(f"{label}#{seen[label]}" if total[label] > 1 else label)
    return named


def name_of(label: str) -> str:
    """The label beside a number: in quotes if it could be taken for a part of it (`7`, `.`).

    The number that tells repeated tokens apart is not counted.
    """
    bare = re.sub(r"#\d+$", "", label)
    marks = all(character in punctuation for character in bare)
    mark = "'" if '"' in label else '"'
    return f"{mark}{label}{mark}" if marks or re.search(r"[\d\s]", bare) else label


def names_of(tokens: Sequence[Token], *, unicode: bool = True) -> tuple[str, ...]:
    """The distinct labels as they stand beside numbers."""
    return tuple(map(name_of, distinct_labels(tokens, unicode=unicode)))


def names_of_texts(texts: Sequence[str], *, unicode: bool = True) -> list[str]:
    """A name for each text of a token, as it stands beside numbers; a token without text is BOS.

    Where two of them differ in spaces only, both stand in quotes with their spaces.
    """
    bare = [standing(readable(text)) or SPECIAL_LABEL for text in texts]
    spellings: dict[str, set[str]] = {}
    for name, text in zip(bare, texts, strict=True):
        spellings.setdefault(name, set()).add(text)
    named = [
        in_quotes(text) if len(spellings[name]) > 1 else name_of(name)
        for name, text in zip(bare, texts, strict=True)
    ]
    return named if unicode else list(map(ascii_only, named))


def standing(label: str) -> str:
    """The label so that it stands alone: a combining mark at its start gets a dotted circle."""
    return f"◌{label}" if label and unicodedata.category(label[0]).startswith("M") else label


def ascii_only(text: str) -> str:
    """The text with every letter beyond ASCII as an escape, such as `\\u695a`."""
    return text.encode("ascii", "backslashreplace").decode("ascii")
