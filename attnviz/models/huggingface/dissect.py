"""One head of a transformers model, taken apart: its projections, and what flows through them.

Architectures call the same things by different names. Here they are recognised by their
role: the projections as in `projections.py`, the additions to the residual stream as in
`residual.py`, and everything between them by hooks on the layer's modules.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.data.explain import Kinds
from attnviz.data.head import Head
from attnviz.models.huggingface.functions import AttentionCall, recording
from attnviz.models.huggingface.layers import LayerParts, parts_of
from attnviz.models.huggingface.projections import (
    compared,
    matrix_of,
    near,
    projected,
    unknown,
    weights_of_head,
)
from attnviz.models.huggingface.residual import Added, is_norm, what_is_added
from attnviz.models.tracing import Recorded, present


@dataclass
class _Seen:
    """A layer at work: what its hooks saw in the turn that `parts` names.

    x, x_after, normed, attention_out (n, d), as in `HeadTrace`; `outputs` (n, d) of the
    modules outside attention, in the order of their calls; `mlp`: the width of the hidden
    layer; `final` (d): the last token's vector before the output layer.
    """

    parts: LayerParts
    turn: int = 0
    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    mlp: int | None = None
    final: Tensor | None = None

    @property
    def now(self) -> bool:
        """Whether the run that is recorded is under way."""
        return self.turn == self.parts.turn

    def on_call(self, call: AttentionCall) -> None:
        if call.module is self.parts.attention and self.now:
            self.call = call

    def before_layer(self, _: object, args: Any, named: Any) -> None:
        self.turn += 1
        if self.now:
            self.x = (args[0] if args else named["hidden_states"])[0]

    def after_layer(self, _: object, _args: Any, output: Any) -> None:
        if self.now:
            self.x_after = _first(output)[0]

    def after_output_projection(self, _: object, _args: Any, output: Tensor) -> None:
        if self.now:
            self.attention_out = output[0]

    def after_query_projection(self, _: object, args: Any, _output: Any) -> None:
        if self.now:
            self.normed = args[0][0]

    def after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep what a module outside attention gives for each token, and the MLP's width."""
        made = _first(output)
        if not self.now or not isinstance(made, Tensor) or made.numel() != self.x.numel():
            return
        if made.size(-1) == self.x.size(-1):
            # OPT's MLP runs on (n, d), others on (1, n, d)
            self.outputs.append((module, made.reshape(len(self.x), -1)))
            weight = getattr(module, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                self.mlp = int(args[0].size(-1))  # the last such module leads back to d

    def before_output_layer(self, _: object, args: Any) -> None:
        self.final = args[0][0, -1] if args[0].dim() == 3 else None

    def hooks(self, model: Any) -> Iterator[Any]:
        """Attach the hooks to the layer and to the model's output layer; their handles."""
        parts = self.parts
        yield parts.layer.register_forward_pre_hook(self.before_layer, with_kwargs=True)
        yield parts.layer.register_forward_hook(self.after_layer)
        yield parts.output.register_forward_hook(self.after_output_projection)
        query = parts.projections.get("Q") or parts.projections["QKV"]
        yield query.register_forward_hook(self.after_query_projection)
        for module in parts.outside():
            yield module.register_forward_hook(self.after_module)
        if model.get_output_embeddings() is not None:
            yield model.get_output_embeddings().register_forward_pre_hook(self.before_output_layer)


def dissected(model: Any, ids: Sequence[int], head: Head, query: int) -> Recorded:
    """Run the whole model, and record what one head computes.

    Args:
        model: a transformers model, or the encoder of one, with or without an output layer.
        ids: the n tokens.
        head: its layer and number.
        query: the position, from 0 to n - 1, for which the rest of the layer is recorded.

    Raises:
        ModelError: the projections of this architecture cannot be found or told apart.
    """
    if not model._can_set_attn_implementation():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")
    with torch.inference_mode():
        seen = _Seen(parts_of(model, [head.layer])[head.layer])
        batch = torch.tensor([list(ids)], device=model.device)  # (1, n)
        with ExitStack() as stack:
            stack.enter_context(recording(model, seen.on_call))
            for hook in seen.hooks(model):
                stack.callback(hook.remove)
            logits = getattr(model(batch, use_cache=False), "logits", None)
        if logits is None or logits.dim() != 3:  # a classifier has (1, classes)
            seen.final = logits = None
        embedded = model.get_input_embeddings()(batch[0]) if head.layer == 0 else None  # (n, d)
        arrays = {
            "x": seen.x,
            "normed": seen.normed,
            "x_after": seen.x_after[query],
            "logits": None if logits is None else logits[0, -1],
            "final": seen.final,
            **_embeddings(model, seen.x, embedded),
        }
        return _recorded(model, head, query, seen, arrays)


def _first(output: Any) -> Any:
    """A module's output; the first one where it gives several."""
    return output[0] if isinstance(output, tuple) else output


def _recorded(
    model: Any, head: Head, query: int, seen: _Seen, arrays: dict[str, Tensor | None]
) -> Recorded:
    """The record of one head, with `arrays` that do not depend on the head."""
    call, parts = seen.call, seen.parts
    group = call.q.size(0) // call.k.size(0)
    kv = head.head // group
    weights = weights_of_head(parts.projections, call, seen.normed, head.head, kv)
    q = compared(projected(seen.normed, weights["w_q"]), call.q[head.head])
    k = compared(projected(seen.normed, weights["w_k"]), call.k[kv])
    pattern = call.weights()  # (h, n, n)
    w_o, b_o = matrix_of(parts.output)
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    kinds = _kinds(model, seen, group, added, changed=q.plain is not None or k.plain is not None)
    return Recorded(
        head=head,
        query=query,
        kinds=kinds,
        scale=call.scaling * q.factor * k.factor,
        weights=weights,
        w_o=w_o.unflatten(0, (call.q.size(0), -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        z=pattern @ call.v.repeat_interleave(group, dim=0),
        mask=_visible(call),
        unembedding=(model.get_output_embeddings() or model.get_input_embeddings()).weight,
        arrays=present(
            **arrays,
            q=q.used,
            k=k.used,
            v=call.v[kv],
            q_plain=q.plain,
            k_plain=k.plain,
            bias=None if call.bias is None else call.bias[head.head],
            pattern=pattern[head.head],
            attention_out=kinds.factor * seen.attention_out[query],
            attention_added=added.attention[query],
            mlp_out=added.mlp[query],
        ),
    )


def _changed(model: Any, parts: LayerParts) -> str:
    """How queries and keys are changed between projection and comparison, in words."""
    normed = any(is_norm(m) and n[:1] in "qk" for n, m in parts.attention.named_modules())
    words = ["normalised"] * normed + ["turned by its position (rotary)"] * _rotary(model)
    return " and ".join(words) or "changed by the model"


def _rotary(model: Any) -> bool:
    return any("rotary" in type(module).__name__.lower() for module in model.modules())


def _visible(call: AttentionCall) -> Tensor:
    """(n, n), True where the query may attend to the key."""
    if call.mask is None:
        return torch.ones(call.q.size(1), call.k.size(1), dtype=torch.bool, device=call.q.device)
    return call.mask > torch.finfo(call.mask.dtype).min / 2


def _embeddings(model: Any, x: Tensor, embedded: Tensor | None) -> dict[str, Tensor | None]:
    """Token and position embeddings (n, d), where their sum is what arrives at layer 0."""
    if embedded is None or x.shape != embedded.shape:  # ALBERT's are narrower than its layers
        return {}
    added = x - embedded
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding) and ("wpe" in last or "position" in last):
            rows = module.weight
            for offset in (0, 2):  # OPT's and BART's positions begin at 2
                if rows.size(0) >= len(x) + offset and near(rows[offset : offset + len(x)], added):
                    return {"embedding": embedded, "position": added}
    return {"embedding": embedded} if near(embedded, x) else {}


def _kinds(model: Any, seen: _Seen, group: int, added: Added, *, changed: bool) -> Kinds:
    """How this model differs from the plain formula."""
    call = seen.call
    norm = next(
        (m for m, out in seen.outputs if is_norm(m) and torch.equal(out, seen.normed)), None
    )
    name = "" if norm is None else type(norm).__name__.lower()
    positions = "bias" if call.bias is not None else "learned"
    if _rotary(model):
        # some layers of such models leave the rotation out (SmolLM3); one token is not turned
        positions = "rotary" if changed or call.q.size(1) == 1 else "none"
    return Kinds(
        norm=name and ("RMSNorm" if "rms" in name else "LayerNorm"),
        positions=positions,
        group=group,
        mlp=seen.mlp,
        changed=_changed(model, seen.parts) if changed else "",
        residual=added.how,
        factors=added.factors,
        causal=bool((call.mask is not None) and not _visible(call).all()),
    )
