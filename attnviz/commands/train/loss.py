"""A batch of the training (packed rows, a block-diagonal mask), and the loss of a step."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached
from attnviz.models.scratch.gpt import GPT

DROPOUT = 0.15
IGNORED = -1
PADDING = -1


@dataclass(frozen=True)
class Batch:
    """Ids, positions, document numbers and targets, each (B, n).

    Padding has document `PADDING`; where no target counts, there is `IGNORED`.
    """

    ids: Tensor
    positions: Tensor
    documents: Tensor
    targets: Tensor

    def mask(self) -> Tensor:
        """(B, 1, n, n), True where a query may attend: the same document, and not the future.

        Padding attends to itself, so that no row is empty.
        """
        n = self.ids.size(1)
        same = self.documents[:, :, None] == self.documents[:, None, :]  # (B, n, n)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        return (same & causal).unsqueeze(1)

    def predictions(self) -> tuple[Tensor, Tensor]:
        """The flat indices of the tokens whose successor counts, and those successors."""
        flat = self.targets.flatten()
        where = (flat != IGNORED).nonzero().squeeze(1)
        return where, flat[where]


@dataclass(frozen=True)
class StepLoss:
    """`total` is what a step lowers. What is reported, in nats: the loss of the predicted tokens,
    and the entropy of the attention, where it costs something."""

    total: Tensor
    predicted: float
    entropy: float = 0.0


def next_token_loss(model: GPT, batch: Batch, step: int) -> StepLoss:
    """Mean cross-entropy of the next tokens; dropout against overfitting, as in GPT-2's training.

    Dropout acts on the embeddings and on each head's result.
    """
    layers = range(model.config.n_layer)
    hooks = {"h.0.resid_pre": _drop, **{f"h.{n}.attn.z": _drop for n in layers}}
    _, normed, targets = predictions(model, batch, hooks)
    logits = (normed @ model.wte.weight.t()).float()  # (predictions, V)
    loss = torch.nn.functional.cross_entropy(logits, targets)
    return StepLoss(loss, loss.item())


def _drop(value: Tensor) -> Tensor:
    return torch.nn.functional.dropout(value, DROPOUT)


def predictions(
    model: GPT, batch: Batch, hooks: Mapping[str, Hook]
) -> tuple[Tensor, Tensor, Tensor]:
    """The last residual stream (B, n, d); its normed rows that predict (p, d), and targets (p)."""
    where, targets = batch.predictions()
    # others emulate it, many times slower
    fast = torch.cpu._is_avx512_bf16_supported()
    with torch.autocast("cpu", torch.bfloat16, enabled=fast), attached(model, hooks):
        hidden = model.hidden(batch.ids, mask=batch.mask(), positions=batch.positions)  # (B, n, d)
    return hidden, model.ln_f(hidden.flatten(0, 1)[where].float()), targets
