"""Where a model runs, and in which number type; torch is imported only on demand."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attnviz.errors import ModelError, option
from attnviz.models.folder.files import weight_shapes
from attnviz.models.memory import SHARE, free_bytes, written
from attnviz.records.capture import ModelIdentity

if TYPE_CHECKING:
    import torch

Engine: TypeAlias = Literal["auto", "native", "transformers"]
Device: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
DType: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Placement:
    """Where and how a model runs; `max_memory` in bytes, None for a share of free memory."""

    device: Device = "auto"
    dtype: DType = "auto"
    max_memory: int | None = None

    @property
    def budget(self) -> int:
        """Bytes that may be used from here on."""
        return int(SHARE * free_bytes()) if self.max_memory is None else self.max_memory

    def torch_device(self) -> "torch.device":
        """The device; `auto` is a graphics processor if there is one.

        Raises:
            ModelError: this machine has no such device.
        """
        import torch

        there = ["cpu"]
        if torch.cuda.is_available():
            there.insert(0, "cuda")
        if torch.backends.mps.is_available():
            there.insert(0, "mps")
        if self.device not in ("auto", *there):
            raise ModelError(
                f"this machine has no {self.device} device",
                f"use {option('device', ' or '.join(there))}",
            )
        return torch.device(there[0] if self.device == "auto" else self.device)

    def torch_dtype(self) -> "torch.dtype":
        """The number type; `auto` is float32, in which a capture is exact."""
        import torch

        dtype = getattr(torch, "float32" if self.dtype == "auto" else self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype


def check_weights(folder: Path, placement: Placement) -> None:
    """Check, before they are read, that a folder's weights are whole and fit into memory.

    Raises:
        ModelError: a file is missing or damaged, or they do not fit.
    """
    numbers = sum(map(math.prod, weight_shapes(folder).values()))
    needed, room = numbers * placement.torch_dtype().itemsize, placement.budget
    half = f"run it in half precision ({option('dtype', 'bfloat16')}), or "
    more = f"raise {option('max_memory')}, or use a smaller model"
    check_room(needed, room, "this model", half + more if numbers * 2 <= room else more)


def check_room(needed: int, room: int, what: str, instead: str) -> None:
    """Check that `needed` bytes fit into `room`.

    Raises:
        ModelError: `what` needs more; `instead` says what would fit.
    """
    if needed > room:
        raise ModelError(
            f"{what} needs about {written(needed)} of memory, and {written(room)} may be used",
            instead,
        )


def model_bytes(model: ModelIdentity) -> int:
    """Bytes of a model's weights."""
    return model.parameters * (4 if model.dtype == "float32" else 2)


ANYWHERE = Placement()
