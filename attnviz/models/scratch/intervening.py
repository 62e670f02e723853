"""Interventions in the from-scratch model, by hooks at its hook points.

Letters in the shape comments as in `models/intervening.py`.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached, kept
from attnviz.models.intervening import ChangedBatch, batches, take
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.sampling import LOGIT_ROWS, log_probability, numbers, rows_at_a_time
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
    """Run interventions over ids (1, n), as `LoadedModel.intervene`.

    Layers before the first changed one run once.
    """
    n, layers = ids.size(1), range(len(model.h))
    rows = rows_at_a_time(n, model.config.n_head)
    taken = take(partial(_taken, model), ids[0].tolist(), interventions, source)

    def hand_over(index: int, stream: Tensor) -> None:
        consume(_result(model, ids[0], index, model.ln_f(stream), whole=whole))

    first = [min((change.layer for change in each), default=None) for each in interventions]
    stream = model.embed(ids)  # (1, n, d)
    for layer in layers:
        first_here = [i for i, at in enumerate(first) if at == layer]
        for batch in batches(first_here, max(1, BATCH_TOKENS // n)):
            hooks = _hooks(ChangedBatch([interventions[i] for i in batch], n, taken), layers)
            with attached(model, hooks):
                start = stream.expand(len(batch), -1, -1)
                streams = model.through(start, range(layer, len(layers)), rows=rows)
            for i, changed in zip(batch, streams, strict=True):
                hand_over(i, changed)
        stream = model.through(stream, range(layer, layer + 1), rows=rows)
    for i, changes in enumerate(interventions):
        if not changes:
            hand_over(i, stream[0])


def _hooks(batch: ChangedBatch, layers: range) -> Mapping[str, Hook]:
    """The hooks that make the changes of a batch, by hook point."""

    def editing(kind: SiteKind, layer: int) -> Hook:
        return lambda values: batch.changed(values, batch.edits(kind, layer))

    edits = {
        POINTS[kind].format(layer): editing(kind, layer)
        for layer in layers
        for kind in POINTS
        if batch.edits(kind, layer)
    }
    hooks = dict(edits)
    for layer in batch.layers_of_cuts():
        hooks[f"h.{layer}.attn.scores"] = _cutting(batch.cuts(layer), hide=True)
        hooks[f"h.{layer}.attn.pattern"] = _cutting(batch.cuts(layer))
    return hooks


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

    def part(values: Tensor) -> Tensor:  # (n_s, d) or (h, n_s, d_v)
        return values[0].mean(dim=-2, keepdim=True) if mean else values[0]

    points = {site: POINTS[site.kind].format(site.layer) for site in sites}
    ids = torch.tensor([list(source.ids)], device=model.wte.weight.device)
    with kept(model, points.values(), part) as values:
        model.hidden(ids, rows=rows_at_a_time(ids.size(1), model.config.n_head))
    places, vectors = list(source.places), dict[Site, Tensor]()
    for site, point in points.items():
        of_site = values[point] if site.head is None else values[point][site.head]
        vectors[site] = of_site[places]
    return vectors


def _result(model: GPT, ids: Tensor, index: int, normed: Tensor, *, whole: bool) -> ChangedRun:
    """A run, from the output of the last norm (n, d); logits are computed in blocks."""
    parts = torch.split(torch.arange(len(ids) - 1 if whole else 0), LOGIT_ROWS)
    followed = [log_probability(model.logits(normed[part]), ids[part + 1]) for part in parts]
    return ChangedRun(index, numbers(torch.cat(followed)), numbers(model.logits(normed[-1])))
