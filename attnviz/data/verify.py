"""What a verification found."""

from dataclasses import dataclass

EXACT = 1e-5
"""The largest difference that two orders of adding float32 numbers explain."""


@dataclass(frozen=True)
class Verified:
    """Largest differences: of the output with and without capture, and of the weights to
    transformers' eager attention. `dtype` is what the model ran in."""

    output: float
    weights: float
    dtype: str

    @property
    def exact(self) -> bool:
        """Whether both are as small as float32 allows; in half precision nothing is promised."""
        # asked like this, NaN is not exact either
        return self.dtype != "float32" or (self.output <= EXACT and self.weights <= EXACT)
