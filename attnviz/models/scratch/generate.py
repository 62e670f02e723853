"""The from-scratch model goes on with a text; each token is read once, thanks to a cache.

The cache stands at the hook points of keys and values: what arrives there is kept, and all that
was kept so far is passed on. Letters in the shape comments as in `attention.py`.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from attnviz.models.handover import Handover, rows_at_a_time
from attnviz.models.hooks import Hook, attached
from attnviz.models.sampling import chosen
from attnviz.models.scratch.gpt import GPT
from attnviz.records.capture import Consumer, Wanted
from attnviz.records.prompt import GoOn, Sampling


def generate_native(
    model: GPT,
    ids: Tensor,
    sampling: Sampling,
    ends: Collection[int],
    wanted: Wanted,
    consume: Consumer,
    go_on: GoOn,
) -> None:
    """Write tokens until one of `ends`, which is not handed over, or as long as `go_on` says so.

    Args:
        model: in evaluation mode.
        ids: the prompt (1, n).
        sampling: how tokens are chosen.
        ends: the ids that end a text.
        wanted: which heads; their rows are those of the positions that predict a new token.
        consume: is given the rows of a new token, numbered from 0, before `go_on` is told of it.
        go_on: see `GoOn`.
    """
    n, sizes = ids.size(1), model.config
    rows: dict[int, Tensor] = {}
    hooks = {f"h.{layer}.attn.pattern": last_row(rows, layer) for layer in wanted.heads}
    for layer in range(sizes.n_layer):
        for name in ("k", "v"):
            hooks[f"h.{layer}.attn.{name}"] = _cache(n + sampling.most)
    handover = Handover(wanted, consume)
    with torch.inference_mode(), torch.random.fork_rng(), attached(model, hooks):
        torch.manual_seed(sampling.seed)
        stream = model.hidden(ids, rows=rows_at_a_time(n, sizes.n_head))  # (1, n, d)
        for step in range(sampling.most):
            id_ = chosen(model.logits(model.ln_f(stream[0, -1])), sampling)
            if id_ in ends:
                return
            for layer in wanted.heads:
                handover.take(layer, torch.tensor([step]), rows[layer])
            if not go_on(id_) or step + 1 == sampling.most:
                return
            everything = torch.ones(1, n + step + 1, dtype=torch.bool, device=ids.device)
            position = torch.tensor([n + step], device=ids.device)
            stream = model.hidden(ids.new_tensor([[id_]]), mask=everything, positions=position)


def last_row(rows: dict[int, Tensor], layer: int) -> Hook:
    """Keeps the last row (h, 1, n_k) of a pattern (1, h, n_q, n_k), or of its last block."""

    def keep(pattern: Tensor) -> None:
        rows[layer] = pattern[0, :, -1:].clone()  # not the whole block

    return keep


def _cache(most: int) -> Hook:
    """Passes on all keys, or values, that arrived so far; `most`: how many there will be."""
    kept, filled = torch.empty(0), 0

    def grow(new: Tensor) -> Tensor:  # (1, h, n, d_k)
        nonlocal kept, filled
        if not filled:
            kept = new.new_empty(*new.shape[:2], most, new.size(3))
        kept[:, :, filled : filled + new.size(2)] = new
        filled += new.size(2)
        return kept[:, :, :filled]  # (1, h, filled, d_k)

    return grow
