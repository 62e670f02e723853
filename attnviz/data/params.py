"""The number of parameters of a model, matrix by matrix."""

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Part: TypeAlias = Literal["embedding", "attention", "rest"]
Per: TypeAlias = Literal["head", "key/value head", "layer", "model"]


@dataclass(frozen=True)
class Matrix:
    """One kind of matrix or vector; the model has `copies` of it.

    `shape` is the shape of one copy: (d_in, d_out), as in x·W, for the matrices of attention,
    and the shape in the weights for all others. `source` is the name in the weights, with `*`
    for the number of the layer; a projection that the weights join with others (GPT-2's
    `c_attn`) is a matrix of its own here.
    """

    name: str
    part: Part
    shape: tuple[int, ...]
    per: Per
    copies: int
    source: str

    @property
    def each(self) -> int:
        """The parameters of one copy."""
        return math.prod(self.shape)

    @property
    def total(self) -> int:
        """The parameters of all copies."""
        return self.each * self.copies

    @property
    def attention(self) -> str:
        """The attention of an encoder-decoder that it belongs to; empty in other models."""
        if self.part != "attention":
            return ""
        if _CROSS.search(self.source):
            return CROSS
        stacks = re.findall(r"(?:^|\.)(encoder|decoder)\.", self.source)
        return stacks[0] if stacks else ""


@dataclass(frozen=True)
class Apart:
    """Numbers in a file that are not parameters of their own, and the reason."""

    source: str
    count: int
    why: str


@dataclass(frozen=True)
class ParameterCount:
    """A model's parameters; `heads` and `kv_heads` count per layer, None where unknown.

    `unembedding` is the output matrix that lessons count beside the embedding to which the model
    ties it; None where no lesson counts the model. `stacks` are the (encoder, decoder) layers of
    an encoder-decoder, which has no `n_layer`.
    """

    name: str
    n_layer: int | None
    heads: int | None
    kv_heads: int | None
    d_model: int | None
    d_head: int | None
    matrices: tuple[Matrix, ...]
    apart: tuple[Apart, ...] = ()
    unembedding: Matrix | None = None
    stacks: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        """All parameters; tied weights count once."""
        return sum(matrix.total for matrix in self.matrices)

    @property
    def lesson_total(self) -> int | None:
        """The parameters as lessons count them: matrices without positions, biases and norms, and
        an unembedding of its own; None where no lesson counts the model."""
        if self.unembedding is None:
            return None
        counted = (m for m in self.matrices if len(m.shape) == 2 and m.name != POSITIONS)
        return sum(matrix.total for matrix in counted) + self.unembedding.total

    @property
    def projections(self) -> tuple[Matrix, ...]:
        """W_Q, W_K, W_V and W_O of each head, without biases, as lessons count them."""
        return tuple(m for m in self.matrices if m.name in PROJECTIONS)

    @property
    def attention(self) -> int:
        """The projections of all heads in all layers."""
        return sum(matrix.total for matrix in self.projections)

    @property
    def attentions(self) -> dict[str, tuple[Matrix, ...]]:
        """W_Q, W_K, W_V and W_O by kind of attention (encoder, decoder, cross); empty where the
        heads of a kind differ in shape."""
        kinds: dict[str, tuple[Matrix, ...]] = {}
        for matrix in self.projections:
            kinds[matrix.attention] = (*kinds.get(matrix.attention, ()), matrix)
        alike = all(tuple(m.name for m in four) == PROJECTIONS for four in kinds.values())
        return kinds if alike else {}


POSITIONS = "wpe.weight"
PROJECTIONS = ("W_Q", "W_K", "W_V", "W_O")
# The attentions of an encoder-decoder, in the order in which they run.
ENCODER, CROSS, DECODER = "encoder", "cross", "decoder"
_CROSS = re.compile(r"cross|encdec|encoder_attn", re.IGNORECASE)
