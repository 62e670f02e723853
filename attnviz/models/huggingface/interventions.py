"""Interventions in a transformers model, by hooks on its modules and at its attention function.

Letters in the shape comments as in `models/engine.py`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.engine import (
    ChangedBatch,
    batches,
    log_probability,
    numbers,
    rows_at_a_time,
    taken_vectors,
)
from attnviz.models.huggingface.attention import corrected, forward, hooked
from attnviz.models.huggingface.call import AttentionCall, precise
from attnviz.models.huggingface.capture import fits
from attnviz.models.huggingface.head_parts import Seen
from attnviz.models.huggingface.layer_outputs import ENOUGH, what_is_added
from attnviz.models.huggingface.layers import (
    LayerParts,
    Layers,
    first_of,
    layers_of,
    parts_of,
    unknown,
)
from attnviz.models.huggingface.vision import of_text
from attnviz.models.placement import BATCH_TOKENS
from attnviz.records.capture import FloatArray
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Interventions,
    Site,
    SiteKind,
    SourceRun,
)


@dataclass(frozen=True)
class SitePlace:
    """The place where the vectors of a kind of site pass in one layer.

    `incoming`: they are what the module is given, not what it gives. `turn`: which of the module's
    calls in a forward pass is meant, from 1, since layers may share their modules (ALBERT).
    """

    module: nn.Module
    incoming: bool
    turn: int = 1


def places_of(
    model: Any, ids: Tensor, heads_per_layer: Sequence[int], sites: Iterable[tuple[SiteKind, int]]
) -> dict[tuple[SiteKind, int], SitePlace]:
    """The places of these kinds of sites and layers, in a model that can run ids (1, n)."""
    wanted, layers = sorted(set(sites)), layers_of(model)
    own_module = len(layers) == len(heads_per_layer)  # else layers share theirs (ALBERT)
    around = {layer for kind, layer in wanted if kind != "residual" or not own_module}
    parts = parts_of(model, sorted(around)) if around else {}
    adding = {layer: parts[layer] for kind, layer in wanted if kind in ("attention", "mlp")}
    added = _adding(model, ids, adding) if adding else {}

    def place(kind: SiteKind, layer: int) -> SitePlace:
        if kind == "residual" and own_module:
            return SitePlace(layers[layer], incoming=True)
        own = parts[layer]
        if kind in ("residual", "head"):
            module = own.layer if kind == "residual" else own.output
            return SitePlace(module, incoming=True, turn=own.turn)
        adds = added[layer][0 if kind == "attention" else 1]
        if adds is None:
            raise unknown(f"what the MLPs of {type(model).__name__} add cannot be told apart")
        return SitePlace(adds, incoming=False, turn=own.turn)

    return {(kind, layer): place(kind, layer) for kind, layer in wanted}


def _adding(
    model: Any, ids: Tensor, parts: Mapping[int, LayerParts]
) -> dict[int, tuple[nn.Module, nn.Module | None]]:
    """The modules whose outputs attention and MLP add to the stream, found by what sums up.

    One of them may be a norm behind the sublayer (Gemma 2). Where the two cannot be told apart,
    they are the output projection and None.
    """
    seen = {layer: Seen(own) for layer, own in parts.items()}
    with hooked(handle for each in seen.values() for handle in each.hooks(model)):
        few = ids[:, of_text(model, ids)][:, :ENOUGH]  # an inset would have to be whole
        forward(model, input_ids=few, use_cache=False)
    return {layer: _two(each) for layer, each in seen.items()}


def _two(seen: Seen) -> tuple[nn.Module, nn.Module | None]:
    output = seen.parts.output
    if seen.x.shape != seen.attention_out.shape:  # several streams (Gemma 3n)
        return output, None
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    if added.how == "mixed":
        return output, None
    # one dropout may serve both (Phi), so that its call would not show which
    calls = Counter(module for module, _ in seen.outputs)
    once = [(module, out) for module, out in reversed(seen.outputs) if calls[module] == 1]
    f, g = added.factors

    def module_of(addition: Tensor, factor: float) -> nn.Module | None:
        return next((module for module, out in once if addition.equal(factor * out)), None)

    plain = added.attention.equal(f * seen.attention_out)
    attention = output if plain else module_of(added.attention, f)
    return (output, None) if attention is None else (attention, module_of(added.mlp, g))


@contextmanager
def passing(place: SitePlace, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Give the vectors that pass at a place to a function, which may replace them."""
    calls = 0

    def changed(vectors: Tensor) -> Tensor | None:
        nonlocal calls
        calls += 1
        return change(vectors) if calls == place.turn else None

    def before(_module: nn.Module, args: Any, named: Mapping[str, Any]) -> Any:
        new = changed(args[0] if args else named["hidden_states"])
        if new is None:
            return None
        return ((new, *args[1:]), named) if args else (args, {**named, "hidden_states": new})

    def after(_module: nn.Module, _args: Any, output: Any) -> Any:
        new = changed(first_of(output))
        if new is None:
            return None
        return (new, *output[1:]) if isinstance(output, tuple) else new

    module = place.module
    if place.incoming:
        handle = module.register_forward_pre_hook(before, with_kwargs=True)
    else:
        handle = module.register_forward_hook(after)
    with hooked([handle]):
        yield
    if calls < place.turn:
        raise unknown(f"{type(module).__name__} is not called for its output")


LOGITS_AT_ONCE = 1 << 26
"""The most logits of a batch, which are all made at once."""


def runs_at_once(model: Any, n: int) -> int:
    """The number of runs of n tokens that are made at once."""
    logits: int = n * model.config.get_text_config().vocab_size
    return max(1, min(BATCH_TOKENS // n, LOGITS_AT_ONCE // logits))


def changed_runs(
    model: Any, ids: Tensor, heads_per_layer: Sequence[int], interventions: Interventions
) -> Iterator[ChangedRun]:
    """The runs over ids (1, n) of a causal transformers model, as `LoadedModel.intervene`."""
    n = ids.size(1)
    each, whole = interventions.each, interventions.whole
    every = [change for changes in each for change in changes]
    sites = {(edit.site.kind, edit.layer) for edit in every if isinstance(edit, Edit)}
    places = places_of(model, ids, heads_per_layer, sites) if sites else {}
    cuts = any(isinstance(change, CutLink) for change in every)
    if cuts and not model._can_set_attn_implementation():
        raise unknown(f"{type(model).__name__} keeps its attention to itself: no link is cut")
    of_run = partial(vectors_of_sites, model, heads_per_layer, places)
    taken = taken_vectors(of_run, ids[0].tolist(), interventions)
    for indices in batches(range(len(each)), runs_at_once(model, n)):
        batch = ChangedBatch([each[i] for i in indices], n, taken)
        with ExitStack() as stack:
            for (kind, layer), place in places.items():
                if edits := batch.edits(kind, layer):
                    heads = heads_per_layer[layer] if kind == "head" else None
                    edit = partial(edited, batch, edits, heads)
                    stack.enter_context(passing(place, edit))
            if cuts:
                stack.enter_context(_cutting(model, batch))
            logits = forward(model, input_ids=ids.expand(len(indices), -1), use_cache=False).logits
        for i, rows in zip(indices, logits, strict=True):  # (n, V)
            followed = log_probability(rows[:-1], ids[0, 1:]) if whole else rows.new_empty(0)
            at = interventions.rows
            some = None if at is None else numbers(rows[at.start : at.stop])
            yield ChangedRun(i, numbers(followed), numbers(rows[-1]), some)


def vectors_at(
    model: Any, ids: Tensor, heads_per_layer: Sequence[int], sites: Collection[Site]
) -> dict[Site, FloatArray]:
    """The vectors of sites in a run of ids (1, n), as `LoadedModel.site_vectors`."""
    places = places_of(model, ids, heads_per_layer, {(site.kind, site.layer) for site in sites})
    run = SourceRun(ids[0].tolist(), range(ids.size(1)))
    of_sites = vectors_of_sites(model, heads_per_layer, places, run, sites, mean=False)
    return {site: numbers(vectors) for site, vectors in of_sites.items()}


def vectors_of_sites(
    model: Any,
    heads_per_layer: Sequence[int],
    places: Mapping[tuple[SiteKind, int], SitePlace],
    source: SourceRun,
    sites: Iterable[Site],
    mean: bool,
) -> dict[Site, Tensor]:
    """The vectors of sites in the run of a source, for `taken_vectors`."""
    vectors: dict[tuple[SiteKind, int], Tensor] = {}

    def keep(at: tuple[SiteKind, int], values: Tensor) -> None:
        rows = rows_of(values, 1, len(source.ids))[0]
        # a copy, as Falcon adds to it in place
        vectors[at] = rows.mean(dim=0, keepdim=True) if mean else rows.clone()

    with ExitStack() as stack:
        for at in {(site.kind, site.layer) for site in sites}:
            stack.enter_context(passing(places[at], partial(keep, at)))
        ids = torch.tensor([list(source.ids)], device=model.device)
        forward(model, input_ids=ids, use_cache=False)
    taken: dict[Site, Tensor] = {}
    for site in sites:
        values = vectors[site.kind, site.layer]
        if site.head is not None:
            values = values.view(len(values), heads_per_layer[site.layer], -1)[:, site.head]
        taken[site] = values[list(source.places)]
    return taken


def edited(
    batch: ChangedBatch, edits: Sequence[tuple[int, Edit]], heads: int | None, values: Tensor
) -> Tensor:
    """Vectors (B, n, width), or (B·n, width) as some modules have them, after edits.

    `heads`: their number, where the vectors are theirs side by side.
    """
    rows = rows_of(values, len(batch.interventions), batch.tokens)
    if heads is None:
        return batch.changed(rows, edits).view(values.shape)
    z = rows.view(*rows.shape[:2], heads, -1).transpose(1, 2)  # (B, h, n, d_v)
    return batch.changed(z, edits).transpose(1, 2).reshape(values.shape)


def rows_of(values: Tensor, runs: int, n: int) -> Tensor:
    """Vectors (B, n, width), or (B·n, width), as (B, n, width)."""
    if values.shape[:-1] not in ((runs, n), (runs * n,)):
        raise unknown(f"vectors of the shape {tuple(values.shape)} are not those of {n} tokens")
    return values.reshape(runs, n, -1)


@contextmanager
def _cutting(model: Any, batch: ChangedBatch) -> Iterator[None]:
    """Remove links from the output of the attention function (B, n, h, d_v) until the end."""
    layers, left = Layers(model, "self"), batch.cuts()

    def cut(call: AttentionCall, output: Tensor) -> Tensor:
        layer = layers.at_work(call.module)
        if layer not in left:
            return output
        cuts, changed = left.pop(layer), output.clone()
        size = rows_at_a_time(call.k.size(1), call.q.size(0))
        for run in dict.fromkeys(run for run, _ in cuts):
            of_run = call.of(run)
            for block in batches(sorted(query for r, query in cuts if r == run), size):
                links = [link for query in block for link in cuts[run, query]]
                _cut_rows(of_run, links, changed[run])
        return changed

    with corrected(model, cut):
        yield
    if left:
        raise unknown(f"layer {min(left)} of {type(model).__name__} calls no attention")


def _cut_rows(call: AttentionCall, cuts: Sequence[CutLink], after: Tensor) -> None:
    """Write into `after` (n, h, d_v) what heads make of some rows without some links.

    All rows are computed at once: those of the model, and those that hide keys.
    """
    of_heads: dict[int, dict[int, list[CutLink]]] = {}
    for cut in cuts:
        of_heads.setdefault(cut.head.head, {}).setdefault(cut.query, []).append(cut)
    every = [row for rows in of_heads.values() for row in rows.items()]
    wanted = [(query, keys) for query, of_row in every for keys in ((), _hidden(of_row))]
    number = {row: i for i, row in enumerate(dict.fromkeys(wanted))}
    try:
        pattern = call.weights(torch.tensor([q for q, _ in number]), [keys for _, keys in number])
    except (RuntimeError, TypeError, ValueError, IndexError):
        raise _does_more(call) from None  # it wants more than these rows
    group = call.q.size(0) // call.v.size(0)
    for head, rows in of_heads.items():
        queries, v = list(rows), precise(call.v[head // group, : pattern.size(2)])  # (keys, d_v)
        whole = pattern[:, [number[query, ()] for query in queries]]  # (h, rows, keys)
        if not fits(call, torch.tensor(queries), whole, [head]):
            raise _does_more(call)
        left = pattern[head, [number[query, _hidden(rows[query])] for query in queries]]
        removed = [(i, cut.key) for i, query in enumerate(queries) for cut in rows[query]]
        left[tuple(zip(*removed, strict=True))] = 0.0
        after[queries, head] = (left @ v).to(after)


def _hidden(cuts: Iterable[CutLink]) -> tuple[int, ...]:
    """The keys of a row that its softmax does not see."""
    return tuple(sorted({cut.key for cut in cuts if cut.renormalise}))


def _does_more(call: AttentionCall) -> ModelError:
    function = f"the attention function {call.function} of {type(call.module).__name__}"
    return unknown(f"{function} does more to a row than attnviz knows: no link is cut")
