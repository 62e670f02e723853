"""Interventions: a model run with some of its vectors replaced, or some links removed.

Many interventions run in a batch; everything that they do not name is computed as the model does.
Letters in the shape comments:

    B interventions in the batch   n tokens   h heads   d_v width of a head's values
    d width of the stream   V vocabulary
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from torch import Tensor

from attnviz.records.predict import CutLink, Edit, Intervention, Site, SourceRun

T = TypeVar("T", Edit, CutLink)
Taken: TypeAlias = dict[tuple[str, Site], Tensor]
"""What takes the place of a site's vectors, by ("mean" or "source", site)."""


@dataclass(frozen=True)
class ChangedBatch:
    """The interventions of a batch, each with its place in it.

    `tokens`: n. `taken`: what takes the place of vectors: those of another run (n, width), already
    in the order of this text's positions, or their mean in the text's own run (1, width).
    """

    interventions: Sequence[Intervention]
    tokens: int
    taken: Taken

    def edits(self, kind: str, layer: int) -> list[tuple[int, Edit]]:
        """The edits of one kind of site in a layer, each with the place of its run."""
        at = (kind, layer)
        return [(i, e) for i, e in self._of(Edit) if (e.site.kind, e.site.layer) == at]

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
            after = changed[at]  # (n, width), a view
            places = slice(None) if edit.positions is None else list(edit.positions)
            if edit.by == "zero":
                after[places] = 0.0
            else:
                instead = self.taken[edit.by, edit.site]
                after[places] = (instead[places] if edit.by == "source" else instead).to(after)
        return changed


class TakeFrom(Protocol):
    """Runs a text once, unchanged, and gives what sites are there at its places (places, width)."""

    def __call__(self, source: SourceRun, sites: set[Site], *, mean: bool) -> dict[Site, Tensor]:
        """The vectors by site; or their mean over all positions (1, width)."""


def take(
    from_run: TakeFrom,
    ids: Sequence[int],
    interventions: Iterable[Intervention],
    source: SourceRun | None,
) -> Taken:
    """What edits put in the place of vectors: of the source, and means of the text `ids` itself.

    A mean is that of the unchanged run, also where an earlier edit of the same intervention changes
    what arrives there.
    """
    edits = [e for changes in interventions for e in changes if isinstance(e, Edit)]
    taken: Taken = {}
    for by, run in {"mean": SourceRun(ids, (0,)), "source": source}.items():
        sites = {edit.site for edit in edits if edit.by == by}
        if run is not None and sites:
            vectors = from_run(run, sites, mean=by == "mean")
            taken |= {(by, site): of_site for site, of_site in vectors.items()}
    return taken


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The items in order, `size` at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
