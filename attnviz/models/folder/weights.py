"""The tensors of a model's folder: read, and checked against what its configuration says."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.folder.files import PICKLED, unpickled, weight_files, weight_shapes
from attnviz.models.folder.gate import check_asked, damaged

SEARCHED = 1 << 24
"""The most parameters that are searched for NaN when a model is loaded; of a larger model only
the output is checked."""


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of model.safetensors, or of its several files, by name."""
    tensors: dict[str, Tensor] = {}
    try:
        for path in weight_files(folder):
            tensors.update(unpickled(path) if path.name == PICKLED else load_file(path))
    except (SafetensorError, OSError) as error:
        raise damaged(folder, error) from None
    return tensors


def check_parameters(asked: int, folder: Path) -> None:
    """Check, before a model is built, that its weights hold as many numbers as it is to have."""
    check_asked(asked, sum(map(prod, weight_shapes(folder).values())), folder)


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
