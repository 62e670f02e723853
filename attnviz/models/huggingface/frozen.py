"""A run of a transformers model, held fixed, whatever its architecture.

The model's own code computes everything a second time. In each layer, the norms do what they did to
the tokens of this run, the MLP gives zeros, and the output projection gives what is to be its
output. The rest of the layer's code is affine, which is checked on random vectors.

Letters in the shape comments as in `models/frozen/run.py`.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.errors import ModelError
from attnviz.models.frozen.layer import (
    FrozenAttention,
    FrozenLayer,
    FrozenNorm,
    FrozenOutput,
    check_adds_up,
    frozen_norm,
    near,
)
from attnviz.models.frozen.run import Embedded, FrozenRun
from attnviz.models.huggingface.attention import forward, hooked, recording, replaced_by
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import (
    LayerParts,
    check_recordable,
    first_of,
    is_norm,
    is_plain,
    is_rotary,
    layers_of,
    matrix_of,
    parts_of,
    unknown,
)
from attnviz.models.huggingface.vision import of_text

NormRows: TypeAlias = tuple[nn.Module, Tensor, Tensor]
"""A norm, what it read, and what it gave."""


@dataclass(frozen=True, eq=False)
class AddedBy:
    """The way a layer adds its attention's output: times a factor, and through a norm or none."""

    factor: float
    norm: nn.Module | None = None


@dataclass
class Turn:
    """One call of a layer: its arguments, and what its modules gave in it.

    `norms`: for each norm the inputs and outputs of its calls; `normed`: one of them came before
    attention; `outputs`: the last output of attention's output projection and, as zeros that take
    no memory, of the modules to silence, `off` and the other projections.
    """

    layer: nn.Module
    parts: LayerParts | None
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    norms: dict[nn.Module, list[tuple[Tensor, Tensor]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    outputs: dict[nn.Module, Any] = field(default_factory=dict)
    call: AttentionCall | None = None
    normed: bool = False
    after: Tensor = field(init=False)
    off: list[nn.Module] = field(init=False)

    @property
    def x(self) -> Tensor:
        """The stream that arrives (1, n, d)."""
        arrived: Tensor = self.args[0] if self.args else self.named["hidden_states"]
        return arrived

    def __post_init__(self) -> None:
        self.off = [*_without_norms(self.layer, self.parts)]

    def keep(self, module: nn.Module, output: Any) -> None:
        """Keep what is needed of a module's output."""
        projections = self.parts.projections.values() if self.parts else ()
        if self.parts and module is self.parts.output:
            self.outputs[module] = output
        elif module in self.off or module in projections:
            self.outputs[module] = _form(output)

    def on(self, x: Tensor) -> Any:
        """The layer's output in the same call on another stream."""
        if self.args:
            return self.layer(x, *self.args[1:], **self.named)
        return self.layer(**{**self.named, "hidden_states": x})


class TurnRecorder:
    """Hooks that keep the turns of a model's layers, and the norms called outside of them."""

    def __init__(self, model: Any, heads_per_layer: Sequence[int]) -> None:
        self._parts = parts_of(model, [i for i, heads in enumerate(heads_per_layer) if heads])
        every = layers_of(model)
        self._layers = {
            self._parts[i].layer if i in self._parts else every[i]
            for i in range(len(heads_per_layer))
        }
        self.turns: list[Turn] = []
        self.before, self.behind = list[NormRows](), list[NormRows]()
        self.final: Tensor | None = None
        self._inside = False

    def hooks(self, model: Any) -> Iterator[RemovableHandle]:
        """Attach the hooks to all modules; their handles."""
        for module in model.modules():
            if module not in self._layers:
                yield module.register_forward_hook(self._after_module)
        for layer in self._layers:
            yield layer.register_forward_pre_hook(self._begin, with_kwargs=True)
            yield layer.register_forward_hook(self._end)
        if (head := output_layer(model)) is not None:
            yield head.register_forward_pre_hook(self._before_output, prepend=True)

    def on_call(self, call: AttentionCall) -> None:
        if self._inside:
            self.turns[-1].call = call.light

    def _begin(self, layer: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.turns.append(Turn(layer, self._parts.get(len(self.turns)), args, named))
        self._inside = True

    def _end(self, _layer: nn.Module, _args: Any, output: Any) -> None:
        self.turns[-1].after, self._inside = first_of(output), False

    def _after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if is_norm(module) and args:
            if self._inside:
                self.turns[-1].norms[module].append((args[0], output))
                self.turns[-1].normed |= self.turns[-1].call is None
            else:
                (self.behind if self.turns else self.before).append((module, args[0], output))
        elif self._inside:
            self.turns[-1].keep(module, output)

    def _before_output(self, _module: nn.Module, args: Any) -> None:
        self.final = args[0]


class HuggingFaceLayer(FrozenLayer):
    """A turn of a layer, held fixed."""

    def __init__(self, model: Any, turn: Turn) -> None:
        self._model, self._turn = model, turn
        self._norms = {module: _frozen_calls(module, of) for module, of in turn.norms.items()}
        turn.norms.clear()
        self.attention = None if turn.parts is None else _attention(turn)
        self.normed = turn.normed
        self._off = [module for module in turn.off if module in turn.outputs]  # others were not run
        self._factor: float | None = None
        self._factor = self._check()
        if self.attention is not None:
            self._check_asks(self.attention)

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        if self._factor is not None:
            return x + self._factor * attended
        parts, silent = self._turn.parts, {module: self._nothing(module) for module in self._off}
        if parts is not None:
            for projection in parts.projections.values():
                silent[projection] = self._nothing(projection)
            silent[parts.output] = lambda *_: attended
        with self._with(silent, frozen=True), replaced_by(self._model, _nothing_seen):
            after: Tensor = first_of(self._turn.on(x))
        return after

    @torch.no_grad()
    def before_mlp(self, x: Tensor) -> FrozenNorm | None:
        """The last norm that scaled in this run what it was given as it would scale x."""
        for module, calls in reversed(self._norms.items()) if self.attention else ():
            if calls[0].weight is None or len(calls[0].weight) == x.size(-1):
                norm = frozen_norm(module, x[None], module(x[None]))
                if norm is not None and any(near(norm.scale, each.scale) for each in calls):
                    return norm
        return None

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        with self._with({}, frozen=not free), replaced_by(self._model, _reached):
            try:
                self._turn.on(x)
            except ReachedAttention as reached:
                return reached.args
        raise self._unknown_attention()

    @property
    def module(self) -> nn.Module:
        return self._turn.layer

    def added_by(self) -> AddedBy | None:
        """The way it adds its attention's output, or None if it is not one that `AddedBy` has."""
        if self._factor is not None:
            return AddedBy(self._factor)
        draw = torch.Generator().manual_seed(1)
        x, given = torch.randn((2, *self._turn.x.shape), generator=draw).to(self._turn.x)
        with torch.no_grad():
            added = self.passes(x, given) - x
            for module, calls in self._norms.items():
                weight = calls[0].weight
                if len(calls) > 1 or (weight is not None and len(weight) != given.size(-1)):
                    continue  # one of queries or keys is narrower
                factor = factor_between(calls[0](given), added)
                if factor is not None:
                    return AddedBy(factor, module)
        return None

    def _unknown_attention(self) -> ModelError:
        return unknown(f"{type(self._turn.layer).__name__} attends in a way that is not known")

    @contextmanager
    def _with(
        self, forwards: Mapping[nn.Module, Callable[..., Any]], *, frozen: bool
    ) -> Iterator[None]:
        """The layer with these modules' forward replaced, and its norms as they were."""
        norms = {module: _in_turn(calls) for module, calls in self._norms.items() if frozen}
        forwards = {**forwards, **norms}
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
        output = self._turn.outputs[module]

        def nothing(*args: Any, **named: Any) -> Any:
            x = next(each for each in (*args, *named.values()) if isinstance(each, Tensor))
            like = first_of(output)
            texts = x.numel() // x.size(-1) // self._turn.x.size(1)
            zeros = like.new_zeros((texts * like.size(0), *like.shape[1:]))
            return (zeros, *output[1:]) if isinstance(output, tuple) else zeros

        return nothing

    def _check_asks(self, attention: FrozenAttention) -> None:
        """See that `asks` gives the queries, keys and values that this run had."""
        was = attention.q, attention.k, attention.v
        asked = self.asks(self._turn.x)
        if not all(near(each[0], then) for each, then in zip(asked, was, strict=True)):
            raise self._unknown_attention()

    def _check(self) -> float | None:
        """See that it is affine: what it makes of a sum is the sum of what it makes.

        Returns the factor on what attention adds, where it is added and no more.
        """
        draw = torch.Generator().manual_seed(0)
        x = self._turn.x.detach()
        drawn = torch.randn((2, *x.shape[1:]), generator=draw, dtype=x.dtype).to(x.device)
        first, second = drawn[:1], drawn[1:]
        each = [torch.zeros_like(first), first, second, first + second]
        pairs = [*zip(each, each[::-1], strict=True)]  # the sum of attended is the same
        with torch.no_grad():
            every = [self.passes(x, attended) for x, attended in pairs]  # one by one: less memory
        nothing, one, other, together = every
        if not near(one + other, together + nothing):
            raise unknown(f"{type(self._turn.layer).__name__} is not affine with its norms fixed")
        factor = float((nothing * each[3]).sum() / (each[3] * each[3]).sum())
        plain = all(
            near(after, x + factor * attended)
            for after, (x, attended) in zip(every[:3], pairs[:3], strict=True)
        )
        return factor if plain else None


def freeze_transformers(model: Any, ids: Tensor, heads_per_layer: Sequence[int]) -> FrozenRun:
    """Run a transformers model of one stack over ids (1, n), and hold the run fixed."""
    check_recordable(model)
    check_adds_up(model.dtype)
    recorder = TurnRecorder(model, heads_per_layer)
    with torch.no_grad():
        with recording(model, recorder.on_call), hooked(recorder.hooks(model)):
            output = forward(model, input_ids=ids, use_cache=False)
        turns = recorder.turns
        if len(turns) != len(heads_per_layer):
            raise unknown(f"{type(model).__name__} does not run its layers one after the other")
        embedded, constant = embedded_of(model, ids, turns[0].x[0], recorder.before)
        logits, last = getattr(output, "logits", None), turns[-1].after
        return FrozenRun(
            embedded=embedded,
            constant=constant,
            layers=[_held(model, turn) for turn in turns],
            streams=[*(turn.x[0] for turn in turns), turns[-1].after[0]],
            output=output_of(model, recorder.final, last, recorder.behind, logits),
            vocabulary=vocabulary_of(model, ids, embedded["embedding"]),
            rotary=is_rotary(model),
        )


def _held(model: Any, turn: Turn) -> HuggingFaceLayer:
    try:
        return HuggingFaceLayer(model, turn)
    except (RuntimeError, TypeError, ValueError, KeyError, IndexError, AttributeError):
        raise unknown(f"{type(turn.layer).__name__} cannot be run with its norms fixed") from None


def _attention(turn: Turn) -> FrozenAttention:
    call, parts = turn.call, turn.parts
    assert parts is not None
    if call is None:
        raise unknown(f"{type(turn.layer).__name__} calls no attention function")
    heads, width = call.q.size(0), call.v.size(2)
    w_o, b_o = matrix_of(parts.output, call.v.new_empty(parts.width))
    name = type(parts.attention).__name__
    if w_o.size(0) != heads * width:
        raise unknown(f"the output projection of {name} does not read only its heads")
    if call.q.size(1) != call.k.size(1):
        raise unknown(f"{name} attends to more than its text")
    attention = FrozenAttention(
        q=call.q,
        k=call.k,
        v=call.v,
        pattern=call.pattern,
        scaling=call.scaling,
        w_o=w_o.detach().unflatten(0, (heads, width)),  # type: ignore[no-untyped-call]
        b_o=None if b_o is None else b_o.detach(),
        attended=turn.outputs[parts.output].reshape(turn.x.shape)[0],
        seen=call.visible,
        bias=call.added,
        cap=call.cap,
    )
    rows = attention.sample
    call.scores(rows)  # raises where they are not known
    out = torch.einsum("hqv,hvd->qd", attention.weights(rows) @ attention.values, attention.w_o)
    if not near(out if b_o is None else out + b_o, attention.attended[rows]):
        raise unknown(f"{name} changes its heads' outputs before it adds them up")
    return attention


def _frozen_calls(module: nn.Module, calls: list[tuple[Tensor, Tensor]]) -> list[FrozenNorm]:
    norms = [norm for x, y in calls if (norm := frozen_norm(module, x, y)) is not None]
    if len(norms) < len(calls):
        raise unknown(f"{type(module).__name__} is not a norm that can be held fixed")
    return norms


def _form(output: Any) -> Any:
    """Zeros in the form of an output, which take no memory."""
    like = first_of(output)
    zeros = like.new_zeros(()).expand(like.shape)
    return (zeros, *output[1:]) if isinstance(output, tuple) else zeros


def _in_turn(calls: list[FrozenNorm]) -> Callable[..., Tensor]:
    """A forward that does what each call did, in their order."""
    each_call = cycle(calls)
    return lambda x, *_, **_named: next(each_call)(x)


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


def _reached(_module: nn.Module, q: Tensor, k: Tensor, v: Tensor, *_: Any, **_named: Any) -> Any:
    raise ReachedAttention(q, k, v)


def _nothing_seen(
    _module: nn.Module, q: Tensor, _k: Tensor, v: Tensor, *_: Any, **_named: Any
) -> tuple[Tensor, None]:
    return v.new_zeros((q.size(0), q.size(2), q.size(1), v.size(3))), None


def embedded_of(
    model: Any, ids: Tensor, x: Tensor, before: Sequence[NormRows]
) -> tuple[dict[Embedded, Tensor], Tensor]:
    """The embeddings added up in x (n, d) before the first layer (n, d), and a norm's addend."""
    token = model.get_input_embeddings()(ids)[0]
    zeros = torch.zeros_like(x)
    # ALBERT's are narrower than its layers; those of insets are what their side makes of them
    if token.shape != x.shape or not of_text(model, ids).all():
        return {"embedding": x}, zeros
    for module, read, output in before:
        norm = frozen_norm(module, read, output)
        if norm is not None and near(output[0], x) and read.shape == output.shape:
            constant = norm(torch.zeros_like(read))
            embedding, position = (norm(p) - constant for p in (token[None], read - token))
            return {"embedding": embedding[0], "position": position[0]}, constant[0]
    factor = factor_between(token, x)
    if factor is not None:
        return {"embedding": factor * token}, zeros
    return {"embedding": token, "position": x - token}, zeros


def factor_between(a: Tensor, b: Tensor) -> float | None:
    """The number by which b is a multiple of a; None where it is none."""
    factor = 1.0 if near(a, b) else float((a * b).sum() / (a * a).sum())
    return factor if near(factor * a, b) else None


def vocabulary_of(model: Any, ids: Tensor, embedded: Tensor) -> Tensor | None:
    """The addition of each token's embedding to the stream (V, d); None where it is not known."""
    embeddings = model.get_input_embeddings()
    every: Tensor = embeddings.weight.detach()
    if not is_plain(embeddings):
        every = embeddings(torch.arange(len(every), device=every.device)[None])[0].detach()
    token, text = every[ids[0]], of_text(model, ids)
    if token.shape != embedded.shape:
        return None
    factor = factor_between(token[text], embedded[text])
    return None if factor is None else every if factor == 1 else factor * every


def output_of(
    model: Any,
    final: Tensor | None,
    last: Tensor,
    behind: Sequence[NormRows],
    logits: Tensor | None,
) -> FrozenOutput | None:
    """The way from the stream `last` (1, n, d) to the logits; None where none is affine.

    `final`: the input of the output layer; `behind`: the norms between the two.
    """
    head = output_layer(model)
    if head is None or final is None or logits is None or final.shape != last.shape:
        return None
    norms = [
        norm
        for module, read, output in behind
        if read.shape == last.shape and near(read, last)
        if (norm := frozen_norm(module, read, output)) is not None
    ]
    candidates = ((norm, last if norm is None else norm(last)) for norm in (*norms, None))
    fitting = ((norm, factor_between(read, final)) for norm, read in candidates)
    norm, factor = next((each for each in fitting if each[1] is not None), (None, None))
    if factor is None:
        return None
    columns, bias = matrix_of(head, final)
    weight, bias = columns.detach().t(), None if bias is None else bias.detach()  # (V, d), (V)
    plain = nn.functional.linear(final[:, -1:], weight, bias)  # the last row shows it
    scale = factor_between(plain, logits[:, -1:])  # on all logits (Cohere); none if they are capped
    if scale is None:
        return None
    if scale != 1:
        weight, bias = scale * weight, None if bias is None else scale * bias
    return FrozenOutput(norm, weight, bias, factor)


def output_layer(model: Any) -> Any:
    """The output layer; None where there is none."""
    return getattr(model, "get_output_embeddings", lambda: None)()
