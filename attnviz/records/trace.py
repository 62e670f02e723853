"""One head's whole calculation over one text, number by number.

Letters in the shapes: n_q queries, n_k keys (n where both are the same tokens), d d_model, d_k
width of one head's queries, keys and values, h heads of the layer, V vocabulary. Vectors are
rows (x·W).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray, OverText

# Attention on small matrices, computed in full: the examples of lessons, or a user's.

Similarity: TypeAlias = Literal["dot", "scaled-dot", "general", "rbf"]
Initialisation: TypeAlias = Literal["normal", "xavier", "kaiming"]
DoubleArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Inputs x (n, d_in) and weights w_query, w_key (d_in, h·d_k), w_value (d_in, h·d_v),
    w_output (h·d_v, d_out) or None; `labels` names the n inputs."""

    x: DoubleArray
    w_query: DoubleArray
    w_key: DoubleArray
    w_value: DoubleArray
    w_output: DoubleArray | None = None
    heads: int = 1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """A way to compute: the similarity of query and key, whether there is a causal mask, and
    whether softmax is rounded to one decimal, as in a lesson on paper."""

    similarity: Similarity = "dot"
    causal: bool = False
    rounded: bool = False


@dataclass(frozen=True, eq=False)
class Worked:
    """Every intermediate of attention on small matrices.

    all_queries, all_keys (n, h·d_k); all_values (n, h·d_v): x times the weights. Split:
    queries, keys (h, n, d_k); values (h, n, d_v); scores (h, n, n), -inf under the mask;
    pattern (h, n, n); weighted (h, n, n, d_v): pattern times values; z (h, n, d_v);
    merged (n, h·d_v); output (n, d_out), after w_output, if given.
    """

    given: Matrices
    way: Way
    all_queries: DoubleArray
    all_keys: DoubleArray
    all_values: DoubleArray
    queries: DoubleArray
    keys: DoubleArray
    values: DoubleArray
    scores: DoubleArray
    pattern: DoubleArray
    weighted: DoubleArray
    z: DoubleArray
    merged: DoubleArray
    output: DoubleArray

    def arrays(self) -> dict[str, DoubleArray]:
        """Every array by name, in the order of the calculation."""
        return _arrays(vars(self.given) | vars(self))


Residual: TypeAlias = Literal["plain", "normed", "mixed"]


@dataclass(frozen=True, eq=False)
class Projection:
    """The map x·W + b: `weight` (d_in, d_out), `bias` (d_out), or None without one."""

    weight: FloatArray
    bias: FloatArray | None = None


@dataclass(frozen=True)
class Predicted:
    """A token with its score, a probability or a cosine; `exact`: its own text, if it has one."""

    label: str
    score: float
    exact: str = ""


@dataclass(frozen=True)
class Kinds:
    """The differences of this model from the plain formula.

    `norm`: the norm before attention ("LayerNorm", "RMSNorm"); empty where it comes after.
    `positions`: "learned" (added to the token embedding), "rotary", "bias", or "none" in a
    layer without the rotation that the other layers have.
    `group`: the number of query heads that share this head's keys and values.
    `mlp`: the width of the MLP's hidden layer; None if there are several (experts).
    `changed`: the change of queries and keys between projection and comparison, in words; empty
    without one. `q_plain` and `k_plain` of the trace are set for those that change.
    `residual`: the addition of attention and MLP to the stream: "plain", each times its factor in
    `factors`; "normed", each through its own norm; "mixed", the sum goes through a norm, so that
    the two cannot be separated.
    `causal`: a query does not attend to later tokens.
    """

    norm: str = "LayerNorm"
    positions: str = "learned"
    group: int = 1
    mlp: int | None = None
    changed: str = ""
    residual: Residual = "plain"
    factors: tuple[float, float] = (1.0, 1.0)
    causal: bool = True

    @property
    def factor(self) -> float:
        """The factor on attention's output before it is added; 1 if a norm follows."""
        return self.factors[0] if self.residual == "plain" else 1.0


@dataclass(frozen=True, eq=False)
class LayerNumbers:
    """Everything that a layer computes, as `HeadTrace` has it for one head.

    `scale`: the factor of its scores. `biases`: those of q, k and v that have one. `arrays`: q, z
    (h, n_q, d_k), k, v (h, n_k, d_k), scores and pattern (h, n_q, n_k), written (h, n_k, d): v·W_O
    of each key; x, normed, attention, mlp, after (n_q, d), bias (d); of layer 0 embedding and
    position (n, d); logits (V).
    """

    scale: float
    kinds: Kinds
    biases: tuple[str, ...]
    arrays: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class OtherRow:
    """The query's row by another similarity of the same vectors: scores and weights (n)."""

    kind: Similarity
    scores: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class HeadTrace(OverText):
    """Everything that head `head` of layer `layer` computes over the tokens.

    In an encoder-decoder a query is named by the token that its position writes.
    A new array is a field here, under the name by which a model records it (`RecordedHead` in
    `models/engine.py`) and `explain` writes it; the order of the fields is the order in files.

    embedding, position (n, d): of the tokens, and of their positions; only in layer 0.
    x (n_q, d): the residual stream that arrives; normed (n_q, d): the input of the queries.
    source (n_k, d): the input of keys and values in cross-attention; elsewhere it is normed.
    w_q, w_k, w_v: (d, d_k) with bias (d_k); w_o: (d_k, d), this head's slice, with b_O (d).
    q (n_q, d_k), k, v (n_k, d_k): as compared, except that a factor on all queries is part of
    `scale`; q_plain, k_plain: before rotation or norms change them, where these do.
    products (n_q, n_k): q·k; scaled: times `scale`; scores: plus bias, if any, and -inf where
    the mask forbids; pattern: their softmax, as the model computed it. All of them have the
    shape of products.
    z (n_q, d_k): the weighted sums of the values.
    head_outputs (h, d): the output of each head of the layer at the query, z·W_O, without b_O.
    attention_out (d): their sum, with b_O; both times the factor of the model.
    attention_added, mlp_out (d): what attention and the MLP add to the stream at the query,
    after their norms, if any; if the sum goes through a norm, mlp_out is everything but
    attention_out. x_after (d): the stream that leaves the layer at the query.
    cross_added (d): what cross-attention adds between the two, in the self-attention of a
    decoder that has it; part of mlp_out if the sum goes through a norm.
    final (d), logits (V): the vector before the output layer, and after it: of the last token,
    in an encoder-decoder of the query.
    next_tokens: the likeliest next tokens by these logits.
    nearest: the tokens whose output vectors are closest in direction to this head's addition;
    empty if these have another width.
    """

    capture: Capture
    layer: int
    head: int
    query: int
    kinds: Kinds
    scale: float
    x: FloatArray
    normed: FloatArray
    w_q: Projection
    w_k: Projection
    w_v: Projection
    w_o: Projection
    q: FloatArray
    k: FloatArray
    v: FloatArray
    products: FloatArray
    scaled: FloatArray
    scores: FloatArray
    pattern: FloatArray
    z: FloatArray
    head_outputs: FloatArray
    attention_out: FloatArray
    attention_added: FloatArray
    mlp_out: FloatArray
    x_after: FloatArray
    next_tokens: tuple[Predicted, ...]
    nearest: tuple[Predicted, ...]
    embedding: FloatArray | None = None
    position: FloatArray | None = None
    source: FloatArray | None = None
    q_plain: FloatArray | None = None
    k_plain: FloatArray | None = None
    bias: FloatArray | None = None
    cross_added: FloatArray | None = None
    final: FloatArray | None = None
    logits: FloatArray | None = None

    @property
    def read(self) -> FloatArray:
        """The input of keys and values, shape (n_k, d)."""
        return self.normed if self.source is None else self.source

    @property
    def masks(self) -> bool:
        """Whether there is a mask, even where it hides nothing from this text's tokens."""
        return self.kinds.causal or not bool(np.isfinite(self.scores).all())

    @property
    def weighted(self) -> FloatArray:
        """Each key's weight times its value, shape (n_k, d_k)."""
        return np.asarray(self.pattern[self.query][:, None] * self.v, dtype=np.float32)

    @property
    def contributions(self) -> FloatArray:
        """The weighted values times W_O, shape (n_k, d)."""
        return np.asarray(self.kinds.factor * (self.weighted @ self.w_o.weight), dtype=np.float32)

    @property
    def added(self) -> FloatArray:
        """This head's addition at the query, shape (d): the sum of the contributions (ΔE)."""
        return np.asarray(self.head_outputs[self.head])

    @property
    def output_bias(self) -> FloatArray | None:
        """The bias b_O as it is added, shape (d), or None without one."""
        bias = self.w_o.bias
        return None if bias is None else np.asarray(self.kinds.factor * bias, dtype=np.float32)

    @property
    def merge_error(self) -> float:
        """The largest difference between the sum of the heads with b_O and attention's output."""
        total = self.head_outputs.sum(axis=0, dtype=np.float64)
        if self.output_bias is not None:
            total = total + self.output_bias
        return float(np.abs(total - self.attention_out).max())

    @property
    def unmasked(self) -> FloatArray:
        return self.scaled if self.bias is None else self.scaled + self.bias

    def arrays(self) -> dict[str, FloatArray]:
        """Every intermediate array by name, in the order of the calculation."""
        arrays: dict[str, FloatArray] = {}
        for name, value in vars(self).items():
            if isinstance(value, Projection):
                arrays[name] = value.weight
                if value.bias is not None:
                    arrays[name.replace("w_", "b_")] = value.bias
            elif isinstance(value, np.ndarray):
                arrays[name] = value
        more = ("unmasked", "weighted", "contributions", "added")
        return arrays | {name: getattr(self, name) for name in more}


@dataclass(frozen=True, eq=False)
class EmbeddingTrace(OverText):
    """Attention without queries, keys and values: the token embeddings compared with each other.

    x (n, d): the embeddings; products (n, n): x·xᵀ, -inf under a causal mask; pattern
    (n, n): their softmax; output (n, d): the weighted sums of x.
    """

    capture: Capture
    query: int
    x: FloatArray
    products: FloatArray
    pattern: FloatArray
    output: FloatArray

    def arrays(self) -> dict[str, FloatArray]:
        """Every array by name, in the order of the calculation."""
        return _arrays(vars(self))


def _arrays(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


# The result of a verification.

EXACT = 1e-5
"""A difference that the order of float32 additions explains, without a run in float64."""
AS_FAR = 2.0
"""The most by which a run may be farther from float64 than transformers; 1.4 was measured."""


@dataclass(frozen=True)
class FromExact:
    """The largest differences from the same model in float64.

    `ours`: for the capture; `theirs`: for transformers' eager weights, or the output without
    capture. Errors of float32 grow with depth, length and large scores.
    """

    ours: float
    theirs: float

    @property
    def alike(self) -> bool:
        """Whether both are about equally far from float64, so that their difference is rounding."""
        return self.ours <= max(EXACT, AS_FAR * self.theirs)  # in this form NaN is not alike


@dataclass(frozen=True)
class Verified:
    """The largest differences between the outputs with and without capture, and between the
    captured weights and transformers' eager attention. `dtype` is the type the model ran in.

    >>> found = attnviz.verify("a fluffy blue creature")
    >>> found.exact, sorted(found.by_layer)
    (True, [0, 1, 2, 3, 4])

    `weights` is None if the model's attention function is not one of transformers', so that eager
    attention is no reference for it; `by_layer` has it for each layer. `products`, also by layer:
    between weights times values and the attention function's result, as a share of the terms, over
    every row. It is empty if attnviz's own model or a module of the architecture computes weights
    and product itself.

    `fingerprint`: of the weights, and after a `-` that of all their bytes.

    `exact_output`, `exact_weights`: the distances of both sides from float64, if such a difference
    is above `EXACT` in float32.
    """

    output: float
    weights: float | None
    dtype: str
    exact_output: FromExact | None = None
    exact_weights: FromExact | None = None
    by_layer: Mapping[int, float] = field(default_factory=dict)
    products: Mapping[int, float] = field(default_factory=dict)
    fingerprint: str | None = None

    @property
    def exact(self) -> bool:
        """Whether both are as small as float32 allows; half precision always counts as exact."""
        return self.dtype != "float32" or (
            _fits(self.output, self.exact_output)
            and (self.weights is None or _fits(self.weights, self.exact_weights))
        )


def _fits(difference: float, compared: FromExact | None) -> bool:
    return difference <= EXACT or (compared is not None and compared.alike)
