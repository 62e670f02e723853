"""An interpolated trigram model, the baseline of a language model trained on little text.

Jelinek and Mercer 1980: the trigram's, the bigram's and the unigram's relative frequency
and the uniform distribution, mixed by weights that are fitted (EM) on text held back from
the counts.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
TUNED_ON, ROUNDS = 0.05, 30


def trigram_bits(train: IntArray, test: IntArray, vocabulary: int) -> float:
    """The bits that the model needs for the test tokens but the first two.

    Args:
        train: token ids; the last twentieth tunes the weights, and is counted afterwards.
        test: token ids.
        vocabulary: the number of tokens.
    """
    at = round(len(train) * (1 - TUNED_ON))
    tuning = _components(train[:at], train[at:], vocabulary)  # (tokens, 4)
    weights = np.full(4, 0.25)
    for _ in range(ROUNDS):
        share = tuning * weights
        share /= share.sum(axis=1, keepdims=True)
        weights = share.mean(axis=0)
    return float(-np.log2(_components(train, test, vocabulary) @ weights).sum())


def _components(counted: IntArray, text: IntArray, vocabulary: int) -> NDArray[np.float64]:
    """The probability of each token of a text but the first two by each of the four models."""
    words = counted.tolist()
    one, two, three = Counter(words), Counter(_runs(words, 2)), Counter(_runs(words, 3))
    pairs, singles = Counter(_runs(words[:-1], 2)), Counter(words[:-1])
    rows = []
    for a, b, c in _runs(text.tolist(), 3):
        rows.append(
            (
                three[a, b, c] / max(1, pairs[a, b]),
                two[b, c] / max(1, singles[b]),
                one[c] / len(words),
                1 / vocabulary,
            )
        )
    return np.array(rows)


def _runs(words: list[int], n: int) -> list[tuple[int, ...]]:
    return list(zip(*(words[i:] for i in range(n)), strict=False))
