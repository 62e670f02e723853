"""Norm-based attention: how much a key adds to a query, rather than its weight alone.

Kobayashi et al. 2020, "Attention is Not Only a Weight", arXiv 2004.10102: a head adds
A[i, j] · f(x_j) for each key, f(x) = (x·W_V + b_V)·W_O; the measure is the length of that vector.
A weight is never negative, so this is A[i, j] · ‖f(x_j)‖.
"""

from dataclasses import replace

from attnviz.data.blocks import LayerPattern
from attnviz.data.capture import VALUE_NORMS, Capture
from attnviz.data.transforms import NormBased
from attnviz.errors import UsageError, option


def weighted(capture: Capture) -> Capture:
    """The same capture with ‖A[i, j] · f(x_j)‖ in the place of A[i, j].

    Raises:
        UsageError: it holds no norms.
    """
    norms = capture.extras.get(VALUE_NORMS)  # (layers, heads, n_keys)
    if norms is None:
        raise UsageError(
            f"this capture does not hold the norms of values, which {option('weighted')} needs",
            f"capture the text again with {option('weighted')}",
        )
    layers = tuple(
        LayerPattern(
            layer.layer,
            layer.heads,
            layer.weights * norms[layer.layer, list(layer.heads)][:, None, :],
        )
        for layer in capture.layers
    )
    return replace(capture, layers=layers, transforms=(*capture.transforms, NormBased()))
