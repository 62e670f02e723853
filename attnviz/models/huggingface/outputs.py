"""The weights that attention modules return themselves, taken by forward hooks.

Some architectures compute attention inside their modules, where no function of ours can
take its place. In eager mode, such a module returns its weights beside its output. They are
taken from there and dropped at once, so that only one layer's matrix is held at a time.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from torch import Tensor, nn

Heard: TypeAlias = Callable[[nn.Module, Tensor], None]
"""Is given a module and its pattern (h, n_q, n_k)."""

OPTION = "output_attentions"


@contextmanager
def listening(model: nn.Module, heard: Heard) -> Iterator[None]:
    """Let every attention module of the model return its weights, and hand them to `heard`."""

    def request(module: nn.Module, args: Any, kwargs: Any) -> Any:
        signature = inspect.signature(module.forward)
        if OPTION not in signature.parameters:
            return None  # it always returns them
        call = signature.bind(*args, **kwargs)
        call.arguments[OPTION] = True
        return call.args, call.kwargs

    def hear(module: nn.Module, _args: Any, output: Any) -> Any:
        parts = (part for part in output if isinstance(part, Tensor) and part.dim() == 4)
        weights = next(parts, None)  # (1, h, n_q, n_k)
        if weights is None:
            return None
        heard(module, weights[0])
        without = [None if part is weights else part for part in output]
        named = hasattr(output, "_fields")  # a named tuple takes its parts one by one
        return type(output)(*without) if named else type(output)(without)

    with ExitStack() as stack:
        for module in attention_modules(model):
            stack.callback(module.register_forward_pre_hook(request, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(hear).remove)
        yield


def attention_modules(model: nn.Module) -> list[nn.Module]:
    """The innermost modules with attention in the name of their class."""
    named = [m for m in model.modules() if "Attention" in type(m).__name__]
    return [m for m in named if not any(part in named for part in list(m.modules())[1:])]
