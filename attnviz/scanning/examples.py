"""Chosen windows run again: the strongest links of some heads, and the tokens that they join."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.commands.atlas.record import SCALE, WEIGHTS, Document, in_fixed_point
from attnviz.errors import ModelError
from attnviz.records.capture import IntArray
from attnviz.records.heads import Head
from attnviz.records.metrics import HeadLinks
from attnviz.records.tokens import SPECIAL_LABEL
from attnviz.scanning.tasks import Place
from attnviz.scanning.windows import Window, batches

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer

TOKENS = 50
"""Query tokens, key tokens and pairs that are kept of a head."""


def run_again(
    model: "LoadedModel",
    windows: Sequence[Window],
    wanted: Mapping[int, Sequence[Head]],
    give: Callable[[Window, HeadLinks], None],
) -> None:
    """Run windows, and give the links of the heads that are wanted, by ordinal of the window.

    A window that cannot be run any more, as memory is short, gives none.
    """
    for batch in batches(windows):
        for links in _links(model, batch, wanted):
            give(batch[links.window], links)


def _links(
    model: "LoadedModel", batch: Sequence[Window], wanted: Mapping[int, Sequence[Head]]
) -> list[HeadLinks]:
    """The links in a batch; in its windows one by one where it cannot be run."""
    from attnviz.models.reducing import link_windows

    found: list[HeadLinks] = []
    heads = [wanted[window.ordinal] for window in batch]
    try:
        link_windows(model, [window.ids for window in batch], heads, found.append)
    except ModelError:
        if len(batch) == 1:
            return []
        return [
            replace(links, window=place)
            for place, window in enumerate(batch)
            for links in _links(model, [window], wanted)
        ]
    return found


def example_rows(
    model: "LoadedModel",
    heads: Sequence[Head],
    windows: Sequence[tuple[Document, Window]],
    wanted: Mapping[int, Sequence[Place]],
) -> Iterator[dict[str, Any]]:
    """The rows of `examples.parquet` for some windows of a shard.

    Args:
        model: the model.
        heads: those of the scan, in order.
        windows: with their documents.
        wanted: by ordinal of a window, the heads whose example it is.
    """
    found: dict[tuple[int, Head], HeadLinks] = {}

    def give(window: Window, links: HeadLinks) -> None:
        found[window.ordinal, Head(links.layer, links.head)] = links

    of = {ordinal: [heads[place.head] for place in places] for ordinal, places in wanted.items()}
    run_again(model, [window for _, window in windows], of, give)
    spelled = _speller(model.tokenizer)
    for document, window in windows:
        tokens = [spelled(id_) for id_ in window.ids]
        for place in wanted[window.ordinal]:
            links = found.get((window.ordinal, heads[place.head]))
            if links is None:
                continue
            yield {
                "layer": heads[place.head].layer,
                "head": heads[place.head].head,
                "rank": place.rank,
                "kind": place.kind,
                "bin": min(WEIGHTS - 1, int(links.largest * WEIGHTS)),
                "largest": links.largest,
                "apart": _apart(links),
                "path": document.path,
                "start": document.start,
                "window": window.number,
                "tokens": tokens,
                "queries": links.queries,
                "keys": links.keys,
                "weights": links.weights,
            }


def _apart(links: HeadLinks) -> float:
    """The largest weight between two tokens, neither of which is the first; 0 below the links."""
    inner = (links.queries > 0) & (links.keys > 0) & (links.queries != links.keys)
    return float(links.weights[inner].max(initial=0.0))


@dataclass
class TokenMass:
    """The mass of pairs of tokens over windows, in fixed point; each pair as one number."""

    vocabulary: int
    _pairs: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _mass: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, ids: IntArray, links: HeadLinks) -> None:
        """Add the links of a window (n) between two tokens, neither of which is its first one."""
        inner = (links.queries > 0) & (links.keys > 0) & (links.queries != links.keys)
        pairs = ids[links.queries[inner]] * self.vocabulary + ids[links.keys[inner]]
        mass = in_fixed_point(links.weights[inner].astype(np.float64))
        self._pairs, self._mass = summed(
            np.concatenate([self._pairs, pairs]), np.concatenate([self._mass, mass])
        )

    def rows(self, spelled: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        """The rows of `tokens.parquet`, without head and number of windows."""
        query, key = np.divmod(self._pairs, self.vocabulary)
        for side, numbers in (("query", query), ("key", key), ("pair", self._pairs)):
            names, mass = summed(numbers, self._mass)
            for rank, at in enumerate(np.lexsort((names, -mass))[:TOKENS].tolist()):
                first, second = divmod(int(names[at]), self.vocabulary)
                yield {
                    "side": side,
                    "rank": rank,
                    "query": {"query": spelled(second), "pair": spelled(first)}.get(side),
                    "key": None if side == "query" else spelled(second),
                    "mass": int(mass[at]) / SCALE,
                }


def summed(names: IntArray, mass: IntArray) -> tuple[IntArray, IntArray]:
    """Each name once, with its mass."""
    once, which = np.unique(names, return_inverse=True)
    total = np.zeros(len(once), np.int64)
    np.add.at(total, which, mass)
    return once, total


def token_rows(
    model: "LoadedModel", heads: Sequence[Head], windows: Sequence[Window]
) -> Iterator[dict[str, Any]]:
    """The rows of `tokens.parquet` for some heads over the sampled windows."""
    of = {head: TokenMass(model.tokenizer.vocab_size) for head in heads}

    def give(window: Window, links: HeadLinks) -> None:
        of[Head(links.layer, links.head)].add(np.array(window.ids), links)

    run_again(model, windows, {window.ordinal: heads for window in windows}, give)
    spelled = _speller(model.tokenizer)
    for head, mass in of.items():
        for row in mass.rows(spelled):
            yield {"layer": head.layer, "head": head.head, **row, "windows": len(windows)}


def _speller(tokenizer: "TextTokenizer") -> Callable[[int], str]:
    """The text of a token with its leading space; the name of a special one."""

    @cache
    def spelled(id_: int) -> str:
        if id_ == tokenizer.bos_id:
            return SPECIAL_LABEL
        return tokenizer.exact(id_) or tokenizer.label(id_)

    return spelled
