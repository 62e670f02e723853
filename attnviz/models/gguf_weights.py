"""The weights in a GGUF file, as transformers has them."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory

import numpy as np
import torch
from gguf import GGMLQuantizationType, dequantize
from safetensors.torch import save_file
from torch import Tensor

from attnviz.models.folder.files import LINK, SHAPES, WEIGHTS
from attnviz.models.folder.gguf import (
    PLAIN,
    GgufFile,
    damaged_gguf,
    is_turned,
    published,
    read_gguf,
)

TYPES = dict(zip(PLAIN, (torch.float32, torch.float16, torch.bfloat16), strict=True))


def read_quantised(path: Path, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Each tensor of a GGUF file as transformers has it, dequantised one after another."""
    file = read_gguf(path)
    content = np.memmap(file.path, mode="c")  # what is written to it stays in this process
    for own, tensor in file.tensors.items():
        name = published(file, own)
        if name is None:
            continue
        held = content[tensor.offset : tensor.offset + tensor.size]
        if tensor.kind in TYPES:
            values = torch.from_numpy(held).view(TYPES[tensor.kind])
        else:
            rows = held.reshape(*tensor.shape[:-1], -1)
            values = torch.from_numpy(dequantize(rows, GGMLQuantizationType[tensor.kind])).to(dtype)
        yield name, _as_trained(file, own, values.reshape(tensor.shape))


def _as_trained(file: GgufFile, name: str, values: Tensor) -> Tensor:
    """A tensor before llama.cpp's converter changed it.

    It puts the two numbers that a position turns beside each other, and adds 1 to Gemma's norms.
    """
    if is_turned(file, name):
        return values.t().contiguous()
    if file.architecture.startswith("gemma") and name.endswith("norm.weight"):
        return values - 1
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(name.split(".")[-2])
    if file.architecture != "llama" or heads is None:
        return values
    number = file.get(f"attention.{heads}")
    if not isinstance(number, int) or number < 1 or len(values) % (2 * number):
        raise damaged_gguf(file.path, f"{name} is not of {number} heads")
    pairs = values.reshape(number, -1, 2, *values.shape[1:])
    return pairs.transpose(1, 2).reshape(values.shape)


def save_dequantised(folder: Path, target: Path) -> None:
    """Write the folder of a GGUF file as transformers saves one, with its weights, or nothing."""
    read = read_quantised((folder / LINK).readlink(), torch.float32)
    tensors = {name: each.float().contiguous() for name, each in read}
    with TemporaryDirectory(prefix=".attnviz-", dir=target.absolute().parent) as beside:
        made = Path(beside) / target.name
        copytree(folder, made, ignore=ignore_patterns(LINK, SHAPES))
        save_file(tensors, made / WEIGHTS, metadata={"format": "pt"})
        for path in (made, *made.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        made.replace(target)
