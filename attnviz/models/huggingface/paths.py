"""Path patching in a transformers model, by hooks: all heads but the sender are held fixed.

Letters in the shape comments as in `models/engine.py`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.engine import ChangedBatch, batches, taken_vectors
from attnviz.models.first_order import SitesPassed, first_order
from attnviz.models.huggingface.attention import corrected, hooked, last_logits, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.interventions import (
    SitePlace,
    edited,
    passing,
    places_of,
    rows_of,
    runs_at_once,
    vectors_of_sites,
)
from attnviz.models.huggingface.layers import NEAR, Layers, agrees, layers_of, unknown
from attnviz.models.huggingface.vision import of_text
from attnviz.records.interventions import Interventions, Site, SiteKind, SourceRun
from attnviz.records.paths import LOGITS, FirstOrder, Paths, Receiver, SlopeOf, held_fixed
from attnviz.records.tokens import Ids


def patched_paths(
    model: Any, ids: Tensor, heads_per_layer: Sequence[int], paths: Paths
) -> Iterator[tuple[int, Receiver, Tensor]]:
    """The number of a sender, a receiver and the logits (V), over ids (1, n) of a causal model."""
    runs = _path_runs(model, ids, heads_per_layer, paths)
    if LOGITS in paths.receivers:
        end = runs.at_last()
        for some in batches(paths.order, runs_at_once(model, end.ids.size(1))):
            last, _ = end.sent(some)
            yield from ((i, LOGITS, logits) for i, logits in zip(some, last, strict=True))
    after = 1 + max((layer for layer, _ in paths.inner), default=-1)
    order = [i for i in paths.order if paths.senders[i].layer < after]
    for some in batches(order, runs_at_once(model, ids.size(1))):
        _, arrived = runs.sent(some, after)
        for to, own in paths.received(some):
            if own:
                for i, logits in zip(own, runs.received(to, arrived[to][own]), strict=True):
                    yield some[i], to, logits


@dataclass(frozen=True)
class _OwnRun:
    """A text's own run, of which other runs repeat only some layers.

    `last`: the logits (1, V). `streams`: what arrives at each of the `layers` (n, d); empty where
    they cannot be run by themselves. `beside`: what each gives beside a stream.
    """

    last: Tensor
    layers: Sequence[nn.Module]
    streams: Sequence[Tensor]
    beside: Sequence[tuple[Any, ...] | None]

    @contextmanager
    def only(self, wanted: range | None, runs: int) -> Iterator[None]:
        """Run these layers, on what arrives there; others hand on their input. None: run all."""

        def start(values: Tensor, first: int) -> Tensor:
            stream = self.streams[first]
            return stream.expand(runs, *stream.shape).reshape(values.shape).clone()

        with ExitStack() as stack:
            if wanted is not None:
                for number in {*range(len(self.layers))} - {*wanted}:
                    stack.enter_context(_handing_on(self.layers[number], self.beside[number]))
                place = SitePlace(self.layers[wanted.start], incoming=True)
                stack.enter_context(passing(place, partial(start, first=wanted.start)))
            yield


@contextmanager
def _handing_on(layer: nn.Module, beside: tuple[Any, ...] | None) -> Iterator[None]:
    """Let a layer give what it is given, in the form of its output, until the end."""

    def forward(*args: Any, **named: Any) -> Any:
        stream = args[0] if args else named.get("hidden_states")
        return stream if beside is None else (stream, *beside)

    before = {name: own for name, own in vars(layer).items() if name == "forward"}
    vars(layer)["forward"] = forward
    try:
        yield
    finally:
        del vars(layer)["forward"]
        vars(layer).update(before)


def _own_run(model: Any, ids: Tensor, n_layer: int) -> _OwnRun:
    """Run a text (1, n) as it is."""
    layers, streams, beside = layers_of(model), list[Tensor](), list[tuple[Any, ...] | None]()

    def leave(_module: nn.Module, _args: Any, output: Any) -> None:
        beside.append(output[1:] if isinstance(output, tuple) else None)

    with ExitStack() as stack:
        for layer in layers if len(layers) == n_layer else ():  # others share modules (ALBERT)
            stack.enter_context(passing(SitePlace(layer, incoming=True), streams.append))
            stack.enter_context(hooked([layer.register_forward_hook(leave)]))
        last = _last(model, ids)
    whole = all(stream.shape[:-1] == ids.shape for stream in streams)
    return _OwnRun(last, layers, [stream[0] for stream in streams] if whole else (), beside)


@dataclass(frozen=True)
class _PathRuns:
    """Runs over ids (1, n); `held`: the vectors (n, width) of sites that do not change.

    `own`: the text's own run, of which they repeat the layers that they need.
    """

    model: Any
    ids: Tensor
    heads_per_layer: Sequence[int]
    paths: Paths
    places: Mapping[tuple[SiteKind, int], SitePlace]
    held: Mapping[Site, Tensor]
    taken: Mapping[tuple[str, Site], Tensor]
    own: _OwnRun

    def at_last(self) -> "_PathRuns":
        """The runs of the last token, or of all where the model does not run it by itself."""
        last = replace(
            self,
            ids=self.ids[:, -1:],
            paths=self.paths.to_last(self.ids.size(1)),
            held={site: vectors[-1:] for site, vectors in self.held.items()},
            taken={each: vectors[-1:] for each, vectors in self.taken.items()},
            own=replace(self.own, streams=[stream[-1:] for stream in self.own.streams]),
        )
        return self if last._needed(0) is None else last

    def _needed(self, first: int, *, held: bool = True) -> range | None:
        """The layers from this one on, or None where they alone do not give the same logits."""
        if not self.own.streams:
            return None
        layers = range(first, len(self.heads_per_layer))
        nothing = ChangedBatch([()], self.ids.size(1), {})
        with suppress(ModelError), self._changing(nothing, {}, layers, held=held):
            if agrees(self._last(1), self.own.last, _rounding(self.own.last)):
                return layers
        return None

    def sent(
        self, senders: Sequence[int], after: int | None = None
    ) -> tuple[Tensor, dict[Receiver, Tensor]]:
        """The logits (B, V) after these senders, and the vectors that reach other receivers.

        `after`: the first layer that is not needed; the logits are then of no use.
        """
        edits = [self.paths.senders[i] for i in senders]
        batch = ChangedBatch([(edit,) for edit in edits], self.ids.size(1), self.taken)
        arrived = dict[Receiver, Tensor]()
        layers = self._needed(min(edit.layer for edit in edits))
        layers = layers and range(layers.start, after or layers.stop)
        with ExitStack() as stack:
            stack.enter_context(self._changing(batch, arrived, layers))
            if any(to.letter for to in self.paths.receivers):
                stack.enter_context(self._reading(len(senders), arrived))
            return self._last(len(senders)), arrived

    @contextmanager
    def _changing(
        self,
        batch: ChangedBatch,
        arrived: dict[Receiver, Tensor],
        layers: range | None,
        held: bool = True,
    ) -> Iterator[None]:
        """Run some layers with the senders of a batch; `held`: with what does not change."""
        with self.own.only(layers, len(batch.interventions)), ExitStack() as stack:
            for (kind, layer), place in self.places.items() if held else ():
                if layers is None or layer in layers:
                    change = partial(self._pass, batch, arrived, kind, layer)
                    stack.enter_context(passing(place, change))
            yield

    def _pass(
        self,
        batch: ChangedBatch,
        arrived: dict[Receiver, Tensor],
        kind: SiteKind,
        layer: int,
        values: Tensor,
    ) -> Tensor:
        """The vectors of a kind of site in a layer: as they were where held, with the senders'."""
        runs = len(batch.interventions)
        if kind == "mlp":
            arrived[Receiver(layer)] = rows_of(values, runs, batch.tokens).clone()
        held = self.held.get(Site(kind, layer))
        if held is not None:
            values = held.expand(runs, -1, -1).reshape(values.shape)
        heads = self.heads_per_layer[layer] if kind == "head" else None
        return edited(batch, batch.edits(kind, layer), heads, values)

    def _reading(self, runs: int, arrived: dict[Receiver, Tensor]) -> AbstractContextManager[None]:
        """Keep what the attention function is given for receivers (B, n, d_k) until the end."""
        layers = Layers(self.model, "self")

        def read(call: AttentionCall) -> None:
            layer = layers.at_work(call.module)
            for to in self.paths.receivers:
                if to.letter and to.layer == layer:
                    at, values = _of_receiver(call, to)
                    if len(values) != runs:
                        raise unknown(f"{type(call.module).__name__} attends in parts")
                    arrived[to] = values[:, at].clone()

        return recording(self.model, read)

    def received(self, to: Receiver, vectors: Tensor) -> Tensor:
        """The logits (B, V) of the text where only a receiver gets other vectors."""
        if to.letter:
            given = self._giving(to, vectors)
        else:
            assert to.layer is not None
            place = self.places["mlp", to.layer]
            given = passing(place, lambda values: vectors.reshape(values.shape))
        layers = self._needed(to.layer or 0, held=False)
        with self.own.only(layers, len(vectors)), given:
            return self._last(len(vectors))

    @contextmanager
    def _giving(self, to: Receiver, vectors: Tensor) -> Iterator[None]:
        """Give one head other queries, keys or values (B, n, d_k), and no other head."""
        layers, left = Layers(self.model, "self"), {to.layer}

        def correct(call: AttentionCall, output: Tensor) -> Tensor:  # (B, n, h, d_v)
            layer = layers.at_work(call.module)
            if layer != to.layer:
                return output
            left.discard(layer)
            at, values = _of_receiver(call, to)
            values, changed = values.clone(), output.clone()
            values[:, at] = vectors
            changed[:, :, to.head] = call.with_input(to.input, values)[:, :, to.head]
            return changed

        with corrected(self.model, correct):
            yield
        if left:
            raise unknown(f"layer {to.layer} of {type(self.model).__name__} calls no attention")

    def _last(self, runs: int) -> Tensor:
        return _last(self.model, self.ids.expand(runs, -1))


def _of_receiver(call: AttentionCall, to: Receiver) -> tuple[int, Tensor]:
    """The place of a receiver's head among all queries, keys or values (B, heads, n, d_k)."""
    assert to.head is not None
    values = call.inputs[to.input]
    return to.head // (call.q.size(0) // values.size(1)), values


def _path_runs(model: Any, ids: Tensor, heads_per_layer: Sequence[int], paths: Paths) -> _PathRuns:
    """Run the text and the source once.

    Raises:
        ModelError: these paths of this model cannot be separated from others.
    """
    if any(to.letter for to in paths.receivers) and not model._can_set_attn_implementation():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")
    held = {
        Site(kind, layer)
        for kind in held_fixed(paths.mlps)
        for layer, heads in enumerate(heads_per_layer)
        if heads or kind != "head"
    }
    read: set[tuple[SiteKind, int]] = {
        ("mlp", to.layer) for to in paths.receivers if to.head is None and to.layer is not None
    }
    every = read | {site[:2] for site in held} | {edit.site[:2] for edit in paths.senders}
    places = places_of(model, ids, heads_per_layer, every)
    vectors_of = partial(vectors_of_sites, model, heads_per_layer, places)
    source = Interventions([(edit,) for edit in paths.senders], source=paths.source)
    return _PathRuns(
        model=model,
        ids=ids,
        heads_per_layer=heads_per_layer,
        paths=paths,
        places=places,
        held=_vectors_held(model, ids, heads_per_layer, places, held),
        taken=taken_vectors(vectors_of, ids[0].tolist(), source),
        own=_own_run(model, ids, len(heads_per_layer)),
    )


def _vectors_held(
    model: Any,
    ids: Tensor,
    heads_per_layer: Sequence[int],
    places: Mapping[tuple[SiteKind, int], SitePlace],
    sites: Collection[Site],
) -> dict[Site, Tensor]:
    """The vectors of sites, without which no token moves anything to another.

    The text (1, n) runs beside one in which its tokens, but for the last, are one place earlier;
    the logits after the last one agree where these vectors are held fixed.
    """
    run = SourceRun(ids[0].tolist(), range(ids.size(1)))
    held = vectors_of_sites(model, heads_per_layer, places, run, sites, False)
    again = ids[:, -1:] if of_text(model, ids).all() else ids[:, :1]  # insets stay whole
    other = torch.cat([ids[:, 1:-1], again, ids[:, -1:]], dim=1)
    with ExitStack() as stack:
        for site, vectors in held.items():
            fixed = partial(_instead, vectors.expand(2, -1, -1))
            stack.enter_context(passing(places[site.kind, site.layer], fixed))
        ours, theirs = _last(model, torch.cat([ids, other]))
    if not agrees(ours, theirs, _rounding(ours)):
        raise unknown(
            f"{type(model).__name__} carries from token to token, beside its attention, what a "
            "head writes: no path is told apart"
        )
    return held


def _rounding(logits: Tensor) -> float:
    return max(NEAR, 8 * torch.finfo(logits.dtype).eps)


def _instead(vectors: Tensor, values: Tensor) -> Tensor:
    return vectors.reshape(values.shape).clone()


def slopes(model: Any, ids: Ids, heads_per_layer: Sequence[int], slope_of: SlopeOf) -> FirstOrder:
    """The first order of patches over a text, as `LoadedModel.first_order`."""
    kinds, runs = {*slope_of.kinds}, None
    with torch.inference_mode(False), torch.no_grad():
        row = _row(model, ids)
        if slope_of.direct:
            paths = Paths([], slope_of.receivers, slope_of.source, slope_of.direct)
            runs = _path_runs(model, row, heads_per_layer, paths)
            kinds |= runs.places.keys()
        places = places_of(model, row, heads_per_layer, kinds)

    def last_of(ids: Ids, passed: SitesPassed) -> Tensor:
        with ExitStack() as stack:
            for at, place in places.items():
                stack.enter_context(passing(place, passed.hook(at)))
            if runs and any(to.letter for to in slope_of.receivers):
                stack.enter_context(runs._reading(1, passed.arrived))
            return _last(model, _row(model, ids))[0]

    def by_head(values: Tensor, at: tuple[SiteKind, int]) -> Tensor:
        heads = heads_per_layer[at[1]] if at[0] == "head" else 1
        rows = values.reshape(-1, values.size(-1))
        return rows.view(len(rows), heads, -1)

    return first_order(last_of, by_head, ids, slope_of, runs.received if runs else None)


def _row(model: Any, ids: Ids) -> Tensor:
    return torch.tensor([list(ids)], device=model.device)  # (1, n)


def _last(model: Any, ids: Tensor) -> Tensor:
    """The logits (B, V) after the last position."""
    return last_logits(model, 1, input_ids=ids, use_cache=False)[:, 0]
