"""A decoder that training asks, at some words, for another word that belongs to them.

At a noun it is one of its adjectives, at a pronoun what it stands for, at the adjective of a reason
what it is about, at an ambiguous word one that tells its sense. The answer is read from what one
head adds to the stream (`HEADS`), by a matrix of its own, which is no part of the finished model.
Nothing says where a head should look; but to name a word that stood before, it must have found it,
and in every text, without any mark.

So that this head brings the answer, and not several layers a part of it each, a second matrix
guesses the answer from the stream before the head's layer, and the stream learns to be of no use
to it: the gradient is reversed (Ganin and Lempitsky 2015, "Unsupervised domain adaptation by
backpropagation").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.commands.train.loop import IGNORED, PADDING, Batch
from attnviz.models.attention import Hook
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT
from making.sampled import cross_entropy

LAYER = 3
HEADS = 2, 0
"""The asked heads of that layer: one for adjectives and referents, one for clues of a sense."""
N_ASKED = len(HEADS)
ASKED: Mapping[str, int] = MappingProxyType(
    {"adjectives": 0, "pronouns": 0, "pronouns (subject)": 0, "predicates": 0, "senses": 1}
)
"""The links whose query is asked for one of its keys, and the place in `HEADS` of the head."""

NEW = "predicates"
"""The links that the model of the stage before did not know."""

GAIN = 4
"""How many times as fast as others the matrix that guesses learns, to keep up with the stream."""


@dataclass(frozen=True)
class AskingBatch(Batch):
    """A batch with the words to name, (B, N_ASKED, n); where nothing is asked, it is `IGNORED`.

    `kept` (B, n): the tokens whose stream is to stay as it was before this stage.
    """

    asked: Tensor
    kept: Tensor

    def first(self) -> Tensor:
        """(B, n), True at the first token of each document, its BOS."""
        before = nn.functional.pad(self.documents, (1, 0), value=PADDING)[:, :-1]
        return (self.documents != before) & (self.documents != PADDING)


@dataclass(frozen=True)
class Around:
    """What hooks saw of the asked heads: the stream before, (B, n, d); each head's result,
    (B, h, n, d_v); its pattern, (B, h, n, n)."""

    seen: dict[str, Tensor] = field(default_factory=dict)

    def hooks(self) -> dict[str, Hook]:
        """Hooks that fill this; by hook point."""
        return {f"h.{LAYER}.{point}": self._hook(point) for point in POINTS}

    def _hook(self, point: str) -> Hook:
        def record(value: Tensor) -> None:
            self.seen[point] = value

        return record


POINTS = "resid_pre", "attn.z", "attn.pattern"


@dataclass(frozen=True)
class AskingLoss:
    """Means over the questions: `answer` and `guess` are cross-entropies in nats, `rest` is the
    weight that asked rows put on BOS and on themselves."""

    answer: Tensor
    guess: Tensor
    rest: Tensor


class Asking(GPT):
    """A GPT with the matrices that read the answers, and that guess them before."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        d = config.n_embd
        self.answer = nn.Linear(d, d, bias=False)
        self.guess = nn.Linear(d, d, bias=False)

    def finished(self) -> GPT:
        """The model without those matrices, with weights of its own."""
        model = GPT(self.config)
        model.load_state_dict(self.state_dict(), strict=False)
        return model

    def loss(
        self,
        around: Around,
        batch: AskingBatch,
        hiding: float,
        sampled: int | None,
        *,
        reads: bool = False,
    ) -> AskingLoss:
        """The costs of the answers; 0 where nothing is asked.

        Args:
            around: what the hooks saw in a run over the batch.
            batch: its words to name.
            hiding: how strongly the stream before learns to be of no use to the guess.
            sampled: see `sampled.cross_entropy`.
            reads: answers and guesses do not reach the streams, so that their matrices learn first.
        """
        text, place, query = (batch.asked != IGNORED).nonzero().unbind(1)  # (questions) each
        if not text.numel():  # every worker has a gradient for every matrix
            nothing = (self.answer.weight.sum() + self.guess.weight.sum()) * 0
            return AskingLoss(nothing, nothing, nothing)
        head = torch.tensor(HEADS)[place]
        wanted = batch.asked[text, place, query]
        z = around.seen["attn.z"][text, head, query].float()  # (questions, d_v)
        block: Any = self.h[LAYER]
        w_o = block.attn.w_o.weight.unflatten(0, (self.config.n_head, -1))  # (h, d_v, d)
        added = (z[:, None] @ w_o[head]).squeeze(1)  # (questions, d)
        before = around.seen["resid_pre"][text, query].float()
        if reads:
            added, before = added.detach(), before.detach()
        back = hiding / GAIN  # so that its speed makes it no stronger
        reversed_ = (1 + back) * before.detach() - back * before
        rows = around.seen["attn.pattern"][text, head, query].float()  # (questions, n)
        idle = batch.first()[text].float()
        idle[torch.arange(len(query)), query] = 1
        embedding = self.wte.weight
        return AskingLoss(
            cross_entropy(self.answer(_normed(added)), embedding, wanted, sampled),
            cross_entropy(
                GAIN * self.guess(_normed(reversed_)), embedding.detach(), wanted, sampled
            ),
            (rows * idle).sum(-1).mean(),
        )


def _normed(x: Tensor) -> Tensor:
    return nn.functional.layer_norm(x, x.shape[-1:])


def fresh_asking(config: GPTConfig, seed: int) -> Asking:
    """A model with random weights that depend on the seed alone."""
    torch.manual_seed(seed)
    return Asking(config)
