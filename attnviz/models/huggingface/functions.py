"""The attention of a transformers model, recorded at its own extension point.

transformers looks an attention function up by name, in a mapping that can be changed.
While a model is recorded, the function under the name of its own implementation is
replaced by one that calls it. The model, its configuration, its masks and its output do not
change, whoever wrote the function. A listener is given what went into a call and what came out
of it; `proof.py` finds the weights.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor

from attnviz.models.huggingface.call import AttentionCall, eager_of, is_foreign

Listener: TypeAlias = Callable[[AttentionCall], None]
Correct: TypeAlias = Callable[[AttentionCall, Tensor], Tensor]
"""Is given a call and its output (B, n_q, h, d_v), and returns what takes its place."""
Function: TypeAlias = Callable[..., tuple[Tensor, Tensor | None]]


@contextmanager
def recording(model: Any, listener: Listener) -> Iterator[None]:
    """Hand every attention call, of this model or another, to the listener until the end.

    Raises:
        ValueError: the attention function of this architecture cannot be switched.
    """

    def listen(call: AttentionCall, output: Tensor) -> Tensor:
        listener(call)
        return output

    with corrected(model, listen):
        yield


@contextmanager
def corrected(model: Any, correct: Correct) -> Iterator[None]:
    """Let a function replace the output of every attention call until the end.

    Raises:
        ValueError: the attention function of this architecture cannot be switched.
    """
    with _switched(model, partial(_around, correct)):
        yield


@contextmanager
def replaced_by(model: Any, function: Function) -> Iterator[None]:
    """Let every attention call, of this model or another, be this function's until the end.

    Raises:
        ValueError: the attention function of this architecture cannot be switched.
    """
    with _switched(model, lambda *_: function):
        yield


@contextmanager
def _switched(model: Any, make: Callable[[str, Function | None], Function]) -> Iterator[None]:
    """Replace every attention function that this model may call by what is made of it."""
    if not model._can_set_attn_implementation():
        raise ValueError(f"{type(model).__name__} cannot switch its attention function")
    with ExitStack() as stack:
        for mapping, name in _looked_up(model):
            stack.enter_context(_replaced(mapping, name, make))
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
    mappings = {id(m): m for file in files if (m := getattr(file, FUNCTIONS, None)) is not None}
    return [(mapping, name) for mapping in mappings.values() for name in names]


FUNCTIONS = "ALL_ATTENTION_FUNCTIONS"


@contextmanager
def _replaced(
    functions: Any, name: str, make: Callable[[str, Function | None], Function]
) -> Iterator[None]:
    """Replace the function under this name in a mapping by what is made of it."""
    inner = functions.get(name)  # None: eager, which each file has for itself
    try:
        del functions[name]
        own = True
    except KeyError:  # it stands in the mapping behind this one, which all share
        own = False
    functions[name] = make(name, inner)
    try:
        yield
    finally:
        del functions[name]
        if own:
            functions[name] = inner


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
        bias, scaling = more.get("position_bias"), more.get("scaling")
        call = AttentionCall(
            module=module,
            q=query[0],
            k=key[0],
            v=value[0],
            bias=None if bias is None else bias[0],
            scaling=query.size(-1) ** -0.5 if scaling is None else float(scaling),
            function=name if inner is None else _described(name, inner),
            _mask=attention_mask,
            _more=more,
            _texts=(query, key, value),
            _function=function,
            _made=(output, weights),
        )
        return correct(call, output), weights

    return attend


def _described(name: str, function: Any) -> str:
    """The name that a function is registered by, with its own where that is another."""
    own = getattr(function, "__qualname__", type(function).__name__).rsplit(".", 1)[-1]
    return f"{name!r}" if name == own else f"{name!r} ({own})"
