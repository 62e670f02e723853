"""The choice of a head without a name in the model's card: consumers of the rows of one run."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head, every_head
from attnviz.records.images import lie_beside, one_sheet, spatial_entropy, take_much
from attnviz.records.rests import TINY, FindRests, find_rests, lengths_of
from attnviz.records.sounds import ALIGNMENT, heard_rows, path_shares
from attnviz.records.tokens import class_rows

# The head that moves most to one query, for a model whose card names none. A key's share in the
# contributions to a row, less its mean share over all rows that may attend to it, is high if one
# query attends to it and others do not. For an answer, it is the weight on keys that are the token
# written.

NEAR = 2
"""Links over at most this many tokens are left out: most heads have them on any text."""
MOVES = 0.1
"""A share that exceeds its mean by less than this moves little."""
LEFT = 0.2
"""A row with less of its weight off rests than this moves nothing."""


@dataclass
class FindMovingHead:
    """Consumes the rows of a run, and finds the head with the link that moves most.

    `rests`: those of all heads. Links to rests, to the first token of a causal model, and of or to
    special tokens are left out.
    """

    empty: Capture
    rests: FindRests
    best: dict[Head, tuple[float, int]] = field(default_factory=dict)
    """The highest share of each head, and its query."""

    def __post_init__(self) -> None:
        keys = [not token.special for token in self.empty.key_tokens]
        if self.empty.causal:
            keys[0] = False
        self._keys = np.array(keys)
        self._queries = np.array([not token.special for token in self.empty.query_tokens])
        self._near = min(NEAR, max(0, int(self._keys.sum()) - 2))  # in a short text all is near

    def __call__(self, block: PatternBlock) -> None:
        n, first = block.weights.shape[2], self.empty.first_query
        far = np.abs(block.queries[:, None] - np.arange(n)) > self._near
        far |= not self.empty.one_sequence  # positions of two texts are not near each other
        far &= self._keys[:n] & self._queries[block.queries - first][:, None]
        lengths = lengths_of(self.rests.lengths, block.layer, block.heads, n)
        for number, weights, length in zip(block.heads, block.weights, lengths, strict=True):
            head = Head(block.layer, number)
            off = ~self.rests.of(head)[:n] & self._keys[:n]
            sizes, taken = weights.sum(axis=1), weights * length
            shares = taken / np.maximum(taken.sum(axis=1, keepdims=True), TINY)
            more = shares - self.rests.means(head)[1][:n]
            kept = weights @ off.astype(np.float32) >= LEFT * sizes
            more = np.where(far & off & kept[:, None], more, -1.0).max(axis=1, initial=-1.0)
            row = int(more.argmax())
            found = float(more[row]), int(block.queries[row])
            self.best[head] = max(self.best.get(head, (-1.0, 0)), found, key=lambda each: each[0])

    def highest(self) -> Head:
        """The head with the highest share; ties go to the earliest head."""
        return max(sorted(self.best), key=lambda head: self.best[head][0])

    def choice(self) -> Choice:
        """The head with the highest share, without a claim about it if the share is small."""
        head = self.highest()
        share, query = self.best[head]
        if share < MOVES:
            return Choice((head,), "even")
        start = self.empty.query_tokens[query - self.empty.first_query].start
        return Choice((head,), "moves", start=start)


@dataclass
class FindSeeingHead:
    """Consumes the rows of a run, and finds the head that attends to single places of an image.

    Its measure is the sum, over the rows of text after the image and over its tokens, of squared
    weights, each times the share of heads that do not attend much to that token: a sink, to which
    most heads attend, adds little. Without text the row is that of the image's class, or the mean
    over its patches, and the measure is the mass on patches, with sinks weighted down in the same
    way, times its compactness, e to the minus `spatial_entropy`: 1 if one region has all. A head
    that the card names is taken if it has half of the highest.
    """

    empty: Capture
    sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = [t.index for t in self.empty.key_tokens if t.image is not None]
        self._seen = np.array(seen, np.int64)
        after = max(seen, default=-1) if self.empty.causal else -1
        tokens = self.empty.query_tokens
        rows = [t.image is None and t.index > after for t in tokens]
        self._alone = self.empty.image_alone and bool(self.empty.images[0].views)
        if self.empty.image_alone:
            own = class_rows(tokens) or range(len(tokens))
            rows = [token.index in own for token in tokens]
        self.rows: NDArray[np.bool_] = np.array(rows)

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
        seldom = 1 - take_much(totals).mean(axis=0)
        values = ((totals * self._compact(totals)) if self._alone else squares) @ seldom
        measure = dict(zip(heads, values.tolist(), strict=True))
        best = max(heads, key=lambda head: measure[head])
        named = [each.head for each in self.empty.named_heads if each.head in measure]
        first = max(named, key=lambda head: measure[head], default=best)
        return first if measure[first] >= measure[best] / 2 else best

    def choice(self) -> Choice:
        return Choice((self.highest(),), "sees")

    def _compact(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The compactness of each row's weights (heads, patches) on the image, shape (heads, 1)."""
        keys = self.empty.key_tokens
        sheet = one_sheet(self.empty.images[0], [p for i in self._seen if (p := keys[i].patch)])
        entropy = spatial_entropy(np.where(sheet < 0, np.nan, rows[:, sheet]))
        return np.exp(-np.nan_to_num(entropy, nan=np.inf))[:, None]


@dataclass
class FindAligningHead:
    """Consumes the rows of a run, and finds the head whose weight follows a sound.

    Its measure is `path_shares`, over the alignment heads that the model names; else over those in
    the upper half of its layers, as by Whisper's authors.
    """

    empty: Capture
    shares: dict[Head, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows, self._frames = heard_rows(self.empty)
        named = {each.head for each in self.empty.named_heads if each.behaviour == ALIGNMENT}
        upper = self.empty.model.n_layer // 2
        every = every_head(self.empty.model.heads_per_layer)
        self.heads = named or {head for head in every if head.layer >= upper}
        self._begun, self._seen = dict[Head, list[NDArray[np.float32]]](), list[Head]()

    def __call__(self, block: PatternBlock) -> None:
        own = np.isin(block.queries, self._rows)
        for number, rows in zip(block.heads, block.weights, strict=True):
            head = Head(block.layer, number)
            self._seen.append(head)
            if head not in self.heads:
                continue
            begun = self._begun.setdefault(head, [])
            begun.append(rows[own][:, self._frames])
            if sum(map(len, begun)) == len(self._rows):
                whole = np.concatenate(self._begun.pop(head))
                self.shares[head] = float(path_shares(whole[None])[0])

    def highest(self) -> Head:
        """The head to show; ties go to the earliest head."""
        first = min(self._seen)
        return max(sorted(self.shares), key=lambda head: self.shares[head], default=first)

    def choice(self) -> Choice:
        return Choice((self.highest(),), "aligned")


Finder: TypeAlias = FindMovingHead | FindSeeingHead | FindAligningHead


def finder_for(empty: Capture) -> Finder:
    """The consumer that finds the head to show for a text, a text with images, or a sound."""
    if moves_are_found(empty):
        return FindMovingHead(empty, find_rests(empty))
    if empty.kind == "cross" and any(token.time for token in empty.key_tokens):
        return FindAligningHead(empty)
    return FindSeeingHead(empty)


def moves_are_found(empty: Capture) -> bool:
    """Whether the head to show is the one that moves most: not for a sound or a placed image."""
    if empty.kind == "cross" and any(token.time for token in empty.key_tokens):
        return False
    beside = lie_beside(empty.images, (token.patch for token in empty.key_tokens))
    seen = empty.images and empty.kind in ("self", "encoder") and not beside
    return not (seen and FindSeeingHead(empty).rows.any())
