"""Which head is shown where the model's card names none: consumers of the rows of one run."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.exhibit import ChoiceReason
from attnviz.records.heads import Head
from attnviz.records.images import lie_beside, take_much

# The most telling head of a model whose card names none. Its generic score is the sum over the
# queries of the largest weight on a key that is neither the query itself, nor the token just
# before it, nor the first token (a sink); for an answer, the weight on keys that are the token
# written. In rows of signed numbers a weight is its share of the sum of all magnitudes.


TINY = np.finfo(np.float32).tiny


@dataclass
class FindTellingHead:
    """Consumes the rows of a run, sums the measure of each head, and finds the most telling one."""

    causal: bool
    signed: bool = False
    sums: dict[Head, float] = field(default_factory=dict)
    why: ClassVar[ChoiceReason] = "generic"

    def __call__(self, block: PatternBlock) -> None:
        distance = block.queries[:, None] - np.arange(block.weights.shape[2])
        away = distance > 1 if self.causal else np.abs(distance) > 1
        away[:, 0] = False
        weights = block.weights
        if self.signed:
            sizes = np.abs(weights)
            weights = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), TINY)
        strongest = np.where(away, weights, np.float32(0)).max(axis=2)  # (heads, rows)
        for number, total in zip(block.heads, strongest.sum(axis=1).tolist(), strict=True):
            head = Head(block.layer, number)
            self.sums[head] = self.sums.get(head, 0.0) + total

    def highest(self) -> Head:
        """The head with the highest measure; ties go to the earliest head."""
        return max(sorted(self.sums), key=lambda head: self.sums[head])


@dataclass
class FindSeeingHead:
    """Consumes the rows of a run, and finds the head that looks at single places of an image.

    Its measure is the sum, over the rows of text behind the image and over its tokens, of squared
    weights, each times the share of heads that do not look at that token much: a sink, at which
    most heads look, adds little. A head that the card names is taken if it has half of the highest.
    """

    empty: Capture
    sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)
    why: ClassVar[ChoiceReason] = "sees"

    def __post_init__(self) -> None:
        seen = [t.index for t in self.empty.key_tokens if t.image is not None]
        self._seen = np.array(seen, np.int64)
        after = max(seen, default=-1) if self.empty.causal else -1
        tokens = self.empty.query_tokens
        self.rows: NDArray[np.bool_] = np.array(
            [t.image is None and t.index > after for t in tokens]
        )

    def __call__(self, block: PatternBlock) -> None:
        of_text = self.rows[block.queries]
        if not of_text.any():
            return
        weights = block.weights[:, of_text][:, :, self._seen].astype(np.float64)
        moments = np.stack([weights.sum(axis=1), np.square(weights).sum(axis=1)], axis=1)
        for number, own in zip(block.heads, moments, strict=True):  # (2, tokens of images)
            head = Head(block.layer, number)
            self.sums[head] = self.sums.get(head, np.zeros_like(own)) + own

    def highest(self) -> Head:
        """The head to show; ties go to the earliest head."""
        heads = sorted(self.sums)
        totals, squares = np.stack([self.sums[head] for head in heads], axis=1)  # (heads, tokens)
        often = take_much(totals).mean(axis=0)
        measure = dict(zip(heads, (squares * (1 - often)).sum(axis=1).tolist(), strict=True))
        best = max(heads, key=lambda head: measure[head])
        named = [each.head for each in self.empty.named_heads if each.head in measure]
        first = max(named, key=lambda head: measure[head], default=best)
        return first if measure[first] >= measure[best] / 2 else best


def finder_for(empty: Capture) -> FindTellingHead | FindSeeingHead:
    """What finds the head to show of a text, or of a text with images."""
    beside = lie_beside(empty.images, (token.patch for token in empty.key_tokens))
    if empty.images and empty.kind == "self" and not beside:
        seeing = FindSeeingHead(empty)
        if seeing.rows.any():
            return seeing
    return FindTellingHead(empty.causal, empty.signed)
