"""Interventions: a model run with some of its vectors replaced, or some links removed.

Many interventions run in a batch; everything that they do not name is computed as the model does.
Letters in the shape comments:

    B interventions in the batch   n tokens   h heads   d_v width of a head's values
    d width of the stream   V vocabulary
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from attnviz.data.interventions import CutLink, Edit, Intervention, Site

T = TypeVar("T", Edit, CutLink)


@dataclass(frozen=True)
class Batch:
    """The interventions of a batch, each with its place in it.

    `tokens`: n. `source`: the vectors (n, width) of sites as they are in another run, where an
    edit asks for them, already in the order of this text's positions.
    """

    interventions: Sequence[Intervention]
    tokens: int
    source: dict[Site, Tensor]

    def edits(self, kind: str, layer: int) -> list[tuple[int, Edit]]:
        """The edits of one kind of site in a layer, each with the place of its run."""
        found = self._of(Edit)
        return [(i, e) for i, e in found if e.site.kind == kind and e.site.layer == layer]

    def cuts(self, layer: int) -> dict[tuple[int, int], list[CutLink]]:
        """The links that are removed in a layer, by (place of the run, query)."""
        rows: dict[tuple[int, int], list[CutLink]] = {}
        for i, cut in self._of(CutLink):
            if cut.head.layer == layer:
                rows.setdefault((i, cut.query), []).append(cut)
        return rows

    def layers_of_cuts(self) -> set[int]:
        """The layers in which links are removed."""
        return {cut.layer for _, cut in self._of(CutLink)}

    def _of(self, kind: type[T]) -> Iterator[tuple[int, T]]:
        for i, changes in enumerate(self.interventions):
            yield from ((i, change) for change in changes if isinstance(change, kind))

    def changed(self, values: Tensor, edits: Iterable[tuple[int, Edit]]) -> Tensor:
        """The vectors of sites (B, n, d), or of a layer's heads (B, h, n, d_v), some replaced."""
        changed = values.clone()
        for run, edit in edits:
            at = run if edit.site.head is None else (run, edit.site.head)
            before, after = values[at], changed[at]  # (n, width); `after` is a view
            places = slice(None) if edit.positions is None else list(edit.positions)
            if edit.by == "source":
                after[places] = self.source[edit.site][places].to(after)
            else:
                after[places] = before.mean(dim=0) if edit.by == "mean" else 0.0
        return changed


def taken_from_source(interventions: Iterable[Intervention]) -> set[Site]:
    """The sites whose vectors are taken from the source."""
    every = (change for changes in interventions for change in changes)
    return {edit.site for edit in every if isinstance(edit, Edit) and edit.by == "source"}


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The items in order, `size` at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
