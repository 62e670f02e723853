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
from attnviz.records.tokens import Ids


def paths_native(model: Decoder, ids: Tensor, paths: Paths, consume: PathConsumer) -> None:
    """Patch paths over ids (1, n), as `LoadedModel.paths`."""
    n, senders = ids.size(1), paths.senders
    source = Interventions([(edit,) for edit in senders], source=paths.source)
    taken = taken_vectors(partial(vectors_of, model), ids[0].tolist(), source)
    clean = _clean(model, ids)
    if LOGITS in paths.receivers:
        last = {point: values[..., -1:, :] for point, values in clean.items()}
        of_last = {each: vectors[-1:] for each, vectors in taken.items()}
        end = paths.to_last(n)
        for some in batches(paths.order, BATCH_TOKENS):
            batch = ChangedBatch([(end.senders[i],) for i in some], 1, of_last)
            stream, _ = _sent(model, last, batch, range(senders[some[0]].layer, len(model.h)), end)
            for i, logits in zip(some, model.read_out(stream[:, -1]), strict=True):
                consume(i, LOGITS, numbers(logits))
    after = 1 + max((layer for layer, _ in paths.inner), default=-1)
    order = [i for i in paths.order if senders[i].layer < after]
    for some in batches(order, max(1, BATCH_TOKENS // n)):
        batch = ChangedBatch([(senders[i],) for i in some], n, taken)
        _, arrived = _sent(model, clean, batch, range(senders[some[0]].layer, after), paths)
        for to, own in paths.received(some):
            if own:
                for i, logits in zip(
                    own, _received(model, clean, to, arrived[to][own]), strict=True
                ):
                    consume(some[i], to, numbers(logits))


def _clean(model: Decoder, ids: Tensor) -> dict[str, Tensor]:
    """What passes the sites of the text's own run, by hook point."""
    points = [point.format(i) for i in range(len(model.h)) for point in SITE_POINTS.values()]
    with kept(model, points, lambda value: value) as clean:
        model.hidden(ids, rows=rows_at_a_time(ids.size(1), model.config.n_head))
    return clean


def _sent(
    model: Decoder, clean: dict[str, Tensor], batch: ChangedBatch, layers: range, paths: Paths
) -> tuple[Tensor, dict[Receiver, Tensor]]:
    """The stream (B, n, d) behind these layers after senders, and what reaches their receivers."""
    size = len(batch.interventions)

    def was(kind: SiteKind, number: int) -> Tensor:
        value = clean[SITE_POINTS[kind].format(number)]
        return value.expand((size, -1, -1, -1)[: value.dim()])

    x, arrived = was("residual", layers.start), dict[Receiver, Tensor]()  # (B, n, d)
    for number in layers:
        block = model.block(number)
        here = [to for layer, to in paths.inner if layer == number]
        if reading := [to for to in here if to.head is not None]:
            arrived |= _read(block, x, reading)
        attended = was("attention", number)
        if edits := batch.edits("head", number):
            attended = block.written(batch.changed(was("head", number), edits))
        x = x + attended
        added = held = was("mlp", number)
        if Receiver(number) in here or paths.mlps == "recompute":
            arrived[Receiver(number)] = added = block.fed(x)
        added = held if paths.mlps == "freeze" else added
        x = x + batch.changed(added, batch.edits("mlp", number))
    return x, arrived


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


def _received(model: Decoder, clean: dict[str, Tensor], to: Receiver, vectors: Tensor) -> Tensor:
    """The logits (B, V) of the text where a receiver alone gets other vectors (B, n, width)."""
    assert to.layer is not None

    def instead(values: Tensor) -> Tensor:  # (B, h or g, n, d_k), or (B, n, d)
        if to.head is None:
            return vectors
        changed = values.clone()
        changed[:, _row_of(to, values, model.config.n_head)] = vectors
        return changed

    def alone(z: Tensor) -> Tensor:  # (B, h, n, d_v); other heads may share the keys or values
        others = clean[points["head"]].expand_as(z).clone()
        others[:, to.head] = z[:, to.head]
        return others

    points = {kind: point.format(to.layer) for kind, point in SITE_POINTS.items()}
    hooks: dict[str, Hook] = {points["mlp"]: instead}
    if to.head is not None:
        hooks = {f"h.{to.layer}.attn.{to.letter}": instead, points["head"]: alone}
    start = clean[points["residual"]]
    rows = rows_at_a_time(start.size(1), model.config.n_head)
    with attached(model, hooks):
        layers = range(to.layer, len(model.h))
        stream = model.through(start.expand(len(vectors), -1, -1), layers, rows=rows)
    return model.read_out(stream[:, -1])


def slopes_native(model: Decoder, ids: Ids, slope_of: SlopeOf) -> FirstOrder:
    """The first order of patches over a text, as `LoadedModel.first_order`."""
    kinds, row = {*slope_of.kinds}, torch.tensor([list(ids)], device=model.device)
    if slope_of.direct:
        kinds |= {(kind, i) for kind in ("head", "mlp") for i in range(len(model.h))}
    reading = {to: f"h.{to.layer}.attn.{to.letter}" for to in slope_of.receivers if to.letter}
    with torch.inference_mode(False), torch.no_grad():
        clean = _clean(model, row) if slope_of.receivers != (LOGITS,) else {}

    def last_of(ids: Ids, passed: SitesPassed) -> Tensor:
        tokens = torch.tensor([list(ids)], device=model.device)
        hooks: dict[str, Hook] = {SITE_POINTS[at[0]].format(at[1]): passed.hook(at) for at in kinds}
        with attached(model, hooks), kept(model, reading.values(), lambda value: value) as read:
            stream = model.hidden(tokens, rows=rows_at_a_time(len(ids), model.config.n_head))
        for to, point in reading.items():
            passed.arrived[to] = read[point][:, _row_of(to, read[point], model.config.n_head)]
        return model.read_out(stream[0, -1])

    def by_head(values: Tensor, at: tuple[SiteKind, int]) -> Tensor:
        return values[0].transpose(0, 1) if at[0] == "head" else values[0][:, None]

    return first_order(last_of, by_head, ids, slope_of, partial(_received, model, clean))
