"""The tensors of a model's folder: read, and checked against what its configuration says."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.folder.files import PICKLED, damaged, unpickled, weight_files

LOOKED_THROUGH = 1 << 24
"""A model of so many parameters is looked through for NaN when it is loaded; what a larger one
computes is looked at instead."""


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of model.safetensors, or of its several files, by name.

    Raises:
        ModelError: the file is missing, truncated, or pickled and more than tensors.
    """
    tensors: dict[str, Tensor] = {}
    try:
        for path in weight_files(folder):
            tensors.update(unpickled(path) if path.name == PICKLED else load_file(path))
    except (SafetensorError, OSError) as error:
        raise damaged(folder, error) from None
    return tensors


def check_shapes(
    expected: Mapping[str, tuple[int, ...]], found: Mapping[str, Tensor], folder: Path
) -> None:
    """Every expected tensor is there, with the shape that the configuration says.

    Raises:
        ModelError: naming the first tensor that is missing or has another shape.
    """
    for name, shape in expected.items():
        if name not in found:
            raise lacks(folder, name)
        if tuple(found[name].shape) != shape:
            raise other_shape(folder, name, tuple(found[name].shape), shape)


def lacks(folder: Path, name: str) -> ModelError:
    """The error for a tensor that is not in the weights."""
    return ModelError(
        f"the weights in {str(folder)!r} lack {name}, which config.json asks for",
        "use the config.json that belongs to these weights",
    )


def other_shape(
    folder: Path, name: str, found: tuple[int, ...], expected: tuple[int, ...]
) -> ModelError:
    """The error for a tensor whose shape is not the one that the configuration says."""
    return ModelError(
        f"in {str(folder)!r} the weights of {name} have the shape {found}, but config.json "
        f"asks for {expected}",
        "use the config.json that belongs to these weights",
    )


def check_finite(parameters: Mapping[str, Tensor], folder: Path) -> None:
    """No weight of a model that is not too large to be looked through is NaN or infinite.

    Raises:
        ModelError: naming the first tensor that holds one.
    """
    if sum(parameter.numel() for parameter in parameters.values()) > LOOKED_THROUGH:
        return
    for name, parameter in parameters.items():
        # One sum tells: a NaN or an infinity anywhere survives it.
        if not torch.isfinite(parameter.float().sum()):
            raise ModelError(
                f"the weights of {name} in {str(folder)!r} hold NaN or infinite numbers",
                "the training that made them went wrong; use another checkpoint",
            )
