"""A run of a model from scratch: one head of it recorded, all of it held fixed, or changed.

Letters in the shape comments as in `models/frozen/run.py` and `models/engine.py`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.attention import Hook, attached, causal_mask, kept
from attnviz.models.engine import (
    LOGIT_ROWS,
    ChangedBatch,
    RecordedHead,
    batches,
    log_probability,
    numbers,
    present,
    rows_at_a_time,
    taken_vectors,
)
from attnviz.models.folder.llama import LlamaConfig
from attnviz.models.frozen.layer import (
    FrozenAttention,
    FrozenLayer,
    FrozenNorm,
    FrozenOutput,
    check_adds_up,
    norm_held,
)
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.scratch.decoder import CausalBlock, Decoder, Project
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.llama import GroupedAttention, Linear, Llama, LlamaBlock
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Interventions,
    RunConsumer,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.records.trace import Kinds

STREAMS = ("resid_pre", "resid_mid", "resid_post")


def gpt_record(model: GPT, ids: Tensor, heads: Sequence[Head], query: int) -> list[RecordedHead]:
    """Run a GPT over ids (n), and record some heads of one layer."""
    layer = heads[0].layer
    block: Any = model.h[layer]
    points = (*STREAMS, *_points("attn"))
    with torch.inference_mode(), kept(block, points, itemgetter(0)) as seen:
        last = model.ln_f(model.hidden(ids[None])[0, -1])  # (d)
        return _recorded(
            block,
            "self",
            heads,
            query,
            seen,
            kinds=Kinds(mlp=model.config.d_mlp),
            mask=causal_mask(len(ids)),
            unembedding=model.wte.weight,
            arrays=present(
                embedding=model.wte(ids) if layer == 0 else None,
                position=model.wpe.weight[: len(ids)] if layer == 0 else None,
                logits=model.logits(last),
                final=last,
            ),
        )


def llama_record(
    model: Llama, ids: Tensor, heads: Sequence[Head], query: int
) -> list[RecordedHead]:
    """Run a Llama-like model over ids (n), and record some heads of one layer."""
    layer = heads[0].layer
    block: LlamaBlock = model.block(layer)
    with torch.inference_mode(), kept(block, (*STREAMS, *_points("attn")), itemgetter(0)) as seen:
        last = model.ln_f(model.hidden(ids[None])[0, -1])  # (d)
        x, between, after = (seen[name] for name in STREAMS)
        normed = block.norm(x)
        joined = block.joined(seen["attn.z"][None])[0]
        rows = present(
            attention_out=(1.0 if block.behind else block.factor) * joined,
            attention_added=between - x,
            mlp_out=after - between,
            x_after=after,
        )
        shared = present(
            x=x,
            normed=normed,
            embedding=model.embed(ids[None])[0] if layer == 0 else None,
            logits=model.logits(last),
            final=last,
            **{name: row[query] for name, row in rows.items()},
        )
        return [_llama_head(model, block, head, query, seen, shared, rows) for head in heads]


def _llama_head(
    model: Llama,
    block: LlamaBlock,
    head: Head,
    query: int,
    seen: Mapping[str, Tensor],
    shared: Mapping[str, Tensor],
    rows: Mapping[str, Tensor],
) -> RecordedHead:
    config, attn, normed = model.config, block.attn, shared["normed"]
    kv = head.head // (config.n_head // config.n_group)
    at = {"q": head.head, "k": kv, "v": kv}
    weights, plain = _projections(attn, normed, at)
    changed = {
        name: plain[name] for name in ("q_plain", "k_plain") if attn.rotation or config.qk_norm
    }
    w_o, b_o = block.output
    return RecordedHead(
        head=head,
        query=query,
        kinds=_kinds(config, turned=attn.rotation is not None),
        scale=config.scaling,
        weights=weights,
        w_o=w_o,
        b_o=b_o,
        z=seen["attn.z"],
        mask=block.visible(torch.arange(len(normed), device=normed.device), len(normed)),
        unembedding=model.unembedding,
        arrays={
            **shared,
            **changed,
            **{letter: seen[f"attn.{letter}"][number] for letter, number in at.items()},
            "pattern": seen["attn.pattern"][head.head],
        },
        rows=rows,
    )


def _projections(
    attn: GroupedAttention, normed: Tensor, at: Mapping[str, int]
) -> tuple[dict[str, tuple[Tensor, Tensor | None]], dict[str, Tensor]]:
    """W_Q, W_K and W_V of a head, with biases; and what they make of `normed` (n, d)."""
    width = attn.config.d_head
    weights, plain = dict[str, tuple[Tensor, Tensor | None]](), dict[str, Tensor]()
    for letter, number in at.items():
        own = slice(number * width, (number + 1) * width)
        projection: Linear = getattr(attn, f"w_{letter}")
        bias = None if projection.bias is None else projection.bias[own]
        weights[f"w_{letter}"] = (projection.weight[own].t().to(normed.dtype), bias)
        plain[f"{letter}_plain"] = projection(normed)[:, own]
    return weights, plain


def _kinds(config: LlamaConfig, *, turned: bool) -> Kinds:
    """The differences from the plain formula, in a layer whose queries and keys are `turned`."""
    words = ["normalised"] * bool(config.qk_norm) + ["turned by its position (rotary)"] * turned
    return Kinds(
        norm=("LayerNorm" if config.norm == "layer" else "RMSNorm") * config.before,
        positions="rotary" if turned else "none",
        group=config.n_head // config.n_group,
        mlp=config.d_mlp,
        changed=" and ".join(words),
        residual="normed" if config.behind else "plain",
        factors=(1.0, 1.0) if config.behind else (config.residual, config.residual),
    )


def seq2seq_record(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, heads: Sequence[Head], query: int
) -> list[RecordedHead]:
    """Run an encoder-decoder, and record some heads of one layer of one of its three attentions.

    `ids` are of the source (n_s), `read` of the target, from its beginning token on (n_t); the
    encoder needs none.
    """
    layer = heads[0].layer
    block: Any = (model.encoder if kind == "encoder" else model.decoder)[layer]
    streams = STREAMS if kind == "encoder" else (*STREAMS, "resid_cross")
    points = (*streams, *_points("cross" if kind == "cross" else "attn"))
    with torch.inference_mode(), kept(block, points, itemgetter(0)) as seen:
        encoded = model.encode(ids[None])
        final = None if kind == "encoder" else model.decode(read[None], encoded)[0, query]  # (d)
        n_q = len(read) if kind == "cross" else len(ids)
        everywhere = torch.ones(n_q, len(ids), dtype=torch.bool)
        return _recorded(
            block,
            kind,
            heads,
            query,
            seen,
            kinds=Kinds(mlp=model.config.n_inner, causal=kind == "decoder"),
            mask=causal_mask(len(read)) if kind == "decoder" else everywhere,
            unembedding=model.wte.weight,
            arrays=present(
                **_embeddings(model, kind, ids, read, layer),
                source=encoded[0] if kind == "cross" else None,
                logits=None if final is None else model.logits(final),
                final=final,
            ),
        )


def _points(attention: str) -> list[str]:
    return [f"{attention}.{point}" for point in ("q", "k", "v", "pattern", "z")]


def _recorded(
    block: Any,
    kind: Kind,
    heads: Sequence[Head],
    query: int,
    seen: Mapping[str, Tensor],
    *,
    kinds: Kinds,
    mask: Tensor,
    unembedding: Tensor,
    arrays: Mapping[str, Tensor],
) -> list[RecordedHead]:
    """Heads of a block; `seen` has what passed the hook points, for every head."""
    name = "cross" if kind == "cross" else "attn"
    attention = getattr(block, name)
    width = attention.w_q.weight.size(1) // attention.n_head
    matrices = {name: getattr(attention, name) for name in ("w_q", "w_k", "w_v")}
    streams, rows = _streams(block, kind, seen)
    of_query = {name: row[query] for name, row in rows.items()}

    def record(head: Head) -> RecordedHead:
        mine = slice(head.head * width, (head.head + 1) * width)
        own = {n: seen[f"{name}.{n}"][head.head] for n in ("q", "k", "v", "pattern")}
        return RecordedHead(
            head=head,
            query=query,
            kinds=kinds,
            scale=1 / math.sqrt(width),
            weights={name: (m.weight[:, mine], m.bias[mine]) for name, m in matrices.items()},
            w_o=attention.w_o.weight.unflatten(0, (attention.n_head, width)),
            b_o=attention.w_o.bias,
            z=seen[f"{name}.z"],
            mask=mask,
            unembedding=unembedding,
            arrays={**arrays, **streams, **of_query, **own},
            rows=rows,
        )

    return [record(head) for head in heads]


def _embeddings(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, layer: int
) -> dict[str, Tensor | None]:
    """The embeddings of tokens and positions (n, d), where their sum is what arrives."""
    if layer or kind == "cross":
        return {}
    tokens, positions = (ids, model.wpe_source) if kind == "encoder" else (read, model.wpe_target)
    return {"embedding": model.wte(tokens), "position": positions.weight[: len(tokens)]}


def _streams(
    block: Any, kind: Kind, seen: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The stream that arrives; and what the parts of the layer add to it, of every query (n, d)."""
    before, between, after = (seen[name] for name in STREAMS)
    crossed = seen.get("resid_cross", between)
    x, attended, norm = before, between, block.ln_1
    if kind == "cross":
        x, attended, norm = between, crossed, block.ln_cross
    rows = present(
        attention_out=attended - x,
        attention_added=attended - x,
        cross_added=crossed - between if kind == "decoder" else None,
        mlp_out=after - crossed,
        x_after=after,
    )
    return {"x": x, "normed": norm(x)}, rows


FROZEN_POINTS = ("resid_pre", "attn.q", "attn.k", "attn.v", "attn.z")


@dataclass(eq=False)
class DecoderLayer(FrozenLayer):
    """A block held fixed."""

    block: CausalBlock
    norm: FrozenNorm
    held: Project
    attention: FrozenAttention
    behind: FrozenNorm | None
    normed: bool = True

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        added = attended if self.behind is None else self.behind(attended)
        return x + self.block.factor * added

    def before_mlp(self, x: Tensor) -> FrozenNorm:
        return norm_held(self.block.ln_2, x)

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        return self.block.projected(self.block.norm(x)) if free else self.held(self.norm(x))


def freeze_decoder(model: Decoder, ids: Tensor) -> FrozenRun:
    """Run a decoder over ids (1, n), and hold the run fixed."""
    check_adds_up(model.dtype)
    n_layer = len(model.h)
    names = [f"h.{layer}.{point}" for layer in range(n_layer) for point in FROZEN_POINTS]
    with torch.no_grad(), kept(model, names, lambda value: value[0]) as seen:
        final = model.by_rows(ids)[0]  # (n, d)
        embedded = model.embedded(ids)
    vocabulary = model.unembedding.detach().to(final.dtype)
    norm = norm_held(model.ln_f, final)
    return FrozenRun(
        embedded={kind: part.reshape(final.shape) for kind, part in embedded.items()},
        constant=torch.zeros_like(final),
        layers=[_layer(model.block(i), f"h.{i}.", seen) for i in range(n_layer)],
        streams=[*(seen[f"h.{i}.resid_pre"] for i in range(n_layer)), final],
        vocabulary=vocabulary,
        output=None
        if model.logit_cap
        else FrozenOutput(norm, vocabulary, factor=model.logit_factor),
        rotary=isinstance(model, Llama),
    )


def _layer(block: CausalBlock, path: str, seen: dict[str, Tensor]) -> DecoderLayer:
    q, k, v = (seen[f"{path}attn.{name}"] for name in "qkv")
    before, (w_o, b_o) = seen[f"{path}resid_pre"], block.output
    with torch.no_grad():
        joined = block.joined(seen[f"{path}attn.z"][None])[0]  # (n, d)
    attention = FrozenAttention(
        q=q,
        k=k,
        v=v,
        pattern=lambda rows: block.weights(q[:, rows], k, rows),
        scaling=block.scaling,
        w_o=w_o,
        b_o=b_o,
        attended=joined,
        seen=lambda rows: block.visible(rows.to(before.device), len(before)),
        cap=block.score_cap,
    )
    behind = None if block.behind is None else norm_held(block.behind, joined)
    normed = not isinstance(block.norm, nn.Identity)
    with torch.no_grad():
        held = block.held(block.norm(before))
    norm = norm_held(block.norm, before)
    return DecoderLayer(block, norm, held, attention, behind, normed)


SITE_POINTS: Mapping[SiteKind, str] = {
    "head": "h.{}.attn.z",
    "attention": "h.{}.attn_out",
    "mlp": "h.{}.mlp_out",
    "residual": "h.{}.resid_pre",
}
"""The hook point of each kind of site, by layer."""


def intervene_native(
    model: Decoder, ids: Tensor, interventions: Interventions, consume: RunConsumer
) -> None:
    """Run interventions over ids (1, n), as `LoadedModel.intervene`.

    Layers before the first changed one run once.
    """
    n, layers, every = ids.size(1), range(len(model.h)), interventions.each
    rows = rows_at_a_time(n, model.config.n_head)
    taken = taken_vectors(partial(vectors_of, model), ids[0].tolist(), interventions)

    def hand_over(index: int, stream: Tensor) -> None:
        consume(_result(model, ids[0], index, stream, interventions))

    first = [min((change.layer for change in each), default=None) for each in every]
    stream = model.embed(ids)  # (1, n, d)
    for layer in layers:
        first_here = [i for i, at in enumerate(first) if at == layer]
        for batch in batches(first_here, max(1, BATCH_TOKENS // n)):
            hooks = _hooks(ChangedBatch([every[i] for i in batch], n, taken), layers)
            with attached(model, hooks):
                start = stream.expand(len(batch), -1, -1)
                streams = model.through(start, range(layer, len(layers)), rows=rows)
            for i, changed in zip(batch, streams, strict=True):
                hand_over(i, changed)
        stream = model.through(stream, range(layer, layer + 1), rows=rows)
    for i, changes in enumerate(every):
        if not changes:
            hand_over(i, stream[0])


def _hooks(batch: ChangedBatch, layers: range) -> Mapping[str, Hook]:
    """The hooks that make the changes of a batch, by hook point."""

    def editing(kind: SiteKind, layer: int) -> Hook:
        return lambda values: batch.changed(values, batch.edits(kind, layer))

    edits = {
        SITE_POINTS[kind].format(layer): editing(kind, layer)
        for layer in layers
        for kind in SITE_POINTS
        if batch.edits(kind, layer)
    }
    hooks = dict(edits)
    for layer, cuts in batch.cuts().items():
        hooks[f"h.{layer}.attn.scores"] = _cutting(cuts, hide=True)
        hooks[f"h.{layer}.attn.pattern"] = _cutting(cuts)
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
            wanted = [each for each in cuts if each.renormalise or not hide]
            if query in block and wanted:
                heads, keys = ([each.head.head for each in wanted], [each.key for each in wanted])
                least = torch.finfo(values.dtype).min if hide else 0.0
                changed[run, heads, query - block.start, keys] = least
        first = block.stop
        return changed

    return cut


def vectors_of(
    model: Decoder, source: SourceRun, sites: Collection[Site], mean: bool
) -> dict[Site, Tensor]:
    """The vectors of sites in the run of a source, for `taken_vectors`."""

    def part(values: Tensor) -> Tensor:  # (n_s, d) or (h, n_s, d_v)
        return values[0].mean(dim=-2, keepdim=True) if mean else values[0]

    points = {site: SITE_POINTS[site.kind].format(site.layer) for site in sites}
    ids = torch.tensor([list(source.ids)], device=model.device)
    with kept(model, points.values(), part) as values:
        model.by_rows(ids)
    places, vectors = list(source.places), dict[Site, Tensor]()
    for site, point in points.items():
        of_site = values[point] if site.head is None else values[point][site.head]
        vectors[site] = of_site[places]
    return vectors


def _result(
    model: Decoder, ids: Tensor, index: int, stream: Tensor, wanted: Interventions
) -> ChangedRun:
    """A run, from the stream behind its last layer (n, d); logits are computed in blocks."""
    parts = torch.split(torch.arange(len(ids) - 1 if wanted.whole else 0), LOGIT_ROWS)
    followed = [log_probability(model.read_out(stream[part]), ids[part + 1]) for part in parts]
    at = wanted.rows
    rows = None if at is None else numbers(model.read_out(stream[at.start : at.stop]))
    return ChangedRun(
        index, numbers(torch.cat(followed)), numbers(model.read_out(stream[-1])), rows
    )
