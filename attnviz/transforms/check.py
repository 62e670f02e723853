"""What must hold of every attention pattern, looked at before anything is shown of it."""

from dataclasses import dataclass, field

import numpy as np

from attnviz.data.capture import Capture, Consumer, PatternBlock, Wanted
from attnviz.errors import ModelError


@dataclass
class Checked:
    """Passes blocks on to a consumer, after a look at each.

    `empty` is the capture to be: whether queries see later keys, whether rows sum to 1, and
    how many queries and keys there are.
    """

    consume: Consumer
    empty: Capture
    _rows: dict[int, int] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        """Look at the block, and pass it on.

        Raises:
            ModelError: the weights are not numbers, or no attention pattern over these tokens.
        """
        self._rows[block.layer] = self._rows.get(block.layer, 0) + len(block.queries)
        if not np.isfinite(block.sums).all():
            raise ModelError(
                f"the attention of layer {block.layer} is not a number (NaN or infinite)",
                "the checkpoint may be damaged; in half precision try --dtype float32",
            )
        if not self._over_all_keys(block):
            raise self._no_pattern(block.layer, "does not look at each of the tokens")
        if self.empty.signed:  # nothing more can be said of scores
            self.consume(block)
            return
        if not self.empty.sinks and np.abs(block.sums - 1).max() > self._sum_error:
            raise self._no_pattern(block.layer, "has rows that do not sum to 1")
        if self.empty.causal and _looks_ahead(block):
            raise self._no_pattern(block.layer, "looks at later tokens")
        self.consume(block)

    def finish(self, wanted: Wanted) -> None:
        """See that every row that was wanted came, once.

        Raises:
            ModelError: some did not.
        """
        queries = len(self.empty.query_tokens) if wanted.queries is None else len(wanted.queries)
        silent = [layer for layer in sorted(wanted.heads) if layer not in self._rows]
        if len(silent) == len(wanted.heads):
            raise ModelError(
                f"attnviz finds no attention in {self._architecture} that it could show: it has "
                "none, or computes it in a way of its own",
                "use another model",
            )
        if silent:
            raise ModelError(
                f"layer {silent[0]} of this model has no attention that could be shown",
                "choose others with --layer",
            )
        for layer, rows in self._rows.items():
            if rows != queries:
                raise self._no_pattern(layer, f"has {rows} rows for {queries} tokens")

    def _over_all_keys(self, block: PatternBlock) -> bool:
        """Causal blocks may end behind the last key that their queries see."""
        n, keys = block.weights.shape[2], len(self.empty.key_tokens)
        return n == keys or (self.empty.causal and int(block.queries[-1]) < n < keys)

    @property
    def _sum_error(self) -> float:
        return 1e-3 if self.empty.model.dtype == "float32" else 0.05

    @property
    def _architecture(self) -> str:
        return self.empty.model.architecture

    def _no_pattern(self, layer: int, why: str) -> ModelError:
        return ModelError(
            f"layer {layer} of {self._architecture} {why}: this is no attention pattern that "
            "attnviz could show",
            "use another model",
        )


def _looks_ahead(block: PatternBlock) -> bool:
    first = int(block.queries[0])  # no earlier column can be ahead of any of these rows
    later = np.arange(first, block.weights.shape[2]) > block.queries[:, None]
    return bool(block.weights[:, :, first:][:, later].any())
