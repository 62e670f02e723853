"""What must hold of every attention pattern, looked at before anything is shown of it."""

from dataclasses import dataclass, field

import numpy as np

from attnviz.data.capture import Consumer, PatternBlock
from attnviz.errors import ModelError


@dataclass
class Checked:
    """Passes blocks on to a consumer, after a look at each.

    `causal`: no weight may lie on a later token. `sum_error`: how far a row's sum may be from
    1; None where rows need not sum to 1 (attention sinks).
    """

    consume: Consumer
    causal: bool
    sum_error: float | None
    heard: set[int] = field(default_factory=set)
    """The layers of which rows came."""

    def __call__(self, block: PatternBlock) -> None:
        """Look at the block, and pass it on.

        Raises:
            ModelError: the weights are not numbers.
            RuntimeError: they are no attention pattern, which is a mistake of the capture.
        """
        self.heard.add(block.layer)
        if not np.isfinite(block.sums).all():
            raise ModelError(
                f"the attention of layer {block.layer} is not a number (NaN or infinite)",
                "the checkpoint may be damaged; in half precision try --dtype float32",
            )
        if self.sum_error is not None and np.abs(block.sums - 1).max() > self.sum_error:
            raise RuntimeError(f"rows of layer {block.layer} do not sum to 1")
        if self.causal and _looks_ahead(block):
            raise RuntimeError(f"layer {block.layer} looks at later tokens")
        self.consume(block)


def _looks_ahead(block: PatternBlock) -> bool:
    first = int(block.queries[0])  # no earlier column can be ahead of any of these rows
    later = np.arange(first, block.weights.shape[2]) > block.queries[:, None]
    return bool(block.weights[:, :, first:][:, later].any())
