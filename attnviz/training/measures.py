"""What a head does, as numbers: pure functions of one pattern and the ground truth of its text.

A pattern is (n, n), rows are queries; token 0 is BOS. A word may be several tokens: its
attention is read at its last one, and to look at a word is to look at any of its tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.training.world.text import Answer, TrueLink

Array = NDArray[np.float32]
BOS = 0


@dataclass(frozen=True)
class LinkScore:
    """`mass`: the row's share on the true keys; `top`: the strongest key is a true one;
    `all_top`: the true words are the strongest words, all of them."""

    mass: float
    top: bool
    all_top: bool


def score_link(pattern: Array, link: TrueLink, positions: Sequence[Sequence[int]]) -> LinkScore:
    """One link in one head's pattern; `top` and `all_top` leave out the query itself and BOS.

    Args:
        pattern: (n, n).
        link: the query word and its true key words.
        positions: for each word the positions of its tokens.
    """
    query = positions[link.query]
    row = pattern[query[-1]].astype(np.float64)  # (n)
    words = {w: float(row[list(positions[w])].sum()) for w in range(link.query)}
    strongest = sorted(words, key=lambda w: -words[w])[: len(link.keys)]
    true_tokens = [t for w in link.keys for t in positions[w]]
    others = row.copy()
    others[[BOS, *query]] = -1
    return LinkScore(
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
        predicted: for each token the likeliest successor (n).
        answer: which word is asked for.
        positions: for each word the positions of its tokens.
        pieces: for each word its token ids.
        first_pieces: the first token of every accepted word.
    """
    at, wanted = positions[answer.word], pieces[answer.word]
    said = [predicted[i - 1] for i in at]
    if said[0] not in first_pieces:
        return False
    return said[0] != wanted[0] or said == list(wanted)


def induction_score(pattern: Array, period: int) -> float:
    """Mean weight on the token behind the earlier copy, over the second copy of random tokens.

    Args:
        pattern: (1 + 2·period, 1 + 2·period): BOS, then the same tokens twice.
        period: how many tokens come twice.
    """
    queries = np.arange(period + 1, 2 * period + 1)
    return float(pattern[queries, queries - period + 1].mean())


def previous_token_score(pattern: Array) -> float:
    """Mean weight on the token before, over all tokens but BOS and the first one."""
    queries = np.arange(2, len(pattern))
    return float(pattern[queries, queries - 1].mean())
