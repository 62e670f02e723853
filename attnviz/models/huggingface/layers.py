"""The layers of a transformers model: their numbers, their modules and their projections."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.modules.module import _has_any_global_hook
from torch.nn.utils import parametrizations
from transformers.pytorch_utils import Conv1D

from attnviz.errors import ModelError
from attnviz.models.folder.params import ROLES
from attnviz.models.huggingface.attention import (
    attention_modules,
    forward,
    gated,
    language_of,
    reads_images,
    recording,
    vision_of,
)
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.pixels import few_patches
from attnviz.records.capture import Kind

CROSS = re.compile(r"encoder_attn|encdecattention|cross_?attention|cross_attn", re.IGNORECASE)


class Layers:
    """The layer of each attention module of a model, in one run.

    The name of a module contains its number. A module that several layers share counts up, from
    its own number again in another run.
    """

    def __init__(self, model: Any, kind: Kind) -> None:
        of_vision = kind == "encoder" and reads_images(model)
        own = set((vision_of if of_vision else language_of)(model).modules())
        self._names = {
            module: name
            for name, module in model.named_modules()
            if module in own and (of_vision or kind in (kind_of(name), alone(name)))
        }
        self._own = {module: layer_of(name) for module, name in self._names.items()}
        self._architecture = model.config.model_type
        self.begin()

    def silent(
        self, layers: Collection[int], attending: Collection[nn.Module]
    ) -> Iterator[tuple[int, nn.Module]]:
        """Attention modules of these layers, none of which was called for what it attends to.

        Modules of transformers' own that hybrids have instead (Mamba, convolutions) are none. One
        is of the class of those that attend, or of a class from elsewhere that stands where they
        do, or calls itself attention.
        """
        classes = tuple({type(module) for module in attending})
        places = {_place(self._names[module]) for module in attending}
        for module, layer in self._own.items():
            if layer not in layers or next(module.parameters(), None) is None:
                continue
            kind, place = type(module), _place(self._names[module])
            foreign = not kind.__module__.startswith("transformers.")
            stands_in = place in places or "attention" in kind.__name__.lower()
            if isinstance(module, classes) or (foreign and stands_in):
                yield layer, module

    def begin(self) -> None:
        self._last: dict[Any, int] = {}
        self._at_work: dict[int, Any] = {}

    def at_work(self, module: Any) -> int | None:
        """The layer of this call; None where the module is another model's, or of another kind."""
        own = self._own.get(module)
        if own is None:
            return None
        layer = self._last[module] + 1 if module in self._last else own
        self._last[module] = layer
        if self._at_work.setdefault(layer, module) is not module:
            raise ModelError(
                f"{self._architecture} has several attentions in one layer, or layers within "
                "layers, which attnviz cannot number",
                "use another model",
            )
        return layer


def layer_of(module: str) -> int:
    """The layer that a module belongs to: the first number in its dotted name."""
    number = re.search(r"(?:^|\.)(\d+)(?:\.|$)", module)
    return int(number[1]) if number else -1


def _place(module: str) -> str:
    """The place of a module in its layer, whatever the layer's number: its name from there on."""
    return re.sub(r"^.*?(?:^|\.)\d+(?=\.|$)", "", module, count=1)


def alone(module: str) -> Kind:
    """The kind of a module's attention in a model of one text, by its dotted name."""
    return "cross" if CROSS.search(module) else "self"


def kind_of(module: str) -> Kind:
    """The kind of a module's attention in an encoder-decoder, by its dotted name."""
    if CROSS.search(module):
        return "cross"
    sides = [part for part in module.split(".") if part in ("encoder", "decoder")]
    return "encoder" if sides[:1] == ["encoder"] else "decoder"  # a BERT's are in an "encoder"


def layers_of(model: Any) -> list[nn.Module]:
    """The modules that are a model's layers, in order: the list that its attention is in."""
    names = {module: name for name, module in model.named_modules()}
    path = names[attention_modules(model)[0]].split(".")
    return list(model.get_submodule(".".join(path[: _depth(path)])).children())


def _depth(path: list[str]) -> int:
    """The position of the layer's number in a module's name."""
    return next(i for i, part in enumerate(path) if part.isdigit())


@dataclass(frozen=True)
class LayerParts:
    """The modules of one layer: the layer itself, its attention, and the projections.

    `projections`: those of queries, keys and values, by role; `output` is W_O.
    `turn`: which of the layer's runs in one forward pass is meant, from 1, since modules that
    several layers share (ALBERT) run more than once. `width`: that of what `output` reads, 0
    where attention cannot be recorded.
    """

    layer: nn.Module
    attention: nn.Module
    projections: dict[str, nn.Module]
    output: nn.Module
    turn: int
    width: int

    def outside(self, *others: "LayerParts") -> Iterator[nn.Module]:
        """The modules of the layer that do not belong to its attention, or to one of these."""
        inside = {self.layer}
        for parts in (self, *others):
            inside |= {*parts.attention.modules(), parts.output}
        yield from (module for module in self.layer.modules() if module not in inside)


def parts_of(model: Any, layers: Iterable[int], kind: Kind = "self") -> dict[int, LayerParts]:
    """The modules of these layers, around one of an encoder-decoder's attentions."""
    calls = _calls(model, kind)
    return {layer: _parts(model, calls, layer) for layer in layers}


def _calls(model: Any, kind: Kind) -> list[tuple[int | None, nn.Module, int]]:
    """The layer, the module and the width of all heads' outputs of each call over one token.

    Where attention cannot be recorded, they are found by name.
    """
    if not model._can_set_attn_implementation():
        names = {module: name for name, module in model.named_modules()}
        return [(layer_of(names[module]), module, 0) for module in attention_modules(model)]
    layers, calls = Layers(model, kind), list[tuple[int | None, nn.Module, int]]()

    def see(call: AttentionCall) -> None:
        width = call.q.size(0) * call.v.size(-1)
        calls.append((layers.at_work(call.module), call.module, width))

    token = torch.tensor([[0]], device=model.device)
    decoded: dict[str, Any] = {} if kind == "self" else {"decoder_input_ids": token}
    inputs = {"input_ids": token, "use_cache": False, **decoded}
    if model.main_input_name == "pixel_values":
        inputs = few_patches(model)
    with recording(model, see):
        forward(model.base_model, **inputs)
    return calls


def _parts(
    model: Any, calls: Sequence[tuple[int | None, nn.Module, int]], layer: int
) -> LayerParts:
    """The modules of one layer, looked for around the module that attends."""
    names = {module: name for name, module in model.named_modules()}
    numbers = [number for number, *_ in calls]
    if layer not in numbers:
        raise unknown(f"layer {layer} of {type(model).__name__} calls no attention")
    *before, (_, attention, width) = calls[: numbers.index(layer) + 1]
    turn = 1 + sum(module is attention for _, module, _ in before)
    path = names[attention].split(".")
    depth = _depth(path) + 1
    block = model.get_submodule(".".join(path[:depth]))
    # BERT keeps the output projection beside the module that attends, not in it
    for end in range(len(path), depth - 1, -1):
        projections = projections_of(model.get_submodule(".".join(path[:end])))
        if "O" in projections and ("QKV" in projections or {"Q", "K", "V"} <= set(projections)):
            output = projections.pop("O")
            return LayerParts(block, attention, projections, output, turn, width)
    raise unknown(
        f"the projections of {type(attention).__name__} are not where attnviz looks for them"
    )


def first_of(output: Any) -> Any:
    """A module's output; the first one where it gives several."""
    return output[0] if isinstance(output, tuple) else output


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a LayerNorm, RMSNorm or the like; not one that computes a weight."""
    kind = type(module)
    return "norm" in kind.__name__.lower() and kind.__module__ != parametrizations.__name__


# The projections of one head: found by name (`folder/params.py` has the usual ones). Where one
# matrix joins queries, keys and values, the right way to split it gives the values that were used.

NEAR = 1e-4
WeightAndBias: TypeAlias = tuple[Tensor, Tensor | None]
"""A projection: W (d_in, d_out), and its bias (d_out) if it has one."""


@dataclass(frozen=True)
class Compared:
    """Queries or keys (n, d_k) as they are compared, without a `factor` that all of them share.

    `plain`: as the projection gives them; None where they are compared as they are.
    """

    used: Tensor
    factor: float = 1.0
    plain: Tensor | None = None


def unknown(what: str) -> ModelError:
    """The error for an architecture that cannot be taken apart; `what` is the obstacle."""
    return ModelError(what, "its patterns can be shown; for this use one such as GPT-2 or Llama")


def is_rotary(model: nn.Module) -> bool:
    """Whether queries and keys are turned by their positions, in some layer at least."""
    return any("rotary" in type(module).__name__.lower() for module in model.modules())


def check_recordable(model: Any) -> None:
    """See that attention calls can be recorded; an encoder may be none of transformers' (FSMT)."""
    if not getattr(model, "_can_set_attn_implementation", lambda: False)():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")


def check_outputs(
    attention: nn.Module, attended: Tensor, output: Tensor, matrix: WeightAndBias
) -> None:
    """See that what attention gives is its heads' outputs (n, h·d_v) times W_O."""
    expected = projected(attended, matrix)
    rounding = max(NEAR, 4 * torch.finfo(output.dtype).eps)
    if not agrees(expected, output.reshape(expected.shape), rounding):
        name = type(attention).__name__
        if gated(attention):
            raise unknown(f"{name} puts a gate on its heads' outputs, which is not followed here")
        raise unknown(f"{name} changes its heads' outputs before or behind their projection")


def projections_of(module: nn.Module) -> dict[str, nn.Module]:
    """The query, key, value and output projections below a module, by role."""
    roles: dict[str, nn.Module] = {}
    for name, child in module.named_modules():
        role, weight = ROLES.get(name.rsplit(".", 1)[-1]), getattr(child, "weight", None)
        # a wrapper has no weight of its own, but holds something
        held = any(True for held in (child.parameters(), child.buffers()) for _ in held)
        if role and (weight.dim() == 2 if isinstance(weight, Tensor) else held):
            roles.setdefault(role, child)
    return roles


def weights_of_head(
    projections: Mapping[str, nn.Module],
    call: AttentionCall,
    read: Mapping[str, Tensor],
    head: int,
    kv: int,
) -> dict[str, WeightAndBias]:
    """This head's slices (d, d_k) of W_Q, W_K and W_V, with their biases.

    `read`: the vectors (n, d) that each of the projections Q, K and V reads.
    """
    (heads, _, d_k), kv_heads, d_v = call.q.shape, call.k.size(0), call.v.size(-1)
    at = {"Q": (head, d_k), "K": (kv, d_k), "V": (kv, d_v)}

    def own(
        letter: str, matrix: WeightAndBias, first: int, stride: int | None = None
    ) -> WeightAndBias:
        """The columns of the head's number in a matrix, from those of the first head on."""
        number, wide = at[letter]
        start = first + number * (stride or wide)
        columns, (weight, bias) = slice(start, start + wide), matrix
        return weight[:, columns], None if bias is None else bias[columns]

    if "QKV" not in projections:
        matrices = {letter: matrix_of(projections[letter], read[letter]) for letter in at}
        return {f"w_{letter.lower()}": own(letter, m, 0) for letter, m in matrices.items()}
    joined = matrix_of(projections["QKV"], read["V"])
    side_by_side = {"Q": 0, "K": heads * d_k, "V": (heads + kv_heads) * d_k}
    by_head = {"Q": 0, "K": d_k, "V": 2 * d_k}  # head after head: q k v q k v
    for starts, stride in ((side_by_side, None), (by_head, 2 * d_k + d_v)):
        split = {f"w_{name.lower()}": own(name, joined, starts[name], stride) for name in at}
        if agrees(projected(read["V"], split["w_v"]), call.v[kv]):
            return split
    raise unknown(f"queries, keys and values of {type(call.module).__name__} cannot be told apart")


def matrix_of(module: nn.Module, reads: Tensor) -> WeightAndBias:
    """The matrix (d_in, d_out) of a projection, and its bias.

    A plain one says so by its weight. One with an adapter, a hook, a wrapper or a `forward` of its
    own is asked: for an affine f, a row of the matrix is f(eᵢ) - f(0). `reads`: vectors (..., d_in)
    that it reads, for their width, type and device.
    """
    if is_plain(module):
        weight, bias = module.weight, getattr(module, "bias", None)
        assert isinstance(weight, Tensor)
        # transformers' Conv1D stores (d_in, d_out), torch's Linear (d_out, d_in)
        return (weight if isinstance(module, Conv1D) else weight.t()), bias
    return _probed(module, reads)


def is_plain(module: nn.Module) -> bool:
    """Whether a projection does what its weight says, and nothing else."""
    return type(module) in PLAIN and not (
        module._forward_hooks
        or module._forward_pre_hooks
        or "forward" in vars(module)
        or _has_any_global_hook()  # type: ignore[no-untyped-call]
    )


PLAIN = (nn.Linear, NonDynamicallyQuantizableLinear, Conv1D, nn.Embedding)


@torch.no_grad()
def _probed(module: nn.Module, reads: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix and the bias of a projection by what it makes of each direction."""
    width = reads.size(-1)
    every = torch.eye(width, dtype=reads.dtype, device=reads.device)
    draw = torch.Generator().manual_seed(0)
    some = torch.randn((8, width), generator=draw, dtype=torch.float32).to(every)
    try:
        bias = module(torch.zeros_like(every[None, :1]))[0, 0]
        weight = torch.cat([module(rows[None])[0] for rows in torch.split(every, 512)]) - bias
        output = module(some[None])[0]
    except (RuntimeError, TypeError, ValueError, IndexError):
        raise unknown(f"{type(module).__name__} cannot be asked what it projects") from None
    rounding = 4 * torch.finfo(output.dtype).eps
    if not agrees(projected(some, (weight, bias)), output, max(NEAR, rounding)):
        raise unknown(f"{type(module).__name__} is a projection that is not linear")
    return weight.detach(), bias.detach()


def projected(x: Tensor, matrix: WeightAndBias) -> Tensor:
    """x·W + b for vectors x (n, d_in)."""
    weight, bias = matrix
    return x @ weight if bias is None else x @ weight + bias


def compared(plain: Tensor, used: Tensor) -> Compared:
    """Queries or keys (n, d_k): compared as projected, as a multiple of that, or changed."""
    if agrees(plain, used):
        return Compared(used)
    if plain.shape == used.shape:
        factor = float((plain * used).sum() / plain.square().sum())
        if factor > 0 and agrees(factor * plain, used):  # OPT scales q, and not the product
            return Compared(plain, factor)
    return Compared(used, 1.0, plain)


def agrees(a: Tensor, b: Tensor, rounding: float = NEAR) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same numbers."""
    return a.shape == b.shape and bool((a - b).abs().max() <= rounding * (1 + b.abs().max()))
