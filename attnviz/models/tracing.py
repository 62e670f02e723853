"""What a model recorded of one head, completed to a trace by the code of `attention.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attnviz.data.capture import FloatArray
from attnviz.data.explain import HeadTrace, Kinds, Predicted, Projection
from attnviz.data.head import Head
from attnviz.data.tokens import Token
from attnviz.models.attention import dot_products, masked
from attnviz.models.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

MOST_LIKELY = NEAREST = 5


@dataclass(frozen=True)
class Recorded:
    """The tensors of one run, under the names and with the shapes of `HeadTrace`.

    Besides: weights of `w_q`, `w_k` and `w_v` with their biases; w_o (h, d_k, d) of all
    heads; z (h, n, d_k) of all heads; mask (n, n), True where a query may look;
    unembedding (V, d), where its width is that of the stream. `attention_added` None: all of
    attention_out.
    """

    head: Head
    query: int
    kinds: Kinds
    scale: float
    x: Tensor
    normed: Tensor
    weights: Mapping[str, tuple[Tensor, Tensor | None]]
    w_o: Tensor
    b_o: Tensor | None
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor
    pattern: Tensor
    z: Tensor
    attention_out: Tensor
    mlp_out: Tensor
    x_after: Tensor
    logits: Tensor | None
    unembedding: Tensor
    embedding: Tensor | None = None
    position: Tensor | None = None
    q_plain: Tensor | None = None
    k_plain: Tensor | None = None
    bias: Tensor | None = None
    attention_added: Tensor | None = None
    final: Tensor | None = None


@torch.inference_mode()
def head_trace(
    recorded: Recorded, model: "LoadedModel", text: str, tokens: Sequence[Token]
) -> HeadTrace:
    """The trace: what follows from the record is computed here, all of it as numpy.

    Args:
        recorded: q, k, v (n, d_k) of one head, z (h, n, d_k) and w_o (h, d_k, d) of all, and
            whatever else `Recorded` names.
        model: whose run it was.
        text: what was read.
        tokens: the n of it.
    """
    r = recorded
    products = dot_products(r.q, r.k)  # (n, n)
    scaled = products * r.scale
    scores = scaled if r.bias is None else scaled + r.bias
    head_outputs = r.kinds.factor * (r.z[:, r.query, None] @ r.w_o).squeeze(1)  # (h, d)
    added = r.attention_out if r.attention_added is None else r.attention_added
    projections = {
        name: Projection(numbers(weight), optional(bias))
        for name, (weight, bias) in r.weights.items()
    }
    return HeadTrace(
        text=text,
        tokens=tuple(tokens),
        model=model.identity,
        versions=model.versions(),
        layer=r.head.layer,
        head=r.head.head,
        query=r.query,
        kinds=r.kinds,
        scale=r.scale,
        x=numbers(r.x),
        normed=numbers(r.normed),
        w_q=projections["w_q"],
        w_k=projections["w_k"],
        w_v=projections["w_v"],
        w_o=Projection(numbers(r.w_o[r.head.head]), optional(r.b_o)),
        q=numbers(r.q),
        k=numbers(r.k),
        v=numbers(r.v),
        products=numbers(products),
        scaled=numbers(scaled),
        scores=numbers(masked(scores, r.mask)),
        pattern=numbers(r.pattern),
        z=numbers(r.z[r.head.head]),
        head_outputs=numbers(head_outputs),
        attention_out=numbers(r.attention_out),
        attention_added=numbers(added),
        mlp_out=numbers(r.mlp_out),
        x_after=numbers(r.x_after),
        next_tokens=() if r.logits is None else _most_likely(r.logits, model.tokenizer),
        nearest=_nearest(head_outputs[r.head.head], r.unembedding, model.tokenizer),
        embedding=optional(r.embedding),
        position=optional(r.position),
        q_plain=optional(r.q_plain),
        k_plain=optional(r.k_plain),
        bias=optional(r.bias),
        final=optional(r.final),
        logits=optional(r.logits),
    )


def numbers(tensor: Tensor) -> FloatArray:
    """A tensor as float32 numpy."""
    return np.asarray(tensor.detach().float().cpu().numpy(), dtype=np.float32)


def optional(tensor: Tensor | None) -> FloatArray | None:
    """The same of what may not be there."""
    return None if tensor is None else numbers(tensor)


def _most_likely(logits: Tensor, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    top = torch.softmax(logits.float(), dim=-1).topk(min(MOST_LIKELY, logits.numel()))
    return _labelled(top, tokenizer)


def _nearest(
    direction: Tensor, vocabulary: Tensor, tokenizer: TextTokenizer
) -> tuple[Predicted, ...]:
    """Tokens by the cosine between their output vector and a direction, highest first.

    None where vocabulary (V, d') and direction (d) have no width in common, as in models
    whose embedding is narrower than their layers (ALBERT).
    """
    if vocabulary.size(-1) != direction.size(-1):
        return ()
    cosines = torch.nn.functional.cosine_similarity(vocabulary, direction[None], dim=-1)  # (V)
    return _labelled(cosines.topk(min(NEAREST, cosines.numel())), tokenizer)


def _labelled(top: torch.return_types.topk, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(Predicted(tokenizer.label(id_), score) for id_, score in pairs)
