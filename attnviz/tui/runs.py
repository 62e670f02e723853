"""Runs of the model, off the screen's thread: one at a time, and an older one gives way."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from attnviz.data.ablate import BeforeAfter
from attnviz.data.capture import Capture, KeepEverything, PatternBlock
from attnviz.data.head import Head, every_head
from attnviz.runs.ablate import Cut, ablate_together
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import prepare

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Cancelled: TypeAlias = Callable[[], bool]
"""Says whether what is run is still wanted."""

CANDIDATES = 8


class GaveWay(Exception):
    """A run was stopped, as a newer one is wanted."""


@dataclass(frozen=True)
class Runs:
    """A model with the options of its texts; hooks and modules stand only one run at a time."""

    model: "LoadedModel"
    options: TextOptions
    _one: Lock = field(default_factory=Lock)

    def capture(self, text: str, cancelled: Cancelled) -> Capture:
        """The patterns of all heads over a text.

        Raises:
            InputError: nothing but blanks, or longer than the model's context.
            ModelError: they do not fit into memory.
            GaveWay: it was cancelled on the way.
        """
        with self._one:
            _check(cancelled)
            prepared = prepare(self.model, text, self.options)
            heads = every_head(self.model.identity.heads_per_layer)
            prepared.budget.check(prepared.budget.patterns(heads), "shorten the text")
            keep = KeepEverything(prepared.shape)

            def consume(block: PatternBlock) -> None:
                _check(cancelled)
                keep(block)

            prepared.run(heads, consume)
            return replace(prepared.empty, layers=keep.layers())

    def without(self, text: str, head: Head) -> BeforeAfter:
        """What comes next with a head and without it; raises what `ablate_together` raises."""
        with self._one:
            chosen = HeadOptions(heads=str(head))
            return ablate_together(self.model, text, self.options, chosen, Cut(), CANDIDATES)


def _check(cancelled: Cancelled) -> None:
    if cancelled():
        raise GaveWay
