"""The result of a verification."""

from dataclasses import dataclass

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

    `exact_output`, `exact_weights`: where such a difference is above `EXACT` in float32, how far
    both sides are from float64.
    """

    output: float
    weights: float
    dtype: str
    exact_output: FromExact | None = None
    exact_weights: FromExact | None = None

    @property
    def exact(self) -> bool:
        """Whether both are as small as float32 allows; half precision always counts as exact."""
        return self.dtype != "float32" or (
            _fits(self.output, self.exact_output) and _fits(self.weights, self.exact_weights)
        )


def _fits(difference: float, compared: FromExact | None) -> bool:
    return difference <= EXACT or (compared is not None and compared.alike)
