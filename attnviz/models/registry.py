"""What a transformers model's attention computes, recorded at its own extension point.

transformers lets a name be registered for an attention function and for the function
that makes its masks. Under our name the output is computed by the model's original
function, from the masks that belong to it, so nothing that the model computes changes;
for the calls that a listener wants, the module's own `eager_attention_forward` gives
the weights as well, with whatever the model adds to them (position bias, soft caps,
windows, shared keys).
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from attnviz.data.capture import Kind

NAME = "attnviz"


@dataclass(frozen=True)
class AttentionCall:
    """One attention module at work, for the one text of the batch.

    q (h, n_q, d_k); k and v (kv_heads, n_k, d_k), after rotation; `mask` (n_q, n_k) is
    added to the scores, None where every key is seen; `bias` (h, n_q, n_k) likewise;
    `scaling` multiplies q·k.
    """

    module: Any
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    bias: Tensor | None
    scaling: float
    _eager: Callable[[], Tensor]

    def weights(self) -> Tensor:
        """The pattern (h, n_q, n_k), by the module's own eager function."""
        return self._eager()


Listener: TypeAlias = Callable[[AttentionCall], None]

_listeners: list[tuple[str, Listener]] = []  # the original implementation, who listens


@contextmanager
def recording(model: Any, listener: Listener) -> Iterator[None]:
    """Let the listener hear every attention call of the model; restored at the end.

    Raises:
        ValueError: this architecture cannot switch its attention function.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    original = model.config._attn_implementation
    if not model._can_set_attn_implementation():
        raise ValueError(f"{type(model).__name__} cannot switch its attention function")
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS[original])
    _listeners.append((original, listener))
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(original)
        _listeners.pop()


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """The registered function: (B, h, n, d_k) in, the original's output out."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    original, listener = _listeners[-1]
    eager = sys.modules[type(module).__module__].eager_attention_forward
    mask = _additive(module, query, key, attention_mask, more)

    def weights() -> Tensor:
        found: Tensor = eager(module, query, key, value, mask, **more)[1]
        return found[0]

    bias = more.get("position_bias")
    scaling = more.get("scaling")
    listener(
        AttentionCall(
            module=module,
            q=query[0],
            k=key[0],
            v=value[0],
            mask=None if mask is None else mask[0, 0],
            bias=None if bias is None else bias[0],
            scaling=query.size(-1) ** -0.5 if scaling is None else float(scaling),
            _eager=weights,
        )
    )
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(original, eager)
    output: tuple[Tensor, Tensor | None] = attend(module, query, key, value, attention_mask, **more)
    return output


def _additive(
    module: Any, query: Tensor, key: Tensor, mask: Tensor | None, more: dict[str, Any]
) -> Tensor | None:
    """The mask as eager functions take it: numbers to add; a missing one may mean causal."""
    lowest = torch.finfo(query.dtype).min
    if mask is not None and mask.dtype is not torch.bool:
        return mask[..., : key.size(-2)]
    if mask is not None:
        return torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, lowest)
    causal = more.get("is_causal")
    if query.size(-2) == 1 or not (
        getattr(module, "is_causal", False) if causal is None else causal
    ):
        return None
    n_q, n_k = query.size(-2), key.size(-2)
    future = torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1)
    return torch.zeros(1, 1, n_q, n_k, dtype=query.dtype).masked_fill(future, lowest)


def layer_of(module: str) -> int:
    """The layer that a module belongs to: the first number in its dotted name."""
    found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", module)
    return int(found[1]) if found else -1


def kind_of(module: str) -> Kind:
    """Which of an encoder-decoder's attentions a module is, by its dotted name."""
    if re.search(
        r"encoder_attn|encdecattention|cross_?attention|cross_attn", module, re.IGNORECASE
    ):
        return "cross"
    return "encoder" if "encoder" in module.split(".") else "decoder"
