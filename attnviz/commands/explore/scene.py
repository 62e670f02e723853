"""A scene: one exhibit, and the user's place in it; and the runs that it comes from. No widget.

text ─► run ─► capture ─► transforms ─► scene ─► panes;  a key or a click ─► another scene
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.run import Ablating, ablate_together
from attnviz.draw.labels import distinct_labels, fenced
from attnviz.draw.matrix import Grid, grid_of, shown, strongest
from attnviz.errors import UsageError
from attnviz.kit.bringing import with_links
from attnviz.kit.choose import finding_of, start_choice
from attnviz.kit.intervene import watched
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.records.apply import Between, exhibit_of, go_on
from attnviz.records.capture import (
    RESTS,
    Capture,
    FloatArray,
    KeepEverything,
    LayerPattern,
    PatternBlock,
)
from attnviz.records.exhibit import Choice, Exhibit, HeadMap, links_of, whole_map
from attnviz.records.heads import Head, every_head
from attnviz.records.merging import WHOLE
from attnviz.records.positions import find_positions, last_word
from attnviz.records.rests import rests_in
from attnviz.records.tokens import Token
from attnviz.records.transforms import Merged, Transforms

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


# The app's input, and its runs of the model. Each calls `between` before a step, which may raise.

SoFar: TypeAlias = Callable[[Capture, int], None]
"""Is given what there is of a capture, and how many layers of it are there: at first none, then
one more each time. The patterns of the others are NaN, and take no memory."""

CANDIDATES = 8


@dataclass(frozen=True)
class Runs:
    """A model with the options of its texts; its hooks and modules allow one run at a time."""

    model: "LoadedModel"
    options: TextOptions
    _one: Lock = field(default_factory=Lock)

    def capture(self, text: str, between: Between, so_far: SoFar) -> Capture:
        """The patterns of all heads over a text; what there is of them goes to `so_far`."""
        with self._one:
            between()
            prepared = prepare(self.model, text, self.options)
            heads = every_head(self.model.identity.heads_per_layer)
            prepared.budget.check(prepared.budget.patterns(heads), "shorten the text")
            keep, last_row = KeepEverything(prepared.shape), prepared.shape[0] - 1
            so_far(_with_layers(prepared.empty, ()), 0)

            def consume(block: PatternBlock) -> None:
                between()
                keep(block)
                if block.queries[-1] == last_row:
                    layers = keep.layers()
                    so_far(_with_layers(prepared.empty, layers), len(layers))

            prepared.run(heads, consume)
            between()
            return with_links(prepared, replace(prepared.empty, layers=keep.layers()))

    def without(self, text: str, head: Head, between: Between) -> BeforeAfter:
        with self._one:
            between()
            how = Ablating(HeadOptions(heads=str(head)))
            with watched(lambda _done, _of: between()):
                return ablate_together(self.model, text, self.options, how, CANDIDATES)


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
    """The app's input: a text and its runs, or a saved capture."""

    text: str = ""
    runs: Runs | None = None
    capture: Capture | None = None


# The scene, and what is done to its patterns.

Slot: TypeAlias = tuple[int, int]
"""Row and column of a head in the grid of heads."""


@dataclass(frozen=True, eq=False)
class Scene:
    """An exhibit of whole maps, and the slot, the query and the key that the user has chosen.

    During a run, the maps of later layers are NaN.
    `query` and `key` are positions among the exhibit's tokens, which may be merged.
    `column`: the head to return to when heads that are rolled out into one come apart again.
    """

    exhibit: Exhibit
    slot: Slot
    query: int
    key: int
    column: int | None = None

    @property
    def capture(self) -> Capture:
        return self.exhibit.capture

    @property
    def positions(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens that positions count, of the queries and of the keys."""
        return self.capture.query_tokens, self.capture.key_tokens

    @property
    def head(self) -> Head | None:
        """The chosen head; None where heads are rolled out into one."""
        layer, head = self.map.layer, self.map.head
        return None if layer is None or head is None else Head(layer, head)

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """A distinct label for each query: `creature#2`."""
        return distinct_labels(self.capture.query_tokens)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """A distinct label for each key."""
        return distinct_labels(self.capture.key_tokens)

    @cached_property
    def grid(self) -> Grid:
        return grid_of(self.exhibit.maps)

    @cached_property
    def slots(self) -> dict[Slot, HeadMap]:
        """The map in each slot of the grid; some slots may be empty."""
        return {self.grid.slot(each): whole_map(each) for each in self.exhibit.maps}

    @property
    def map(self) -> HeadMap:
        return self.slots[self.slot]

    @property
    def computed(self) -> frozenset[Slot]:
        """The slots whose layers have been run."""
        return frozenset(slot for slot, each in self.slots.items() if _is_computed(each))

    @property
    def waits(self) -> bool:
        return not _is_computed(self.map)

    @property
    def one(self) -> Exhibit:
        return replace(self.exhibit, maps=(self.map,))

    @cached_property
    def pattern(self) -> FloatArray:
        """The map's weights, (queries shown, keys shown); NaN where the mask forbids the link."""
        return shown(self.one, self.map)

    @cached_property
    def strongest(self) -> float:
        """The largest weight of the pattern, the top of its scale."""
        return strongest([self.pattern])

    @property
    def reading(self) -> str:
        """The chosen link: `creature → blue 0.48`."""
        if self.waits:
            return "not computed yet"
        query, key = fenced(self.queries[self.query]), fenced(self.keys[self.key])
        return f"{query} → {key} {self.map.weights[self.query, self.key]:.2f}"

    def looks_at(self) -> list[tuple[int, float]]:
        """The keys that the query attends to, with their weights, strongest first."""
        links = links_of(replace(self.one, queries=(self.query,)), self.map)
        return list(zip(links.key.tolist(), links.weight.tolist(), strict=True))

    @property
    def target(self) -> int:
        """The key position that `looked_at_by` is about: the query's own, or the chosen key."""
        same = self.capture.one_sequence and self.query in self.exhibit.keys
        return self.query if same else self.key

    def looked_at_by(self) -> list[tuple[int, float]]:
        """The queries that attend to `target`, with their weights, strongest first."""
        queries = np.array(self.exhibit.queries, int)
        queries = queries[self.capture.allowed_count()[queries] > self.target]
        weights = self.map.weights[queries, self.target]
        order = np.argsort(-weights, kind="stable")
        return list(zip(queries[order].tolist(), weights[order].tolist(), strict=True))

    def peaks(self) -> dict[Slot, tuple[int, float]]:
        """For each slot, the key that the query attends to most, and its weight.

        The query itself, special tokens, the head's rests and, in a causal model, the first token
        are left out: they take the attention that has nowhere else to go.
        """
        seen, peaks = int(self.capture.allowed_count()[self.query]), dict[Slot, tuple[int, float]]()
        itself = self.query if self.capture.one_sequence else -1
        for slot in self.computed if self.query in self.exhibit.queries else ():
            keys = [key for key in self._telling_keys(slot) if key < seen and key != itself]
            if keys:
                row = self.slots[slot].weights[self.query, keys]
                peaks[slot] = keys[int(np.argmax(row))], float(row.max())
        return peaks

    def _telling_keys(self, slot: Slot) -> list[int]:
        """The keys that are no rest, nor special, but for insets, nor the first of a causal model.

        While a run continues, its rests are not known.
        """
        tokens, capture, own = self.capture.key_tokens, self.capture, self.slots[slot]
        first = capture.one_sequence and capture.causal
        off = [not token.special or token.inset for token in tokens]
        if RESTS in capture.extras and own.layer is not None and own.head is not None:
            off = (np.array(off) & ~rests_in(capture, Head(own.layer, own.head))).tolist()
        return [k for k in self.exhibit.keys if off[k] and (k or not first)]

    def at_strongest_link(self) -> "Scene":
        """The scene at the head's strongest link between two tokens of the text; the scene itself
        where there is none. Links that `peaks` leaves out do not count here, either."""
        queries = [q for q in self.exhibit.queries if not self.capture.query_tokens[q].special]
        keys = self._telling_keys(self.slot)
        if not queries or not keys or self.waits:
            return self
        weights = self.map.weights[np.ix_(queries, keys)]  # (queries, keys); masked: 0
        if self.capture.one_sequence:
            weights[np.equal.outer(queries, keys)] = 0
        row, column = divmod(int(np.argmax(weights)), len(keys))
        return self.at(queries[row], keys[column]) if weights[row, column] > 0 else self

    def at(self, query: int | None = None, key: int | None = None) -> "Scene":
        """The scene at another query or key, or the nearest one shown. Only a query comes with
        the key that it attends to most."""
        target = self.query if query is None else query
        near = min(self.exhibit.queries, key=lambda each: abs(each - target), default=self.query)
        moved = replace(self, query=near)
        if key is None:
            return moved._at_strongest() if query is not None else moved
        return replace(moved, key=min(self.exhibit.keys, key=lambda each: abs(each - key)))

    def in_slot(self, slot: Slot) -> "Scene":
        """The scene with another head; the scene itself where the slot is empty."""
        return replace(self, slot=slot)._at_strongest() if slot in self.slots else self

    def moved(self, down: int, across: int) -> "Scene":
        """The scene with the next head in this direction; at the edge, the scene itself."""
        row, column = self.slot
        steps = range(1, max(len(self.grid.layers), len(self.grid.heads)))
        ahead = ((row + n * down, column + n * across) for n in steps)
        slot = next((each for each in ahead if each in self.slots), None)
        return self if slot is None else self.in_slot(slot)

    def following(self, before: "Scene") -> "Scene":
        """The scene at the user's place in another one: the head or its layer, and the token."""
        layer, head = before.map.layer, before.map.head
        head = before.column if head is None else head
        there = replace(self._through(layer, head), column=head)
        return there.at(_followed(before, self.capture.query_tokens))

    def _through(self, layer: int | None, head: int | None) -> "Scene":
        """The scene with this head, or with its layer where heads are one; else the scene."""
        in_layer = [each for each in self.slots.values() if each.layer == layer]
        maps = [each for each in in_layer if each.head == head] or in_layer
        return replace(self, slot=self.grid.slot(maps[0])) if maps else self

    def _at_strongest(self) -> "Scene":
        links = self.looks_at()
        return replace(self, key=links[0][0]) if links else self


def scene_of(
    captured: Capture, transforms: Transforms, *, choose: bool = True, between: Between = go_on
) -> Scene:
    """A capture, transformed, each inset as one token; a rollout shows every layer.

    `choose`: at the strongest link of the head with the clearest pattern, if the capture
    holds all heads; otherwise of the first head. Else at the last word. `between` is called
    between the layers of the transforms.

    Raises:
        UsageError: a transform is impossible for this capture.
    """
    if transforms.words and Merged("words") in captured.transforms:
        raise UsageError("pieces of words are merged in this capture", "keep them merged")
    units = (WHOLE,) if any(token.inset for token in captured.query_tokens) else ()
    rolled = "all" if transforms.rollout else None
    transforms = replace(transforms, rollout_layers=rolled, units=units)
    exhibit = exhibit_of(captured, Choice(captured.heads), transforms, between=between)
    start = Scene(exhibit, grid_of(exhibit.maps).slot(exhibit.maps[0]), 0, 0)
    start = start.at(last_word(exhibit.capture.query_tokens))
    if not choose:
        return start
    between()
    picked = start_choice(captured)
    if picked is None:
        return start.at_strongest_link()
    start = start._through(*picked.heads[0]).at(start.query)
    finding = finding_of(replace(start.one, choice=picked), start.map, picked.named)
    if finding is None or not finding.links or not (finding.behaviour or picked.off_rests):
        return start.at_strongest_link()
    clearest = finding.links[0]
    if not picked.off_rests:
        clearest = max(finding.links, key=lambda link: link.weight)
    return start.at(clearest.query, clearest.key)


def _is_computed(head_map: HeadMap) -> bool:
    return not bool(np.isnan(head_map.weights[0, 0]))


def _followed(before: Scene, tokens: Sequence[Token]) -> int:
    """The token at the query's old place; the last word, if the query was the last word."""
    old = before.capture.query_tokens
    if before.query == last_word(old):
        return last_word(tokens)
    place = old[before.query]
    if place.special:
        return min(before.query, len(tokens) - 1)
    # a token begins with the space before it, and may be longer than its slice was
    end = place.start + len(place.text) - len(place.text.lstrip()) + 1
    return next((t.index for t in tokens if t.end >= end and not t.special), len(tokens) - 1)


def matches_of(scene: Scene, name: str) -> tuple[tuple[int, ...], bool]:
    """The positions that a name matches, and whether they are keys.

    Names are those of `find_positions`; where no token is called so, the tokens match in which
    the name occurs. Tokens that are left out of the scene do not match.
    """
    capture, exhibit = scene.capture, scene.exhibit
    sides = [(False, capture.query_tokens, exhibit.queries)]
    sides += [] if capture.one_sequence else [(True, capture.key_tokens, exhibit.keys)]

    def called(tokens: Sequence[Token]) -> Sequence[int]:
        try:
            return find_positions(tokens, (name,), "query")
        except UsageError:
            return ()

    def containing(tokens: Sequence[Token]) -> Sequence[int]:
        folded = name.strip().casefold()
        return [token.index for token in tokens if folded in token.label.casefold()]

    for matching in (called, containing):
        for of_keys, tokens, on_show in sides:
            if places := tuple(place for place in matching(tokens) if place in set(on_show)):
                return places, of_keys
    return (), False
