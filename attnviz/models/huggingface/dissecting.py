"""One head of a transformers model, taken apart: its projections, and what flows through them.

Architectures call the same things by different names. Here they are recognised by their role: the
projections as in `layers.py`, the additions to the residual stream as in `residual.py`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.engine import RecordedHead, present
from attnviz.models.huggingface.attention import forward, hooked, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import ProvenRows
from attnviz.models.huggingface.layers import (
    NEAR,
    LayerParts,
    agrees,
    check_outputs,
    check_recordable,
    compared,
    is_rotary,
    matrix_of,
    parts_of,
    projected,
    unknown,
    weights_of_head,
)
from attnviz.models.huggingface.residual import Seen, Sublayer, is_norm, sublayer_of
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import Kinds


def dissected(
    model: Any, inputs: Mapping[str, Any], kind: Kind, head: Head, query: int
) -> RecordedHead:
    """Run the whole model, and record what one head of one of its attentions computes.

    `inputs`: the arguments of its forward pass; of a pair with `decoder_input_ids` (1, n_t).
    `kind`: "cross", "decoder", or "self" for a layer with one attention. `query`: the row for which
    the rest of the layer is recorded.
    """
    check_recordable(model)
    with torch.inference_mode():
        parts, at = _parts(model, kind, head.layer), -1 if kind == "self" else query
        seen = Seen(*parts, at=at)
        with recording(model, seen.on_call), hooked(seen.hooks(model)):
            logits = getattr(forward(model, **inputs), "logits", None)
        if logits is None or logits.dim() != 3:  # a classifier has (1, classes)
            seen.final = logits = None
        _check_computed(seen.call, head)
        layer = sublayer_of(seen, kind)
        if layer is None:
            raise unknown(f"how {type(model).__name__} adds {kind} attention up is not known")
        arrays = {
            "x": layer.x,
            "normed": seen.normed,
            "source": seen.source if kind == "cross" else None,
            "x_after": seen.x_after[query],
            "logits": None if logits is None else logits[0, at],
            "final": seen.final,
            **_embeddings(model, inputs, kind, head.layer, seen.x),
        }
        return _recorded(model, head, query, seen, layer, arrays)


def _check_computed(call: AttentionCall, head: Head) -> None:
    """See that the weights of a head are what its scores lead to, in the model, too."""
    try:
        rows = ProvenRows().of(call, head.layer, [head.head], scores=True)
        if call.foreign:
            rows(torch.arange(call.q.size(1)))
    except ModelError as error:
        raise unknown(error.wrong) from None


def _parts(model: Any, kind: Kind, layer: int) -> tuple[LayerParts, LayerParts | None]:
    """The parts of the layer around this attention, and around the layer's other one."""
    parts = parts_of(model, [layer], kind)[layer]
    if kind == "self":
        return parts, None
    return parts, parts_of(model, [layer], "decoder" if kind == "cross" else "cross")[layer]


def _recorded(
    model: Any,
    head: Head,
    query: int,
    seen: Seen,
    layer: Sublayer,
    arrays: dict[str, Tensor | None],
) -> RecordedHead:
    """The record of one head, with `arrays` that do not depend on the head."""
    call, parts, added = seen.call, seen.parts, layer.added
    group = call.q.size(0) // call.k.size(0)
    kv = head.head // group
    read = {"Q": seen.normed, "K": seen.source, "V": seen.source}
    weights = weights_of_head(parts.projections, call, read, head.head, kv)
    q = compared(projected(seen.normed, weights["w_q"]), call.q[head.head])
    k = compared(projected(seen.source, weights["w_k"]), call.k[kv])
    pattern = call.weights()  # (h, n_q, n_k)
    bias = None if call.bias is None else call.bias[head.head]
    z = pattern @ call.v.repeat_interleave(group, dim=0)  # (h, n_q, d_v)
    w_o, b_o = matrix_of(parts.output, z.new_empty(parts.width, dtype=call.v.dtype))
    out = z.transpose(0, 1).flatten(1).to(w_o.dtype)  # (n_q, h·d_v)
    rounding = max(NEAR, 4 * torch.finfo(w_o.dtype).eps)
    check_outputs(parts.attention, out, seen.attention_out, (w_o, b_o))
    if not agrees(projected(seen.source, weights["w_v"]), call.v[kv], rounding):
        raise unknown(
            f"{type(parts.attention).__name__} changes its values behind their projection"
        )
    head_layer = model.get_output_embeddings()
    kinds = _kinds(model, seen, group, layer, changed=q.plain is not None or k.plain is not None)
    return RecordedHead(
        head=head,
        query=query,
        kinds=kinds,
        scale=call.scaling * q.factor * k.factor,
        weights=weights,
        w_o=w_o.unflatten(0, (call.q.size(0), -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        z=z,
        mask=call.visible,
        unembedding=model.get_input_embeddings().weight
        if head_layer is None
        else matrix_of(head_layer, seen.x)[0].t(),
        arrays=present(
            **arrays,
            q=q.used,
            k=k.used,
            v=call.v[kv],
            q_plain=q.plain,
            k_plain=k.plain,
            # T5 adds zeros in cross-attention
            bias=None if bias is None or not bias.any() else bias,
            pattern=pattern[head.head],
            attention_out=kinds.factor * seen.attention_out[query],
            attention_added=added.attention[query],
            cross_added=None if layer.crossed is None else layer.crossed[query],
            mlp_out=added.mlp[query],
        ),
    )


def _embeddings(
    model: Any, inputs: Mapping[str, Any], kind: Kind, layer: int, x: Tensor
) -> dict[str, Tensor | None]:
    """Token and position embeddings (n, d), where their sum is what arrives at layer 0."""
    if layer or kind == "cross":
        return {}
    stack = model if kind == "self" else model.get_decoder()
    ids = inputs["input_ids" if kind == "self" else "decoder_input_ids"][0]
    embedded = stack.get_input_embeddings()(ids)  # (n, d)
    if x.shape != embedded.shape:  # ALBERT's are narrower than its layers
        return {}
    added = x - embedded
    for name, module in stack.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding) and ("wpe" in last or "position" in last):
            rows = module.weight
            for offset in (0, 2):  # OPT's and BART's positions begin at 2
                if rows.size(0) >= len(x) + offset and agrees(
                    rows[offset : offset + len(x)], added
                ):
                    return {"embedding": embedded, "position": added}
    return {"embedding": embedded} if agrees(embedded, x) else {}


def _kinds(model: Any, seen: Seen, group: int, layer: Sublayer, *, changed: bool) -> Kinds:
    """How this model differs from the plain formula."""
    call, attention = seen.call, seen.parts.attention
    name = "" if layer.norm is None else type(layer.norm).__name__.lower()
    normed = any(is_norm(m) and n[:1] in "qk" for n, m in attention.named_modules())
    words = ["normalised"] * normed + ["turned by its position (rotary)"] * is_rotary(model)
    positions = "bias" if call.bias is not None and call.bias.any() else "learned"
    if is_rotary(model):
        # some layers of such models leave the rotation out (SmolLM3); one token is not turned
        positions = "rotary" if changed or call.q.size(1) == 1 else "none"
    return Kinds(
        norm=name and ("RMSNorm" if "rms" in name else "LayerNorm"),
        positions=positions,
        group=group,
        mlp=seen.mlp,
        changed=(" and ".join(words) or "changed by the model") if changed else "",
        residual=layer.added.how,
        factors=layer.added.factors,
        causal=bool((call.mask is not None) and not call.visible.all()),
    )
