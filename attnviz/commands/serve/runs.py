"""The runs of a live page: one at a time for each model, in parts that are sent as they come.

    text ─► patterns and next token ─► rests, and what brings that token ─► a layer in full
            (one pass)                 (of what the pass kept)              (one pass)

A part is facts and arrays. `tell` is called before each layer, with its number and how many there
are, and raises if nobody waits for the result any more.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.explain.made import OF_LAYER, departures, sides_of, written_of
from attnviz.commands.serve.asked import Asked
from attnviz.draw.headlines import head_title
from attnviz.draw.page import LEVELS, THUMBNAIL
from attnviz.draw.titles import text_notes
from attnviz.errors import AttnvizError, InputError, UsageError, as_argument, spelled
from attnviz.kit.bringing import picked_head, read_last, with_links
from attnviz.kit.choose import first_query, plan_heads
from attnviz.kit.intervene import Progress, intervene, site_of
from attnviz.kit.prepare import HeadOptions, Prepared, prepare
from attnviz.kit.values import Loaded
from attnviz.records.capture import (
    RESTS,
    Capture,
    FloatArray,
    KeepEverything,
    LayerPattern,
    PatternBlock,
)
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Bringing, Head, every_head
from attnviz.records.interventions import Edit
from attnviz.records.parts import Part as ModelPart
from attnviz.records.positions import last_word
from attnviz.records.rests import FindRests, rests_in
from attnviz.records.trace import LayerNumbers

if TYPE_CHECKING:
    from attnviz.models.frozen.last import LastRead

SENT_WHOLE = 1 << 20
"""The most weights of a text whose patterns are all sent; of others, miniatures and the head."""
HALVED = 1 << 20
"""The most numbers of a layer that are sent with 32 bits each; more have 16."""
OF_HEAD = ("q", "k", "v", "z", "scores", "pattern", "written")
OF_RUN = ("embedding", "position")
NAMED = 30
"""The likeliest next tokens that are named."""
LEAST_EFFECT = 0.05
"""The least effect, in logits, of a head that is named."""
KEPT = 2
"""LiveRuns of a model that are kept for further questions about them."""


@dataclass(frozen=True, eq=False)
class Sent:
    """A part of a run: facts, and arrays by name, of float32, float16 or bytes."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass
class _Listening(FindRests):
    """Keeps the patterns of a run that `last` reads, and looks for no rests in it."""

    tell: Progress = lambda done, of: None
    layers: int = 0
    keep: KeepEverything | None = None

    def __call__(self, block: PatternBlock) -> None:
        self.tell(block.layer, self.layers)
        assert self.keep is not None
        self.keep(block)


@dataclass(eq=False)
class LiveRun:
    """A text's run: its patterns, and what the last position read, if that can be followed.

    `capture` has its rests and the link that brings the next token once `reads` has found them.
    """

    asked: Asked
    prepared: Prepared
    capture: Capture
    read: "LastRead | None"
    logits: FloatArray | None
    layer: tuple[int, LayerNumbers] | None = None
    """The last layer that was asked for."""

    @property
    def heads(self) -> Sequence[Head]:
        return every_head(self.prepared.model.identity.heads_per_layer)


@dataclass(eq=False)
class LiveRuns:
    """A model's runs; its hooks allow one at a time, for which the caller holds a lock."""

    model: Loaded
    _kept: OrderedDict[Asked, LiveRun] = field(default_factory=OrderedDict)

    def of_text(self, text: str) -> LiveRun:
        """The last run of a text.

        Raises:
            InputError: none is kept.
        """
        for run in reversed(self._kept.values()):
            if run.asked.text == text:
                return run
        raise InputError("this text has not been run", "wait until its picture is there")

    def patterns(self, asked: Asked, at: Head | None, tell: Progress) -> Iterator[Sent]:
        """Run a text; `at`: the head whose weights are sent, of a long text."""
        run = self._run(asked, tell)
        yield patterns_of(run, run.heads[0] if at is None or at not in run.heads else at)

    def rest(self, asked: Asked, at: Head | None, tell: Progress) -> Iterator[Sent]:
        """What else there is of a run; `at`: the head whose layer is sent, or the one to show."""
        run = self._run(asked, tell)
        found = reads(run)
        yield found
        if at is None or at not in run.heads:
            at = Head(*found.facts["choice"]["head"])
        yield from self.head(asked, at, tell, weights=False)

    def head(
        self, asked: Asked, at: Head | None, tell: Progress, *, weights: bool = True
    ) -> Iterator[Sent]:
        """The weights of a head, then its layer in full."""
        run = self._run(asked, tell)
        if at is None or at not in run.heads:
            return
        if weights:
            yield Sent({"part": "head"}, {_name(at): run.capture.weights(at)})
        tell(0, 0)
        yield _layer_of(run, at)

    def without(self, asked: Asked, removed: Sequence[Head], tell: Progress) -> Iterator[Sent]:
        """The next token in a run without some heads, whose outputs are zero."""
        run = self._run(asked, tell)
        run.prepared.model.require("predict")
        if unknown := [str(each) for each in removed if each not in run.heads]:
            raise UsageError(f"there is no head {unknown[0]}", "name one of this model")
        parts = (ModelPart("head", each.layer, each.head) for each in removed)
        edits = tuple(Edit(site_of(part), "zero") for part in parts)
        (logits,) = intervene(run.prepared, [edits], lambda changed: changed.last)
        yield Sent({"part": "without", **_next(run.prepared, logits)}, {"logits": logits})

    def _run(self, asked: Asked, tell: Progress) -> LiveRun:
        """The run of a text: one that is kept, or a new one."""
        if asked in self._kept:
            self._kept.move_to_end(asked)
            return self._kept[asked]
        while len(self._kept) >= KEPT:  # before the new one takes memory
            self._kept.popitem(last=False)
        run = self._kept[asked] = _run(self.model, asked, tell)
        return run


def _run(model: Loaded, asked: Asked, tell: Progress) -> LiveRun:
    tell(0, 0)
    text, options = asked.options(model)
    prepared = prepare(model._loaded, text, options)
    loaded, empty = prepared.model, prepared.empty
    per_layer = loaded.identity.heads_per_layer
    heads = every_head(per_layer)
    prepared.budget.check(prepared.budget.patterns(heads), "shorten the text")
    shape, keep = prepared.shape, KeepEverything(prepared.shape)
    listening = _Listening(
        shape, None, empty.causal, empty.one_sequence, tell=tell, layers=len(per_layer), keep=keep
    )
    read = read_last(prepared, listening)
    if read is None:
        prepared.run(heads, listening)
    logits = read.logit_row[0] if read is not None else _logits(prepared)
    capture = replace(empty, layers=keep.layers())
    return LiveRun(asked, prepared, capture, read, logits)


def _logits(prepared: Prepared) -> FloatArray | None:
    """The logits (V) after the text; None from a model that predicts no next token."""
    found = list[FloatArray]()
    if prepared.model.can("predict") and prepared.empty.one_sequence:
        keep = lambda rows: found.append(rows.logits[-1])  # noqa: E731
        prepared.model.predict(prepared.ids, [len(prepared.ids) - 1], keep, lens=False)
    return found[0] if found else None


def patterns_of(run: LiveRun, at: Head) -> Sent:
    """What is drawn first: tokens, miniatures of all heads, and weights; and the next token."""
    prepared, capture = run.prepared, run.capture
    text = capture.text
    whole = sum(layer.weights.size for layer in capture.layers) <= SENT_WHOLE
    shown = run.heads if whole else [at]
    arrays: dict[str, NDArray[Any]] = {_name(head): capture.weights(head) for head in shown}
    if not whole:
        arrays |= {f"small.{each.layer}": _miniatures(each) for each in capture.layers}
    if run.logits is not None:
        arrays["logits"] = run.logits
    facts = {
        "part": "patterns",
        "text": run.asked.text,
        "read": text,
        "target": capture.target,
        **sides_of(capture, text),
        "boxes": [[t.index, *t.patch.box] for t in capture.key_tokens if t.patch is not None],
        "notes": [spelled(note, as_argument) for note in text_notes(capture)],
        **({} if run.logits is None else _next(prepared, run.logits)),
    }
    return Sent(facts, arrays)


def _name(head: Head) -> str:
    return f"pattern.{head.layer}.{head.head}"


def _next(prepared: Prepared, logits: FloatArray) -> Mapping[str, Any]:
    return {"written": written_of(prepared.model.tokenizer, logits, NAMED)}


def _miniatures(layer: LayerPattern) -> NDArray[np.uint8]:
    """The strongest weight in each block of a layer's patterns (h, rows, columns), in 255 steps."""
    weights = layer.weights
    for axis in (1, 2):
        starts = np.arange(0, weights.shape[axis], -(-weights.shape[axis] // THUMBNAIL))
        weights = np.maximum.reduceat(weights, starts, axis=axis)
    return np.rint(np.clip(weights, 0, 1) * LEVELS).astype(np.uint8)


def reads(run: LiveRun) -> Sent:
    """The rests of each head, the link that brings the next token, and the head to show."""
    prepared, model = run.prepared, run.prepared.model
    if RESTS not in run.capture.extras:
        run.capture = with_links(prepared, run.capture, run.read)
    capture = run.capture
    found = RESTS in capture.extras
    rests = {str(h): np.flatnonzero(rests_in(capture, h)).tolist() for h in run.heads if found}
    plan = plan_heads(model.identity, model.card.heads, HeadOptions())
    facts = {
        "part": "reads",
        "rests": {head: keys for head, keys in rests.items() if keys},
        "choice": _choice(picked_head(capture, plan)),
        "brings": None if capture.brings is None else _told(capture.brings, capture),
    }
    return Sent(facts)


def _choice(shown: Exhibit) -> Mapping[str, Any]:
    """The head and the query that fit a text, and what they show."""
    assert shown.choice is not None
    query = first_query(shown.finding)
    return {
        "head": list(shown.choice.heads[0]),
        "query": last_word(shown.capture.query_tokens) if query is None else query,
        "headline": head_title(shown.choice, shown.finding, shown.capture),
    }


def _told(brings: Bringing, capture: Capture) -> Mapping[str, Any]:
    keys = (token.index for token in capture.key_tokens if token.start == brings.start)
    effects = [[*head, float(effect)] for head, effect in brings.effects if effect >= LEAST_EFFECT]
    key = next((key for key in keys if not capture.key_tokens[key].special), 0)
    return {"token": brings.token, "key": key, "heads": effects[:4], "stands": brings.times >= 1}


def _layer_of(run: LiveRun, at: Head) -> Sent:
    """All numbers of a head and of its layer; or the reason why they cannot be told."""
    prepared, target = run.prepared, [token.id for token in run.prepared.target]
    model, (queries, _) = prepared.model, prepared.shape
    try:
        if model.can("record"):  # all heads write at every query, twice
            size = 8 * model.identity.heads_per_layer[at.layer] * queries
            wide = int(model.output_vectors().size(-1))
            prepared.budget.check(size * wide, "shorten the text")
        if run.layer is None or run.layer[0] != at.layer:
            run.layer = at.layer, prepared.model.whole_layer(prepared.ids, at.layer, target)
    except AttnvizError as error:
        return Sent({"part": "layer", "wrong": str(error)})
    _, layer = run.layer
    found, names = layer.arrays, [*OF_LAYER, *(OF_RUN if at.layer == 0 else ())]
    arrays = {n: found[n][at.head] if n in OF_HEAD else found[n] for n in names if n in found}
    arrays["outputs"] = found["pattern"] @ found["written"]  # (h, n_q, d)
    if sum(array.size for array in arrays.values()) > HALVED:
        with np.errstate(over="ignore"):
            arrays = {name: array.astype(np.float16) for name, array in arrays.items()}
    facts = {
        "part": "layer",
        "head": list(at),
        "scale": layer.scale,
        "about": {"norm": layer.kinds.norm, "biases": layer.biases, "d_model": found["x"].shape[1]},
        "departures": departures(layer.kinds),
    }
    return Sent(facts, arrays)
