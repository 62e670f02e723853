"""Heads ablated: a model run without the output of some of them, many ablations in a batch.

A head's output is z = pattern·v, its slice of what the layer's output projection W_O is
given. Taken away there, everything behind it is computed as the model does. Letters in the
shape comments:

    B ablations in the batch   n tokens   h heads   d_v width of a head's values   V vocabulary
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.data.ablations import Ablated, AblatedRun, Replacement, RunConsumer
from attnviz.models.dissect import output_projections
from attnviz.models.gpt import GPT
from attnviz.models.handover import LOGIT_ROWS, rows_at_a_time
from attnviz.models.hooks import Hook, attached
from attnviz.models.memory import BATCH_TOKENS

LOGITS = 1 << 26
"""Logits of a batch, where they are all made at once."""


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
        ablations: the heads of each run.
        replacement: what stands in for their output.
        consume: is given each run, in no particular order.
        whole: the log-probabilities of all tokens that followed are wanted.
    """
    n, layers = ids.size(1), range(len(model.h))
    rows = rows_at_a_time(n, model.config.n_head)

    def say(index: int, stream: Tensor) -> None:
        consume(_said(model, ids[0], index, model.ln_f(stream), whole=whole))

    stream = model.embed(ids)  # (1, n, d)
    for layer in layers:
        mine = [i for i, heads in enumerate(ablations) if heads and min(heads).layer == layer]
        for batch in batches(mine, max(1, BATCH_TOKENS // n)):
            hooks = _hooks([ablations[i] for i in batch], layers, replacement)
            with attached(model, hooks):
                start = stream.expand(len(batch), -1, -1)
                streams = model.through(start, range(layer, len(layers)), rows=rows)
            for i, found in zip(batch, streams, strict=True):
                say(i, found)
        stream = model.through(stream, range(layer, layer + 1), rows=rows)
    for i, heads in enumerate(ablations):
        if not heads:
            say(i, stream[0])


def _hooks(
    ablations: Sequence[Ablated], layers: range, replacement: Replacement
) -> Mapping[str, Hook]:
    """Where heads are ablated, at the hook points of their z."""

    def replacing(layer: int) -> Hook:
        return lambda z: replaced(z, _of_layer(ablations, layer), replacement)

    named = {head.layer for heads in ablations for head in heads}
    return {f"h.{layer}.attn.z": replacing(layer) for layer in layers if layer in named}


def _said(model: GPT, ids: Tensor, index: int, normed: Tensor, *, whole: bool) -> AblatedRun:
    """Of what the last norm gives (n, d): logits are made of some positions at a time."""
    followed = [
        log_probability(model.logits(normed[part]), ids[part + 1])
        for part in torch.split(torch.arange(len(ids) - 1), LOGIT_ROWS)
        if whole
    ]
    found = torch.cat(followed) if followed else torch.empty(0)
    return AblatedRun(index, found.cpu().numpy(), model.logits(normed[-1]).float().cpu().numpy())


def ablate_transformers(
    model: Any,
    ids: Tensor,
    heads_per_layer: Sequence[int],
    ablations: Sequence[Ablated],
    replacement: Replacement,
    consume: RunConsumer,
    *,
    whole: bool,
) -> None:
    """Run ablations on a causal transformers model; arguments as in `ablate_native`.

    Raises:
        ModelError: this architecture's output projections cannot be found.
    """
    n, vocabulary = ids.size(1), model.config.get_text_config().vocab_size
    size = max(1, min(BATCH_TOKENS // n, LOGITS // (n * vocabulary)))
    touched = {head.layer for heads in ablations for head in heads}
    projections = output_projections(model, touched) if touched else {}
    for batch in batches(range(len(ablations)), size):
        of_batch = [ablations[i] for i in batch]
        with _projecting(projections, heads_per_layer, of_batch, replacement):
            logits = model(input_ids=ids.expand(len(batch), -1), use_cache=False).logits
        for i, found in zip(batch, logits, strict=True):  # (n, V)
            followed = log_probability(found[:-1], ids[0, 1:]) if whole else found.new_empty(0)
            last = found[-1].float().cpu().numpy()
            consume(AblatedRun(i, followed.float().cpu().numpy(), last))


@contextmanager
def _projecting(
    projections: Mapping[int, nn.Module],
    heads_per_layer: Sequence[int],
    ablations: Sequence[Ablated],
    replacement: Replacement,
) -> Iterator[None]:
    """Let the output projections be given what is left of their heads' outputs."""

    def replacing(layer: int) -> Callable[[nn.Module, Any], Any]:
        def replace(_module: nn.Module, args: Any) -> Any:
            merged, heads = args[0], heads_per_layer[layer]  # (B, n, h·d_v) or (B·n, h·d_v)
            z = merged.reshape(len(ablations), -1, heads, merged.size(-1) // heads).transpose(1, 2)
            left = replaced(z, _of_layer(ablations, layer), replacement)
            return left.transpose(1, 2).reshape(merged.shape), *args[1:]

        return replace

    with ExitStack() as stack:
        for layer, module in projections.items():
            stack.callback(module.register_forward_pre_hook(replacing(layer)).remove)
        yield


def _of_layer(ablations: Sequence[Ablated], layer: int) -> list[list[int]]:
    """The heads of one layer that each ablation takes away."""
    return [[head.head for head in heads if head.layer == layer] for heads in ablations]


def replaced(z: Tensor, heads: Sequence[Sequence[int]], replacement: Replacement) -> Tensor:
    """The outputs (B, h, n, d_v) of a layer's heads, those of each run replaced.

    Args:
        z: pattern·v of every head.
        heads: which heads each of the B runs is without.
        replacement: zero, or the mean over the n positions.
    """
    left = z.clone()
    for run, of_run in enumerate(heads):
        some = z[run, list(of_run)]  # (heads, n, d_v)
        left[run, list(of_run)] = some.mean(dim=1, keepdim=True) if replacement == "mean" else 0.0
    return left


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (rows, V) and (rows) give (rows)."""
    logits = logits.float()
    said = logits.gather(1, ids[:, None])[:, 0]
    found: Tensor = said - logits.logsumexp(dim=1)
    return found


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """So many at a time, in order."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
