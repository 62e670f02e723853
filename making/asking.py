"""A decoder that training asks, at some words, for another word that belongs to them.

At a noun it is one of its adjectives, at a pronoun what it stands for, at an ambiguous word one
that tells its sense. The answer is read from the last residual stream by a matrix of its own,
which is no part of the finished model. Nothing says where a head should look; but to name a word
that stood before, some head must have found it, and in every text, without any mark.
"""

import torch
from torch import Tensor, nn

from attnviz.commands.train.loop import IGNORED
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT
from making.sampled import cross_entropy


class Asking(GPT):
    """A GPT with the matrix that reads the answers."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.answer = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def finished(self) -> GPT:
        """The model without that matrix, with weights of its own."""
        model = GPT(self.config)
        model.load_state_dict(self.state_dict(), strict=False)
        return model

    def loss(self, hidden: Tensor, asked: Tensor, sampled: int | None) -> Tensor:
        """Mean cross-entropy of the answers, in nats; 0 where nothing is asked.

        Args:
            hidden: the residual stream (B, n, d).
            asked: the id of the word to name at each token, or `IGNORED`, (B, n).
            sampled: see `sampled.cross_entropy`.
        """
        where = (asked.flatten() != IGNORED).nonzero().squeeze(1)  # (questions)
        if not where.numel():
            return self.answer.weight.sum() * 0  # every worker has a gradient for every matrix
        normed = self.answer(self.ln_f(hidden.flatten(0, 1)[where].float()))  # (questions, d)
        return cross_entropy(normed, self.wte.weight, asked.flatten()[where], sampled)


def fresh_asking(config: GPTConfig, seed: int) -> Asking:
    """A model with random weights that depend on the seed alone."""
    torch.manual_seed(seed)
    return Asking(config)
