"""Measures of a head: pure functions of one pattern and the ground truth of its text.

A pattern is (n, n), rows are queries; token 0 is BOS. A word may have several tokens: its
attention is the row of its last token, and a weight on any of its tokens is a weight on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from making.world.text import Answer, TrueLink

Array = NDArray[np.float32]
BOS = 0


@dataclass(frozen=True)
class LinkMeasures:
    """`mass`: the row's share on the true keys; `top`: the strongest key is a true one;
    `all_top`: the true words are the strongest words, all of them."""

    mass: float
    top: bool
    all_top: bool


def measure_link(
    pattern: Array, link: TrueLink, positions: Sequence[Sequence[int]]
) -> LinkMeasures:
    """The measures of one link in one pattern; `top` and `all_top` leave out the query and BOS.

    Args:
        pattern: (n, n).
        link: the query word and its true key words.
        positions: the positions of each word's tokens.
    """
    query = positions[link.query]
    row = pattern[query[-1]].astype(np.float64)  # (n)
    words = {w: float(row[list(positions[w])].sum()) for w in range(link.query)}
    strongest = sorted(words, key=lambda w: -words[w])[: len(link.keys)]
    true_tokens = [t for w in link.keys for t in positions[w]]
    others = row.copy()
    others[[BOS, *query]] = -1
    return LinkMeasures(
        mass=float(row[true_tokens].sum()),
        top=int(others.argmax()) in true_tokens,
        all_top=set(strongest) == set(link.keys),
    )


def is_right(
    predicted: Sequence[int],
    answer: Answer,
    positions: Sequence[Sequence[int]],
    pieces: Sequence[Sequence[int]],
    first_pieces: set[int],
) -> bool:
    """Whether the model names an accepted word here.

    Args:
        predicted: the likeliest successor of each token, (n).
        answer: the word to name.
        positions: the positions of each word's tokens.
        pieces: the token ids of each word.
        first_pieces: the first token of every accepted word.
    """
    at, true = positions[answer.word], pieces[answer.word]
    named = [predicted[i - 1] for i in at]
    if named[0] not in first_pieces:
        return False
    return named[0] != true[0] or named == list(true)


def induction_score(pattern: Array, period: int) -> float:
    """Mean weight on the token after the first copy, over the second copy of random tokens.

    Args:
        pattern: (1 + 2·period, 1 + 2·period): BOS, then the same tokens twice.
        period: the number of tokens in one copy.
    """
    queries = np.arange(period + 1, 2 * period + 1)
    return float(pattern[queries, queries - period + 1].mean())


def previous_token_score(pattern: Array) -> float:
    """Mean weight on the token before, over all tokens but BOS and the first one."""
    queries = np.arange(2, len(pattern))
    return float(pattern[queries, queries - 1].mean())
