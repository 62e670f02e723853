"""Both ends of a run held fixed: what was added up before its layers, and its way to the logits.

Letters in the shape comments as in `models/frozen/run.py`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.frozen.norm import FrozenNorm, frozen_norm
from attnviz.models.frozen.run import Embedded, FrozenOutput, near
from attnviz.models.huggingface.projections import is_plain, matrix_of
from attnviz.models.huggingface.turns import Recorder


@dataclass(frozen=True)
class HuggingFaceOutput:
    """The last norm, held fixed, and the output layer; `factor` is put on what it reads."""

    norm: FrozenNorm | None
    factor: float
    weight: Tensor
    bias: Tensor | None

    def reads(self, x: Tensor) -> Tensor:
        return self.factor * (x if self.norm is None else self.norm(x))


def embedded_of(
    model: Any, ids: Tensor, recorder: Recorder
) -> tuple[dict[Embedded, Tensor], Tensor]:
    """What was added up before the first layer (n, d), and what a norm added to it (n, d)."""
    x = recorder.turns[0].x[0]
    token = model.get_input_embeddings()(ids)[0]
    zeros = torch.zeros_like(x)
    if token.shape != x.shape:  # ALBERT's are narrower than its layers
        return {"embedding": x}, zeros
    for module, read, made in recorder.before:
        norm = frozen_norm(module, read, made)
        if norm is not None and near(made[0], x) and read.shape == made.shape:
            constant = norm(torch.zeros_like(read))
            apart: dict[Embedded, Tensor] = {"embedding": token, "position": read[0] - token}
            return {
                name: (norm(part[None]) - constant)[0] for name, part in apart.items()
            }, constant[0]
    factor = float((token * x).sum() / (token * token).sum())
    if near(factor * token, x):
        return {"embedding": factor * token}, zeros
    return {"embedding": token, "position": x - token}, zeros


def vocabulary_of(model: Any, ids: Tensor, embedded: Tensor) -> Tensor | None:
    """What each token's embedding adds to the stream (V, d): a multiple of it, or nothing known."""
    embeddings = model.get_input_embeddings()
    weight: Tensor = embeddings.weight
    if is_plain(embeddings):
        every = weight.detach()
    else:
        every = embeddings(torch.arange(len(weight), device=weight.device)[None])[0].detach()
    token = every[ids[0]]
    if token.shape != embedded.shape:
        return None
    if near(token, embedded):
        return every
    factor = float((token * embedded).sum() / (token * token).sum())
    return factor * every if near(factor * token, embedded) else None


def output_of(model: Any, recorder: Recorder, logits: Tensor | None) -> FrozenOutput | None:
    """The way to the logits; None where there is none that is affine."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    final, last = recorder.final, recorder.turns[-1].after
    if head is None or final is None or logits is None or final.shape != last.shape:
        return None
    norms = [
        norm
        for module, read, made in recorder.behind
        if read.shape == last.shape and near(read, last)
        if (norm := frozen_norm(module, read, made)) is not None
    ]
    for norm in (*norms, None):
        plain = last if norm is None else norm(last)
        factor = float((plain * final).sum() / (plain * plain).sum())
        if near(factor * plain, final):
            return _fitted(norm, factor, head, final, logits)
    return None


def _fitted(
    norm: FrozenNorm | None, factor: float, head: Any, final: Tensor, logits: Tensor
) -> FrozenOutput | None:
    """The output layer, with a factor on all logits (Cohere); None where they are capped."""
    columns, bias = matrix_of(head, final)
    weight, bias = columns.detach().t(), None if bias is None else bias.detach()  # (V, d), (V)
    final, logits = final[:, -1:], logits[:, -1:]  # whose row tells
    plain = nn.functional.linear(final, weight, bias)
    if near(plain, logits):
        return HuggingFaceOutput(norm, factor, weight, bias)
    scale = float((plain * logits).sum() / (plain * plain).sum())
    if not near(scale * plain, logits):
        return None
    return HuggingFaceOutput(norm, factor, scale * weight, None if bias is None else scale * bias)
