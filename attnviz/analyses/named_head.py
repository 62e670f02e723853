"""The named head that fits a text best, by a linear rule over the named heads' activity.

Some heads are active on every text (such as the one that attends to the previous token), others
rest on BOS until their behaviour occurs, so the activity of one head tells little. The rule
therefore takes all named heads together. Each head's activity is four numbers; a behaviour's
fit is a weighted sum of all of them plus a constant, and the best fit wins. The weights are in
the model card. They were fitted once, after the training, on development texts of the little
world (Fisher's linear discriminant).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attnviz.data.card import NamedHead
from attnviz.data.head import Head

Pattern = NDArray[np.float32]


def activity(pattern: Pattern, *, bos: bool) -> NDArray[np.float64]:
    """Four numbers from 0 to 1 for a causal pattern (n, n).

    The first three are the mean, the maximum and the mean of the three largest of the queries'
    strongest links, leaving out links to the query itself and to BOS. The fourth is the mean
    weight on the token just before.
    """
    start = 1 if bos else 0
    content = pattern[start:, start:].astype(np.float64)  # (m, m)
    previous = np.diagonal(content, offset=-1)  # (m - 1)
    np.fill_diagonal(content := content.copy(), 0.0)
    links = np.sort(content.max(axis=1, initial=0.0))[::-1]  # (m), strongest first
    if not links.size:
        return np.zeros(4)
    before = previous.sum() / links.size
    return np.array([links.mean(), links[0], links[:3].mean(), before])


def fingerprint(
    patterns: Mapping[Head, Pattern], heads: Sequence[NamedHead], *, bos: bool
) -> NDArray[np.float64]:
    """The activities of the named heads, concatenated, each head once."""
    distinct = dict.fromkeys(named.head for named in heads)
    return np.concatenate([activity(patterns[head], bos=bos) for head in distinct])


def choose(
    patterns: Mapping[Head, Pattern], heads: Sequence[NamedHead], *, bos: bool
) -> NamedHead | None:
    """The named head whose behaviour the text shows, or None where the card has no rule.

    Args:
        patterns: the pattern (n, n) of every named head.
        heads: the card's named heads, in the order of the card; `fit` holds the weights of
            the fingerprint, then the constant.
        bos: whether the first token is a beginning token.
    """
    activities = fingerprint(patterns, heads, bos=bos)
    fitted = [named for named in heads if len(named.fit) == len(activities) + 1]
    if not fitted:
        return None
    fits = [float(np.dot(named.fit[:-1], activities)) + named.fit[-1] for named in fitted]
    return fitted[int(np.argmax(fits))]
