"""One head of a transformers model, taken apart: its projections, and what flows through them.

Architectures call the same things by different names. Here they are recognised by their role: the
projections as in `layers.py`, the additions to the residual stream as in `layer_outputs.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.errors import ModelError
from attnviz.models.engine import RecordedHead, present
from attnviz.models.huggingface.attention import forward, hooked, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import ProvenRows
from attnviz.models.huggingface.layer_outputs import Added, what_is_added
from attnviz.models.huggingface.layers import (
    NEAR,
    LayerParts,
    WeightAndBias,
    agrees,
    check_outputs,
    check_recordable,
    compared,
    first_of,
    is_norm,
    is_rotary,
    matrix_of,
    parts_of,
    projected,
    unknown,
    weights_of_head,
)
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import Kinds


@dataclass
class Seen:
    """A layer at work: what its hooks saw in the turn that `parts` names.

    x, x_after, normed, attention_out (n_q, d), source (n_k, d), as in `HeadTrace`; `outputs`
    (n_q, d) of the modules outside attention, in the order of their calls; `reads` (n_q, d): the
    inputs of the norms among them; `mlp`: the width of the hidden layer; `final` (d): the vector at
    position `at` before the output layer. `other`: the other attention of the layer, in the decoder
    of a pair; `other_out` (n_q, d): its output. `earlier`: the number of outputs before each of the
    two.
    """

    parts: LayerParts
    other: LayerParts | None = None
    at: int = -1
    turn: int = 0
    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    source: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    other_out: Tensor = field(init=False)
    earlier: dict[str, int] = field(default_factory=dict)
    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    reads: dict[nn.Module, Tensor] = field(default_factory=dict)
    mlp: int | None = None
    final: Tensor | None = None

    def on_call(self, call: AttentionCall) -> None:
        if call.module is self.parts.attention and self._now:
            self.call = call

    @property
    def _now(self) -> bool:
        """Whether the run that is recorded is under way."""
        return self.turn == self.parts.turn

    def _before_layer(self, _: object, args: Any, named: Any) -> None:
        self.turn += 1
        if self._now:
            self.x = (args[0] if args else named["hidden_states"])[0].clone()  # some add in place

    def _before_projection(self, name: str, _: object, args: Any) -> None:
        if self._now:
            setattr(self, name, args[0][0])

    def _after(self, name: str, _: object, _args: Any, output: Any) -> None:
        if self._now:
            setattr(self, name, first_of(output)[0].clone())
            self.earlier[name] = len(self.outputs)

    def _after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep what a module outside attention gives for each token, and the MLP's width."""
        vectors = first_of(output)
        if not self._now or not isinstance(vectors, Tensor) or vectors.numel() != self.x.numel():
            return
        if vectors.size(-1) == self.x.size(-1):
            # OPT's MLP runs on (n, d), others on (1, n, d)
            self.outputs.append((module, vectors.reshape(len(self.x), -1).clone()))
            if is_norm(module):
                self.reads[module] = args[0].reshape(len(self.x), -1)
            weight = getattr(module, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                self.mlp = int(args[0].size(-1))  # the last such module leads back to d

    def _before_output_layer(self, _: object, args: Any) -> None:
        self.final = args[0][0, self.at] if args[0].dim() == 3 else None

    def hooks(self, model: Any) -> Iterator[RemovableHandle]:
        """Attach the hooks to the layer and to the model's output layer; their handles."""
        parts, others = self.parts, [] if self.other is None else [self.other]
        yield parts.layer.register_forward_pre_hook(self._before_layer, with_kwargs=True)
        yield parts.layer.register_forward_hook(partial(self._after, "x_after"))
        yield parts.output.register_forward_hook(partial(self._after, "attention_out"))
        for role, name in {"Q": "normed", "K": "source"}.items():
            projection = parts.projections.get(role) or parts.projections["QKV"]
            # before a hook of the user's: it is a part of what the projection does
            keep = partial(self._before_projection, name)
            yield projection.register_forward_pre_hook(keep, prepend=True)
        for other in others:
            yield other.output.register_forward_hook(partial(self._after, "other_out"))
        for module in parts.outside(*others):
            yield module.register_forward_hook(self._after_module)
        if (head := model.get_output_embeddings()) is not None:
            yield head.register_forward_pre_hook(self._before_output_layer, prepend=True)


@dataclass(frozen=True)
class Sublayer:
    """An attention in its layer: the stream `x` (n_q, d) that arrives at it, the `norm` between,
    and what is added to the stream. `crossed` (n_q, d): in a decoder's self-attention, what
    cross-attention adds; None where it cannot be told apart from the rest."""

    x: Tensor
    norm: nn.Module | None
    added: Added
    crossed: Tensor | None = None


def sublayer_of(seen: Seen, kind: Kind) -> Sublayer | None:
    """The attention that was seen, in its layer; None where a decoder adds it up in other ways."""
    # the norm whose output the queries are made of
    norms = (m for m, out in seen.outputs if is_norm(m) and torch.equal(out, seen.normed))
    norm = next(norms, None)
    if kind == "cross":
        return _cross(seen, norm)
    if kind == "decoder":
        return _decoder(seen, norm)
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    return Sublayer(seen.x, norm, added)


def _cross(seen: Seen, norm: nn.Module | None) -> Sublayer | None:
    """The stream arrives behind self-attention: before the norm, or as the queries read it."""
    # before it, among others, is what the queries read
    after = seen.outputs[seen.earlier["attention_out"] :]
    before_norm = [] if norm is None else [(seen.reads[norm], norm)]
    for x, before in [*before_norm, (seen.normed, None)]:
        added = what_is_added(x, seen.x_after, seen.attention_out, after)
        if added.how != "mixed":
            return Sublayer(x, before, added)
    return Sublayer(seen.normed, None, added) if _summed_in_a_norm(seen, seen.normed) else None


def _decoder(seen: Seen, norm: nn.Module | None) -> Sublayer | None:
    """Self-attention adds to what arrives at the layer, cross-attention and the MLP after it."""
    # cross-attention may add its output, or that of the first norm behind it
    norms = [out for module, out in seen.outputs[seen.earlier["other_out"] :] if is_norm(module)]
    for crossed in (seen.other_out, *norms[:1]):
        rest = [(module, out) for module, out in seen.outputs if out is not crossed]
        added = what_is_added(seen.x, seen.x_after - crossed, seen.attention_out, rest)
        if added.how != "mixed":
            return Sublayer(seen.x, norm, added, crossed)
    if not _summed_in_a_norm(seen, seen.x):
        return None
    rest_of_change = seen.x_after - seen.x - seen.attention_out
    return Sublayer(seen.x, norm, Added(seen.attention_out, rest_of_change, "mixed"))


def _summed_in_a_norm(seen: Seen, x: Tensor) -> bool:
    """Whether norms are over the sums: over that of the stream and attention, and at the end."""
    summed = any(agrees(read, x + seen.attention_out) for read in seen.reads.values())
    return summed and any(is_norm(m) and agrees(out, seen.x_after) for m, out in seen.outputs)


def dissected(
    model: Any, inputs: Mapping[str, Any], kind: Kind, heads: Sequence[Head], query: int
) -> list[RecordedHead]:
    """Run the whole model, and record what heads of one layer compute in one of its attentions.

    `inputs`: of its forward pass, in a pair with `decoder_input_ids` (1, n_t). `kind`: "cross",
    "decoder", or "self" for a layer with one attention. `query`: the row that is followed.
    """
    place = heads[0].layer
    check_recordable(model)
    with torch.inference_mode():
        at = -1 if kind == "self" else query
        seen = Seen(parts_of(model, [place], kind)[place], at=at)
        if kind != "self":
            other: Kind = "decoder" if kind == "cross" else "cross"
            seen.other = parts_of(model, [place], other)[place]
        with recording(model, seen.on_call), hooked(seen.hooks(model)):
            logits = getattr(forward(model, **inputs), "logits", None)
        if logits is None or logits.dim() != 3:  # a classifier has (1, classes)
            seen.final = logits = None
        call = seen.call
        try:  # the weights of the head are what its scores lead to, in the model, too
            rows = ProvenRows().of(call, place, [head.head for head in heads], scores=True)
            if call.foreign:
                rows(torch.arange(call.q.size(1)))
        except ModelError as error:
            raise unknown(error.wrong) from None
        layer = sublayer_of(seen, kind)
        if layer is None:
            raise unknown(f"how {type(model).__name__} adds {kind} attention up is not known")
        arrays = {
            "x": layer.x,
            "normed": seen.normed,
            "source": seen.source if kind == "cross" else None,
            "logits": None if logits is None else logits[0, at],
            "final": seen.final,
            **_embeddings(model, inputs, kind, place, seen.x),
        }
        return [_recorded(model, head, query, seen, layer, arrays) for head in heads]


def _recorded(
    model: Any,
    head: Head,
    query: int,
    seen: Seen,
    layer: Sublayer,
    arrays: Mapping[str, Tensor | None],
) -> RecordedHead:
    """The record of one head, with `arrays` that do not depend on the head."""
    call, parts = seen.call, seen.parts
    group = call.q.size(0) // call.k.size(0)
    pattern = call.weights()  # (h, n_q, n_k)
    z = pattern @ call.v.repeat_interleave(group, dim=0)  # (h, n_q, d_v)
    w_o, b_o = matrix_of(parts.output, z.new_empty(parts.width, dtype=call.v.dtype))
    out = z.transpose(0, 1).flatten(1).to(w_o.dtype)  # (n_q, h·d_v)
    check_outputs(parts.attention, out, seen.attention_out, (w_o, b_o))
    weights, scale, compared_arrays = _compared(seen, head.head, head.head // group)
    changed = any(compared_arrays[name] is not None for name in ("q_plain", "k_plain"))
    kinds = _kinds(model, seen, layer, changed=changed)
    rows = _rows(seen, layer, kinds.factor)
    return RecordedHead(
        head=head,
        query=query,
        kinds=kinds,
        scale=scale,
        weights=weights,
        w_o=w_o.unflatten(0, (call.q.size(0), -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        z=z,
        mask=call.visible(),
        unembedding=output_vectors(model),
        arrays=present(
            **arrays,
            **compared_arrays,
            **{name: row[query] for name, row in rows.items()},
            pattern=pattern[head.head],
        ),
        rows=rows,
    )


def _rows(seen: Seen, layer: Sublayer, factor: float) -> dict[str, Tensor]:
    """The additions of a layer's parts to the stream, and what leaves it, by query (n_q, d)."""
    return present(
        attention_out=factor * seen.attention_out,
        attention_added=layer.added.attention,
        cross_added=layer.crossed,
        mlp_out=layer.added.mlp,
        x_after=seen.x_after,
    )


def output_vectors(model: Any) -> Tensor:
    """(V, d'): the vectors that make the logits; without an output layer, the embeddings."""
    embedding: Tensor = model.get_input_embeddings().weight
    output = model.get_output_embeddings()
    return embedding if output is None else matrix_of(output, embedding)[0].t()


def _compared(
    seen: Seen, head: int, kv: int
) -> tuple[dict[str, WeightAndBias], float, dict[str, Tensor | None]]:
    """The projections of a head, the scale of its scores, and what they are made of."""
    call, parts = seen.call, seen.parts
    read = {"Q": seen.normed, "K": seen.source, "V": seen.source}
    weights = weights_of_head(parts.projections, call, read, head, kv)
    w_v, v = weights["w_v"], call.v[kv]
    if not agrees(projected(seen.source, w_v), v, max(NEAR, 4 * torch.finfo(w_v[0].dtype).eps)):
        raise unknown(
            f"{type(parts.attention).__name__} changes its values behind their projection"
        )
    q = compared(projected(seen.normed, weights["w_q"]), call.q[head])
    k = compared(projected(seen.source, weights["w_k"]), call.k[kv])
    arrays = {"q": q.used, "k": k.used, "v": v, "q_plain": q.plain, "k_plain": k.plain}
    if call.bias is not None and call.bias[head].any():  # T5 adds zeros in cross-attention
        arrays["bias"] = call.bias[head]
    return weights, call.scaling * q.factor * k.factor, arrays


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
            # OPT's and BART's positions begin at 2
            rows = [module.weight[first : first + len(x)] for first in (0, 2)]
            if any(agrees(each, added) for each in rows):
                return {"embedding": embedded, "position": added}
    return {"embedding": embedded} if agrees(embedded, x) else {}


def _kinds(model: Any, seen: Seen, layer: Sublayer, *, changed: bool) -> Kinds:
    """The differences of this model from the plain formula."""
    call, rotary = seen.call, is_rotary(model)
    name = "" if layer.norm is None else type(layer.norm).__name__.lower()
    inside = seen.parts.attention.named_modules()
    words = ["normalised"] * any(is_norm(module) and path[:1] in "qk" for path, module in inside)
    words += ["turned by its position (rotary)"] * rotary
    positions = "bias" if call.bias is not None and call.bias.any() else "learned"
    if rotary:
        # some layers of such models leave the rotation out (SmolLM3); one token is not turned
        positions = "rotary" if changed or call.q.size(1) == 1 else "none"
    return Kinds(
        norm=name and ("RMSNorm" if "rms" in name else "LayerNorm"),
        positions=positions,
        group=call.q.size(0) // call.k.size(0),
        mlp=seen.mlp,
        changed=(" and ".join(words) or "changed by the model") if changed else "",
        residual=layer.added.how,
        factors=layer.added.factors,
        causal=not bool(call.visible().all()),
    )
