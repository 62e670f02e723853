"""One head of a model from scratch, as a run records it: of a GPT, or of an encoder-decoder."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import MultiHeadAttention, causal_mask
from attnviz.models.hooks import Hook, attached
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.models.tracing import Recorded, present
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import Kinds

ATTENTION = ("q", "k", "v", "pattern", "z")
BLOCKS: Mapping[Kind, str] = {"encoder": "encoder", "decoder": "decoder", "cross": "decoder"}


def gpt_record(model: GPT, ids: Tensor, head: Head, query: int) -> Recorded:
    """Run a GPT over ids (n), and record one head."""
    block: Any = model.h[head.layer]
    points = ("resid_pre", "resid_mid", "resid_post", *(f"attn.{p}" for p in ATTENTION))
    hooks, seen = _keeping(f"h.{head.layer}.", points)
    with torch.inference_mode(), attached(model, hooks):
        last = model.ln_f(model.hidden(ids[None])[0, -1])  # (d)
        before, between, after = (seen[f"resid_{point}"] for point in ("pre", "mid", "post"))
        return _recorded(
            block.attn,
            head,
            query,
            {name: seen[f"attn.{name}"] for name in ATTENTION},
            kinds=Kinds(mlp=model.config.d_mlp),
            mask=causal_mask(len(ids)),
            unembedding=model.wte.weight,
            arrays=present(
                embedding=model.wte(ids) if head.layer == 0 else None,
                position=model.wpe.weight[: len(ids)] if head.layer == 0 else None,
                x=before,
                normed=block.ln_1(before),
                attention_out=between[query] - before[query],
                attention_added=between[query] - before[query],
                mlp_out=after[query] - between[query],
                x_after=after[query],
                logits=model.logits(last),
                final=last,
            ),
        )


def seq2seq_record(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, head: Head, query: int
) -> Recorded:
    """Run an encoder-decoder, and record one head of one of its three attentions.

    Args:
        model: the encoder-decoder.
        kind: which attention.
        ids: of the source (n_s).
        read: of the target, from its beginning token on (n_t); the encoder needs none.
        head: its layer and number.
        query: the row for which the rest of the layer is recorded.
    """
    path = f"{BLOCKS[kind]}.{head.layer}."
    block: Any = model.get_submodule(path[:-1])
    name = "cross" if kind == "cross" else "attn"
    attention = block.cross if kind == "cross" else block.attn
    streams = ("resid_pre", "resid_mid", "resid_post") + ("resid_cross",) * (kind != "encoder")
    hooks, seen = _keeping(path, (*streams, *(f"{name}.{point}" for point in ATTENTION)))
    with torch.inference_mode(), attached(model, hooks):
        encoded = model.encode(ids[None])
        final = None if kind == "encoder" else model.decode(read[None], encoded)[0, query]  # (d)
        return _recorded(
            attention,
            head,
            query,
            {point: seen[f"{name}.{point}"] for point in ATTENTION},
            kinds=Kinds(mlp=model.config.n_inner, causal=kind == "decoder"),
            mask=_mask(kind, len(ids), len(read)),
            unembedding=model.wte.weight,
            arrays=present(
                **_embeddings(model, kind, ids, read, head.layer),
                **_streams(block, kind, seen, query),
                source=encoded[0] if kind == "cross" else None,
                logits=None if final is None else model.logits(final),
                final=final,
            ),
        )


def _keeping(path: str, points: Iterable[str]) -> tuple[dict[str, Hook], dict[str, Tensor]]:
    """Hooks on these points below a path, and what they will keep of the one text."""
    seen: dict[str, Tensor] = {}

    def keeper(point: str) -> Hook:
        def keep(value: Tensor) -> None:
            seen[point] = value[0]

        return keep

    return {path + point: keeper(point) for point in points}, seen


def _recorded(
    attention: MultiHeadAttention,
    head: Head,
    query: int,
    seen: Mapping[str, Tensor],
    *,
    kinds: Kinds,
    mask: Tensor,
    unembedding: Tensor,
    arrays: Mapping[str, Tensor],
) -> Recorded:
    """One head of an attention; `seen` has what passed its hook points, for every head."""
    width = attention.w_q.weight.size(1) // attention.n_head
    mine = slice(head.head * width, (head.head + 1) * width)
    matrices = {name: getattr(attention, name) for name in ("w_q", "w_k", "w_v")}
    split = (attention.n_head, width)
    return Recorded(
        head=head,
        query=query,
        kinds=kinds,
        scale=1 / math.sqrt(width),
        weights={name: (m.weight[:, mine], m.bias[mine]) for name, m in matrices.items()},
        w_o=attention.w_o.weight.unflatten(0, split),  # type: ignore[no-untyped-call]
        b_o=attention.w_o.bias,
        z=seen["z"],
        mask=mask,
        unembedding=unembedding,
        arrays={**arrays, **{n: seen[n][head.head] for n in ("q", "k", "v", "pattern")}},
    )


def _mask(kind: Kind, n_source: int, n_target: int) -> Tensor:
    """(n_q, n_k), True where a query may attend: everywhere, but in the decoder's own."""
    if kind == "decoder":
        return causal_mask(n_target)
    return torch.ones(n_target if kind == "cross" else n_source, n_source, dtype=torch.bool)


def _embeddings(
    model: Seq2Seq, kind: Kind, ids: Tensor, read: Tensor, layer: int
) -> dict[str, Tensor | None]:
    """The embeddings of tokens and positions (n, d), where their sum is what arrives."""
    if layer or kind == "cross":
        return {}
    tokens, positions = (ids, model.wpe_source) if kind == "encoder" else (read, model.wpe_target)
    return {"embedding": model.wte(tokens), "position": positions.weight[: len(tokens)]}


def _streams(
    block: Any, kind: Kind, seen: Mapping[str, Tensor], query: int
) -> dict[str, Tensor | None]:
    """The stream that arrives, and what the parts of the layer add to it at the query."""
    before, between, after = (seen[f"resid_{point}"] for point in ("pre", "mid", "post"))
    crossed = seen.get("resid_cross", between)
    x, attended, norm = before, between, block.ln_1
    if kind == "cross":
        x, attended, norm = between, crossed, block.ln_cross
    added = attended[query] - x[query]
    return {
        "x": x,
        "normed": norm(x),
        "attention_out": added,
        "attention_added": added,
        "cross_added": crossed[query] - between[query] if kind == "decoder" else None,
        "mlp_out": after[query] - crossed[query],
        "x_after": after[query],
    }
