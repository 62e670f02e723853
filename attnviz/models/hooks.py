"""Hook points: named places in a model where a value can be read or replaced.

A hook point is an identity module, which costs nothing without a hook. Hooks are attached and
detached as PyTorch's own forward hooks.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from torch import Tensor, nn

Hook: TypeAlias = Callable[[Tensor], Tensor | None]
"""Is given the value at a hook point; a tensor that it returns replaces the value."""


class HookPoint(nn.Identity):
    """A named place in a model; passes its input on unless a hook replaces it."""


def hook_names(model: nn.Module) -> list[str]:
    """The dotted names of all hook points of a model, in the order of its modules."""
    return [name for name, module in model.named_modules() if isinstance(module, HookPoint)]


@contextmanager
def attached(model: nn.Module, hooks: Mapping[str, Hook]) -> Iterator[None]:
    """Attach hooks to the named hook points; detach all of them at the end, also on an error.

    Raises:
        KeyError: a name is not a hook point of this model (nothing stays attached).
    """
    with ExitStack() as stack:
        for name, hook in hooks.items():
            stack.enter_context(_attached_one(model, name, hook))
        yield


@contextmanager
def _attached_one(model: nn.Module, name: str, hook: Hook) -> Iterator[None]:
    points = dict(model.named_modules())
    if not isinstance(points.get(name), HookPoint):
        raise KeyError(f"{name!r} is no hook point; there are: {', '.join(hook_names(model))}")
    handle = points[name].register_forward_hook(lambda _module, _inputs, value: hook(value))
    try:
        yield
    finally:
        handle.remove()
