"""Ablation in the from-scratch model, by hooks at the outputs of its heads.

Letters in the shape comments as in `models/ablate.py`.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attnviz.data.ablate import Ablated, AblatedRun, Replacement, RunConsumer
from attnviz.models.ablate import batches, log_probability, of_layer, replaced
from attnviz.models.handover import LOGIT_ROWS, rows_at_a_time
from attnviz.models.hooks import Hook, attached
from attnviz.models.memory import BATCH_TOKENS
from attnviz.models.scratch.gpt import GPT


def ablate_native(
    model: GPT,
    ids: Tensor,
    ablations: Sequence[Ablated],
    replacement: Replacement,
    consume: RunConsumer,
    *,
    whole: bool,
) -> None:
    """Run ablations on the from-scratch model; layers before the first ablated one run once.

    Args:
        model: in evaluation mode.
        ids: (1, n).
        ablations: the ablated heads of each run.
        replacement: the replacement for their output.
        consume: is given the runs, in no particular order.
        whole: compute the log-probabilities of all tokens that followed.
    """
    n, layers = ids.size(1), range(len(model.h))
    rows = rows_at_a_time(n, model.config.n_head)

    def hand_over(index: int, stream: Tensor) -> None:
        consume(_result(model, ids[0], index, model.ln_f(stream), whole=whole))

    stream = model.embed(ids)  # (1, n, d)
    for layer in layers:
        first_here = [i for i, heads in enumerate(ablations) if heads and min(heads).layer == layer]
        for batch in batches(first_here, max(1, BATCH_TOKENS // n)):
            hooks = _hooks([ablations[i] for i in batch], layers, replacement)
            with attached(model, hooks):
                start = stream.expand(len(batch), -1, -1)
                streams = model.through(start, range(layer, len(layers)), rows=rows)
            for i, changed in zip(batch, streams, strict=True):
                hand_over(i, changed)
        stream = model.through(stream, range(layer, layer + 1), rows=rows)
    for i, heads in enumerate(ablations):
        if not heads:
            hand_over(i, stream[0])


def _hooks(
    ablations: Sequence[Ablated], layers: range, replacement: Replacement
) -> Mapping[str, Hook]:
    """The hooks that ablate heads, at the hook points of their z."""

    def replacing(layer: int) -> Hook:
        return lambda z: replaced(z, of_layer(ablations, layer), replacement)

    named = {head.layer for heads in ablations for head in heads}
    return {f"h.{layer}.attn.z": replacing(layer) for layer in layers if layer in named}


def _result(model: GPT, ids: Tensor, index: int, normed: Tensor, *, whole: bool) -> AblatedRun:
    """A run, from the output of the last norm (n, d); logits are computed in blocks."""
    followed = [
        log_probability(model.logits(normed[part]), ids[part + 1])
        for part in torch.split(torch.arange(len(ids) - 1), LOGIT_ROWS)
        if whole
    ]
    after = torch.cat(followed) if followed else torch.empty(0)
    return AblatedRun(index, after.cpu().numpy(), model.logits(normed[-1]).float().cpu().numpy())
