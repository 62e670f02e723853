"""Products of large matrices, by oneDNN.

On x86 PyTorch leaves products of float32 matrices to MKL, which uses half the width of the
registers of some processors (AVX-512 of AMD). oneDNN, which comes with PyTorch, takes half the time
there. Linear layers use it in scans, and scores of queries and keys wherever rows are computed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

PLAIN = (Tensor, nn.Parameter)
"""Types that hold nothing but numbers, unlike quantised ones."""
SHAPES = 16
"""Into how many lengths the keys of a text are cut."""
LARGE = 1 << 14
"""Products with fewer numbers take longer to ask for than to compute."""


@contextmanager
def fast_products(model: Any) -> Iterator[None]:
    """Let linear layers of this model on the processor use oneDNN; elsewhere nothing changes."""
    held: Any = getattr(model, "model", None)
    product = _product()
    if product is None or not _is_float32(held):
        yield
        return
    with _ByOneDNN(product):
        yield


def scores_of(rows: Tensor, keys: Tensor, *, out: Tensor) -> None:
    """Put rows·keys (g, r, n) of (g, r, d) and the first n keys of (g, m, d) into `out`."""
    n, product = out.size(2), _product()
    dense = rows.is_contiguous() and all(map(Tensor.is_contiguous, keys))
    if product is None or rows.device.type != "cpu" or out[0].numel() < LARGE or not dense:
        torch.bmm(rows, keys[:, :n].transpose(1, 2), out=out)
        return
    # oneDNN keeps code and memory for each shape, so that there are only a few
    step = max(128, keys.size(1) // SHAPES)
    most = -(-n // step) * step
    for group, own, seen in zip(out, rows, keys, strict=True):
        group.copy_(product(own, seen[:most], None, "none", [], "")[:, :n])


@cache
def _product() -> Callable[..., Tensor] | None:
    """The product x·Wᵀ + b of oneDNN; None where this PyTorch has none."""
    product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return product.default if product is not None and torch._C._has_mkldnn else None


def _is_float32(held: object) -> bool:
    """Whether this is a module whose numbers are all float32 in this machine's memory."""
    return isinstance(held, nn.Module) and all(
        type(p) in PLAIN and p.dtype == torch.float32 and p.device.type == "cpu"
        for p in held.parameters()
    )


class _ByOneDNN(TorchFunctionMode):
    """Passes every product with a weight matrix to oneDNN."""

    def __init__(self, product: Callable[..., Tensor]) -> None:
        super().__init__()
        self._product = product

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if not kwargs:
            if func is nn.functional.linear:
                x, weight, bias = (*args, None)[:3]
            elif func is torch.addmm:  # transformers' GPT-2 has weights the other way round
                bias, x, weight = args[0], args[1], args[2].t()
            else:
                return func(*args)
            if _fits(x, weight, bias):
                return self._product(x.contiguous(), weight, bias, "none", [], "")
        return func(*args, **(kwargs or {}))


def _fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether oneDNN multiplies these as PyTorch does."""
    numbers = (x, weight) if bias is None else (x, weight, bias)
    if not all(type(each) in PLAIN and _is_plain(each) for each in numbers):
        return False
    if bias is not None and not (bias.shape == weight.shape[:1] and bias.is_contiguous()):
        return False
    whole = weight.dim() == 2 and x.numel() > 0 and x.size(-1) == weight.size(1)
    return whole and (weight.is_contiguous() or weight.t().is_contiguous())


def _is_plain(each: Tensor) -> bool:
    on_processor = each.device.type == "cpu" and each.layout == torch.strided
    return on_processor and each.dtype == torch.float32 and each.dim() > 0
