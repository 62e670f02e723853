"""One head of a transformers model, taken apart: its projections, and what flows through them.

Architectures call the same things by different names. Here they are found by what they
are: the projections by their names (`models/parameters.py` knows the usual ones), a
joined projection by which split gives the values that the model used, and what stands
between them by hooks on the layer, its norms and its output projection.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.data.heads import Head
from attnviz.data.trace import Kinds
from attnviz.errors import ModelError
from attnviz.models.parameters import ROLES
from attnviz.models.registry import AttentionCall, layer_of, recording
from attnviz.models.tracing import Recorded

NEAR = 1e-4


@dataclass
class _Seen:
    """What the hooks of one run saw."""

    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    norms: list[tuple[nn.Module, Tensor]] = field(default_factory=list)


@dataclass(frozen=True)
class _Parts:
    """The modules of one layer: the layer itself, its attention, and the output projection."""

    layer: nn.Module
    attention: nn.Module
    projections: dict[str, nn.Module]
    output: nn.Module


def dissected(model: Any, ids: Sequence[int], head: Head, query: int) -> Recorded:
    """Run the whole model, and record what one head computes.

    Raises:
        ModelError: the projections of this architecture cannot be found or told apart.
    """
    with torch.inference_mode():
        parts = _parts(model, ids, head.layer)
        seen, logits = _run(model, ids, parts)
        return _recorded(model, ids, head, query, parts, seen, logits)


def _parts(model: Any, ids: Sequence[int], layer: int) -> _Parts:
    """Find the layer: the module that calls attention says where its projections are."""
    names = {module: name for name, module in model.named_modules()}
    callers: list[nn.Module] = []
    with recording(model, lambda call: callers.append(call.module)):
        model.base_model(torch.tensor([list(ids[:1])]), use_cache=False)
    attention = next(m for m in callers if layer_of(names[m]) == layer)
    path = names[attention].split(".")
    depth = next(i for i, part in enumerate(path) if part.isdigit()) + 1
    block = model.get_submodule(".".join(path[:depth]))
    # BERT keeps the output projection beside the module that attends, not in it
    for end in range(len(path), depth - 1, -1):
        around = model.get_submodule(".".join(path[:end]))
        found = _projections(around)
        if "O" in found and ("QKV" in found or {"Q", "K", "V"} <= set(found)):
            output = found.pop("O")
            return _Parts(block, attention, found, output)
    raise ModelError(
        f"the projections of {type(attention).__name__} are not where attnviz looks for them",
        "attnviz show works with this model; explain needs one such as GPT-2, Llama or BERT",
    )


def _projections(module: nn.Module) -> dict[str, nn.Module]:
    """The query, key, value and output projections below a module, by role."""
    found: dict[str, nn.Module] = {}
    for name, child in module.named_modules():
        role = ROLES.get(name.rsplit(".", 1)[-1])
        if role and isinstance(getattr(child, "weight", None), Tensor) and child.weight.dim() == 2:
            found.setdefault(role, child)
    return found


def _run(model: Any, ids: Sequence[int], parts: _Parts) -> tuple[_Seen, Tensor | None]:
    """The whole forward pass; the logits (V) of the last token where the model has any."""
    seen = _Seen()

    def listen(call: AttentionCall) -> None:
        if call.module is parts.attention:
            seen.call = call

    def on_layer(_: object, args: Any, kwargs: Any, output: Any) -> None:
        seen.x = (args[0] if args else kwargs["hidden_states"])[0]
        seen.x_after = (output[0] if isinstance(output, tuple) else output)[0]

    def on_output(_: object, args: Any, output: Tensor) -> None:
        seen.attention_out = output[0]

    def on_query(_: object, args: Any, output: Tensor) -> None:
        seen.normed = args[0][0]

    def on_norm(module: nn.Module, args: Any, output: Tensor) -> None:
        seen.norms.append((module, output[0]))

    with ExitStack() as stack:
        stack.enter_context(recording(model, listen))
        hooks = [parts.layer.register_forward_hook(on_layer, with_kwargs=True)]
        hooks.append(parts.output.register_forward_hook(on_output))
        first = parts.projections.get("Q") or parts.projections["QKV"]
        hooks.append(first.register_forward_hook(on_query))
        hooks += [norm.register_forward_hook(on_norm) for norm in _norms(parts)]
        for hook in hooks:
            stack.callback(hook.remove)
        output = model(torch.tensor([list(ids)]), use_cache=False)
    logits = getattr(output, "logits", None)
    return seen, None if logits is None or logits.dim() != 3 else logits[0, -1]


def _norms(parts: _Parts) -> Iterator[nn.Module]:
    """The norms of the layer, but for those of queries and keys."""
    inside = set(parts.attention.modules())
    for module in parts.layer.modules():
        if "norm" in type(module).__name__.lower() and module not in inside:
            yield module


def _recorded(
    model: Any,
    ids: Sequence[int],
    head: Head,
    query: int,
    parts: _Parts,
    seen: _Seen,
    logits: Tensor | None,
) -> Recorded:
    call, x, normed = seen.call, seen.x, seen.normed
    attention_out, x_after = seen.attention_out, seen.x_after
    heads, kv_heads = call.q.size(0), call.k.size(0)
    group = heads // kv_heads
    kv = head.head // group
    weights = _weights(parts, call, normed, head.head, kv)
    plain = {
        name: normed @ weight if bias is None else normed @ weight + bias
        for name, (weight, bias) in weights.items()
    }
    q, k = call.q[head.head], call.k[kv]
    turned = not (_near(plain["w_q"], q) and _near(plain["w_k"], k))
    values = call.v.repeat_interleave(group, dim=0)  # (h, n, d_v)
    pattern = call.weights()  # (h, n, n)
    w_o, b_o = _matrix(parts.output)
    embedded = model.get_input_embeddings()(torch.tensor(list(ids)))  # (n, d)
    first = head.layer == 0
    position = _position(model, x, embedded) if first else None
    return Recorded(
        head=head,
        query=query,
        kinds=_kinds(model, seen, normed, group, turned=turned),
        scale=call.scaling,
        x=x,
        normed=normed,
        weights=weights,
        w_o=w_o.unflatten(0, (heads, -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        q=q,
        k=k,
        v=call.v[kv],
        mask=_visible(call),
        pattern=pattern[head.head],
        z=pattern @ values,
        attention_out=attention_out[query],
        mlp_out=x_after[query] - x[query] - attention_out[query],
        x_after=x_after[query],
        logits=logits,
        unembedding=(model.get_output_embeddings() or model.get_input_embeddings()).weight,
        embedding=embedded if first and (position is not None or _near(embedded, x)) else None,
        position=position,
        q_plain=plain["w_q"] if turned else None,
        k_plain=plain["w_k"] if turned else None,
        bias=None if call.bias is None else call.bias[head.head],
    )


def _weights(
    parts: _Parts, call: AttentionCall, normed: Tensor, head: int, kv: int
) -> dict[str, tuple[Tensor, Tensor | None]]:
    """This head's slices (d, d_k) of W_Q, W_K and W_V, with their biases.

    Raises:
        ModelError: no way to split a joined projection gives the values that were used.
    """
    heads, kv_heads = call.q.size(0), call.k.size(0)
    d_k, d_v = call.q.size(-1), call.v.size(-1)
    at = {"Q": (head, d_k), "K": (kv, d_k), "V": (kv, d_v)}
    if "QKV" not in parts.projections:
        apart = {letter: _matrix(parts.projections[letter]) for letter in "QKV"}
        return {
            f"w_{letter.lower()}": _columns(apart[letter], range(n * wide, (n + 1) * wide))
            for letter, (n, wide) in at.items()
        }
    joined = _matrix(parts.projections["QKV"])
    side_by_side = {"Q": 0, "K": heads * d_k, "V": (heads + kv_heads) * d_k}
    by_head = {"Q": 0, "K": d_k, "V": 2 * d_k}  # head after head: q k v q k v
    for starts, stride in ((side_by_side, None), (by_head, 2 * d_k + d_v)):
        found = {}
        for letter, (n, wide) in at.items():
            start = starts[letter] + n * (stride or wide)
            found[f"w_{letter.lower()}"] = _columns(joined, range(start, start + wide))
        weight, bias = found["w_v"]
        if weight.size(1) == d_v:
            values = normed @ weight if bias is None else normed @ weight + bias
            if _near(values, call.v[kv]):
                return found
    raise ModelError(
        f"queries, keys and values of {type(parts.attention).__name__} cannot be told apart",
        "attnviz show works with this model; explain needs one such as GPT-2, Llama or BERT",
    )


def _matrix(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """A projection's weight as (d_in, d_out), and its bias."""
    weight, bias = module.weight, getattr(module, "bias", None)
    assert isinstance(weight, Tensor)
    # transformers' Conv1D stores (d_in, d_out), torch's Linear (d_out, d_in)
    return (weight if type(module).__name__ == "Conv1D" else weight.t()), bias


def _columns(matrix: tuple[Tensor, Tensor | None], span: range) -> tuple[Tensor, Tensor | None]:
    weight, bias = matrix
    cut = slice(span.start, span.stop)
    return weight[:, cut], None if bias is None else bias[cut]


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() <= NEAR * (1 + b.abs().max()))


def _visible(call: AttentionCall) -> Tensor:
    """(n, n), True where the query may look."""
    if call.mask is None:
        return torch.ones(call.q.size(1), call.k.size(1), dtype=torch.bool)
    return call.mask > torch.finfo(call.mask.dtype).min / 2


def _position(model: Any, x: Tensor, embedded: Tensor) -> Tensor | None:
    """The position embeddings, where what arrives at layer 0 is the token embeddings plus them."""
    added = x - embedded
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding) and ("wpe" in last or "position" in last):
            rows = module.weight
            for offset in (0, 2):  # OPT's and BART's positions begin at 2
                if rows.size(0) >= len(x) + offset and _near(rows[offset : offset + len(x)], added):
                    return added
    return None


def _centres(norm: nn.Module) -> bool:
    """Whether a norm takes the mean away, as LayerNorm does and RMSNorm does not."""
    name = type(norm).__name__.lower()
    return "rms" not in name and getattr(norm, "bias", None) is not None


def _kinds(model: Any, seen: _Seen, normed: Tensor, group: int, *, turned: bool) -> Kinds:
    """What this model does besides the plain formula."""
    call, biased = seen.call, seen.call.bias is not None
    config = model.config.get_text_config()
    norm = next((m for m, out in seen.norms if torch.equal(out, normed)), None)
    kind = (
        "" if norm is None else "RMSNorm" if "rms" in type(norm).__name__.lower() else "LayerNorm"
    )
    rotary = any("rotary" in type(m).__name__.lower() for m in model.modules())
    positions = "rotary" if rotary else "bias" if biased else "learned"
    inner = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None)
    if inner is None and model.config.model_type == "gpt2":
        inner = 4 * config.hidden_size
    return Kinds(
        norm=kind,
        positions=positions,
        group=group,
        mlp=inner if isinstance(inner, int) else None,
        turned=turned,
        pre_norm=len(seen.norms) <= 2 and norm is not None,
        causal=bool((call.mask is not None) and not _visible(call).all()),
    )
