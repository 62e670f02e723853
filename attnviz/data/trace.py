"""One head's whole calculation over one text, number by number.

Letters in the shapes: n tokens, d d_model, d_k width of one head's queries and keys (and
of its values), h heads of the layer. Vectors are rows (x·W).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from attnviz.data.capture import FloatArray, ModelIdentity
from attnviz.data.tokens import Token
from attnviz.data.worked import Similarity


@dataclass(frozen=True, eq=False)
class Projection:
    """x·W + b: `weight` (d_in, d_out), `bias` (d_out), None where the model has none."""

    weight: FloatArray
    bias: FloatArray | None = None


@dataclass(frozen=True)
class Predicted:
    """A token of the vocabulary with its score: a probability, or a cosine."""

    label: str
    score: float


@dataclass(frozen=True)
class Kinds:
    """How this model differs from the plain formula, in words for step by step.

    `norm`: what stands before attention ("LayerNorm", "RMSNorm"), empty where it comes after.
    `positions`: "learned" (added to the token embedding), "rotary" or "bias".
    `group`: how many query heads share this head's keys and values.
    `mlp`: the width of its hidden layer, None where it is not one number.
    `turned`: queries and keys are changed between projection and comparison (rotation, norms).
    `pre_norm`: norms stand before attention and before the MLP, and nowhere else.
    `causal`: a query does not see what comes later.
    """

    norm: str = "LayerNorm"
    positions: str = "learned"
    group: int = 1
    mlp: int | None = None
    turned: bool = False
    pre_norm: bool = True
    causal: bool = True


@dataclass(frozen=True, eq=False)
class OtherRow:
    """The query's row by another similarity, of the same vectors: scores and weights (n)."""

    kind: Similarity
    scores: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class HeadTrace:
    """Everything that head `head` of layer `layer` computes over the tokens.

    embedding (n, d): of the tokens, and `position` (n, d) of their places; only in layer 0.
    x (n, d): the residual stream that arrives; normed (n, d): what attention reads.
    w_q, w_k, w_v: (d, d_k) with bias (d_k); w_o: (d_k, d), this head's slice; b_o (d).
    q, k, v (n, d_k): as compared; q_plain, k_plain: before the rotation, where there is one.
    products (n, n): q·k; scores (n, n): times `scale` (plus bias (n, n), where there is one),
    -inf where the mask forbids; pattern (n, n): their softmax, as the model computed it.
    z (n, d_k): the weighted sums of the values.
    head_outputs (h, d): what each head of the layer adds at the query, z·W_O, without b_O.
    attention_out, mlp_out, x_after (d): at the query, what attention and the MLP (where
    there are norms behind them, these too) add, and the stream that leaves the layer.
    logits (V): of the token that follows the last one.
    nearest: the vocabulary's tokens whose direction this head's addition is closest to.
    """

    text: str
    tokens: tuple[Token, ...]
    model: ModelIdentity
    versions: Mapping[str, str]
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
    scores: FloatArray
    pattern: FloatArray
    z: FloatArray
    head_outputs: FloatArray
    attention_out: FloatArray
    mlp_out: FloatArray
    x_after: FloatArray
    next_tokens: tuple[Predicted, ...]
    nearest: tuple[Predicted, ...]
    embedding: FloatArray | None = None
    position: FloatArray | None = None
    q_plain: FloatArray | None = None
    k_plain: FloatArray | None = None
    bias: FloatArray | None = None

    @property
    def contributions(self) -> FloatArray:
        """(n, d): each key's weight times its value, carried up by W_O, for the query."""
        weighted = self.pattern[self.query][:, None] * self.v  # (n, d_k)
        return np.asarray(weighted @ self.w_o.weight, dtype=np.float32)

    @property
    def added(self) -> FloatArray:
        """(d): what this head adds at the query, the sum of the contributions (ΔE)."""
        return np.asarray(self.head_outputs[self.head])

    def arrays(self) -> dict[str, FloatArray]:
        """Every intermediate array by name, in the order of the calculation."""
        found: dict[str, FloatArray] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Projection):
                found[item.name] = value.weight
                if value.bias is not None:
                    found[item.name.replace("w_", "b_")] = value.bias
            elif isinstance(value, np.ndarray):
                found[item.name] = value
        return {**found, "contributions": self.contributions, "added": self.added}


@dataclass(frozen=True, eq=False)
class EmbeddingTrace:
    """Attention without queries, keys and values: the token embeddings compared with each other.

    x (n, d): the embeddings; products (n, n): x·xᵀ, -inf behind a causal mask; pattern
    (n, n): their softmax; output (n, d): the weighted sums of x.
    """

    text: str
    tokens: tuple[Token, ...]
    model: ModelIdentity
    versions: Mapping[str, str]
    query: int
    causal: bool
    x: FloatArray
    products: FloatArray
    pattern: FloatArray
    output: FloatArray

    def arrays(self) -> dict[str, FloatArray]:
        """Every array by name, in the order of the calculation."""
        names = ("x", "products", "pattern", "output")
        return {name: getattr(self, name) for name in names}
