"""Circuits from the weights alone (Elhage et al. 2021, "A Mathematical Framework").

The matrices of a head are read off a run of one token that is held fixed: what queries, keys and
values make of each direction of the stream. The norm before them is part of it, but for a positive
factor, which changes no score here. At the first position, rotary positions turn nothing.

Letters in the shape comments as in `frozen/run.py`; r = min(d, d_k).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import torch
from torch import Tensor

from attnviz.models.frozen.layer import FrozenLayer
from attnviz.models.frozen.run import FrozenRun
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.parts import Copying, Through

MOST_TOKENS, SEED = 512, 0
"""The number of tokens, drawn at random from the vocabulary, behind the top-1 score."""
DIRECTIONS = 512  # of the stream at a time
PROBES, NOISE = 4, 0.1
"""Directions that see whether a matrix is more than rounding, and how far they may miss it."""
FAINT = 1e-5
"""A product of matrices below this share of what random factors of the same norms would have is a
rounding error of float32, and no ratio is taken of it."""


@dataclass(frozen=True)
class Weights:
    """One head: w_q, w_k (d, d_k) and w_v (d, d_v) with the norm before them; w_o (d_v, d),
    with the norm behind it, if there is one.
    """

    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    w_o: Tensor


@torch.no_grad()
def weights_of(run: FrozenRun) -> dict[Head, Weights]:
    """The weights of each head, off a run of one token."""
    weights: dict[Head, Weights] = {}
    for number, layer in enumerate(run.layers):
        attention = layer.attention
        if attention is None:
            continue
        q, k, v = _directions(layer, run.constant.size(1), run.constant)
        for head in range(attention.q.size(0)):
            g, w_o = head // attention.group, _added(layer, attention.w_o[head])
            weights[Head(number, head)] = Weights(q[:, head], k[:, g], v[:, g], w_o)
    return weights


def _added(layer: FrozenLayer, w_o: Tensor) -> Tensor:
    """The part of an output projection (d_v, d) that reaches the stream, past a norm if any."""
    rows = w_o[:, None]  # (d_v, 1, d)
    zeros = torch.zeros_like(rows)
    return (layer.passes(zeros, rows) - layer.passes(zeros, zeros))[:, 0]


def _directions(layer: FrozenLayer, d: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The queries (d, h, d_k), keys and values (d, g, …) that each direction gives."""
    every = torch.eye(d, dtype=like.dtype, device=like.device)[:, None]  # (d, 1, d)
    zero = layer.asks(torch.zeros_like(every[:1]))
    parts = [layer.asks(some) for some in torch.split(every, DIRECTIONS)]
    q, k, v = (torch.cat(each)[:, :, 0] for each in zip(*parts, strict=True))
    drawn = torch.randn(PROBES, d, generator=torch.Generator().manual_seed(SEED)).to(like)
    probed = layer.asks(drawn[:, None])
    matrices = q - zero[0][0, :, 0], k - zero[1][0, :, 0], v - zero[2][0, :, 0]
    for matrix, result, none in zip(matrices, probed, zero, strict=True):
        _without_noise(matrix, drawn, result[:, :, 0] - none[0, :, 0])
    return matrices


def _without_noise(matrix: Tensor, directions: Tensor, results: Tensor) -> None:
    """Set to 0 the heads (d, h, w) of which only rounding is left, as where a norm cancels them.

    `results` (m, h, w): what the layer makes of these directions (m, d), rounded otherwise.
    """
    sums = torch.einsum("md,dhw->mhw", directions, matrix)
    size, error = (x.square().sum(dim=(0, 2)).sqrt() for x in (sums, sums - results))  # (h)
    matrix[:, error > NOISE * size] = 0


def _gain(matrix: Tensor) -> float:
    """The factor by which a matrix changes the length of a random vector on its left."""
    return float(torch.linalg.matrix_norm(matrix)) / sqrt(matrix.size(0))


@torch.no_grad()
def copying(run: FrozenRun, heads: Mapping[Head, Weights]) -> Iterator[Copying]:
    """The copying scores of each head; NaN where its circuit is 0 but for rounding."""
    output, vocabulary = run.output, run.vocabulary
    if output is None or vocabulary is None:
        return
    d, like = run.constant.size(1), run.constant
    every = torch.eye(d, dtype=like.dtype, device=like.device)[:, None]
    read = (output.reads(every) - output.reads(torch.zeros_like(every)))[:, 0]  # (d, d)
    unembedding = output.weight - output.weight.mean(dim=0)  # (V, d): what all share has no effect
    outward = read @ unembedding.T  # (d, V)
    through, gain = outward @ vocabulary, _gain(outward)  # (d, d)
    draw = np.random.default_rng(SEED)
    most = min(MOST_TOKENS, len(vocabulary))
    ids = torch.from_numpy(draw.choice(len(vocabulary), most, replace=False))
    some, around = vocabulary[ids], gain * _gain(vocabulary)
    for head, w in heads.items():
        logits = some @ w.w_v @ (w.w_o @ outward)  # (tokens, V)
        norm, inside = torch.linalg.matrix_norm(logits), _gain(w.w_v) * _gain(w.w_o)
        if norm <= FAINT * torch.linalg.matrix_norm(some) * inside * gain:
            yield Copying(head, nan, nan, most)
            continue
        values = torch.linalg.eigvals((w.w_o @ through @ w.w_v).cpu().double())  # (d_v)
        sizes = values.abs().sum()
        known = sizes > FAINT * inside * around
        share = float(values.real.sum() / sizes) if known else nan
        top = float((logits.argmax(dim=1).cpu() == ids).double().mean())
        yield Copying(head, share, top, most)


@torch.no_grad()
def compositions(heads: Mapping[Head, Weights], through: Through) -> tuple[FloatArray, float]:
    """The scores (heads, heads), writers down, and what random matrices would have.

    NaN where the reader is not later, and where a head's circuit is 0 but for rounding.
    """
    every = tuple(heads.items())
    scores = np.full((len(every), len(every)), np.nan, np.float32)
    writers = [(_small(w.w_v.T).T, w.w_o) for _, w in every]  # (r, d_v), (d_v, d)
    readers = [_reader(w, through) for _, w in every]  # (d, r), (r, r)
    written = [_norm_of(one, other) for one, other in writers]
    read = [_norm_of(one, other) for one, other in readers]
    for i, (writer, _) in enumerate(every):
        for j, (reader, _) in enumerate(every):
            if writer.layer < reader.layer:
                (a, b), (c, e) = writers[i], readers[j]
                together = torch.linalg.matrix_norm(a @ (b @ c) @ e)
                scores[i, j] = float(together) / (written[i] * read[j])
    d = every[0][1].w_o.size(1)
    return scores, float(d**-0.5)


def _norm_of(one: Tensor, other: Tensor) -> float:
    """The norm of a product; NaN where it is a rounding error, so that no share of it is given."""
    norm = float(torch.linalg.matrix_norm(one @ other))
    return norm if norm > FAINT * torch.linalg.matrix_norm(one) * _gain(other) else nan


def _reader(w: Weights, through: Through) -> tuple[Tensor, Tensor]:
    """The circuit of a reading head: W_Q·W_Kᵀ, W_K·W_Qᵀ or W_V·W_O, the last one small."""
    if through == "value":
        return w.w_v, _small(w.w_o)
    one, other = (w.w_q, w.w_k) if through == "query" else (w.w_k, w.w_q)
    return one, _small(other.T)


def _small(matrix: Tensor) -> Tensor:
    """A square matrix (m, m) for one (m, d) that leaves every norm of a product X·matrix."""
    small: Tensor = torch.linalg.qr(matrix.T, mode="r").R.T
    return small
