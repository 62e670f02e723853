"""Small matrices through the code that runs the models: `attention.py`, in float64."""

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.attention import (
    attention_pattern,
    causal_mask,
    masked,
    merge_heads,
    split_heads,
    weighted_sum,
)
from attnviz.models.similarity import general_scores, similarity_scores
from attnviz.records.trace import DoubleArray, Initialisation, Matrices, Way, Worked


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
