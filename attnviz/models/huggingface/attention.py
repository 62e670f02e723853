"""A forward pass of a transformers model, and the attention in it, at its own extension point."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from inspect import signature, unwrap
from traceback import walk_tb
from typing import Any, TypeAlias

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.errors import ModelError
from attnviz.models.folder.files import cut
from attnviz.models.folder.reading import BESIDE
from attnviz.models.huggingface.call import AttentionCall, eager_of, is_foreign


def forward(model: Any, *, through: Callable[..., Any] | None = None, **inputs: Any) -> Any:
    """The output of a model, or of one of its methods (`through`), which may have hooks of ours.

    Raises:
        ModelError: transformers cannot run it on these inputs; its error is quoted.
        Exception: whatever a hook of ours raises.
    """
    try:
        return (through or model)(**inputs)
    except Exception as error:
        below = walk_tb(error.__traceback__ and error.__traceback__.tb_next)
        ours = (f for f, _ in below if f.f_code.co_name not in PASSING_ON)
        if any(str(frame.f_globals.get("__name__")).startswith("attnviz.") for frame in ours):
            raise  # from attnviz, or passed through it
        import transformers

        reason = cut(str(error).strip().split("\n")[0] or type(error).__name__)
        sees = hasattr(model, "given_images")
        alone = next((what for name, what in ALONE.items() if name in inputs and not sees), "")
        own = () if sees or alone else signature(model.forward).parameters
        other = next(filter(OTHER_INPUTS.match, own), None)
        hint = f"try a {'larger image' if sees else 'longer text'} or another model"
        if alone:
            hint = f"use the preprocessor_config.json that belongs to the model, or another {alone}"
        elif other:
            wrong = f"{model.config.model_type} takes {other} beside a text; attnviz gives it none"
            hint = "use a model of only text, or one with images among its tokens, such as LLaVA"
            raise ModelError(wrong, hint) from None
        raise ModelError(
            f"transformers {transformers.__version__} itself cannot run this "
            f"{model.config.model_type} on this {alone or ('image' if sees else 'text')} "
            f"({reason})",
            hint,
        ) from None


def last_logits(model: Any, n: int, **inputs: Any) -> Tensor:
    """The logits (B, n, V) of the last n positions; others are not computed if it can be asked."""
    known = "logits_to_keep" in signature(model.forward).parameters
    few: dict[str, Any] = {"logits_to_keep": n} if known else {}
    logits: Tensor = forward(model, **inputs, **few).logits
    return logits[:, -n:]


ALONE = {"pixel_values": "image", "input_features": "sound", "input_values": "sound"}
"""Inputs of models that read no text, which the folder's settings make."""
PASSING_ON = ("__torch_function__", "with_images")
"""Functions of ours that pass everything on."""
OTHER_INPUTS = re.compile(r"(?:pixel|input)_(?:values|features)$|bbox$")


# transformers looks an attention function up by name, in a mapping that can be changed. While a
# model is recorded, the function under the name of its own implementation is replaced by one that
# calls it. The model, its configuration, its masks and its output do not change, whoever wrote the
# function.

Listener: TypeAlias = Callable[[AttentionCall], None]
Correct: TypeAlias = Callable[[AttentionCall, Tensor], Tensor]
"""Is given a call and its output (B, n_q, h, d_v), and returns what takes its place."""
Function: TypeAlias = Callable[..., tuple[Tensor, Tensor | None]]


def recording(model: Any, listener: Listener) -> AbstractContextManager[None]:
    """Hand every attention call, of this model or another, to the listener until the end."""

    def listen(call: AttentionCall, output: Tensor) -> Tensor:
        listener(call)
        return output

    return corrected(model, listen)


def corrected(model: Any, correct: Correct) -> AbstractContextManager[None]:
    """Let a function replace the output of every attention call until the end."""
    return _switched(model, partial(_around, correct))


def replaced_by(model: Any, function: Function) -> AbstractContextManager[None]:
    """Let every attention call, of this model or another, be this function's until the end."""
    return _switched(model, lambda *_: function)


@contextmanager
def _switched(model: Any, make: Callable[[str, Function | None], Function]) -> Iterator[None]:
    """Replace every attention function that this model may call by what is made of it."""
    if not model._can_set_attn_implementation():
        raise ValueError(f"{type(model).__name__} cannot switch its attention function")
    with ExitStack() as stack:
        for functions, name in _looked_up(model):
            inner = functions.get(name)  # None: eager, which each file has for itself
            with suppress(KeyError):  # it is in the mapping behind this one, which all share
                del functions[name]
                stack.callback(functions.__setitem__, name, inner)
            functions[name] = make(name, inner)
            stack.callback(functions.__delitem__, name)
        yield


def foreign(model: Any) -> bool:
    """Whether an attention function that this model may call is none of transformers' own."""
    functions = (mapping.get(name) for mapping, name in _looked_up(model))
    return any(function is not None and is_foreign(function) for function in functions)


def _looked_up(model: Any) -> list[tuple[Any, str]]:
    """The mappings that this model takes its attention functions from, and their names there."""
    configured = [m.config for m in model.modules() if hasattr(m, "config")]
    names = {config._attn_implementation for config in configured}
    classes = {kind for module in model.modules() for kind in type(module).__mro__}
    files = {sys.modules[kind.__module__] for kind in classes if kind.__module__ in sys.modules}
    # most files share one mapping; some have their own, with functions of their own in it
    mappings = {
        id(m): m
        for file in files
        if (m := getattr(file, "ALL_ATTENTION_FUNCTIONS", None)) is not None
    }
    return [(mapping, name) for mapping in mappings.values() for name in names]


def _around(correct: Correct, name: str, inner: Function | None) -> Function:
    """A function that calls `inner`, and lets `correct` replace its output."""

    def attend(
        module: Any,
        query: Tensor,  # (B, h, n_q, d_k)
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **more: Any,
    ) -> tuple[Tensor, Tensor | None]:
        function = inner or eager_of(module)
        output, weights = function(module, query, key, value, attention_mask, **more)
        scaling = more.get("scaling")
        call = AttentionCall(
            module=module,
            scaling=query.size(-1) ** -0.5 if scaling is None else float(scaling),
            function=name if inner is None else _described(name, inner),
            _masks=attention_mask,
            _more=more,
            _texts=(query, key, value),
            _function=function,
            _result=(output, weights),
        )
        return correct(call, output), weights

    return attend


def _described(name: str, function: Any) -> str:
    """The name that a function is registered by, with its own where that is another."""
    own = getattr(function, "__qualname__", type(function).__name__).rsplit(".", 1)[-1]
    return f"{name!r}" if name == own else f"{name!r} ({own})"


# Some architectures compute attention inside their modules, where no function of ours can take its
# place. In eager mode, such a module returns its weights beside its output. They are taken from
# there and dropped at once, so that only one layer's matrix is held at a time.

Heard: TypeAlias = Callable[[nn.Module, Tensor], None]
"""Is given a module and its pattern (h, n_q, n_k)."""


@contextmanager
def listening(model: Any, heard: Heard) -> Iterator[None]:
    """Let every attention module of the model return its weights, and hand them to `heard`."""

    def request(module: nn.Module, args: Any, kwargs: Any) -> Any:
        takes = signature(module.forward)
        if "output_attentions" not in takes.parameters:
            return None  # it always returns them
        call = takes.bind(*args, **kwargs)
        call.arguments["output_attentions"] = True
        return call.args, call.kwargs

    def hear(module: nn.Module, _args: Any, output: Any) -> Any:
        fitting = (part for part in output if isinstance(part, Tensor) and part.dim() == 4)
        weights = next(fitting, None)  # (1, h, n_q, n_k)
        if weights is None:
            return None
        heard(module, weights[0])
        without = [None if part is weights else part for part in output]
        named = hasattr(output, "_fields")  # a named tuple takes its parts one by one
        return type(output)(*without) if named else type(output)(without)

    sides = [language_of(model), vision_of(model)] if reads_images(model) else [model]
    modules = dict.fromkeys(each for side in sides for each in innermost(side))
    requests = (m.register_forward_pre_hook(request, with_kwargs=True) for m in modules)
    with hooked(requests), hooked(m.register_forward_hook(hear) for m in modules):
        yield


@contextmanager
def hooked(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """Hooks that are attached as their handles are asked for, and removed at the end."""
    with ExitStack() as stack:
        for handle in handles:
            stack.callback(handle.remove)
        yield


def reads_images(model: Any) -> bool:
    """Whether a model takes images beside a text."""
    config = model.config
    return getattr(config, "vision_config", None) is not None or config.model_type in BESIDE


def language_of(model: Any) -> Any:
    """The module that reads text: the whole model, unless it has a side for images, too."""
    if not reads_images(model):
        return model
    own = getattr(model, "text_encoder", None)  # it reads, and what is behind it writes (BLIP)
    return model.get_decoder() if own is None else own


def vision_of(model: Any) -> Any:
    """The module that reads images."""
    return model.get_encoder(modality="image")


def attention_modules(model: Any) -> list[nn.Module]:
    """The innermost modules that read text with attention in the name of their class."""
    return innermost(language_of(model))


def innermost(side: nn.Module) -> list[nn.Module]:
    """The innermost modules of a side of a model with attention in the name of their class."""
    named = [m for m in side.modules() if "Attention" in type(m).__name__]
    return [m for m in named if not any(part in named for part in list(m.modules())[1:])]


def gated(model: Any) -> bool:
    """Whether an attention of the model takes a sigmoid, as one with a gate behind it does."""
    forwards = {unwrap(type(module).forward) for module in attention_modules(model)}
    return any(
        "sigmoid" in each.__code__.co_names for each in forwards if hasattr(each, "__code__")
    )


def watching(model: Any, on_call: Listener, on_output: Heard) -> AbstractContextManager[None]:
    """Hand over every attention call; where they cannot be recorded, every returned pattern."""
    if model._can_set_attn_implementation():
        return recording(model, on_call)
    return listening(model, on_output)
