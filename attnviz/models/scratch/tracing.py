"""One head of a model from scratch, as a run records it: of a GPT, or of an encoder-decoder."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.attention import (
    Hook,
    MultiHeadAttention,
    attached,
    attention_pattern,
    causal_mask,
    dot_products,
    masked,
    merge_heads,
    split_heads,
    weighted_sum,
)
from attnviz.models.fingerprint import fingerprint
from attnviz.models.folder.config import folder_sizes
from attnviz.models.intervening import Recorded, numbers, present
from attnviz.models.placement import EMBEDDINGS
from attnviz.models.reducing import general_scores, similarity_scores
from attnviz.models.sampling import Handover
from attnviz.models.scratch.checkpoint import load_checkpoint
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer
from attnviz.records.capture import Consumer, Kind, ModelIdentity, Wanted
from attnviz.records.heads import Head, ModelCard, NamedHead
from attnviz.records.tokens import Token
from attnviz.records.trace import (
    DoubleArray,
    EmbeddingTrace,
    Initialisation,
    Kinds,
    Matrices,
    Way,
    Worked,
)

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


# Attention before there were queries, keys and values: token embeddings compared directly.
#
# This is the parameter-free self-attention with which lessons begin: the weights are the
# softmax of the dot products of the token embeddings, without W_Q, W_K, W_V, positions or
# scaling, and without a mask unless `causal` is set.


TITLE = "token embeddings compared with each other, nothing learned to be compared"


@dataclass(frozen=True)
class EmbeddingModel:
    """The embedding (V, d) of a model, as a model with one layer and one head."""

    embedding: Tensor
    tokenizer: TextTokenizer
    causal: bool
    kind: Kind = "self"
    sinks: bool = False

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        return 4 * (3 * n_queries * n_keys + n_keys * self.embedding.size(1))

    @property
    def identity(self) -> ModelIdentity:
        size = self.embedding.numel()
        mark = fingerprint({EMBEDDINGS: self.embedding})
        return ModelIdentity(EMBEDDINGS, EMBEDDINGS, (1,), size, "native", fingerprint=mark)

    @property
    def card(self) -> ModelCard:
        return ModelCard(
            EMBEDDINGS, TITLE, bos=False, heads=(NamedHead("similarity", Head(0, 0), TITLE),)
        )

    def versions(self) -> Mapping[str, str]:
        return {"torch": str(torch.__version__)}

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        _, _, pattern = self._compared(ids)
        Handover(wanted, consume).take_rows(0, 0, pattern[None])

    def compare(self, text: str, tokens: Sequence[Token], query: int) -> EmbeddingTrace:
        """Every step of the comparison."""
        x, products, pattern = self._compared([token.id for token in tokens])
        return EmbeddingTrace(
            text=text,
            tokens=tuple(tokens),
            model=self.identity,
            versions=self.versions(),
            query=query,
            causal=self.causal,
            x=numbers(x),
            products=numbers(products),
            pattern=numbers(pattern),
            output=numbers(weighted_sum(pattern, x)),
        )

    def _compared(self, ids: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding[list(ids)]  # (n, d)
        products = dot_products(x, x)  # (n, n)
        if self.causal:
            products = masked(products, causal_mask(len(ids)))
        return x, products, attention_pattern(products)


def load_embeddings(folder: Path, *, causal: bool) -> EmbeddingModel:
    """Load the token embeddings of a GPT-2 folder.

    Raises:
        ModelError: a file of the folder is missing or damaged.
    """
    tokenizer = load_tokenizer(folder, folder_sizes(folder), bos=False)
    return EmbeddingModel(load_checkpoint(folder).wte.weight, tokenizer, causal)


# Small matrices through the code that runs the models: `attention.py`, in float64.


def work_out(given: Matrices, way: Way) -> Worked:
    """Every step of attention on these matrices, whose shapes must fit each other."""
    x, w_q, w_k, w_v = map(_tensor, (given.x, given.w_query, given.w_key, given.w_value))
    whole = [x @ w for w in (w_q, w_k, w_v)]  # (n, h·d_k or h·d_v)
    q, k, v = (split_heads(projected, given.heads) for projected in whole)  # (h, n, d_k or d_v)
    if way.similarity == "general":
        per_head = zip(split_heads(w_q, given.heads), split_heads(w_k, given.heads), strict=True)
        scores = torch.stack([general_scores(x, a, b, x) for a, b in per_head])  # (h, n, n)
    else:
        scores = similarity_scores(way.similarity, q, k)  # (h, n, n)
    if way.causal:
        scores = masked(scores, causal_mask(len(x)))
    pattern = attention_pattern(scores)  # (h, n, n)
    if way.rounded:
        pattern = _rounded(pattern)
    z = weighted_sum(pattern, v)  # (h, n, d_v)
    merged = merge_heads(z)  # (n, h·d_v)
    output = merged if given.w_output is None else merged @ _tensor(given.w_output)
    return Worked(
        given=given,
        way=way,
        all_queries=_array(whole[0]),
        all_keys=_array(whole[1]),
        all_values=_array(whole[2]),
        queries=_array(q),
        keys=_array(k),
        values=_array(v),
        scores=_array(scores),
        pattern=_array(pattern),
        weighted=_array(pattern.unsqueeze(-1) * v.unsqueeze(-3)),
        z=_array(z),
        merged=_array(merged),
        output=_array(output),
    )


def _rounded(pattern: Tensor) -> Tensor:
    """Each row in tenths that still sum to 1: the largest remainders are rounded up.

    So 0.06 0.47 0.47 becomes 0.0 0.5 0.5, as the lesson has it, and not 0.1 0.5 0.5.
    """
    # the small number keeps 0.3 (in binary a little less) from falling to 0.2
    tenths = (pattern * 10 + 1e-9).floor()
    left = (10 - tenths.sum(-1, keepdim=True)).round()
    rank = (pattern * 10 - tenths).argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return (tenths + (rank < left)) / 10


def random_matrices(
    labels: tuple[str, ...], d_model: int, heads: int, init: Initialisation, seed: int
) -> Matrices:
    """Seeded embeddings and weights, like those of a layer before training.

    Args:
        labels: the names of the n embeddings (n, d_model), which are drawn with variance 1.
        d_model: the width of the embeddings; all four weights are (d_model, d_model).
        heads: how many heads share the width, which they divide evenly.
        init: the variance of the weights: "normal" 1; "xavier" 2 / (d_in + d_out), Glorot and
            Bengio 2010, "Understanding the difficulty of training deep feedforward neural
            networks", equation 12 (its normalised variance); "kaiming" 2 / d_in, He et al.
            2015, arXiv 1502.01852, equation 10. All are drawn from a normal distribution.
        seed: the same seed draws the same numbers.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> DoubleArray:
        return _array(torch.randn(*shape, generator=generator, dtype=torch.float64))

    def weight() -> DoubleArray:
        tensor = torch.empty(d_model, d_model, dtype=torch.float64)
        if init == "xavier":
            nn.init.xavier_normal_(tensor, generator=generator)
        elif init == "kaiming":
            nn.init.kaiming_normal_(tensor, generator=generator)
        else:
            nn.init.normal_(tensor, std=1.0, generator=generator)
        return _array(tensor)

    x = drawn(len(labels), d_model)
    return Matrices(x, weight(), weight(), weight(), weight(), heads, labels)


def _tensor(array: DoubleArray) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float64)


def _array(tensor: Tensor) -> DoubleArray:
    return np.asarray(tensor.numpy(), dtype=np.float64)
