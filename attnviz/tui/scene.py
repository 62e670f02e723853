"""What the panes show: one exhibit, and where in it the user stands. No widget, no model.

capture ─► transforms ─► scene ─► panes;  a key or a click ─► another scene
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from attnviz.analyses.default_head import default_head
from attnviz.data.capture import Capture, FloatArray
from attnviz.data.exhibit import Choice, Exhibit, HeadMap, links_of, whole_map
from attnviz.data.head import Head, every_head
from attnviz.data.positions import find_positions, last_word
from attnviz.data.tokens import Token
from attnviz.data.transforms import Merged
from attnviz.errors import UsageError
from attnviz.renderers.arrangement import Grid, grid_of
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.matrix import shown, strongest
from attnviz.transforms.apply import Transforms, exhibit_of

Slot: TypeAlias = tuple[int, int]
"""Row and column of a head in the grid of heads."""


@dataclass(frozen=True)
class Toggles:
    """What is done to the patterns: words merged, the sink left out, layers rolled out."""

    words: bool = False
    sink: bool = False
    rollout: bool = False

    def turned(self, name: str) -> "Toggles":
        """The same with one of them turned on or off."""
        return replace(self, **{name: not getattr(self, name)})

    @property
    def names(self) -> list[str]:
        """Those that are on, as a person reads them."""
        said = {"words": self.words, "no sink": self.sink, "rollout": self.rollout}
        return [name for name, on in said.items() if on]

    @property
    def transforms(self) -> Transforms:
        """The same as the command line's options say it."""
        return Transforms(
            words=self.words,
            drop_sink=self.sink,
            rollout=self.rollout,
            rollout_layers="all" if self.rollout else None,
        )


@dataclass(frozen=True, eq=False)
class Scene:
    """An exhibit of whole maps, and the slot, the query and the key that are looked at.

    `query` and `key` are positions among the exhibit's tokens, which may be merged ones.
    `column`: of which head to look at again, once heads that were rolled out into one are apart.
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
    def head(self) -> Head | None:
        """The head that is looked at; None where heads are rolled out into one."""
        found = self.map
        return None if found.layer is None or found.head is None else Head(found.layer, found.head)

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """What each query is called, told apart: `creature#2`."""
        return distinct_labels(self.capture.query_tokens)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What each key is called, told apart."""
        return distinct_labels(self.capture.key_tokens)

    @cached_property
    def grid(self) -> Grid:
        """Which layers and heads there are."""
        return grid_of(self.exhibit.maps)

    @cached_property
    def slots(self) -> dict[Slot, HeadMap]:
        """The map in each slot of the grid; some slots have none."""
        return {self.grid.slot(each): whole_map(each) for each in self.exhibit.maps}

    @property
    def map(self) -> HeadMap:
        """The map that is looked at."""
        return self.slots[self.slot]

    @property
    def one(self) -> Exhibit:
        """The exhibit of that map alone."""
        return replace(self.exhibit, maps=(self.map,))

    @cached_property
    def pattern(self) -> FloatArray:
        """The map's weights, (queries shown, keys shown); NaN where the mask forbids the link."""
        return shown(self.one, self.map)

    @cached_property
    def strongest(self) -> float:
        """The top of the pattern's scale."""
        return strongest([self.pattern])

    def weight(self, query: int, key: int) -> float:
        """How much a query attends to a key."""
        return float(self.map.weights[query, key])

    def looks_at(self) -> list[tuple[int, float]]:
        """The keys of the query with their weights, strongest first."""
        links = links_of(replace(self.one, queries=(self.query,)), self.map)
        return list(zip(links.key.tolist(), links.weight.tolist(), strict=True))

    @property
    def target(self) -> int:
        """The position among the keys that `looked_at_by` is about: the query's own, or the key."""
        same = self.capture.one_sequence and self.query in self.exhibit.keys
        return self.query if same else self.key

    def looked_at_by(self) -> list[tuple[int, float]]:
        """The queries that look at `target`, with their weights, strongest first."""
        queries = np.array(self.exhibit.queries, int)
        queries = queries[self.capture.allowed_count()[queries] > self.target]
        weights = self.map.weights[queries, self.target]
        order = np.argsort(-weights, kind="stable")
        return list(zip(queries[order].tolist(), weights[order].tolist(), strict=True))

    def peaks(self) -> dict[Slot, tuple[int, float]]:
        """In each slot, the key that the query looks at most, and its weight.

        Left out are the query itself, special tokens and, where a model looks back only, the
        first token: they take what must go somewhere, and say little.
        """
        tokens = self.capture.key_tokens
        telling = [key for key, _ in sorted(self.looks_at()) if not tokens[key].special]
        if self.capture.one_sequence:
            telling = [k for k in telling if k != self.query and (k or not self.capture.causal)]
        if not telling:
            return {}
        rows = {slot: each.weights[self.query, telling] for slot, each in self.slots.items()}
        return {s: (telling[int(np.argmax(row))], float(row.max())) for s, row in rows.items()}

    def at(self, query: int | None = None, key: int | None = None) -> "Scene":
        """The same at another query or key; the nearest that is shown. A query alone takes the
        key that it looks at most."""
        asked = self.query if query is None else query
        near = min(self.exhibit.queries, key=lambda each: abs(each - asked), default=self.query)
        moved = replace(self, query=near)
        if key is None:
            return moved._at_strongest() if query is not None else moved
        return replace(moved, key=min(self.exhibit.keys, key=lambda each: abs(each - key)))

    def in_slot(self, slot: Slot) -> "Scene":
        """The same through another head; without one there, the scene itself."""
        return replace(self, slot=slot)._at_strongest() if slot in self.slots else self

    def moved(self, down: int, across: int) -> "Scene":
        """The same through the next head in this direction; at the edge, the scene itself."""
        row, column = self.slot
        rows, columns = len(self.grid.layers), len(self.grid.heads)
        row, column = row + down, column + across
        while 0 <= row < rows and 0 <= column < columns:
            if (row, column) in self.slots:
                return self.in_slot((row, column))
            row, column = row + down, column + across
        return self

    def following(self, before: "Scene") -> "Scene":
        """The same where the user stood before: the head or its layer, the place in the text."""
        layer, head = before.map.layer, before.map.head
        head = before.column if head is None else head
        there = replace(self._through(layer, head), column=head)
        return there.at(_followed(before, self.capture.query_tokens))

    def _through(self, layer: int | None, head: int | None) -> "Scene":
        """The same through this head, or through its layer where heads are one; else the scene."""
        here = [each for each in self.slots.values() if each.layer == layer]
        found = [each for each in here if each.head == head] or here
        return replace(self, slot=self.grid.slot(found[0])) if found else self

    def find(self, name: str) -> tuple[tuple[int, ...], bool]:
        """The positions of a token, as `--query` finds it, and whether they are keys.

        Where no token is called so: those in which the name occurs. None: it is not in the text,
        or left out.
        """
        sides = [(self.capture.query_tokens, self.exhibit.queries)]
        sides += [] if self.capture.one_sequence else [(self.capture.key_tokens, self.exhibit.keys)]
        for matches in (_named, _containing):
            for of_keys, (tokens, shown_here) in enumerate(sides):
                found = tuple(each for each in matches(tokens, name) if each in set(shown_here))
                if found:
                    return found, bool(of_keys)
        return (), False

    def _at_strongest(self) -> "Scene":
        found = self.looks_at()
        return replace(self, key=found[0][0]) if found else self


def scene_of(captured: Capture, toggles: Toggles, *, choose: bool = True) -> Scene:
    """A capture, transformed, at its last word.

    `choose`: through the head that tells most about the text; of a few heads that were saved,
    and otherwise, the first.

    Raises:
        UsageError: a transform that this capture cannot have.
    """
    if toggles.words and Merged("words") in captured.transforms:
        raise UsageError("pieces of words are merged in this capture", "leave them so")
    made = exhibit_of(captured, Choice(captured.heads), toggles.transforms)
    start = Scene(made, grid_of(made.maps).slot(made.maps[0]), 0, 0)
    if choose and captured.heads == every_head(captured.model.heads_per_layer):
        start = start._through(*default_head(captured).heads[0])
    return start.at(last_word(made.capture.query_tokens))


def _followed(before: Scene, tokens: Sequence[Token]) -> int:
    """The token that stands where the query stood; the last word where that was it."""
    old = before.capture.query_tokens
    if before.query == last_word(old):
        return last_word(tokens)
    place = old[before.query]
    if place.special:
        return min(before.query, len(tokens) - 1)
    # a token begins with the space before it, and may be longer than its slice was
    end = place.start + len(place.text) - len(place.text.lstrip()) + 1
    return next((t.index for t in tokens if t.end >= end and not t.special), len(tokens) - 1)


def _named(tokens: Sequence[Token], name: str) -> tuple[int, ...]:
    try:
        return find_positions(tokens, (name,), "/")
    except UsageError:
        return ()


def _containing(tokens: Sequence[Token], name: str) -> tuple[int, ...]:
    folded = name.strip().casefold()
    return tuple(token.index for token in tokens if folded in token.label.casefold())
