"""A run of a transformers model, held fixed, whatever its architecture.

The model's own code computes everything a second time: of a layer, the norms are replaced by what
they did to the tokens of this run, the MLP by zeros, and the output projection by what is to be
its output. What is left of the layer's code is affine, and is called on whatever vectors are asked
about. That it is, is checked on random ones.

Letters in the shape comments as in `models/frozen/run.py`.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError, option
from attnviz.models.frozen.sums import Attention, FrozenNorm, FrozenRun, frozen_norm, near
from attnviz.models.huggingface.attention import forward, recording, replaced_by
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import (
    NEAR,
    LayerParts,
    agrees,
    compared,
    matrix_of,
    parts_of,
    projected,
    unknown,
    weights_of_head,
)
from attnviz.models.huggingface.proof import ProvenRows
from attnviz.models.huggingface.stream import (
    Recorder,
    Seen,
    Sublayer,
    Turn,
    embedded_of,
    first_of,
    is_norm,
    is_rotary,
    output_of,
    sublayer_of,
    vocabulary_of,
)
from attnviz.models.intervening import Recorded, present
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import Kinds


class HuggingFaceLayer:
    """A turn of a layer, held fixed."""

    def __init__(self, model: Any, turn: Turn) -> None:
        self._model, self._turn = model, turn
        self._norms = {module: _frozen_calls(module, of) for module, of in turn.norms.items()}
        self.attention = None if turn.parts is None else _attention(turn)
        self.normed = turn.normed
        other = _without_norms(turn.layer, turn.parts)
        self._off = [module for module in other if module in turn.made]  # the others were not run
        self._factor: float | None = None
        self._factor = self._check()
        self._rounded = self._rounding()

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        if self._factor is not None:
            return x + self._factor * attended
        parts, silent = self._turn.parts, dict[nn.Module, Callable[[nn.Module], Any]]()
        if parts is not None:
            for projection in parts.projections.values():
                silent[projection] = self._nothing
            silent[parts.output] = lambda _: lambda *_: attended
        off = dict.fromkeys(self._off, self._nothing)
        with self._with({**off, **silent}, frozen=True), replaced_by(self._model, _nothing_seen):
            args, named = self._turn.given(x)
            after: Tensor = first_of(self._turn.layer(*args, **named))
        return after

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self._asks(x, free=free)
        return q + self._rounded[0], k + self._rounded[1], v + self._rounded[2]

    def _asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        with self._with({}, frozen=not free), replaced_by(self._model, _reached):
            args, named = self._turn.given(x)
            try:
                self._turn.layer(*args, **named)
            except ReachedAttention as reached:
                return reached.q, reached.k, reached.v
        raise unknown(f"{type(self._turn.layer).__name__} attends in a way that is not known")

    @contextmanager
    def _with(
        self, made: Mapping[nn.Module, Callable[[nn.Module], Any]], *, frozen: bool
    ) -> Iterator[None]:
        """The layer with these modules' forward replaced, and its norms as they were."""
        forwards = {module: make(module) for module, make in made.items()}
        if frozen:
            forwards |= {module: _in_turn(calls) for module, calls in self._norms.items()}
        before = {m: (vars(m).get("forward"), m._forward_hooks) for m in forwards}
        try:
            for module, function in forwards.items():
                module.forward = function  # an attribute of the object hides the class's method
                module._forward_hooks = OrderedDict()  # what was recorded came after them
            yield
        finally:
            for module, (own, hooks) in before.items():
                module._forward_hooks = hooks
                del module.forward
                if own is not None:  # that of a user, or of accelerate
                    module.forward = own

    def _nothing(self, module: nn.Module) -> Callable[..., Any]:
        """A forward that gives zeros in the form of what the module gave."""
        made = self._turn.made[module]

        def nothing(*args: Any, **named: Any) -> Any:
            x = next(each for each in (*args, *named.values()) if isinstance(each, Tensor))
            like = first_of(made)
            texts = x.numel() // x.size(-1) // self._turn.x.size(1)
            batch = texts * like.size(0)
            zeros = like.new_zeros((batch, *like.shape[1:]))
            return (zeros, *made[1:]) if isinstance(made, tuple) else zeros

        return nothing

    def _rounding(self) -> tuple[Tensor, ...]:
        """What queries, keys and values were beside what `_asks` makes of this run's stream.

        Some models turn queries and keys in float32, whatever the type of the run is.

        Raises:
            ModelError: it is more than rounding.
        """
        if self.attention is None:
            return ()
        made = self._asks(self._turn.x)
        was = self.attention.q, self.attention.k, self.attention.v
        if not all(near(each[0], then) for each, then in zip(made, was, strict=True)):
            raise unknown(f"{type(self._turn.layer).__name__} attends in a way that is not known")
        return tuple(then - each[0] for each, then in zip(made, was, strict=True))

    def _check(self) -> float | None:
        """See that it is affine: what it makes of a sum is the sum of what it makes.

        Returns:
            The factor on what attention adds to the stream, where it is added and no more.

        Raises:
            ModelError: it is not.
        """
        draw = torch.Generator().manual_seed(0)
        x = self._turn.x.detach()
        some = torch.randn((2, *x.shape[1:]), generator=draw, dtype=x.dtype).to(x.device)
        both = torch.stack([torch.zeros_like(some[0]), some[0], some[1], some.sum(dim=0)])
        with torch.no_grad():
            nothing, one, other, together = self.passes(both, both.flip(0))
        # the second half of each: flipped, the sum of attended is the same
        if not near(one + other, together + nothing):
            raise unknown(f"{type(self._turn.layer).__name__} is not affine with its norms fixed")
        alone = nothing - both[0]  # of the sum, what attention adds
        factor = float((alone * both[3]).sum() / (both[3] * both[3]).sum())
        plain = all(
            near(made, x + factor * attended)
            for made, x, attended in zip((nothing, one, other), both, both.flip(0), strict=False)
        )
        return factor if plain else None


def freeze_transformers(model: Any, ids: Tensor, heads_per_layer: Sequence[int]) -> FrozenRun:
    """Run a transformers model of one stack over ids (1, n), and hold the run fixed.

    Raises:
        ModelError: it keeps its queries, keys and values to itself, or is not affine with its
            norms held fixed.
    """
    if not getattr(model, "_can_set_attn_implementation", lambda: False)():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")
    if model.dtype in (torch.float16, torch.bfloat16):
        raise ModelError(
            f"in {str(model.dtype).removeprefix('torch.')} the parts of a model do not add up",
            f"run it with {option('dtype', 'float32')}",
        )
    recorder = Recorder(model, heads_per_layer)
    with torch.no_grad():
        with recorder.attached():
            output = forward(model, input_ids=ids, use_cache=False)
        turns = recorder.turns
        if len(turns) != len(heads_per_layer):
            raise unknown(f"{type(model).__name__} does not run its layers one after the other")
        embedded, constant = embedded_of(model, ids, recorder)
        return FrozenRun(
            embedded=embedded,
            constant=constant,
            layers=[_held(model, turn) for turn in turns],
            streams=[*(turn.x[0] for turn in turns), turns[-1].after[0]],
            output=output_of(model, recorder, getattr(output, "logits", None)),
            vocabulary=vocabulary_of(model, ids, embedded["embedding"]),
            rotary=is_rotary(model),
        )


def _held(model: Any, turn: Turn) -> HuggingFaceLayer:
    """A turn of a layer, held fixed.

    Raises:
        ModelError: its own code does not run on what is put in the place of its modules' outputs.
    """
    try:
        return HuggingFaceLayer(model, turn)
    except (RuntimeError, TypeError, ValueError, KeyError, IndexError, AttributeError):
        raise unknown(f"{type(turn.layer).__name__} cannot be run with its norms fixed") from None


def _attention(turn: Turn) -> Attention:
    """The attention of a turn.

    Raises:
        ModelError: its heads' outputs do not add up to its output.
    """
    call, parts = turn.call, turn.parts
    assert parts is not None
    if call is None:
        raise unknown(f"{type(turn.layer).__name__} calls no attention function")
    heads, width = call.q.size(0), call.v.size(2)
    w_o, b_o = matrix_of(parts.output, call.v.new_empty(parts.width))
    name = type(parts.attention).__name__
    if w_o.size(0) != heads * width:
        raise unknown(f"the output projection of {name} does not read its heads alone")
    if call.q.size(1) != call.k.size(1):
        raise unknown(f"{name} attends to more than its text")
    pattern = call.pattern()
    made = Attention(
        q=call.q,
        k=call.k,
        v=call.v,
        pattern=pattern.to(call.q.dtype),
        scaling=call.scaling,
        w_o=w_o.detach().unflatten(0, (heads, width)),  # type: ignore[no-untyped-call]
        b_o=None if b_o is None else b_o.detach(),
        attended=turn.made[parts.output].reshape(turn.x.shape)[0],
        seen=call.visible,
        bias=call.added,
        cap=call.cap,
    )
    out = torch.einsum("hqk,hkv,hvd->qd", made.pattern, made.values, made.w_o)
    if not near(out if b_o is None else out + b_o, made.attended):
        raise unknown(f"{name} changes its heads' outputs before it adds them up")
    return made


def _frozen_calls(module: nn.Module, calls: list[tuple[Tensor, Tensor]]) -> list[FrozenNorm]:
    found = [frozen_norm(module, x, y) for x, y in calls]
    kept = [norm for norm in found if norm is not None]
    if len(kept) < len(found):
        raise unknown(f"{type(module).__name__} is no norm that can be held fixed")
    return kept


def _in_turn(calls: list[FrozenNorm]) -> Callable[..., Tensor]:
    """A forward that does what each call did, in their order."""
    left = deque(calls)

    def norm(x: Tensor, *_: Any, **_named: Any) -> Tensor:
        left.rotate(-1)
        return left[-1](x)

    return norm


def _without_norms(module: nn.Module, parts: LayerParts | None) -> Iterator[nn.Module]:
    """The largest modules of a layer that hold neither its attention nor a norm."""
    kept = set[nn.Module]() if parts is None else {parts.attention, parts.output}
    for child in module.children():
        within = set(child.modules())
        if child in kept or is_norm(child) or not any(True for _ in child.parameters()):
            continue
        if within & kept or any(map(is_norm, within)):
            yield from _without_norms(child, parts)
        else:
            yield child


class ReachedAttention(Exception):
    """Ends a layer's run where its attention begins, with what it was given (B, heads, n, d)."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        super().__init__()
        self.q, self.k, self.v = q, k, v


def _reached(_module: nn.Module, q: Tensor, k: Tensor, v: Tensor, *_: Any, **_named: Any) -> Any:
    raise ReachedAttention(q, k, v)


def _nothing_seen(
    _module: nn.Module, q: Tensor, _k: Tensor, v: Tensor, *_: Any, **_named: Any
) -> tuple[Tensor, None]:
    return v.new_zeros((q.size(0), q.size(2), q.size(1), v.size(3))), None


# One head of a transformers model, taken apart: its projections, and what flows through them.
#
# Architectures call the same things by different names. Here they are recognised by their
# role: the projections as in `projections.py`, the additions to the residual stream as in
# `residual.py`, and everything between them by hooks on the layer's modules (`watching.py`).


def dissected(model: Any, ids: Sequence[int], head: Head, query: int) -> Recorded:
    """Run a model of one stack, or the encoder of a pair, and record what one head computes.

    Args:
        model: a transformers model, with or without an output layer.
        ids: the n tokens.
        head: its layer and number.
        query: the position, from 0 to n - 1, for which the rest of the layer is recorded.

    Raises:
        ModelError: the projections of this architecture cannot be found or told apart.
    """
    _check(model)
    batch = torch.tensor([list(ids)], device=model.device)  # (1, n)
    return dissected_as(model, {"input_ids": batch, "use_cache": False}, "self", head, query)


def dissected_as(
    model: Any, inputs: Mapping[str, Any], kind: Kind, head: Head, query: int
) -> Recorded:
    """Run the whole model, and record what one head of one of its attentions computes.

    Args:
        model: a transformers model; for "cross" and "decoder" a whole encoder-decoder.
        inputs: the arguments of its forward pass; of a pair with `decoder_input_ids` (1, n_t).
        kind: "cross", "decoder", or "self" for a layer with one attention.
        head: its layer and number.
        query: the row for which the rest of the layer is recorded.

    Raises:
        ModelError: the projections of this architecture cannot be found or told apart, or its
            decoder adds attention to the stream in a way that is not known.
    """
    _check(model)
    with torch.inference_mode():
        parts, at = _parts(model, kind, head.layer), -1 if kind == "self" else query
        seen = Seen(*parts, at=at)
        with ExitStack() as stack:
            stack.enter_context(recording(model, seen.on_call))
            for hook in seen.hooks(model):
                stack.callback(hook.remove)
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


def _check(model: Any) -> None:
    """See that attention can be recorded; an encoder may be no model of transformers (FSMT)."""
    if not getattr(model, "_can_set_attn_implementation", lambda: False)():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")


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
) -> Recorded:
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
    name = type(parts.attention).__name__
    if not agrees(projected(out, (w_o, b_o)), seen.attention_out, rounding):
        raise unknown(f"{name} changes its heads' outputs before or behind their projection")
    if not agrees(projected(seen.source, weights["w_v"]), call.v[kv], rounding):
        raise unknown(f"{name} changes its values behind their projection")
    kinds = _kinds(model, seen, group, layer, changed=q.plain is not None or k.plain is not None)
    return Recorded(
        head=head,
        query=query,
        kinds=kinds,
        scale=call.scaling * q.factor * k.factor,
        weights=weights,
        w_o=w_o.unflatten(0, (call.q.size(0), -1)),  # type: ignore[no-untyped-call]
        b_o=b_o,
        z=z,
        mask=call.visible,
        unembedding=_unembedding(model, seen.x),
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


def _changed(model: Any, parts: LayerParts) -> str:
    """How queries and keys are changed between projection and comparison, in words."""
    normed = any(is_norm(m) and n[:1] in "qk" for n, m in parts.attention.named_modules())
    words = ["normalised"] * normed + ["turned by its position (rotary)"] * is_rotary(model)
    return " and ".join(words) or "changed by the model"


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


def _unembedding(model: Any, x: Tensor) -> Tensor:
    """The direction of each token's logit (V, d)."""
    head = model.get_output_embeddings()
    if head is None:
        weight: Tensor = model.get_input_embeddings().weight
        return weight
    return matrix_of(head, x)[0].t()


def _kinds(model: Any, seen: Seen, group: int, layer: Sublayer, *, changed: bool) -> Kinds:
    """How this model differs from the plain formula."""
    call = seen.call
    name = "" if layer.norm is None else type(layer.norm).__name__.lower()
    positions = "bias" if call.bias is not None and call.bias.any() else "learned"
    if is_rotary(model):
        # some layers of such models leave the rotation out (SmolLM3); one token is not turned
        positions = "rotary" if changed or call.q.size(1) == 1 else "none"
    return Kinds(
        norm=name and ("RMSNorm" if "rms" in name else "LayerNorm"),
        positions=positions,
        group=group,
        mlp=seen.mlp,
        changed=_changed(model, seen.parts) if changed else "",
        residual=layer.added.how,
        factors=layer.added.factors,
        causal=bool((call.mask is not None) and not call.visible.all()),
    )
