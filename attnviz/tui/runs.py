"""The app's input, and its runs of the model: one at a time, and an older one gives way."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.run import Ablating, Targets, ablate_together
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.records.capture import Capture, KeepEverything, LayerPattern, PatternBlock
from attnviz.records.heads import Head, every_head

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Cancelled: TypeAlias = Callable[[], bool]
"""Whether a thread's result is no longer wanted."""

SoFar: TypeAlias = Callable[[Capture, int], None]
"""Is given what there is of a capture, and how many layers of it are there: at first none, then
one more each time. The patterns of the others are NaN, and take no memory."""

CANDIDATES = 8


class GaveWay(Exception):
    """A thread stopped because its result is no longer wanted."""


@dataclass(frozen=True)
class Runs:
    """A model with the options of its texts; its hooks and modules allow one run at a time."""

    model: "LoadedModel"
    options: TextOptions
    _one: Lock = field(default_factory=Lock)

    def capture(self, text: str, cancelled: Cancelled, so_far: SoFar) -> Capture:
        """The patterns of all heads over a text; what there is of them goes to `so_far`.

        Raises:
            InputError: the text is blank, or longer than the model's context.
            ModelError: the patterns do not fit into memory.
            GaveWay: the run was cancelled.
        """
        with self._one:
            check(cancelled)
            prepared = prepare(self.model, text, self.options)
            heads = every_head(self.model.identity.heads_per_layer)
            prepared.budget.check(prepared.budget.patterns(heads), "shorten the text")
            keep, last_row = KeepEverything(prepared.shape), prepared.shape[0] - 1
            so_far(_with_layers(prepared.empty, ()), 0)

            def consume(block: PatternBlock) -> None:
                check(cancelled)
                keep(block)
                if block.queries[-1] == last_row:
                    layers = keep.layers()
                    so_far(_with_layers(prepared.empty, layers), len(layers))

            prepared.run(heads, consume)
            return replace(prepared.empty, layers=keep.layers())

    def without(self, text: str, head: Head, cancelled: Cancelled) -> BeforeAfter:
        """The next tokens with and without a head.

        Raises:
            GaveWay: it was cancelled; and the errors of `ablate_together`.
        """
        with self._one:
            check(cancelled)
            options, chosen = self.options, Targets(HeadOptions(heads=str(head)))
            return ablate_together(
                self.model,
                text,
                options,
                chosen,
                Ablating(),
                CANDIDATES,
                lambda _done, _of: check(cancelled),
            )


def _with_layers(empty: Capture, layers: tuple[LayerPattern, ...]) -> Capture:
    """The capture with these layers, and NaN in all others."""
    there = {layer.layer: layer for layer in layers}
    shape = len(empty.query_tokens), len(empty.key_tokens)
    every = []
    for layer, heads in enumerate(empty.model.heads_per_layer):
        nothing = np.broadcast_to(np.float32(np.nan), (heads, *shape))
        waiting = LayerPattern(layer, tuple(range(heads)), nothing)
        every += [there.get(layer, waiting)] if heads else []
    return replace(empty, layers=tuple(every))


@dataclass(frozen=True)
class Opened:
    """What the app opens with: a text and a model to run it, or a saved capture."""

    text: str = ""
    runs: Runs | None = None
    capture: Capture | None = None

    @classmethod
    def of_text(cls, text: str, model: "LoadedModel", options: TextOptions) -> "Opened":
        """A text, the model to run it, and the options of its runs."""
        return cls(text, Runs(model, options))


def check(cancelled: Cancelled) -> None:
    """Raise GaveWay in a thread whose result is no longer wanted."""
    if cancelled():
        raise GaveWay
