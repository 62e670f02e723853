"""A forward pass of a transformers model, whose failures are told from our own."""

import re
from collections.abc import Callable
from inspect import signature
from types import TracebackType
from typing import Any

from attnviz.errors import ModelError
from attnviz.models.folder.gate import cut


def forward(model: Any, *, through: Callable[..., Any] | None = None, **inputs: Any) -> Any:
    """The output of a model, which may have hooks of ours.

    Args:
        model: a transformers model.
        through: one of its methods, instead of its own forward pass.
        inputs: the arguments.

    Raises:
        ModelError: transformers cannot run it on these inputs; the first line of its error is
            quoted.
        Exception: whatever a hook of ours raises.
    """
    try:
        return (through or model)(**inputs)
    except Exception as error:
        if error.__traceback__ and _is_ours(error.__traceback__.tb_next):
            raise
        import transformers

        said = str(error).strip().split("\n")[0] or type(error).__name__
        raise ModelError(
            f"transformers {transformers.__version__} itself cannot run this "
            f"{model.config.model_type} on this text ({cut(said)})",
            _advice(model),
        ) from None


OTHER_INPUTS = re.compile(r"(?:pixel|input)_(?:values|features)$|bbox$")


def _advice(model: Any) -> str:
    """What may help a model that fails on a text."""
    others = [name for name in signature(model.forward).parameters if OTHER_INPUTS.match(name)]
    if others:
        return (
            f"it also takes {others[0]}, which attnviz does not give it: use a model of text alone"
        )
    return "try a longer text or another model"


def _is_ours(frames: TracebackType | None) -> bool:
    """Whether an error was raised in attnviz, or passed through it."""
    while frames is not None:
        if str(frames.tb_frame.f_globals.get("__name__", "")).startswith("attnviz."):
            return True
        frames = frames.tb_next
    return False
