"""Interventions in a transformers model, by hooks on its modules and at its attention function.

Letters in the shape comments as in `models/intervening.py`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.huggingface.attention import corrected, forward, listening, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import Layers, layers_of, unknown
from attnviz.models.huggingface.places import passing, places_of
from attnviz.models.huggingface.proof import ProvenRows, fits
from attnviz.models.intervening import Batch, batches, numbers, take
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.sampling import LOGIT_ROWS, Handover, log_probability, rows_at_a_time
from attnviz.records.capture import Consumer, FloatArray, Kind, Wanted
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    RunConsumer,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.prompt import GoOn, Sampling

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
    taken = take(places.taken, ids[0].tolist(), interventions, source)
    for batch in batches(range(len(interventions)), size):
        of_batch = Batch([interventions[i] for i in batch], n, taken)
        with places.changed(of_batch):
            logits = forward(model, input_ids=ids.expand(len(batch), -1), use_cache=False).logits
        for i, rows in zip(batch, logits, strict=True):  # (n, V)
            followed = log_probability(rows[:-1], ids[0, 1:]) if whole else rows.new_empty(0)
            last = rows[-1].float().cpu().numpy()
            consume(ChangedRun(i, followed.float().cpu().numpy(), last))


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
        self._of = places_of(model, ids, heads_per_layer, sites) if sites else {}
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
                    stack.enter_context(passing(place, self._editing(batch, edits, kind, layer)))
            if self._cut:
                stack.enter_context(_cutting(self._model, batch))
            yield

    def taken(self, source: SourceRun, sites: Iterable[Site], *, mean: bool) -> dict[Site, Tensor]:
        """The vectors of sites in the run of a source; see `TakeFrom`."""
        found: dict[tuple[SiteKind, int], Tensor] = {}
        n = len(source.ids)

        def keeping(at: tuple[SiteKind, int]) -> Callable[[Tensor], None]:
            def keep(values: Tensor) -> None:
                rows = _rows(values, 1, n)[0]
                # a copy, as Falcon adds to it in place
                found[at] = rows.mean(dim=0, keepdim=True) if mean else rows.clone()

            return keep

        wanted = {(site.kind, site.layer) for site in sites}
        ids = torch.tensor([list(source.ids)], device=self._model.device)
        with ExitStack() as stack:
            for at in wanted:
                stack.enter_context(passing(self._of[at], keeping(at)))
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
            rows = _rows(values, runs, batch.tokens)
            if kind != "head":
                return batch.changed(rows, edits).view(values.shape)
            z = rows.view(*rows.shape[:2], self._heads[layer], -1).transpose(1, 2)  # (B, h, n, d_v)
            return batch.changed(z, edits).transpose(1, 2).reshape(values.shape)

        return edit


def _rows(values: Tensor, runs: int, n: int) -> Tensor:
    """Vectors (B, n, width), or (B·n, width), as (B, n, width).

    Raises:
        ModelError: they are no vectors of tokens.
    """
    if values.shape[:-1] not in ((runs, n), (runs * n,)):
        raise unknown(f"vectors of the shape {tuple(values.shape)} are not those of {n} tokens")
    return values.reshape(runs, n, -1)


@contextmanager
def _cutting(model: Any, batch: Batch) -> Iterator[None]:
    """Remove links from the output of the attention function (B, n, h, d_v) until the end.

    Raises:
        ModelError: a layer does more to its weights or values than attnviz knows.
    """
    layers, left = Layers(model, "self"), batch.layers_of_cuts()

    def cut(call: AttentionCall, output: Tensor) -> Tensor:
        layer = layers.at_work(call.module)
        if layer not in left:
            return output
        left.remove(layer)
        changed = output.clone()
        of_runs: dict[int, dict[int, list[CutLink]]] = {}
        for (run, query), cuts in batch.cuts(layer).items():
            of_runs.setdefault(run, {})[query] = cuts
        size = rows_at_a_time(call.k.size(1), call.q.size(0))
        for run, of_queries in of_runs.items():
            of_run = call.of(run)
            for block in batches(sorted(of_queries), size):
                cuts = [cut for query in block for cut in of_queries[query]]
                _cut_rows(of_run, cuts, changed[run])
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
        queries, v = list(rows), call.v[head // group, : pattern.size(2)].float()  # (keys, d_v)
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
    name = type(call.module).__name__
    return unknown(
        f"the attention function {call.function} of {name} does more to a row than attnviz knows: "
        "no link is cut"
    )


# The logits of a transformers model, after its last layer or after any other.
#
# The model itself turns the output of its last layer into logits, through whatever stands
# between them (a norm, a soft cap, a factor). For the logit lens, the output of an earlier
# layer replaces that of the last one in a second run.


def predict(
    model: Any, ids: Tensor, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
) -> None:
    """Hand over logits: first those of the lens, from layer 0 on, then the model's own.

    Args:
        model: a causal transformers model with an output layer.
        ids: (1, n).
        positions: the positions whose logits are wanted, in rising order.
        consume: is given the logits, in blocks.
        lens: also as if the model stopped after each layer but the last.
    """
    wanted = torch.tensor(list(positions))
    with torch.inference_mode():
        if lens:
            *earlier, last = layers_of(model)
            streams = _streams(model, ids, earlier)
            for layer, stream in enumerate(streams):
                with _replaced(last, stream):
                    _hand_over(
                        layer, forward(model, input_ids=ids, use_cache=False), wanted, consume
                    )
        _hand_over(None, forward(model, input_ids=ids, use_cache=False), wanted, consume)


def vectors(model: Any, ids: Tensor, position: int) -> FloatArray:
    """The residual stream of a position (layers + 1, d): before layer 0, after each layer.

    Args:
        model: a transformers model of one sequence, or an encoder.
        ids: (1, n).
        position: from 0 to n - 1.
    """
    layers, first = layers_of(model), list[Tensor]()

    def keep(_module: nn.Module, args: Any, named: Any) -> None:
        first.append(args[0] if args else named["hidden_states"])

    handle = layers[0].register_forward_pre_hook(keep, with_kwargs=True)
    try:
        after = _streams(model, ids, layers)
    finally:
        handle.remove()
    streams = [stream[0, position].float().cpu() for stream in (*first, *after)]
    return np.asarray(torch.stack(streams).numpy())


def _streams(model: Any, ids: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
    """The stream after each of the layers, (1, n, d)."""
    streams: list[Tensor] = []

    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        streams.append(output[0] if isinstance(output, tuple) else output)

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(keep).remove)
        getattr(model, "base_model", model)(input_ids=ids, use_cache=False)
    return streams


@contextmanager
def _replaced(layer: nn.Module, stream: Tensor) -> Iterator[None]:
    """Let the layer give this stream, whatever its input is."""

    def replace(_module: nn.Module, _args: Any, output: Any) -> Any:
        return (stream, *output[1:]) if isinstance(output, tuple) else stream

    handle = layer.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


def _hand_over(layer: int | None, output: Any, wanted: Tensor, consume: LogitConsumer) -> None:
    for part in torch.split(wanted, LOGIT_ROWS):
        logits = output.logits[0, part].float().cpu().numpy()
        consume(LogitRows(layer, part.numpy(), logits))


# A transformers model goes on with a text, by its own `generate`; its rows are handed over.
#
# What is written is what `generate` writes without us: nothing is passed to it but the sampling,
# and a criterion that is asked after every token whether to go on.


class LastRows:
    """The last row of every wanted layer's attention in the forward pass at work."""

    def __init__(self, model: Any, kind: Kind, wanted: Wanted) -> None:
        self._model, self._wanted, self._layers = model, wanted, Layers(model, kind)
        self._proven = ProvenRows()
        self.rows: dict[int, Tensor] = {}

    def begin(self, *_: Any) -> None:
        """A forward pass begins."""
        self._layers.begin()
        self.rows.clear()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record every pass of the model until the end."""
        with ExitStack() as stack:
            handle = self._model.register_forward_pre_hook(self.begin)
            stack.callback(handle.remove)
            if self._model._can_set_attn_implementation():
                stack.enter_context(recording(self._model, self._on_call))
            else:
                stack.enter_context(listening(self._model, self._on_output))
            yield

    def _on_call(self, call: AttentionCall) -> None:
        layer = self._layers.at_work(call.module)
        if layer is not None and layer in self._wanted.heads:
            last = torch.tensor([call.q.size(1) - 1])
            rows = self._proven.of(call, layer, self._wanted.heads[layer], last)
            self.rows[layer] = rows(last)[0].clone()

    def _on_output(self, module: nn.Module, pattern: Tensor) -> None:
        layer = self._layers.at_work(module)
        if layer is not None and layer in self._wanted.heads:
            self.rows[layer] = pattern[:, -1:].clone()


def generate(
    model: Any,
    inputs: Mapping[str, Any],
    sampling: Sampling,
    ends: Collection[int],
    wanted: Wanted,
    consume: Consumer,
    go_on: GoOn,
    kind: Kind,
) -> None:
    """Write tokens until one of `ends`, which is not handed over, or as long as `go_on` says so.

    Args:
        model: a transformers model with an output layer, in evaluation mode.
        inputs: what its `generate` reads: `inputs` (1, n), of an encoder-decoder also the token
            to begin with.
        sampling: how tokens are chosen.
        ends: the ids that end a text.
        wanted: which heads; their rows are those of the positions that predict a new token.
        consume: is given the rows of a new token, numbered from 0, before `go_on` is told of it.
        go_on: see `GoOn`.
        kind: the attention of an encoder-decoder that is wanted, else "self".

    Raises:
        ModelError: transformers cannot run it.
    """
    last = LastRows(model, kind, wanted)
    handover, step = Handover(wanted, consume), 0
    read: int = inputs["inputs"].size(1)

    def keys() -> int:
        """How many keys there are at this step."""
        return read + step if kind == "self" else 1 + step if kind == "decoder" else read

    def ended(ids: Tensor, _scores: Any, **_more: Any) -> Tensor:
        nonlocal step
        id_ = int(ids[0, -1])
        if id_ in ends:
            return torch.tensor([True], device=ids.device)
        for layer, row in last.rows.items():
            if row.size(2) < keys():  # a window's cache has forgotten the first ones
                row = torch.nn.functional.pad(row, (keys() - row.size(2), 0))
            handover.take(layer, torch.tensor([step]), row)
        step += 1
        return torch.tensor([not go_on(id_)], device=ids.device)

    chosen = (
        {"do_sample": False, "temperature": None, "top_p": None}
        if sampling.greedy
        else {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p}
    )
    with torch.inference_mode(), torch.random.fork_rng(), last.recorded():
        torch.manual_seed(sampling.seed)
        forward(
            model,
            through=model.generate,
            **inputs,
            **chosen,
            top_k=None if sampling.greedy else 0,
            num_beams=1,
            max_new_tokens=sampling.most,
            stopping_criteria=[ended],
        )


def log_probabilities(model: Any, inputs: Mapping[str, Any], answer: Tensor) -> FloatArray:
    """The log-probability in nats of each token of an answer, given all before it (m).

    Args:
        model: a transformers model with an output layer, in evaluation mode.
        inputs: what its forward pass reads; the last m logits are those of the answer.
        answer: the ids of the m tokens.
    """
    m = answer.size(0)
    given = dict(inputs)
    if "logits_to_keep" in signature(model.forward).parameters:
        given["logits_to_keep"] = m
    with torch.inference_mode():
        logits = forward(model, **given).logits[0, -m:]  # (m, V)
        return numbers(log_probability(logits, answer))
