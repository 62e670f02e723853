"""One head of a model from scratch, as a run records it: of a GPT, or of an encoder-decoder."""

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import causal_mask, kept
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.models.tracing import RecordedHead, present
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import Kinds

STREAMS = ("resid_pre", "resid_mid", "resid_post")


def gpt_record(model: GPT, ids: Tensor, head: Head, query: int) -> RecordedHead:
    """Run a GPT over ids (n), and record one head."""
    block: Any = model.h[head.layer]
    points = (*STREAMS, *_points("attn"))
    with torch.inference_mode(), kept(block, points, itemgetter(0)) as seen:
        last = model.ln_f(model.hidden(ids[None])[0, -1])  # (d)
        return _recorded(
            block,
            "self",
            head,
            query,
            seen,
            kinds=Kinds(mlp=model.config.d_mlp),
            mask=causal_mask(len(ids)),
            unembedding=model.wte.weight,
            arrays=present(
                embedding=model.wte(ids) if head.layer == 0 else None,
                position=model.wpe.weight[: len(ids)] if head.layer == 0 else None,
                logits=model.logits(last),
                final=last,
            ),
        )


def seq2seq_record(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, head: Head, query: int
) -> RecordedHead:
    """Run an encoder-decoder, and record one head of one of its three attentions.

    `ids` are of the source (n_s), `read` of the target, from its beginning token on (n_t); the
    encoder needs none.
    """
    block: Any = (model.encoder if kind == "encoder" else model.decoder)[head.layer]
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
            head,
            query,
            seen,
            kinds=Kinds(mlp=model.config.n_inner, causal=kind == "decoder"),
            mask=causal_mask(len(read)) if kind == "decoder" else everywhere,
            unembedding=model.wte.weight,
            arrays=present(
                **_embeddings(model, kind, ids, read, head.layer),
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
    head: Head,
    query: int,
    seen: Mapping[str, Tensor],
    *,
    kinds: Kinds,
    mask: Tensor,
    unembedding: Tensor,
    arrays: Mapping[str, Tensor],
) -> RecordedHead:
    """One head of a block; `seen` has what passed the hook points, for every head."""
    name = "cross" if kind == "cross" else "attn"
    attention = getattr(block, name)
    width = attention.w_q.weight.size(1) // attention.n_head
    mine = slice(head.head * width, (head.head + 1) * width)
    matrices = {name: getattr(attention, name) for name in ("w_q", "w_k", "w_v")}
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
        arrays={**arrays, **_streams(block, kind, seen, query), **own},
    )


def _embeddings(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, layer: int
) -> dict[str, Tensor | None]:
    """The embeddings of tokens and positions (n, d), where their sum is what arrives."""
    if layer or kind == "cross":
        return {}
    tokens, positions = (ids, model.wpe_source) if kind == "encoder" else (read, model.wpe_target)
    return {"embedding": model.wte(tokens), "position": positions.weight[: len(tokens)]}


def _streams(block: Any, kind: Kind, seen: Mapping[str, Tensor], query: int) -> dict[str, Tensor]:
    """The stream that arrives, and what the parts of the layer add to it at the query."""
    before, between, after = (seen[name] for name in STREAMS)
    crossed = seen.get("resid_cross", between)
    x, attended, norm = before, between, block.ln_1
    if kind == "cross":
        x, attended, norm = between, crossed, block.ln_cross
    added = attended[query] - x[query]
    return present(
        x=x,
        normed=norm(x),
        attention_out=added,
        attention_added=added,
        cross_added=crossed[query] - between[query] if kind == "decoder" else None,
        mlp_out=after[query] - crossed[query],
        x_after=after[query],
    )
