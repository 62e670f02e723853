"""Where the vectors of a site pass in a transformers model: a module, and one of its calls."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from attnviz.models.huggingface.attention import forward, recording
from attnviz.models.huggingface.layers import LayerParts, layers_of, parts_of, unknown
from attnviz.models.huggingface.residual import ENOUGH, Seen, first_of, what_is_added
from attnviz.records.interventions import SiteKind


@dataclass(frozen=True)
class Place:
    """Where the vectors of a kind of site pass in one layer.

    `incoming`: they are what the module is given, not what it gives. `turn`: which of the module's
    calls in a forward pass is meant, from 1, since layers may share their modules (ALBERT).
    """

    module: nn.Module
    incoming: bool
    turn: int = 1


def places_of(
    model: Any, ids: Tensor, heads_per_layer: Sequence[int], sites: Iterable[tuple[SiteKind, int]]
) -> dict[tuple[SiteKind, int], Place]:
    """The places of these kinds of sites and layers, in a model of one sequence that can run ids
    (1, n).

    Raises:
        ModelError: they cannot be found in this architecture.
    """
    wanted, layers = sorted(set(sites)), layers_of(model)
    own_module = len(layers) == len(heads_per_layer)  # else layers share theirs (ALBERT)
    around = {layer for kind, layer in wanted if kind != "residual" or not own_module}
    parts = parts_of(model, sorted(around)) if around else {}
    adding = {layer: parts[layer] for kind, layer in wanted if kind in ("attention", "mlp")}
    added = _adding(model, ids, adding) if adding else {}

    def place(kind: SiteKind, layer: int) -> Place:
        if kind == "residual" and own_module:
            return Place(layers[layer], incoming=True)
        own = parts[layer]
        if kind == "residual":
            return Place(own.layer, incoming=True, turn=own.turn)
        if kind == "head":
            return Place(own.output, incoming=True, turn=own.turn)
        module = added[layer][0 if kind == "attention" else 1]
        if module is None:
            raise unknown(f"what the MLPs of {type(model).__name__} add cannot be told apart")
        return Place(module, incoming=False, turn=own.turn)

    return {at: place(*at) for at in wanted}


def _adding(
    model: Any, ids: Tensor, parts: Mapping[int, LayerParts]
) -> dict[int, tuple[nn.Module, nn.Module | None]]:
    """The modules whose outputs attention and MLP add to the stream, found by what sums up.

    One of them may be a norm behind the sublayer (Gemma 2). Where the two cannot be told apart,
    they are the output projection and None.
    """
    seen = {layer: Seen(own) for layer, own in parts.items()}

    def on_call(call: Any) -> None:
        for each in seen.values():
            each.on_call(call)

    with ExitStack() as stack:
        if model._can_set_attn_implementation():
            stack.enter_context(recording(model, on_call))
        for each in seen.values():
            for hook in each.hooks(model):
                stack.callback(hook.remove)
        forward(model, input_ids=ids[:, :ENOUGH], use_cache=False)
    return {layer: _two(each) for layer, each in seen.items()}


def _two(seen: Seen) -> tuple[nn.Module, nn.Module | None]:
    output = seen.parts.output
    if seen.x.shape != seen.attention_out.shape:  # several streams (Gemma 3n)
        return output, None
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    if added.how == "mixed":
        return output, None
    # one dropout may serve both (Phi), so that its call would not tell which
    calls = Counter(module for module, _ in seen.outputs)
    once = [(module, out) for module, out in reversed(seen.outputs) if calls[module] == 1]
    f, g = added.factors

    def module_of(addition: Tensor, factor: float) -> nn.Module | None:
        same = (module for module, out in once if addition.equal(factor * out))
        return next(same, None)

    plain = added.attention.equal(f * seen.attention_out)
    attention = output if plain else module_of(added.attention, f)
    mlp = module_of(added.mlp, g)
    return (output, None) if attention is None else (attention, mlp)


@contextmanager
def passing(place: Place, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Give the vectors that pass at a place to a function, which may replace them.

    Raises:
        ModelError: at the end, if nothing passed there.
    """
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
    if calls < place.turn:
        raise unknown(f"{type(module).__name__} is not called for its output")
