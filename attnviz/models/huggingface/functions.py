"""The attention of a transformers model, recorded at its own extension point.

transformers looks an attention function up by name, in a mapping that can be changed.
While a model is recorded, the function under the name of its own implementation is
replaced by one that calls it. The model, its configuration, its masks and its output do not
change. For the calls that a listener wants, the module's own `eager_attention_forward` gives
the weights as well, with everything that the model adds to them (position bias, soft caps,
windows, shared keys).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from torch import Tensor

from attnviz.models.huggingface.call import AttentionCall, eager_of

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

    def listen(call: AttentionCall, attend: Callable[[], Tensor]) -> Tensor:
        listener(call)  # first, as it may end the run
        return attend()

    with _switched(model, lambda inner: _around(inner, listen)):
        yield


@contextmanager
def corrected(model: Any, correct: Correct) -> Iterator[None]:
    """Let a function replace the output of every attention call until the end.

    Raises:
        ValueError: the attention function of this architecture cannot be switched.
    """
    with _switched(model, lambda inner: _around(inner, lambda c, attend: correct(c, attend()))):
        yield


@contextmanager
def replaced_by(model: Any, function: Function) -> Iterator[None]:
    """Let every attention call, of this model or another, be this function's until the end.

    Raises:
        ValueError: the attention function of this architecture cannot be switched.
    """
    with _switched(model, lambda _: function):
        yield


@contextmanager
def _switched(model: Any, make: Callable[[Function | None], Function]) -> Iterator[None]:
    """Replace every attention function that this model may call by what is made of it."""
    if not model._can_set_attn_implementation():
        raise ValueError(f"{type(model).__name__} cannot switch its attention function")
    configured = [m.config for m in model.modules() if hasattr(m, "config")]
    names = {config._attn_implementation for config in configured}
    classes = {kind for module in model.modules() for kind in type(module).__mro__}
    files = {sys.modules[kind.__module__] for kind in classes if kind.__module__ in sys.modules}
    # most files share one mapping; some have their own, with functions of their own in it
    mappings = {id(m): m for file in files if (m := getattr(file, FUNCTIONS, None)) is not None}
    with ExitStack() as stack:
        for mapping in mappings.values():
            for name in names:
                stack.enter_context(_replaced(mapping, name, make))
        yield


FUNCTIONS = "ALL_ATTENTION_FUNCTIONS"


@contextmanager
def _replaced(
    functions: Any, name: str, make: Callable[[Function | None], Function]
) -> Iterator[None]:
    """Replace the function under this name in a mapping by what is made of it."""
    inner = functions.get(name)  # None: eager, which each file has for itself
    try:
        del functions[name]
        own = True
    except KeyError:  # it stands in the mapping behind this one, which all share
        own = False
    functions[name] = make(inner)
    try:
        yield
    finally:
        del functions[name]
        if own:
            functions[name] = inner


def _around(
    inner: Function | None, around: Callable[[AttentionCall, Callable[[], Tensor]], Tensor]
) -> Function:
    """A function that hands the call to `around`, which may call `inner` for its output."""

    def attend(
        module: Any,
        query: Tensor,  # (B, h, n_q, d_k)
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **more: Any,
    ) -> tuple[Tensor, Tensor | None]:
        bias, scaling = more.get("position_bias"), more.get("scaling")
        call = AttentionCall(
            module=module,
            q=query[0],
            k=key[0],
            v=value[0],
            bias=None if bias is None else bias[0],
            scaling=query.size(-1) ** -0.5 if scaling is None else float(scaling),
            _mask=attention_mask,
            _more=more,
            _texts=(query, key, value),
        )
        function = inner or eager_of(module)
        weights: Tensor | None = None

        def attended() -> Tensor:
            nonlocal weights
            output: Tensor
            output, weights = function(module, query, key, value, attention_mask, **more)
            return output

        output = around(call, attended)
        return output, weights

    return attend
