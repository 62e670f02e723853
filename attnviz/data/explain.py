"""One head's whole calculation over one text, number by number.

Letters in the shapes: n tokens, d d_model, d_k width of one head's queries and keys (and
of its values), h heads of the layer. Vectors are rows (x·W).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np

from attnviz.data.capture import FloatArray, ModelIdentity
from attnviz.data.tokens import Token
from attnviz.data.worked import Similarity

Residual: TypeAlias = Literal["plain", "normed", "mixed"]


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
    `positions`: "learned" (added to the token embedding), "rotary", "bias", or "none" in a
    layer that leaves the rotation of the others out.
    `group`: how many query heads share this head's keys and values.
    `mlp`: the width of its hidden layer, None where tokens do not all take one way (experts).
    `changed`: what is done to queries and keys between projection and comparison, in words;
    empty where nothing is. Which of them it is done to, `q_plain` and `k_plain` tell.
    `residual`: how what attention and MLP make reaches the stream: "plain", added as it is
    (times its one of the two `factors`); "normed", through a norm of its own; "mixed", a norm
    stands over the sum, and the two cannot be told apart.
    `causal`: a query does not see what comes later.
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
        """What attention's output is multiplied by before it is added; 1 where a norm follows."""
        return self.factors[0] if self.residual == "plain" else 1.0


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
    q, k, v (n, d_k): as compared, but that a factor on all queries is counted to `scale`;
    q_plain, k_plain: before they are changed (rotation, norms), where they are.
    products (n, n): q·k; scaled (n, n): times `scale`; scores (n, n): plus bias (n, n), where
    there is one, and -inf where the mask forbids; pattern (n, n): their softmax, as the model
    computed it.
    z (n, d_k): the weighted sums of the values.
    head_outputs (h, d): what each head of the layer gives at the query, z·W_O, without b_O.
    attention_out (d): what they give together, with b_O; both times the factor that the model
    multiplies it by.
    attention_added, mlp_out, x_after (d): at the query, what of attention and of the MLP is
    added to the stream (behind their norms, where they have any; where these stand over the
    sum, mlp_out is all that is not attention_out), and the stream that leaves the layer.
    final (d) and logits (V): the last token's vector before the output layer, and behind it.
    next_tokens: the likeliest of these.
    nearest: the vocabulary's tokens whose direction this head's addition is closest to; none
    where their vectors have another width.
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
    q_plain: FloatArray | None = None
    k_plain: FloatArray | None = None
    bias: FloatArray | None = None
    final: FloatArray | None = None
    logits: FloatArray | None = None

    @property
    def factor(self) -> float:
        """What the output of attention is multiplied by before it is added to the stream."""
        return self.kinds.factor

    @property
    def weighted(self) -> FloatArray:
        """(n, d_k): each key's weight times its value, for the query."""
        return np.asarray(self.pattern[self.query][:, None] * self.v, dtype=np.float32)

    @property
    def contributions(self) -> FloatArray:
        """(n, d): the weighted values carried up by W_O."""
        return np.asarray(self.factor * (self.weighted @ self.w_o.weight), dtype=np.float32)

    @property
    def added(self) -> FloatArray:
        """(d): what this head adds at the query, the sum of the contributions (ΔE)."""
        return np.asarray(self.head_outputs[self.head])

    @property
    def output_bias(self) -> FloatArray | None:
        """(d): b_O as it is added, None where there is none."""
        bias = self.w_o.bias
        return None if bias is None else np.asarray(self.factor * bias, dtype=np.float32)

    @property
    def merge_error(self) -> float:
        """The largest difference between the sum of the heads with b_O and attention's output."""
        total = self.head_outputs.sum(axis=0, dtype=np.float64)
        if self.output_bias is not None:
            total = total + self.output_bias
        return float(np.abs(total - self.attention_out).max())

    @property
    def unmasked(self) -> FloatArray:
        """(n, n): the scores before the mask."""
        return self.scaled if self.bias is None else self.scaled + self.bias

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
        more = ("unmasked", "weighted", "contributions", "added")
        return found | {name: getattr(self, name) for name in more}


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
