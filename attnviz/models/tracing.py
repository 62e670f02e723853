"""The record of one head in a run, completed to a trace by the code of `attention.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import dot_products, masked
from attnviz.models.sampling import numbers
from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from attnviz.records.trace import HeadTrace, Kinds, Predicted, Projection

MOST_LIKELY = NEAREST = 5


@dataclass(frozen=True)
class RecordedHead:
    """One head as a run recorded it, in tensors.

    `weights`: w_q, w_k and w_v (d, d_k) of the head, each with its bias (d_k) or None. w_o
    (h, d_k, d) and z (h, n_q, d_k) are those of all heads; b_o (d). mask (n_q, n_k): True where the
    query may attend to the key. unembedding (V, d), where its width is that of the stream.
    `arrays`: every other array, under its name and with its shape in `HeadTrace`.
    """

    head: Head
    query: int
    kinds: Kinds
    scale: float
    weights: Mapping[str, tuple[Tensor, Tensor | None]]
    w_o: Tensor
    b_o: Tensor | None
    z: Tensor
    mask: Tensor
    unembedding: Tensor
    arrays: Mapping[str, Tensor]


def present(**arrays: Tensor | None) -> dict[str, Tensor]:
    """Those of the arrays that a model has."""
    return {name: array for name, array in arrays.items() if array is not None}


@torch.inference_mode()
def head_trace(recorded: RecordedHead, blank: Capture, tokenizer: TextTokenizer) -> HeadTrace:
    """Complete a record to a trace: compute the scores and the heads' outputs, all as numpy.

    `blank`: the run without its patterns: model, text, and the tokens of rows and columns.
    """
    r, arrays, (layer, head) = recorded, dict(recorded.arrays), recorded.head
    arrays["products"] = dot_products(arrays["q"], arrays["k"])  # (n_q, n_k)
    arrays["scaled"] = scores = arrays["products"] * r.scale
    scores = scores + arrays["bias"] if "bias" in arrays else scores
    arrays["scores"] = masked(scores, r.mask)
    arrays["z"] = r.z[head]
    outputs = r.kinds.factor * (r.z[:, r.query, None] @ r.w_o).squeeze(1)  # (h, d)
    arrays["head_outputs"] = outputs
    logits = arrays.get("logits")
    matrices = {**r.weights, "w_o": (r.w_o[head], r.b_o)}
    fields: dict[str, Any] = {name: numbers(array) for name, array in arrays.items()}
    for name, (weight, bias) in matrices.items():
        fields[name] = Projection(numbers(weight), None if bias is None else numbers(bias))
    return HeadTrace(
        text=blank.text,
        target=blank.target,
        kind=blank.kind,
        unknown_words=blank.unknown_words,
        query_tokens=blank.query_tokens,
        key_tokens=blank.key_tokens,
        model=blank.model,
        versions=blank.versions,
        layer=layer,
        head=head,
        query=r.query,
        kinds=r.kinds,
        scale=r.scale,
        next_tokens=() if logits is None else _likeliest(logits, tokenizer),
        nearest=_nearest(outputs[head], r.unembedding, tokenizer),
        **fields,
    )


def _likeliest(logits: Tensor, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    top = torch.softmax(logits.float(), dim=-1).topk(min(MOST_LIKELY, logits.numel()))
    return _labelled(top, tokenizer)


def _nearest(
    direction: Tensor, vocabulary: Tensor, tokenizer: TextTokenizer
) -> tuple[Predicted, ...]:
    """Tokens by the cosine between their output vector and a direction, highest first.

    No tokens where the widths of vocabulary (V, d') and direction (d) differ, as in models
    whose embedding is narrower than their layers (ALBERT), and where the direction is 0.
    """
    if vocabulary.size(-1) != direction.size(-1) or not direction.any():
        return ()
    cosines = torch.nn.functional.cosine_similarity(vocabulary, direction[None], dim=-1)  # (V)
    return _labelled(cosines.topk(min(NEAREST, cosines.numel())), tokenizer)


def _labelled(top: torch.return_types.topk, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(
        Predicted(tokenizer.label(id_), score, tokenizer.exact(id_)) for id_, score in pairs
    )
