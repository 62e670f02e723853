"""A run of any transformers model, and the rows of its attention, proven where they are taken.

Where the architecture lets its attention function be switched, ours takes its place; elsewhere the
weights that its modules return are recorded (`attention.py`). The output is unchanged.

A model's attention function may be anybody's, and is called by whatever name it was registered.
What is shown of a call is computed by the module's own eager function, or is what the model's
function itself returned. Times the values, it gives the model's output; where neither does, it is
refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, TypeAlias

import torch
from torch import Tensor

from attnviz.errors import ModelError, option
from attnviz.models.contributing import Writing
from attnviz.models.engine import ENTRIES, EnoughSeen, Handover, batches, rows_at_a_time
from attnviz.models.huggingface.attention import forward, recording, watching
from attnviz.models.huggingface.call import AttentionCall, Room
from attnviz.models.huggingface.head_outputs import Writings
from attnviz.models.huggingface.layers import Layers, unknown
from attnviz.models.loaded import HeadRows, RowReduction, SomeHeadRows
from attnviz.records.capture import Consumer, Kind, Wanted

EXACT, HALF = 1e-4, 2e-2
"""The largest error of weights times values against an output, as a share of the terms' size, in
float32 and half precision: a sum rounds by 6e-8 and by up to 4e-3 of its terms, at random, and in
half precision the weights and the output were rounded, too."""
ROUNDED = 4 * torch.finfo(torch.float32).eps
"""The error of float32 in a score, as a share of the lengths of query and key."""
CHECKED = 8
"""Rows of a call to check: those that are shown where they are fewer, and others at random."""
WeightRows: TypeAlias = tuple[Tensor, Tensor | None]
"""Weights of query rows (h, rows, n), and their scores where those are known."""
CannotCompute = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)
"""Errors of eager functions that want more than some rows, or another's arguments."""


@contextmanager
def followed(model: Any) -> Iterator[None]:
    """Refuse by name a model whose layers are called or built in a way that nobody foresaw."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except CannotCompute as error:
        raise unknown(f"{type(model).__name__} cannot be followed through its layers") from error


class ProvenRows:
    """The rows of attention calls, some of which are checked before one is handed over.

    Every row is checked where the function is not transformers' own. The rows of one block are good
    until those of the next one are asked for.
    """

    def __init__(
        self, errors: dict[int, float] | None = None, plain: dict[Any, bool] | None = None
    ) -> None:
        """`errors`: if given, every row is checked, and each layer's largest error is put here.

        `plain`: if given, keeps from run to run which modules compute attention plainly.
        """
        self._draw, self._errors, self._room = Random(0), errors, Room()
        self._plain = {} if plain is None else plain

    def of(
        self,
        call: AttentionCall,
        layer: int,
        heads: Sequence[int],
        queries: Tensor | None = None,
        *,
        scores: bool = False,
        whole: bool = False,
    ) -> Callable[[Tensor], WeightRows]:
        """A function that gives rows of a call: of all queries or of these, in these heads.

        `scores`: they are shown, so that they have to be what the weights are made of. `whole`:
        all rows will be asked for at once, so they are computed once.
        """
        checked = self._some(call, queries)
        first = torch.arange(call.q.size(1)) if whole else checked
        ways = [self._computed] if scores else [self._computed, self._returned]
        if call.foreign:  # in half precision several weights fit: the function's own come first
            ways.reverse()
        for make in ways:
            weight_rows = make(call, first)
            if weight_rows is None:
                continue
            own = weight_rows[0][:, checked] if whole else weight_rows[0]
            if self._proven(call, checked, own, heads):
                break
        else:
            raise unproven(call, layer, scores=scores)

        def rows(queries: Tensor) -> WeightRows:
            some = weight_rows if first.equal(queries) else make(call, queries)
            if some is None or not self._as_exact(call, layer, heads, queries, some[0]):
                raise unproven(call, layer, scores=scores)
            return some

        return rows

    def is_plain(self, call: AttentionCall) -> bool:
        """Whether a call's module computes plain attention, which is found out once."""
        if call.module not in self._plain:
            self._plain[call.module] = call.is_plain()
        return self._plain[call.module]

    def _computed(self, call: AttentionCall, queries: Tensor) -> WeightRows | None:
        try:
            if self.is_plain(call):
                return call.plain_rows(queries, self._room)
            return call.weights(queries), None
        except torch.OutOfMemoryError:
            raise
        except CannotCompute:
            return None

    def _returned(self, call: AttentionCall, queries: Tensor) -> WeightRows | None:
        return None if call.returned is None else (call.returned[:, queries].float(), None)

    def _proven(
        self, call: AttentionCall, queries: Tensor, weights: Tensor, heads: Sequence[int]
    ) -> bool:
        """Whether weights of a call fit, and the values are not such that any others would.

        Where all values of a row are the same, as of one token repeated, a function that is not
        known is called once more, on random ones.
        """
        if not fits(call, queries, weights, heads):
            return False
        if not call.foreign:
            return True
        several = (weights != 0).sum(dim=-1, keepdim=True)
        alike = (weights != 0) * weights.sum(dim=-1, keepdim=True) / several.clamp_min(1)
        if not (fitting(call, queries, alike, heads) & _of(several > 1, heads)[..., 0]).any():
            return True
        draw = torch.Generator(call.v.device).manual_seed(0)
        values = torch.randn(call.v.shape, generator=draw, device=call.v.device).to(call.v.dtype)
        return fits(call.on(values), queries, weights, heads)

    def _some(self, call: AttentionCall, queries: Tensor | None) -> Tensor:
        """The rows to check: what is shown, if it is little; the last one; and others at random.

        The first one of a causal model has one key, and is right whatever the function does.
        """
        n = call.q.size(1)
        if n == 1 and queries is not None:  # a step of an answer, of which there are many
            return queries
        shown = [] if queries is None or len(queries) > CHECKED else queries.tolist()
        rows = {n - 1, *shown}
        if n > 1:
            rows |= {self._draw.randrange(1, n) for _ in range(2 if shown else CHECKED - 1)}
        return torch.tensor(sorted(rows))

    def _as_exact(
        self, call: AttentionCall, layer: int, heads: Sequence[int], queries: Tensor, rows: Tensor
    ) -> bool:
        """Whether these rows fit, where every one is to be checked."""
        if self._errors is not None:
            largest = float(errors(call, queries, rows, heads).max())
            self._errors[layer] = max(self._errors.get(layer, 0.0), largest)
        elif not call.foreign:
            return True
        return self._proven(call, queries, rows, heads)


def fits(call: AttentionCall, queries: Tensor, weights: Tensor, heads: Sequence[int]) -> bool:
    """Whether weights (h, rows, n) times the values are the output, in these heads.

    Weights that are NaN pass where the function may have made them: they are refused as such.
    """
    try:
        return bool(fitting(call, queries, weights, heads).all())
    except RuntimeError:  # shapes that do not go together
        return False


def fitting(call: AttentionCall, queries: Tensor, weights: Tensor, heads: Sequence[int]) -> Tensor:
    """The rows (heads, rows) of which `fits` holds."""
    ours, theirs = _outputs(call, queries, weights, heads)
    half = (torch.float16, torch.bfloat16)
    types = (call.q.dtype, call.v.dtype, call.output.dtype)
    # on some processors float32 is multiplied with the digits of half precision, if one allows it
    whole = torch.get_float32_matmul_precision() == "highest"
    allowed = EXACT if whole and not any(each in half for each in types) else HALF
    apart, size = (ours - theirs).abs().amax(dim=-1), theirs.abs().amax(dim=-1)  # (h, rows)
    near = apart <= allowed * size  # an output is at most what is added up
    if near.all():
        return near
    q, k = call.q[:, queries].float().norm(dim=-1), call.k.float().norm(dim=-1).max()
    large = ROUNDED * abs(call.scaling) * _of(q * k, heads)  # of large scores, softmax rounds more
    most = allowed + large.nan_to_num(0)
    return near | (errors(call, queries, weights, heads) <= most)


def errors(call: AttentionCall, queries: Tensor, weights: Tensor, heads: Sequence[int]) -> Tensor:
    """The error of weights times values against the output (h, rows), as a share of the terms.

    That is max_d |Σ_k w_k v_kd − o_d| / Σ_k |w_k| max_d |v_kd|.
    """
    ours, theirs = _outputs(call, queries, weights, heads)
    apart = (ours - theirs).abs().amax(dim=-1)
    n, groups = weights.size(2), call.v.size(0)
    sizes = call.v[:, :n].float().abs().amax(dim=-1, keepdim=True)  # (groups, n, 1)
    added = _of((weights.abs().reshape(groups, -1, n) @ sizes).view(weights.shape[:2]), heads)
    undefined = ours.isnan().any(dim=-1)
    if call.foreign:  # transformers' own functions may make numbers of some NaN
        undefined &= theirs.isnan().any(dim=-1)
    return (apart / added).masked_fill((apart == 0) | undefined, 0)


def unproven(call: AttentionCall, layer: int, *, scores: bool = False) -> ModelError:
    """The error for a call whose weights are not known."""
    wrong = (
        f"what the attention function {call.function} returns in layer {layer} is not the "
        "weights that attnviz computes times the values"
    )
    if scores:
        return ModelError(wrong, f"leave {option('scores')} out")
    if not call.foreign:
        return ModelError(
            f"{type(call.module).__name__} changes what it attends to, in layer {layer}, after the "
            "weights that it returns, so attnviz cannot show it",
            'choose another function: model.set_attn_implementation("sdpa")'
            if "flash" in call.function
            else "use another model",
        )
    none = call.returned is None
    return ModelError(
        f"{wrong}, {'and it returns none of its own' if none else 'nor are those it returns'}",
        "let it return the weights (batch, heads, queries, keys) that it multiplies them by, "
        'or choose another with model.set_attn_implementation("eager")',
    )


def _outputs(
    call: AttentionCall, queries: Tensor, weights: Tensor, heads: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Weights times values, and what the function returned: both (heads, rows, d_v)."""
    groups, n = call.v.size(0), weights.size(2)
    v = call.v[:, :n].to(weights.dtype)
    ours = torch.bmm(weights.reshape(groups, -1, n), v).view(*weights.shape[:2], -1)
    theirs = call.output[queries].transpose(0, 1)
    if ours.shape != theirs.shape:
        raise RuntimeError("the output is not of the values' size")
    return _of(ours, heads), _of(theirs, heads)


def _of(each: Tensor, heads: Sequence[int]) -> Tensor:
    """The part of a tensor (h, …) that is some heads'."""
    return each if len(heads) == len(each) else each[list(heads)]


def run_and_capture(
    model: Any,
    inputs: Mapping[str, Any],
    wanted: Wanted,
    consume: Consumer,
    kind: Kind,
    *,
    whole: bool = False,
    errors: dict[int, float] | None = None,
    row: int = 0,
) -> Any:
    """Run a model's body up to the last wanted layer, or `whole`, and hand over what is wanted.

    `kind`: the attention of an encoder-decoder that is wanted, else "self". `errors`: if given,
    every row is proven, and each layer's largest error is put here. `row`: that of the batch.
    Returns the output of the body; None where it was not run to its end.
    """
    if wanted.contributions:
        return _capture_written(model, inputs, Handover(wanted, consume), kind)
    handover, proven, layers = Handover(wanted, consume), ProvenRows(errors), Layers(model, kind)

    def at_layer(module: Any, hand_over: Callable[[int], None]) -> None:
        layer = layers.at_work(module)
        if layer is not None and layer in wanted.heads:
            hand_over(layer)
        if layer == wanted.last_layer and not whole:
            raise EnoughSeen

    def on_call(call: AttentionCall) -> None:
        at_layer(call.module, lambda layer: hand_over(call.of(row), layer, handover, proven))

    def on_output(module: Any, pattern: Tensor) -> None:
        at_layer(module, lambda layer: handover.take_rows(layer, 0, pattern))

    if wanted.scores and not model._can_set_attn_implementation():
        raise ModelError(
            f"{model.config.model_type} returns its weights, but not its scores",
            f"leave {option('scores')} out",
        )
    with torch.inference_mode(), watching(model, on_call, on_output), suppress(EnoughSeen):
        return forward(model.base_model, **inputs)
    return None


def _capture_written(model: Any, inputs: Mapping[str, Any], handover: Handover, kind: Kind) -> None:
    """Hand over contribution weights, as soon as what a layer's heads write is known."""
    proven = ProvenRows()

    def written(layer: int, call: AttentionCall, writing: Writing) -> None:
        hand_over(call, layer, handover, proven, writing)
        if layer == handover.wanted.last_layer:
            raise EnoughSeen

    writings = Writings(model, handover.wanted.heads, kind, written)
    with torch.inference_mode(), writings.watched(), suppress(EnoughSeen):
        forward(model.base_model, **inputs)


def hand_over(
    call: AttentionCall,
    layer: int,
    handover: Handover,
    proven: ProvenRows,
    writing: Writing | None = None,
) -> None:
    wanted, n = handover.wanted, call.q.size(1)
    queries = torch.arange(n) if wanted.queries is None else torch.tensor(wanted.queries)
    rows = proven.of(call.dense, layer, wanted.heads[layer], queries, scores=wanted.scores)
    for block in torch.split(queries, rows_at_a_time(call.k.size(1), call.q.size(0))):
        weights = rows(block)[0]  # proven, where scores are wanted, too
        if writing is not None:
            weights = writing.contributions(weights, block)
        handover.take(layer, block, call.scores(block) if wanted.scores else weights)


def reduce_windows(
    model: Any, ids: Tensor, wanted: Wanted, reduction: RowReduction, plain: dict[Any, bool]
) -> None:
    """Run windows of text (B, n) at once, and give the wanted heads' rows to a reduction.

    `plain`: as in `ProvenRows`.
    """
    layers, proven = Layers(model, "self"), ProvenRows(plain=plain)

    def on_call(call: AttentionCall) -> None:
        layer = layers.at_work(call.module)
        if layer is not None and layer in wanted.heads:
            if call.texts != len(ids):
                raise ModelError(f"{model.config.model_type} mixes the texts of a batch", "run one")
            with torch._C.DisableTorchFunction():  # no linear layer: `fast_products` has no part
                _give(call, layer, wanted.heads[layer], reduction, proven)
        if layer == wanted.last_layer:
            raise EnoughSeen

    with torch.inference_mode(), recording(model, on_call), suppress(EnoughSeen):
        forward(model.base_model, input_ids=ids, use_cache=False)


def _give(
    call: AttentionCall,
    layer: int,
    heads: tuple[int, ...],
    reduction: RowReduction,
    proven: ProvenRows,
) -> None:
    """Give the rows of one call to a reduction, in blocks; those of small texts together.

    A block has as many rows as it would have of one text, since last bits depend on that.
    """
    call, h, n = call.dense, call.q.size(0), call.q.size(1)
    own = slice(None) if len(heads) == h else list(heads)
    blocks = torch.split(torch.arange(n), rows_at_a_time(call.k.size(1), h))
    alike = call.masks_alike and not call.foreign and proven.is_plain(call)
    size = max(1, ENTRIES // (h * len(blocks[0]) * call.k.size(1))) if alike else 1
    for texts in batches(range(call.texts), size):
        every = [place * h + head for place in range(len(texts)) for head in heads]
        windows, several = slice(texts[0], texts[-1] + 1), len(blocks) > 1
        rows = proven.of(call.joined(texts), layer, every, whole=not several)
        for queries in blocks:
            weights, scores = rows(queries)
            shape = (len(texts), h, *weights.shape[1:])
            own_scores = None if scores is None else scores.view(shape)[:, own]
            own_rows = weights.view(shape)[:, own]
            reduction.take(HeadRows(layer, windows, int(queries[0]), own_rows, own_scores))
        if again := reduction.again(layer, windows):
            places = [(window - texts[0]) * h + head for window, head in again]
            for queries in blocks:
                if several:  # else they are still those of the only one
                    weights = rows(queries)[0]
                some = SomeHeadRows(layer, again, int(queries[0]), weights[places])
                reduction.take_again(some)
