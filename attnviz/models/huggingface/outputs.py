"""Attention of models that keep it to themselves: what their own modules return, by forward hooks.

Some architectures compute attention inside their modules, where no function of ours can
take its place. Loaded explicitly eager, the module returns its weights beside its
output; here they are taken from there, and dropped at once, so that never more than one
layer's matrix is held.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from torch import Tensor, nn

Heard: TypeAlias = Callable[[nn.Module, Tensor], None]
"""Is given a module and its pattern (h, n_q, n_k)."""

ASKED = "output_attentions"


@contextmanager
def listening(model: nn.Module, heard: Heard) -> Iterator[None]:
    """Let every attention module of the model return its weights, and hear them."""

    def ask(module: nn.Module, args: Any, kwargs: Any) -> Any:
        signature = inspect.signature(module.forward)
        if ASKED not in signature.parameters:
            return None  # it returns them unasked
        call = signature.bind(*args, **kwargs)
        call.arguments[ASKED] = True
        return call.args, call.kwargs

    def hear(module: nn.Module, _args: Any, output: Any) -> Any:
        found = [part for part in output if isinstance(part, Tensor) and part.dim() == 4]
        if not found:
            return None
        heard(module, found[0][0])
        return type(output)(None if part is found[0] else part for part in output)

    with ExitStack() as stack:
        for module in attention_modules(model):
            stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(hear).remove)
        yield


def attention_modules(model: nn.Module) -> list[nn.Module]:
    """The innermost modules that call themselves attention."""
    named = [m for m in model.modules() if "Attention" in type(m).__name__]
    return [m for m in named if not any(part in named for part in list(m.modules())[1:])]
