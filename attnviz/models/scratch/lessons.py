"""What lessons begin with: embeddings compared directly, small matrices, kinds of similarity.

The parameter-free self-attention is the softmax of the dot products of the token embeddings,
without W_Q, W_K, W_V, positions or scaling, and without a mask unless `causal` is set.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.errors import UsageError, option
from attnviz.models.attention import (
    attention_pattern,
    attention_scores,
    causal_mask,
    dot_products,
    masked,
    merge_heads,
    split_heads,
    weighted_sum,
)
from attnviz.models.engine import Handover, numbers
from attnviz.models.folder.config import folder_sizes
from attnviz.models.loaded import LoadedModel
from attnviz.models.placement import EMBEDDINGS
from attnviz.models.scratch.native import load_checkpoint
from attnviz.models.tokenizer import load_tokenizer
from attnviz.models.weights import fingerprint
from attnviz.records.capture import Capture, Consumer, ModelIdentity, Wanted
from attnviz.records.heads import Head, ModelCard, NamedHead
from attnviz.records.tokens import Ids
from attnviz.records.trace import (
    DoubleArray,
    EmbeddingTrace,
    HeadTrace,
    Initialisation,
    Matrices,
    OtherRow,
    Similarity,
    Way,
    Worked,
)

TITLE = "token embeddings compared with each other, nothing learned to be compared"


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel(LoadedModel):
    """The embedding (V, d) of a model, as a model with one layer and one head."""

    embedding: Tensor

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        return 4 * (3 * n_queries * n_keys + n_keys * self.embedding.size(1))

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        _, _, pattern = self._compared(ids)
        Handover(wanted, consume).take_rows(0, 0, pattern[None])

    def compare(self, blank: Capture, query: int) -> EmbeddingTrace:
        """Every step of the comparison; `blank`: the run without its pattern."""
        x, products, pattern = self._compared([token.id for token in blank.key_tokens])
        return EmbeddingTrace(
            capture=blank,
            query=query,
            x=numbers(x),
            products=numbers(products),
            pattern=numbers(pattern),
            output=numbers(weighted_sum(pattern, x)),
        )

    def _compared(self, ids: Ids) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding[list(ids)]  # (n, d)
        products = dot_products(x, x)  # (n, n)
        if self.causal:
            products = masked(products, causal_mask(len(ids)))
        return x, products, attention_pattern(products)


def load_embeddings(folder: Path, *, causal: bool) -> EmbeddingModel:
    """Load the token embeddings of a GPT-2 folder."""
    tokenizer = load_tokenizer(folder, folder_sizes(folder), bos=False)
    embedding = load_checkpoint(folder).wte.weight
    mark = fingerprint({EMBEDDINGS: embedding})
    size, heads = embedding.numel(), (NamedHead("similarity", Head(0, 0), TITLE),)
    return EmbeddingModel(
        identity=ModelIdentity(EMBEDDINGS, EMBEDDINGS, (1,), size, "native", fingerprint=mark),
        card=ModelCard(EMBEDDINGS, TITLE, bos=False, heads=heads),
        tokenizer=tokenizer,
        causal=causal,
        embedding=embedding,
    )


def work_out(matrices: Matrices, way: Way) -> Worked:
    """Every step of attention on these matrices, by the code that runs models, in float64."""
    m = matrices
    x, w_q, w_k, w_v = map(_tensor, (m.x, m.w_query, m.w_key, m.w_value))
    whole = [x @ w for w in (w_q, w_k, w_v)]  # (n, h·d_k or h·d_v)
    q, k, v = (split_heads(projected, m.heads) for projected in whole)  # (h, n, d_k or d_v)
    if way.similarity == "general":
        per_head = zip(split_heads(w_q, m.heads), split_heads(w_k, m.heads), strict=True)
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
    output = merged if m.w_output is None else merged @ _tensor(m.w_output)
    return Worked(
        given=matrices,
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
    """Seeded embeddings (n, d_model) and weights, like those of a layer before training.

    All are drawn from a normal distribution: embeddings with variance 1; weights with 1 ("normal"),
    2 / (d_in + d_out) ("xavier"; Glorot and Bengio 2010, "Understanding the difficulty of training
    deep feedforward neural networks", equation 12) or 2 / d_in ("kaiming"; He et al. 2015, arXiv
    1502.01852, equation 10).
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


# Measures of how alike a query and a key are; models use one of them. Luong et al. 2015, arXiv
# 1508.04025, section 3.1 (dot, general); Vaswani et al. 2017 (scaled dot); Nadaraya 1964 and Watson
# 1964 (a kernel, each row normalised).


def similarity_scores(kind: Similarity, q: Tensor, k: Tensor) -> Tensor:
    """Scores before mask and softmax: q (..., n_q, d_k) and k (..., n_k, d_k) give (..., n_q, n_k).

    `rbf` gives the exponent −‖q − k‖² / (2·√d_k), whose softmax is the kernel with each row
    normalised. `general` is `dot` of vectors that were projected without biases.
    """
    if kind == "scaled-dot":
        return attention_scores(q, k)
    if kind == "rbf":
        # not torch.cdist, whose shortcut for distances loses digits where q and k are near
        squares = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)
        return -squares / (2 * math.sqrt(q.size(-1)))
    return dot_products(q, k)


def general_scores(x_q: Tensor, w_q: Tensor, w_k: Tensor, x_k: Tensor) -> Tensor:
    """x·(W_Q·W_Kᵀ)·xᵀ: one bilinear form, biases left out; (n_q, n_k)."""
    form = w_q @ w_k.transpose(-2, -1)  # (d, d), of rank d_k
    return torch.as_tensor(x_q @ form @ x_k.transpose(-2, -1))


def other_row(trace: HeadTrace, kind: Similarity) -> OtherRow:
    """The trace's query row by another similarity of the same vectors, under the same mask."""
    row = slice(trace.query, trace.query + 1)
    if kind == "general":
        if trace.kinds.changed:
            raise UsageError(
                "here queries and keys are changed after their projections "
                f"({trace.kinds.changed}), which no single matrix W_Q·W_Kᵀ expresses",
                f"use {option('similarity', 'dot')}, scaled-dot or rbf",
            )
        w_q, w_k = torch.as_tensor(trace.w_q.weight), torch.as_tensor(trace.w_k.weight)
        x_q, x_k = torch.as_tensor(trace.normed), torch.as_tensor(trace.read)
        scores = general_scores(x_q[row], w_q, w_k, x_k)[0]
    else:
        q, k = torch.as_tensor(trace.q), torch.as_tensor(trace.k)
        scores = similarity_scores(kind, q[row], k)[0]
    scores = masked(scores, torch.as_tensor(np.isfinite(trace.scores[trace.query])))
    return OtherRow(kind, numbers(scores), numbers(attention_pattern(scores)))
