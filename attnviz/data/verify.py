"""The result of a verification."""

from dataclasses import dataclass

EXACT = 1e-5
"""The largest difference that the order of float32 additions explains."""


@dataclass(frozen=True)
class Verified:
    """The largest differences between the outputs with and without capture, and between the
    captured weights and transformers' eager attention. `dtype` is the type the model ran in."""

    output: float
    weights: float
    dtype: str

    @property
    def exact(self) -> bool:
        """Whether both are as small as float32 allows; half precision always counts as exact."""
        # in this form NaN is not exact either
        return self.dtype != "float32" or (self.output <= EXACT and self.weights <= EXACT)
