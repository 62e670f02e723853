"""One head of a transformers model, taken apart: its projections, and what flows through them.

Architectures call the same things by different names. Here they are found by what they
are: the projections as `models/projections.py` says, what reaches the residual stream as
`models/residual.py` says, and what stands between them by hooks on the layer's modules.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from attnviz.data.explain import Kinds
from attnviz.data.head import Head
from attnviz.models.huggingface.functions import AttentionCall, Layers, layer_of, recording
from attnviz.models.huggingface.outputs import attention_modules
from attnviz.models.huggingface.projections import (
    compared,
    matrix_of,
    near,
    projections_of,
    unknown,
    weights_of_head,
)
from attnviz.models.huggingface.residual import Added, is_norm, what_is_added
from attnviz.models.tracing import Recorded


@dataclass
class _Seen:
    """What the hooks of one run saw of the layer, while `turn` was the one wanted."""

    wanted: int
    turn: int = 0
    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)  # each (n, d)
    mlp: int | None = None
    final: Tensor | None = None

    @property
    def now(self) -> bool:
        return self.turn == self.wanted


@dataclass(frozen=True)
class _Parts:
    """The modules of one layer: the layer itself, its attention, and the output projection.

    `turn`: which of the layer's runs in one forward pass is meant, from 1: modules that
    several layers share (ALBERT) run more than once.
    """

    layer: nn.Module
    attention: nn.Module
    projections: dict[str, nn.Module]
    output: nn.Module
    turn: int

    def outside(self) -> Iterator[nn.Module]:
        """The modules of the layer that are not its attention."""
        inside = {*self.attention.modules(), self.output, self.layer}
        yield from (module for module in self.layer.modules() if module not in inside)


def dissected(model: Any, ids: Sequence[int], head: Head, query: int) -> Recorded:
    """Run the whole model, and record what one head computes.

    Args:
        model: a transformers model, or an encoder of one, with or without an output layer.
        ids: the n tokens.
        head: its layer and number.
        query: the position, of 0 to n - 1, of which the way on is recorded.

    Raises:
        ModelError: the projections of this architecture cannot be found or told apart.
    """
    if not model._can_set_attn_implementation():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")
    with torch.inference_mode():
        parts = _parts(model, head.layer)
        seen, logits = _run(model, ids, parts)
        return _recorded(model, ids, head, query, parts, seen, logits)


_Calls: TypeAlias = Sequence[tuple[int | None, nn.Module]]
"""The layers of a model with the modules that attend, in the order in which they run."""


def output_projections(model: Any, layers: Iterable[int]) -> dict[int, nn.Module]:
    """The modules that are given the outputs of a layer's heads, side by side: W_O of each layer.

    Raises:
        ModelError: one of them cannot be found.
    """
    calls = _calls(model)
    return {layer: _parts_of(model, calls, layer).output for layer in layers}


def _parts(model: Any, layer: int) -> _Parts:
    return _parts_of(model, _calls(model), layer)


def _calls(model: Any) -> _Calls:
    """Heard at work on one token; or where it keeps its attention to itself, by name."""
    if not model._can_set_attn_implementation():
        names = {module: name for name, module in model.named_modules()}
        return [(layer_of(names[module]), module) for module in attention_modules(model)]
    layers, calls = Layers(model, "self"), list[tuple[int | None, nn.Module]]()
    with recording(model, lambda call: calls.append((layers.at_work(call.module), call.module))):
        model.base_model(_batch(model, [0]), use_cache=False)
    return calls


def _parts_of(model: Any, calls: _Calls, layer: int) -> _Parts:
    """Find the layer: the module that attends says where its projections are."""
    names = {module: name for name, module in model.named_modules()}
    numbers = [number for number, _ in calls]
    if layer not in numbers:
        raise unknown(f"layer {layer} of {type(model).__name__} calls no attention")
    before = calls[: numbers.index(layer) + 1]
    attention = before[-1][1]
    turn = sum(module is attention for _, module in before)
    path = names[attention].split(".")
    depth = next(i for i, part in enumerate(path) if part.isdigit()) + 1
    block = model.get_submodule(".".join(path[:depth]))
    # BERT keeps the output projection beside the module that attends, not in it
    for end in range(len(path), depth - 1, -1):
        around = model.get_submodule(".".join(path[:end]))
        found = projections_of(around)
        if "O" in found and ("QKV" in found or {"Q", "K", "V"} <= set(found)):
            output = found.pop("O")
            return _Parts(block, attention, found, output, turn)
    raise unknown(
        f"the projections of {type(attention).__name__} are not where attnviz looks for them"
    )


def _batch(model: Any, ids: Sequence[int]) -> Tensor:
    """(1, n), where the model is."""
    return torch.tensor([list(ids)], device=model.device)


def _run(model: Any, ids: Sequence[int], parts: _Parts) -> tuple[_Seen, Tensor | None]:
    """The whole forward pass; the logits (V) of the last token where the model has any."""
    seen = _Seen(parts.turn)

    def listen(call: AttentionCall) -> None:
        if call.module is parts.attention and seen.now:
            seen.call = call

    def before_layer(_: object, args: Any, kwargs: Any) -> None:
        seen.turn += 1
        if seen.now:
            seen.x = (args[0] if args else kwargs["hidden_states"])[0]

    def on_layer(_: object, args: Any, output: Any) -> None:
        if seen.now:
            seen.x_after = (output[0] if isinstance(output, tuple) else output)[0]

    def on_output(_: object, args: Any, output: Tensor) -> None:
        if seen.now:
            seen.attention_out = output[0]

    def on_query(_: object, args: Any, output: Tensor) -> None:
        if seen.now:
            seen.normed = args[0][0]

    def on_final(_: object, args: Any) -> None:
        seen.final = args[0][0, -1] if args[0].dim() == 3 else None

    with ExitStack() as stack:
        stack.enter_context(recording(model, listen))
        hooks = [parts.layer.register_forward_pre_hook(before_layer, with_kwargs=True)]
        hooks.append(parts.layer.register_forward_hook(on_layer))
        hooks.append(parts.output.register_forward_hook(on_output))
        first = parts.projections.get("Q") or parts.projections["QKV"]
        hooks.append(first.register_forward_hook(on_query))
        keep = _keeper(seen, len(ids))
        hooks += [module.register_forward_hook(keep) for module in parts.outside()]
        if model.get_output_embeddings() is not None:
            hooks.append(model.get_output_embeddings().register_forward_pre_hook(on_final))
        for hook in hooks:
            stack.callback(hook.remove)
        output = model(_batch(model, ids), use_cache=False)
    logits = getattr(output, "logits", None)
    if logits is None or logits.dim() != 3:  # a classifier has (1, classes)
        return seen, None
    return seen, logits[0, -1]


def _keeper(seen: _Seen, n: int) -> Callable[[nn.Module, Any, Any], None]:
    """A hook that keeps what a module gives for each token, and the width of the MLP."""

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        made = output[0] if isinstance(output, tuple) else output
        if not seen.now or not isinstance(made, Tensor) or made.numel() != seen.x.numel():
            return
        if made.size(-1) == seen.x.size(-1):
            # OPT's MLP runs on (n, d), others on (1, n, d)
            seen.outputs.append((module, made.reshape(n, -1)))
            weight = getattr(module, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                seen.mlp = int(args[0].size(-1))  # the last such module leads back to d

    return keep


def _recorded(
    model: Any,
    ids: Sequence[int],
    head: Head,
    query: int,
    parts: _Parts,
    seen: _Seen,
    logits: Tensor | None,
) -> Recorded:
    call, x, normed, x_after = seen.call, seen.x, seen.normed, seen.x_after
    heads, kv_heads = call.q.size(0), call.k.size(0)
    group = heads // kv_heads
    kv = head.head // group
    weights = weights_of_head(parts.projections, call, normed, head.head, kv)
    made = {
        name: normed @ weight if bias is None else normed @ weight + bias
        for name, (weight, bias) in weights.items()
    }
    q, k = compared(made["w_q"], call.q[head.head]), compared(made["w_k"], call.k[kv])
    changed = _changed(model, parts) if q.plain is not None or k.plain is not None else ""
    values = call.v.repeat_interleave(group, dim=0)  # (h, n, d_v)
    pattern = call.weights()  # (h, n, n)
    w_o, b_o = matrix_of(parts.output)
    added = what_is_added(x, x_after, seen.attention_out, seen.outputs)
    kinds = _kinds(model, seen, group, changed, added)
    embedded = model.get_input_embeddings()(_batch(model, ids)[0])  # (n, d)
    first = head.layer == 0
    position = _position(model, x, embedded) if first else None
    return Recorded(
        head=head,
        query=query,
        kinds=kinds,
        scale=call.scaling * q.factor * k.factor,
        x=x,
        normed=normed,
        weights=weights,
        w_o=w_o.unflatten(0, (heads, -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        q=q.used,
        k=k.used,
        v=call.v[kv],
        mask=_visible(call),
        pattern=pattern[head.head],
        z=pattern @ values,
        attention_out=kinds.factor * seen.attention_out[query],
        attention_added=added.attention[query],
        mlp_out=added.mlp[query],
        x_after=x_after[query],
        logits=logits,
        final=None if logits is None else seen.final,
        unembedding=(model.get_output_embeddings() or model.get_input_embeddings()).weight,
        embedding=embedded if first and (position is not None or near(embedded, x)) else None,
        position=position,
        q_plain=q.plain,
        k_plain=k.plain,
        bias=None if call.bias is None else call.bias[head.head],
    )


def _changed(model: Any, parts: _Parts) -> str:
    """What is done to queries and keys between projection and comparison, in words."""
    normed = any(is_norm(m) and n[:1] in "qk" for n, m in parts.attention.named_modules())
    words = ["normalised"] * normed + ["turned by its position (rotary)"] * _rotary(model)
    return " and ".join(words) or "changed by the model"


def _rotary(model: Any) -> bool:
    return any("rotary" in type(module).__name__.lower() for module in model.modules())


def _visible(call: AttentionCall) -> Tensor:
    """(n, n), True where the query may look."""
    if call.mask is None:
        return torch.ones(call.q.size(1), call.k.size(1), dtype=torch.bool, device=call.q.device)
    return call.mask > torch.finfo(call.mask.dtype).min / 2


def _position(model: Any, x: Tensor, embedded: Tensor) -> Tensor | None:
    """The position embeddings, where what arrives at layer 0 is the token embeddings plus them."""
    if x.shape != embedded.shape:  # ALBERT's embeddings are narrower than its layers
        return None
    added = x - embedded
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding) and ("wpe" in last or "position" in last):
            rows = module.weight
            for offset in (0, 2):  # OPT's and BART's positions begin at 2
                if rows.size(0) >= len(x) + offset and near(rows[offset : offset + len(x)], added):
                    return added
    return None


def _kinds(model: Any, seen: _Seen, group: int, changed: str, added: Added) -> Kinds:
    """What this model does besides the plain formula."""
    call = seen.call
    norm = next(
        (m for m, out in seen.outputs if is_norm(m) and torch.equal(out, seen.normed)), None
    )
    kind = (
        "" if norm is None else "RMSNorm" if "rms" in type(norm).__name__.lower() else "LayerNorm"
    )
    # some layers of such models leave the rotation out (SmolLM3); one token is not turned
    rotary = _rotary(model) and (changed != "" or call.q.size(1) == 1)
    positions = "rotary" if rotary else "bias" if call.bias is not None else "learned"
    if _rotary(model) and not rotary:
        positions = "none"
    return Kinds(
        norm=kind,
        positions=positions,
        group=group,
        mlp=seen.mlp,
        changed=changed,
        residual=added.how,
        factors=added.factors,
        causal=bool((call.mask is not None) and not _visible(call).all()),
    )
