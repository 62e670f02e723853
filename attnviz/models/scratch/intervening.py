"""Interventions in the from-scratch model, by hooks at its hook points.

Letters in the shape comments as in `models/intervening.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached, causal_mask, split_heads
from attnviz.models.frozen.sums import Attention, FrozenNorm, FrozenRun, frozen_norm
from attnviz.models.intervening import Batch, batches, take
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.sampling import LOGIT_ROWS, log_probability, rows_at_a_time
from attnviz.models.scratch.gpt import GPT
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Intervention,
    RunConsumer,
    Site,
    SiteKind,
    SourceRun,
)

POINTS: Mapping[SiteKind, str] = {
    "head": "h.{}.attn.z",
    "attention": "h.{}.attn_out",
    "mlp": "h.{}.mlp_out",
    "residual": "h.{}.resid_pre",
}
"""The hook point of each kind of site, by layer."""


def intervene_native(
    model: GPT,
    ids: Tensor,
    interventions: Sequence[Intervention],
    consume: RunConsumer,
    *,
    whole: bool,
    source: SourceRun | None = None,
) -> None:
    """Run interventions on the from-scratch model; layers before the first changed one run once.

    Args:
        model: in evaluation mode.
        ids: (1, n).
        interventions: what is changed in each run.
        consume: is given the runs, in no particular order.
        whole: compute the log-probabilities of all tokens that followed.
        source: where edits take vectors from.
    """
    n, layers = ids.size(1), range(len(model.h))
    rows = rows_at_a_time(n, model.config.n_head)
    taken = take(partial(_taken, model), ids[0].tolist(), interventions, source)

    def hand_over(index: int, stream: Tensor) -> None:
        consume(_result(model, ids[0], index, model.ln_f(stream), whole=whole))

    stream = model.embed(ids)  # (1, n, d)
    for layer in layers:
        first_here = [i for i, each in enumerate(interventions) if _first_layer(each) == layer]
        for batch in batches(first_here, max(1, BATCH_TOKENS // n)):
            hooks = _hooks(Batch([interventions[i] for i in batch], n, taken), layers)
            with attached(model, hooks):
                start = stream.expand(len(batch), -1, -1)
                streams = model.through(start, range(layer, len(layers)), rows=rows)
            for i, changed in zip(batch, streams, strict=True):
                hand_over(i, changed)
        stream = model.through(stream, range(layer, layer + 1), rows=rows)
    for i, changes in enumerate(interventions):
        if not changes:
            hand_over(i, stream[0])


def _first_layer(changes: Intervention) -> int | None:
    return min((change.layer for change in changes), default=None)


def _hooks(batch: Batch, layers: range) -> Mapping[str, Hook]:
    """The hooks that make the changes of a batch, by hook point."""

    def editing(kind: SiteKind, layer: int) -> Hook:
        return lambda values: batch.changed(values, batch.edits(kind, layer))

    edits = {
        POINTS[kind].format(layer): editing(kind, layer)
        for layer in layers
        for kind in POINTS
        if batch.edits(kind, layer)
    }
    cuts = {layer: batch.cuts(layer) for layer in batch.layers_of_cuts()}
    scores = {f"h.{at}.attn.scores": _cutting(of, hide=True) for at, of in cuts.items()}
    return edits | scores | {f"h.{at}.attn.pattern": _cutting(of) for at, of in cuts.items()}


def _cutting(rows: Mapping[tuple[int, int], Sequence[CutLink]], *, hide: bool = False) -> Hook:
    """A hook that removes links from blocks of rows (B, h, rows, keys), which come in order.

    Of a pattern, or with `hide` those that renormalise from the scores, which softmax is given.
    """
    first = 0

    def cut(values: Tensor) -> Tensor:
        nonlocal first
        changed, block = values.clone(), range(first, first + values.size(2))
        for (run, query), cuts in rows.items():
            if query in block:
                for each in cuts:
                    if each.renormalise or not hide:
                        at = run, each.head.head, query - block.start, each.key
                        changed[at] = torch.finfo(values.dtype).min if hide else 0.0
        first = block.stop
        return changed

    return cut


def _taken(model: GPT, source: SourceRun, sites: set[Site], *, mean: bool) -> dict[Site, Tensor]:
    """The vectors of sites in the run of a source; see `TakeFrom`."""
    found: dict[str, Tensor] = {}

    def keeping(point: str) -> Hook:
        def keep(values: Tensor) -> None:
            found[point] = values[0].mean(dim=-2, keepdim=True) if mean else values[0]

        return keep

    points = {site: POINTS[site.kind].format(site.layer) for site in sites}
    ids = torch.tensor([list(source.ids)], device=model.wte.weight.device)
    rows = rows_at_a_time(ids.size(1), model.config.n_head)
    with attached(model, {point: keeping(point) for point in points.values()}):
        model.hidden(ids, rows=rows)
    of = {site: found[point] for site, point in points.items()}  # (n_s, d) or (h, n_s, d_v)
    places = list(source.places)
    return {
        site: (values if site.head is None else values[site.head])[places]
        for site, values in of.items()
    }


def _result(model: GPT, ids: Tensor, index: int, normed: Tensor, *, whole: bool) -> ChangedRun:
    """A run, from the output of the last norm (n, d); logits are computed in blocks."""
    followed = [
        log_probability(model.logits(normed[part]), ids[part + 1])
        for part in torch.split(torch.arange(len(ids) - 1), LOGIT_ROWS)
        if whole
    ]
    after = torch.cat(followed) if followed else torch.empty(0)
    return ChangedRun(index, after.cpu().numpy(), model.logits(normed[-1]).float().cpu().numpy())


# A run of the from-scratch GPT, held fixed.
#
# Letters in the shape comments as in `models/frozen/run.py`.


FROZEN_POINTS = (
    "resid_pre",
    "resid_mid",
    "resid_post",
    "attn.q",
    "attn.k",
    "attn.v",
    "attn.pattern",
)


@dataclass(frozen=True)
class GPTLayer:
    """A block held fixed."""

    block: Any
    norm: FrozenNorm
    attention: Attention
    normed: bool = True

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        return x + attended

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        attn, read = self.block.attn, self.block.ln_1(x) if free else self.norm(x)
        q, k, v = (split_heads(w(read), attn.n_head) for w in (attn.w_q, attn.w_k, attn.w_v))
        return q, k, v


@dataclass(frozen=True)
class GPTOutput:
    """The last norm, held fixed, and the tied output layer, which has no bias."""

    norm: FrozenNorm
    weight: Tensor
    bias: None = None

    def reads(self, x: Tensor) -> Tensor:
        return self.norm(x)


def freeze_gpt(model: GPT, ids: Tensor) -> FrozenRun:
    """Run a GPT over ids (1, n), and hold the run fixed."""
    seen: dict[str, Tensor] = {}

    def keeper(name: str) -> Hook:
        def keep(value: Tensor) -> None:
            seen[name] = value[0]

        return keep

    n_layer = len(model.h)
    names = [f"h.{layer}.{point}" for layer in range(n_layer) for point in FROZEN_POINTS]
    with torch.no_grad(), attached(model, {name: keeper(name) for name in names}):
        final = model.hidden(ids)[0]  # (n, d)
        positions = model.wpe.weight.detach()[: ids.size(1)]
        return FrozenRun(
            embedded={"embedding": model.wte(ids[0]), "position": positions},
            constant=torch.zeros_like(final),
            layers=[_layer(model.h[i], f"h.{i}.", seen) for i in range(n_layer)],
            streams=[*(seen[f"h.{i}.resid_pre"] for i in range(n_layer)), final],
            vocabulary=model.wte.weight.detach(),
            output=GPTOutput(_norm(model.ln_f, final), model.wte.weight.detach()),
        )


def _layer(block: Any, path: str, seen: dict[str, Tensor]) -> GPTLayer:
    q, k, v, pattern = (seen[f"{path}attn.{name}"] for name in ("q", "k", "v", "pattern"))
    before, w_o = seen[f"{path}resid_pre"], block.attn.w_o
    attention = Attention(
        q=q,
        k=k,
        v=v,
        pattern=pattern,
        scaling=1 / math.sqrt(q.size(2)),
        w_o=w_o.weight.detach().unflatten(0, (q.size(0), -1)),
        b_o=w_o.bias.detach(),
        attended=seen[f"{path}resid_mid"] - before,
        seen=causal_mask(len(before), before.device),
    )
    return GPTLayer(block, _norm(block.ln_1, before), attention)


def _norm(module: Any, x: Tensor) -> FrozenNorm:
    found = frozen_norm(module, x, module(x))
    assert found is not None  # a LayerNorm is one
    return found
