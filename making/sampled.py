"""Cross-entropy over a large vocabulary, estimated from a sample of it."""

import math

import torch
from torch import Tensor


def cross_entropy(
    hidden: Tensor, embedding: Tensor, targets: Tensor, sampled: int | None = None
) -> Tensor:
    """Mean over n targets of −log softmax(hidden·Eᵀ)[target], in nats.

    A softmax's denominator is a sum over the vocabulary. With `sampled`, that many of the words
    that are no target, drawn at random, stand for all such words in the sum, each for several:
    its expected value is the same, in a fraction of the time.

    Args:
        hidden: (n, d). embedding: E, (V, d). targets: (n), ids.
        sampled: how many words to draw; None takes all.
    """
    wanted, index = torch.unique(targets, return_inverse=True)  # (w), (n)
    if sampled is None or wanted.numel() + sampled >= embedding.size(0):
        return torch.nn.functional.cross_entropy((hidden @ embedding.t()).float(), targets)
    rest = torch.ones(embedding.size(0), dtype=torch.bool).index_fill_(0, wanted, False).nonzero()
    drawn = rest[torch.randperm(rest.size(0))[:sampled], 0]  # (sampled)
    words = torch.nn.functional.embedding(torch.cat((wanted, drawn)), embedding)
    logits = (hidden @ words.t()).float()  # (n, w + sampled)
    # a drawn word counts as often as there are words for it to stand for
    logits[:, wanted.numel() :] += math.log(rest.size(0) / sampled)
    return torch.nn.functional.cross_entropy(logits, index)
