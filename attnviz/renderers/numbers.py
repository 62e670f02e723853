"""Numbers as a person reads them, where a fixed number of decimals would show nothing."""

LEAST = 0.0005
"""A smaller probability would be 0.000 with three decimals."""


def probability(value: float) -> str:
    """`0.364`; a probability that three decimals would round to 0 as `3.1e-5`."""
    if value >= LEAST or value <= 0:
        return f"{value:.3f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
