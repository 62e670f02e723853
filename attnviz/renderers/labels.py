"""Token labels: repeated ones numbered, able to stand alone, in ASCII where needed."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from attnviz.data.tokens import Token


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


def standing(label: str) -> str:
    """The label so that it stands alone: a combining mark at its start gets a dotted circle."""
    return f"◌{label}" if label and unicodedata.category(label[0]).startswith("M") else label


def ascii_only(text: str) -> str:
    """The text with every letter beyond ASCII as an escape, such as `\\u695a`."""
    return text.encode("ascii", "backslashreplace").decode("ascii")
