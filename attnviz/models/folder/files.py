"""A model's folder on disk: its files, without torch."""

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import ModelError

if TYPE_CHECKING:
    import torch

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = f"{WEIGHTS}.index.json"  # where the weights are in several files
PICKLED = "pytorch_model.bin"
WORDS = "words.txt"  # of a translator: the words that it was trained to translate, one a line
MERGES = ("vocab.json", "merges.txt")  # the first form of GPT-2's tokenizer


def bundled_folder(name: str) -> Path:
    """The folder of a bundled model, `builtin` or `translator`."""
    return Path(str(files("attnviz.models"))) / name


def builtin_folder() -> Path:
    """The folder of the built-in model."""
    return bundled_folder("builtin")


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json, unchanged.

    Raises:
        ModelError: the folder or the file is missing, or the file is no JSON object.
    """
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {str(folder)!r}", "check the path")
    path = folder / CONFIG
    if not path.is_file():
        raise ModelError(
            f"the folder {str(folder)!r} has no {CONFIG}",
            f"choose a folder that a model was saved in ({CONFIG}, {WEIGHTS}, {TOKENIZER})",
        )
    return read_object(path)


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ModelError: the file cannot be read, or holds no object.
    """
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} cannot be read ({error})", "save it again") from None
    if not isinstance(read, dict):
        raise ModelError(f"{str(path)!r} is no JSON object", "save it again")
    return read


def read_words(folder: Path) -> frozenset[str]:
    """The words of the folder's words.txt; none where it has no such file.

    Raises:
        ModelError: it cannot be read.
    """
    path = folder / WORDS
    try:
        return (
            frozenset(path.read_text(encoding="utf-8").split()) if path.is_file() else frozenset()
        )
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r} cannot be read ({error})", "save it again") from None


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: one, or the several that an index names.

    Raises:
        ModelError: there is none, or one of several is missing.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        named = read_object(folder / INDEX).get("weight_map")
        names = sorted(set(named.values())) if isinstance(named, dict) else []
        missing = [name for name in names if not (folder / str(name)).is_file()]
        if not names or missing:
            raise ModelError(
                f"of the weights in {str(folder)!r} {missing[0] if missing else 'all'} is missing",
                "copy or download the model again",
            )
        return [folder / name for name in names]
    if (folder / PICKLED).is_file():
        return [folder / PICKLED]
    pickled = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
    refused = f" (pickled weights such as {pickled[0].name} are not loaded)" if pickled else ""
    raise ModelError(
        f"the folder {str(folder)!r} has no {WEIGHTS}{refused}",
        "save the model there with save_pretrained, which writes safetensors",
    )


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor, by name, from the headers of the weights.

    Raises:
        ModelError: a file is missing or damaged.
    """
    return {name: shape for path in weight_files(folder) for name, shape in _shapes(path).items()}


def unpickled(path: Path) -> "dict[str, torch.Tensor]":
    """The tensors of a pickled checkpoint; nothing but tensors is ever unpickled.

    Raises:
        ModelError: the file is damaged, or holds anything else, which could run code.
    """
    import torch

    try:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # written before torch had a format that can be mapped
            state = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): tensor for name, tensor in state.items() if tensor.dim() >= 0}
    except Exception:  # a foreign or damaged pickle can raise anything
        raise ModelError(
            f"the pickled weights in {str(path)!r} are damaged, or hold more than tensors, which "
            "is not loaded as it could run code",
            "save the model again with save_pretrained, which writes safetensors",
        ) from None


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    if path.name == PICKLED:
        return {name: tuple(tensor.shape) for name, tensor in unpickled(path).items()}
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(length, size)))
        entries = {n: e for n, e in header.items() if n != "__metadata__"}
        if size != 8 + length + max((e["data_offsets"][1] for e in entries.values()), default=0):
            raise ValueError("the file has another size than its header says")
        return {name: tuple(map(int, entry["shape"])) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"the weights in {str(path)!r} are damaged or incomplete ({error})",
            "copy or download the file again",
        ) from None


def damaged(folder: Path, error: Exception) -> ModelError:
    """The error for a model that cannot be read."""
    first_line = str(error).strip().split("\n")[0].rstrip(".")
    return ModelError(
        f"the model in {str(folder)!r} is damaged or incomplete ({first_line})",
        "copy or download it again",
    )
