"""Path patching in a GPT from scratch: heads that are held fixed are not computed again.

Letters in the shape comments as in `models/engine.py`.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached, kept
from attnviz.models.engine import ChangedBatch, batches, numbers, rows_at_a_time, taken_vectors
from attnviz.models.first_order import SitesPassed, first_order
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.scratch.decoder import CausalBlock, Decoder
from attnviz.models.scratch.runs import SITE_POINTS, vectors_of
from attnviz.records.interventions import Interventions, SiteKind
from attnviz.records.paths import LOGITS, FirstOrder, PathConsumer, Paths, Receiver, SlopeOf


def paths_native(model: Decoder, ids: Tensor, paths: Paths, consume: PathConsumer) -> None:
    """Patch paths over ids (1, n), as `LoadedModel.paths`."""
    n, senders = ids.size(1), paths.senders
    rows = rows_at_a_time(n, model.config.n_head)
    source = Interventions([(edit,) for edit in senders], source=paths.source)
    taken = taken_vectors(partial(vectors_of, model), ids[0].tolist(), source)
    points = [point.format(i) for i in range(len(model.h)) for point in SITE_POINTS.values()]
    with kept(model, points, lambda value: value) as clean:
        model.hidden(ids, rows=rows)
    for kind, layer in sorted({edit.site[:2] for edit in senders}):
        here = [i for i, edit in enumerate(senders) if edit.site[:2] == (kind, layer)]
        for some in batches(here, max(1, BATCH_TOKENS // n)):
            batch = ChangedBatch([(senders[i],) for i in some], n, taken)
            last, arrived = _sent(model, clean, batch, layer, paths)
            for i, logits in zip(some, last, strict=True):
                if LOGITS in paths.receivers:
                    consume(i, LOGITS, numbers(logits))
            for to, own in paths.received(some):
                if own:
                    logits = _received(model, clean, to, arrived[to][own], rows)
                    for i, each in zip(own, logits, strict=True):
                        consume(some[i], to, numbers(each))


def _sent(
    model: Decoder, clean: dict[str, Tensor], batch: ChangedBatch, layer: int, paths: Paths
) -> tuple[Tensor, dict[Receiver, Tensor]]:
    """The logits (B, V) after senders of one kind and layer, and what reaches other receivers.

    All heads but the sender are held fixed, so that no position tells another one anything: for
    the logits alone, the last one is enough.
    """
    size, others = len(batch.interventions), [to for to in paths.receivers if to != LOGITS]
    at = slice(None) if others else slice(-1, None)

    def was(kind: SiteKind, number: int) -> Tensor:
        value = clean[SITE_POINTS[kind].format(number)]
        return value.expand((size, -1, -1, -1)[: value.dim()])

    x, arrived = was("residual", layer)[:, at], dict[Receiver, Tensor]()  # (B, n or 1, d)
    for number in range(layer, len(model.h)):
        block = model.block(number)
        here = [to for to in others if to.layer == number]
        reading = [to for to in here if to.head is not None]
        if reading and number > layer:
            arrived |= _read(block, x, reading)
        attended = was("attention", number)[:, at]
        if number == layer and (edits := batch.edits("head", layer)):
            z = batch.changed(was("head", layer), edits)[:, :, at]  # (B, h, n or 1, d_v)
            attended = block.written(z)
        x = x + attended
        held, edits = was("mlp", number), batch.edits("mlp", number)
        added = batch.changed(held, edits)[:, at] if edits else held[:, at]
        if Receiver(number) in here or not (edits or paths.mlps == "freeze"):
            computed = block.fed(x)
            arrived[Receiver(number)] = computed
            added = added if edits or paths.mlps == "freeze" else computed
        x = x + added
    return model.read_out(x[:, -1]), arrived


def _read(block: CausalBlock, x: Tensor, receivers: Sequence[Receiver]) -> dict[Receiver, Tensor]:
    """Queries, keys or values (B, n, d_k) of heads that read a stream (B, n, d)."""
    made = dict(zip("qkv", block.projected(block.norm(x)), strict=True))
    n_head = made["q"].size(1)
    return {
        to: made[str(to.letter)][:, _row_of(to, made[str(to.letter)], n_head)] for to in receivers
    }


def _row_of(to: Receiver, values: Tensor, n_head: int) -> int:
    """Where a head's queries, keys or values stand among those of all (B, h or g, n, d_k)."""
    assert to.head is not None
    return to.head // (n_head // values.size(1))


def _received(
    model: Decoder, clean: dict[str, Tensor], to: Receiver, vectors: Tensor, rows: int
) -> Tensor:
    """The logits (B, V) of the text where a receiver alone gets other vectors (B, n, width)."""
    assert to.layer is not None

    def instead(values: Tensor) -> Tensor:  # (B, h or g, n, d_k), or (B, n, d)
        if to.head is None:
            return vectors
        changed = values.clone()
        changed[:, _row_of(to, values, model.config.n_head)] = vectors
        return changed

    point = SITE_POINTS["mlp"].format(to.layer)
    hooks: dict[str, Hook] = {
        point if to.head is None else f"h.{to.layer}.attn.{to.letter}": instead
    }
    start = clean[SITE_POINTS["residual"].format(to.layer)]
    with attached(model, hooks):
        layers = range(to.layer, len(model.h))
        stream = model.through(start.expand(len(vectors), -1, -1), layers, rows=rows)
    return model.read_out(stream[:, -1])


def slopes_native(model: Decoder, ids: Sequence[int], slope_of: SlopeOf) -> FirstOrder:
    """The first order of patches over a text, as `LoadedModel.first_order`."""
    kinds = {*slope_of.kinds}
    if slope_of.direct:
        kinds |= {(kind, i) for kind in ("head", "mlp") for i in range(len(model.h))}

    def last_of(ids: Sequence[int], passed: SitesPassed) -> Tensor:
        tokens = torch.tensor([list(ids)], device=model.device)
        hooks: dict[str, Hook] = {SITE_POINTS[at[0]].format(at[1]): passed.hook(at) for at in kinds}
        with attached(model, hooks):
            stream = model.hidden(tokens, rows=rows_at_a_time(len(ids), model.config.n_head))
        return model.read_out(stream[0, -1])

    def by_head(values: Tensor, at: tuple[SiteKind, int]) -> Tensor:
        return values[0].transpose(0, 1) if at[0] == "head" else values[0][:, None]

    return first_order(last_of, by_head, ids, slope_of)
