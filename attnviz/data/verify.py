"""The result of a verification."""

from collections.abc import Mapping
from dataclasses import dataclass, field

EXACT = 1e-5
"""A difference that needs no further look: what the order of float32 additions explains at once."""
AS_FAR = 2.0
"""How many times as far from float64 as transformers a run may be; at most 1.4 was measured."""


@dataclass(frozen=True)
class FromExact:
    """The largest differences from the same model in float64.

    `ours`: of what was captured; `theirs`: of transformers' eager weights, or of the output
    without capture. Both are errors of float32, which grow with depth, length and large scores.
    """

    ours: float
    theirs: float

    @property
    def alike(self) -> bool:
        """Whether both are about as far from float64, so that their difference is rounding."""
        return self.ours <= max(EXACT, AS_FAR * self.theirs)  # in this form NaN is not alike


@dataclass(frozen=True)
class Verified:
    """The largest differences between the outputs with and without capture, and between the
    captured weights and transformers' eager attention. `dtype` is the type the model ran in.

    >>> found = attnviz.verify("a fluffy blue creature")
    >>> found.exact, sorted(found.by_layer)
    (True, [0, 1, 2, 3, 4])

    `weights` is None where the model's attention function is none of transformers' own, which eager
    attention says nothing about; `by_layer` has it of each layer. `products`, also by layer:
    between weights times values and what the attention function returned, as a share of what is
    added up; of every row. It is empty where attnviz's own model or a module of the architecture
    computes weights and product itself.

    `fingerprint`: of the weights, and behind a `-` that of all their bytes.

    `exact_output`, `exact_weights`: where such a difference is above `EXACT` in float32, how far
    both sides are from float64.
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
