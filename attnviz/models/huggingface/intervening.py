"""Interventions in a transformers model, by hooks on its modules and at its attention function.

Letters in the shape comments as in `models/intervening.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.data.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    RunConsumer,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.functions import AttentionCall, corrected, recording
from attnviz.models.huggingface.layers import LayerParts, Layers, parts_of
from attnviz.models.huggingface.projections import unknown
from attnviz.models.huggingface.residual import what_is_added
from attnviz.models.huggingface.turns import first_of
from attnviz.models.huggingface.watching import Seen
from attnviz.models.intervening import Batch, batches, taken_from_source, without_links
from attnviz.models.memory import BATCH_TOKENS
from attnviz.models.probability import log_probability

LOGITS = 1 << 26
"""The most logits of a batch, which are all made at once."""


def intervene_transformers(
    model: Any,
    ids: Tensor,
    heads_per_layer: Sequence[int],
    interventions: Sequence[Intervention],
    consume: RunConsumer,
    *,
    whole: bool,
    source: SourceRun | None = None,
) -> None:
    """Run interventions on a causal transformers model; arguments as in `scratch/intervening.py`.

    Raises:
        ModelError: this architecture's projections or MLPs cannot be found, or it keeps its
            attention to itself and a link is to be cut.
    """
    n, vocabulary = ids.size(1), model.config.get_text_config().vocab_size
    size = max(1, min(BATCH_TOKENS // n, LOGITS // (n * vocabulary)))
    places = _Places(model, ids, heads_per_layer, interventions)
    taken = {} if source is None else places.taken(source, taken_from_source(interventions))
    for batch in batches(range(len(interventions)), size):
        of_batch = Batch([interventions[i] for i in batch], taken)
        with places.changed(of_batch):
            logits = forward(model, input_ids=ids.expand(len(batch), -1), use_cache=False).logits
        for i, rows in zip(batch, logits, strict=True):  # (n, V)
            followed = log_probability(rows[:-1], ids[0, 1:]) if whole else rows.new_empty(0)
            last = rows[-1].float().cpu().numpy()
            consume(ChangedRun(i, followed.float().cpu().numpy(), last))


@dataclass(frozen=True)
class _Place:
    """Where the vectors of a kind of site pass in one layer.

    `incoming`: they are what the module is given, not what it gives. `turn`: which of the module's
    calls in a forward pass is meant, from 1, since layers may share their modules (ALBERT).
    """

    module: nn.Module
    incoming: bool
    turn: int = 1


class _Places:
    """The modules of a model at which interventions change it."""

    def __init__(
        self,
        model: Any,
        ids: Tensor,
        heads_per_layer: Sequence[int],
        interventions: Sequence[Intervention],
    ) -> None:
        self._model, self._heads = model, heads_per_layer
        every = [change for changes in interventions for change in changes]
        sites = {(e.site.kind, e.site.layer) for e in every if isinstance(e, Edit)}
        parts = parts_of(model, {layer for _, layer in sites}) if sites else {}
        self._of = {
            (kind, layer): _place(model, ids, parts[layer], kind) for kind, layer in sorted(sites)
        }
        self._cut = any(isinstance(change, CutLink) for change in every)
        if self._cut and not model._can_set_attn_implementation():
            raise unknown(f"{type(model).__name__} keeps its attention to itself: no link is cut")

    @contextmanager
    def changed(self, batch: Batch) -> Iterator[None]:
        """Make the changes of a batch in the runs until the end."""
        with ExitStack() as stack:
            for (kind, layer), place in self._of.items():
                edits = batch.edits(kind, layer)
                if edits:
                    stack.enter_context(_hooked(place, self._editing(batch, edits, kind, layer)))
            if self._cut:
                stack.enter_context(corrected(self._model, self._cutting(batch)))
            yield

    def taken(self, source: SourceRun, sites: Iterable[Site]) -> dict[Site, Tensor]:
        """The vectors (n, width) of sites in the run of the source, at the places of the text."""
        found: dict[tuple[SiteKind, int], Tensor] = {}

        def keeping(at: tuple[SiteKind, int]) -> Callable[[Tensor], None]:
            def keep(values: Tensor) -> None:
                found[at] = values.reshape(len(source.ids), -1)

            return keep

        wanted = {(site.kind, site.layer) for site in sites}
        ids = torch.tensor([list(source.ids)], device=self._model.device)
        with ExitStack() as stack:
            for at in wanted:
                stack.enter_context(_hooked(self._of[at], keeping(at)))
            forward(self._model, input_ids=ids, use_cache=False)
        places, taken = list(source.places), dict[Site, Tensor]()
        for site in sites:
            values = found[site.kind, site.layer]
            if site.head is not None:
                values = values.view(len(values), self._heads[site.layer], -1)[:, site.head]
            taken[site] = values[places]
        return taken

    def _editing(
        self, batch: Batch, edits: Sequence[tuple[int, Edit]], kind: SiteKind, layer: int
    ) -> Callable[[Tensor], Tensor]:
        """What makes edits in vectors (B, n, width), or (B·n, width) as some modules have them."""
        runs = len(batch.interventions)

        def edit(values: Tensor) -> Tensor:
            rows = values.reshape(runs, -1, values.size(-1))  # (B, n, width)
            if kind != "head":
                return batch.changed(rows, edits).reshape(values.shape)
            heads = self._heads[layer]
            z = rows.view(*rows.shape[:2], heads, -1).transpose(1, 2)  # (B, h, n, d_v)
            return batch.changed(z, edits).transpose(1, 2).reshape(values.shape)

        return edit

    def _cutting(self, batch: Batch) -> Callable[[AttentionCall, Tensor], Tensor]:
        """What removes links from the output of an attention function (B, n, h, d_v)."""
        layers = Layers(self._model, "self")

        def cut(call: AttentionCall, output: Tensor) -> Tensor:
            layer = layers.at_work(call.module)
            rows = {} if layer is None else batch.cuts(layer)
            if not rows:
                return output
            changed = output.clone()
            for (run, head, query), cuts in rows.items():
                own = call.of(run)
                row = own.weights(torch.tensor([query]))[head, 0]  # (keys)
                v = own.v[head // (own.q.size(0) // own.v.size(0)), : len(row)]  # (keys, d_v)
                changed[run, query, head] = (without_links(row, cuts) @ v.float()).to(changed)
            return changed

        return cut


def _place(model: Any, ids: Tensor, parts: LayerParts, kind: SiteKind) -> _Place:
    """Where a kind of site is in a layer.

    Raises:
        ModelError: the layer's MLP cannot be told apart.
    """
    if kind == "mlp":
        return _Place(_mlp_of(model, ids, parts), incoming=False, turn=parts.turn)
    if kind == "residual":
        return _Place(parts.layer, incoming=True, turn=parts.turn)
    return _Place(parts.output, incoming=kind == "head", turn=parts.turn)


def _mlp_of(model: Any, ids: Tensor, parts: LayerParts) -> nn.Module:
    """The module whose output is what a layer's MLP adds to the stream, found by what sums up.

    Raises:
        ModelError: there is none.
    """
    seen = Seen(parts)
    with ExitStack() as stack:
        if model._can_set_attn_implementation():
            stack.enter_context(recording(model, seen.on_call))
        for hook in seen.hooks(model):
            stack.callback(hook.remove)
        forward(model, input_ids=ids, use_cache=False)
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    for module, out in reversed(seen.outputs):
        if added.how != "mixed" and torch.equal(added.factors[1] * out, added.mlp):
            return module
    raise unknown(f"what the MLPs of {type(model).__name__} add cannot be told apart")


@contextmanager
def _hooked(place: _Place, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Give the vectors that pass at a place to a function, which may replace them."""
    calls = 0

    def now() -> bool:
        nonlocal calls
        calls += 1
        return calls == place.turn

    def before(_module: nn.Module, args: Any, named: Mapping[str, Any]) -> Any:
        if not now():
            return None
        if args:
            made = change(args[0])
            return None if made is None else ((made, *args[1:]), named)
        made = change(named["hidden_states"])
        return None if made is None else (args, {**named, "hidden_states": made})

    def after(_module: nn.Module, _args: Any, output: Any) -> Any:
        made = change(first_of(output)) if now() else None
        if made is None:
            return None
        return (made, *output[1:]) if isinstance(output, tuple) else made

    module = place.module
    handle = (
        module.register_forward_pre_hook(before, with_kwargs=True)
        if place.incoming
        else module.register_forward_hook(after)
    )
    try:
        yield
    finally:
        handle.remove()
