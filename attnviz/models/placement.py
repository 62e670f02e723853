"""The device and number type of a model; torch is imported only on demand."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.folder.files import weight_shapes
from attnviz.models.folder.params import GPT_SIZES, UNPUBLISHED, known_total
from attnviz.records.capture import ModelIdentity
from attnviz.records.heads import ModelFacts

if TYPE_CHECKING:
    import torch


Engine: TypeAlias = Literal["auto", "native", "transformers"]
Device: TypeAlias = str
"""`auto`, or a device as torch names it: `cpu`, `cuda:1`."""
DType: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Placement:
    """The device and number type of a model; `max_memory` in bytes, None: a share of the free."""

    device: Device = "auto"
    dtype: DType = "auto"
    max_memory: int | None = None

    @property
    def budget(self) -> int:
        """Bytes that may be used from here on."""
        return int(SHARE * free_bytes()) if self.max_memory is None else self.max_memory

    def torch_device(self) -> "torch.device":
        """The device; `auto` is a graphics processor if there is one."""
        import torch

        graphics = {"mps": torch.backends.mps, "cuda": torch.cuda}
        there = [*(name for name, kind in graphics.items() if kind.is_available()), "cpu"]
        device = there[0] if self.device == "auto" else self.device
        hint = f"use {option('device', ' or '.join(there))}"
        try:
            named = torch.device(device)
        except RuntimeError:
            wrong = f"{option('device', repr(device))} is not a device of PyTorch"
            raise UsageError(wrong, hint) from None
        try:
            torch.empty(1, device=named).item()  # a device that only describes has no number
        except Exception:  # of a device that is not there, each kind raises another
            raise ModelError(f"this machine has no {device} device", hint) from None
        return named

    def torch_dtype(self) -> "torch.dtype":
        """The number type; `auto` is float32, in which a capture is exact."""
        import torch

        dtype = getattr(torch, "float32" if self.dtype == "auto" else self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype


def check_weights(folder: Path, placement: Placement) -> None:
    """Check, before they are read, that a folder's weights are whole and fit into memory."""
    numbers = weight_count(folder)
    needed, room = numbers * placement.torch_dtype().itemsize, placement.budget
    half = f"run it in half precision ({option('dtype', 'bfloat16')}), or "
    more = f"raise {option('max_memory')}, or use a smaller model"
    check_room(needed, room, "this model", half + more if numbers * 2 <= room else more)


def weight_count(folder: Path) -> int:
    """The number of a folder's weights; a byte of mxfp4's blocks holds two."""
    shapes = weight_shapes(folder).items()
    return sum(math.prod(shape) * (1 + name.endswith("_blocks")) for name, shape in shapes)


def check_room(needed: int, room: int, what: str, instead: str) -> None:
    """Check that `needed` bytes fit into `room`."""
    if needed > room:
        raise ModelError(
            f"{what} needs about {written(needed)} of memory, but {written(room)} may be used",
            instead,
        )


def model_bytes(model: ModelIdentity) -> int:
    """Bytes of a model's weights."""
    return model.parameters * (4 if model.dtype == "float32" else 2)


ANYWHERE = Placement()


# The models that are known by name, with their sizes, without a file or a request.

BUILTIN, TRANSLATOR, SHAPES, EMBEDDINGS = "builtin", "translator", "shapes", "embeddings"
ENCODER = "shapes-vit"
BUNDLED = (BUILTIN, TRANSLATOR, SHAPES, ENCODER)
HUB_MODELS = tuple(
    ModelFacts(name, s.n_layer, s.n_head, known_total(name), s.n_positions, "from the hub, once")
    for name, s in GPT_SIZES.items()
    if name not in UNPUBLISHED
)
KNOWN_MODELS = (*BUNDLED, EMBEDDINGS, *(model.name for model in HUB_MODELS))
COUNTED = (*BUNDLED, *GPT_SIZES)


# How much memory there is, and a size as a person writes it; nothing heavy is imported.

SHARE = 0.8
"""The share of free memory that is used unless the user sets a limit."""
BATCH_TOKENS = 2048
"""The number of tokens of several runs that form a batch; more make no processor faster."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def free_bytes() -> int:
    """Bytes that can still be used on this machine, or in the container of this process."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, TypeError):
        available = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        free = int(available[1]) << 10 if available else free
    return min([free, *_left_to_groups()])


GROUPS = Path("/sys/fs/cgroup")
CGROUP_FILES = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Both versions of control groups: controller, limit, use, and cached files within the use."""


def _left_to_groups() -> Iterator[int]:
    """Bytes that each control group of this process may still use, where it has a limit."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller, *names, cached in CGROUP_FILES:
                if controller in controllers.split(","):
                    inside = GROUPS / controller / path.lstrip("/")
                    for group in (inside, *inside.parents):
                        with suppress(OSError, ValueError):  # no limit, or none of this version
                            limit, used = (int((group / name).read_text()) for name in names)
                            stat = (group / "memory.stat").read_text()
                            files = re.search(rf"^{cached} (\d+)", stat, re.MULTILINE)
                            yield limit - used + (int(files[1]) if files else 0)


def size_of(text: str) -> int:
    """Bytes from `4GB`, `500M` or `1.5 GiB`; a bare number is bytes.

    Raises:
        ValueError: it is not a size.
    """
    match = re.fullmatch(
        r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE
    )
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    return int(float(match[1]) * UNITS[match[2].upper()])


def written(size: int) -> str:
    """`1.5 GB`, `12 MB`: a size as a person reads it."""
    for unit in "TGM":
        if size >= UNITS[unit]:
            amount = size / UNITS[unit]
            return f"{amount:.1f} {unit}B" if amount < 10 else f"{amount:.0f} {unit}B"
    return f"{-(-size // UNITS['K'])} KB"
