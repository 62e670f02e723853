"""The weights of a model: read, checked against its configuration, identified by a fingerprint."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.folder.files import (
    LINK,
    PICKLED,
    check_asked,
    damaged,
    unpickled,
    weight_files,
    weight_shapes,
)

SEARCHED = 1 << 24
"""The most parameters that are searched for NaN when a model is loaded; of a larger model only
the output is checked."""


def read_weights(folder: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Read the tensors of model.safetensors, or of its several files, by name.

    `dtype`: the precision of those that are quantised in their file; others keep theirs.
    """
    tensors: dict[str, Tensor] = {}
    try:
        for path in weight_files(folder):
            if path.name == LINK:
                from attnviz.models.gguf_weights import read_quantised

                tensors.update(read_quantised(path.readlink(), dtype))
            else:
                tensors.update(unpickled(path) if path.name == PICKLED else load_file(path))
    except (SafetensorError, OSError) as error:
        raise damaged(folder, error) from None
    return tensors


def check_parameters(parameters: int, folder: Path) -> None:
    """Check, before a model is built, that its weights hold as many numbers as it is to have."""
    check_asked(parameters, sum(map(prod, weight_shapes(folder).values())), folder)


def check_shapes(
    expected: Mapping[str, tuple[int, ...]], tensors: Mapping[str, Tensor], folder: Path
) -> None:
    """Check that every expected tensor is there, with the shape that the configuration says."""
    for name, shape in expected.items():
        if name not in tensors:
            raise lacks(folder, name)
        if tuple(tensors[name].shape) != shape:
            raise other_shape(folder, name, tuple(tensors[name].shape), shape)


def lacks(folder: Path, name: str) -> ModelError:
    """The error for a tensor that is not in the weights."""
    return ModelError(
        f"the weights in {str(folder)!r} lack {name}, which config.json asks for",
        "use the config.json that belongs to these weights",
    )


def other_shape(
    folder: Path, name: str, shape: tuple[int, ...], expected: tuple[int, ...]
) -> ModelError:
    """The error for a tensor whose shape differs from the configuration."""
    return ModelError(
        f"in {str(folder)!r} the weights of {name} have the shape {shape}, but config.json "
        f"asks for {expected}",
        "use the config.json that belongs to these weights",
    )


def check_finite(parameters: Mapping[str, Tensor], folder: Path) -> None:
    """Check that no weight is NaN or infinite, unless the model is too large for a search."""
    if sum(parameter.numel() for parameter in parameters.values()) > SEARCHED:
        return
    for name, parameter in parameters.items():
        # a NaN or an infinity anywhere makes the sum NaN or infinite
        if not torch.isfinite(parameter.float().sum()):
            raise ModelError(
                f"the weights of {name} in {str(folder)!r} hold NaN or infinite numbers",
                "the training that made them went wrong; use another checkpoint",
            )


def fill(
    model: nn.Module,
    state: Mapping[str, Tensor],
    folder: Path,
    dtype: torch.dtype | None = torch.float32,
) -> None:
    """Give a model the checked weights of its folder, ready to run (no gradients).

    `dtype`: their precision in memory; None: that of the file.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    check_shapes(expected, state, folder)
    # the tensors stay the file's own, mapped: pages that are not used are never read
    own = {name: state[name] if dtype is None else state[name].to(dtype) for name in expected}
    model.load_state_dict(own, assign=True)
    check_finite(dict(model.named_parameters()), folder)
    model.eval().requires_grad_(False)


SAMPLES = 1024
"""Numbers of each tensor that are sampled: runs of neighbours, evenly spread."""
RUN = 32
CHUNK = 1 << 22  # numbers at a time, where all are
ADAPTER = ("active_adapters", "merged_adapters", "disable_adapters", "scaling")
"""The state of PEFT's layers, beside tensors, that decides what they do."""


def fingerprint(
    tensors: Mapping[str, Tensor],
    more: str = "",
    *,
    whole: bool = False,
    dtype: torch.dtype | None = None,
) -> str:
    """A digest of names, shapes, types, and of fixed samples of every tensor, or of all (`whole`).

    It depends neither on the device nor on the order of the tensors. `more`: what else decides what
    the model computes. `dtype`: the precision that they are computed in, if not their own.
    """
    digest = blake2b(more.encode(), digest_size=8)
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        digest.update(f"\0{name} {tuple(tensor.shape)} {dtype or tensor.dtype}\0".encode())
        if tensor.numel() and tensor.device.type != "meta":
            rows = tensor if tensor.dim() else tensor[None]
            chunk = max(1, CHUNK * len(rows) // rows.numel())
            for part in torch.split(rows, chunk) if whole else (_sampled(tensor),):
                part = part.to(dtype or part.dtype)
                digest.update(part.cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def as_it_is_now(model: Any) -> Any:
    """The loaded model, with the fingerprint and the hooks that it has by now."""
    check_evaluating(model.model)
    mark = fingerprint(*model.weights())
    identity = model.identity.with_hooks(len(list(own_hooks(model.model))))
    return replace(model, identity=replace(identity, fingerprint=mark))


def check_evaluating(model: nn.Module) -> None:
    """See that a model computes the same in each run."""
    if model.training:
        raise ModelError("this model is in training mode", "call its eval() first")


LIBRARIES = {"accelerate", "attnviz", "peft", "torch", "transformers"}
"""Packages whose hooks belong to the model."""


def own_hooks(model: nn.Module) -> Iterator[Any]:
    """The hooks on a model's modules that change its forward pass, and are not a library's."""
    for module in model.modules():
        for hook in (*module._forward_pre_hooks.values(), *module._forward_hooks.values()):
            package = getattr(hook, "__module__", None) or ""
            if package.partition(".")[0] not in LIBRARIES:
                yield hook


def with_all_bytes(model: Any) -> Any:
    """The loaded model with a fingerprint taken now, followed by that of all bytes."""
    weights = model.weights()
    if weights is None:
        return model
    both = (fingerprint(*weights, whole=whole) for whole in (False, True))
    return replace(model, identity=replace(model.identity, fingerprint="-".join(both)))


def _sampled(tensor: Tensor) -> Tensor:
    """Fixed samples (at most SAMPLES) of a tensor, which need not be contiguous."""
    size, runs = tensor.numel(), SAMPLES // RUN
    if size <= SAMPLES:
        return tensor.reshape(-1)
    step = (size - RUN) // (runs - 1)
    if tensor.is_contiguous():
        return tensor.as_strided((runs, RUN), (step, 1), tensor.storage_offset())
    places = (step * torch.arange(runs)[:, None] + torch.arange(RUN)).flatten().to(tensor.device)
    return tensor[torch.unravel_index(places, tensor.shape)]


def weights_in(model: nn.Module) -> tuple[dict[str, Tensor], str]:
    """The tensors of a model that are saved, tied ones once, and the state of its adapters."""
    kept, seen = dict[str, Tensor](), set[tuple[Any, ...]]()
    for name, tensor in model.state_dict().items():
        if not isinstance(tensor, Tensor):  # the extra state of a module
            continue
        place = tensor.data_ptr(), tuple(tensor.shape), tensor.dtype
        if place not in seen or not tensor.numel():
            seen.add(place)
            kept[name] = tensor
    states = [
        f"{name}.{what}={held}"
        for name, module in model.named_modules()
        for what in ADAPTER
        if isinstance(held := getattr(module, what, None), bool | list | dict)
    ]
    return kept, "\n".join(states)
