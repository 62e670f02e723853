"""A model's folder on disk: its files, without torch."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import ModelError
from attnviz.models.folder.gate import (
    LARGEST_HEADER,
    LARGEST_OBJECT,
    MOST_ITEMS,
    MOST_SETTINGS,
    check_settings,
    checked_header,
    cut,
    parse_json,
    read_bytes,
    read_json,
)

if TYPE_CHECKING:
    import torch

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = f"{WEIGHTS}.index.json"  # where the weights are in several files
ADAPTER, PARAMS = "adapter_config.json", "params.json"
PICKLED = "pytorch_model.bin"
WORDS = "words.txt"  # of a translator: the words that it was trained to translate, one a line
MERGES = ("vocab.json", "merges.txt")  # the first form of GPT-2's tokenizer


def bundled_folder(name: str) -> Path:
    """The folder of a bundled model, `builtin` or `translator`."""
    return Path(str(files("attnviz"))) / "builtin" / ("gpt" if name == "builtin" else name)


def builtin_folder() -> Path:
    """The folder of the built-in model."""
    return bundled_folder("builtin")


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; no name is too long to ask."""
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file system takes
        return False


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json, unchanged."""
    if not is_folder(folder):
        raise ModelError(f"there is no model folder {str(folder)!r}", "check the path")
    path = folder / CONFIG
    if not path.is_file():
        raise _no_config(folder)
    config = read_object(path, most=MOST_SETTINGS)
    check_settings(config, path)
    return config


def _no_config(folder: Path) -> ModelError:
    if (folder / ADAPTER).is_file():
        base = read_object(folder / ADAPTER).get("base_model_name_or_path")
        named = f" for {base!r}" if isinstance(base, str) and cut(base) == base != "" else ""
        return ModelError(
            f"the folder {str(folder)!r} holds a PEFT adapter alone{named}, and no model",
            "in Python, load that model with transformers, the adapter with "
            "peft.PeftModel.from_pretrained, and give both to attnviz.load_model(model, tokenizer)",
        )
    if (folder / PARAMS).is_file():
        return ModelError(
            f"the folder {str(folder)!r} is in its authors' format ({PARAMS}), without {CONFIG}",
            "use the model's version for transformers, or convert it",
        )
    return ModelError(
        f"the folder {str(folder)!r} has no {CONFIG}",
        f"choose a folder that a model was saved in ({CONFIG}, {WEIGHTS}, {TOKENIZER})",
    )


def read_object(path: Path, *, most: int = MOST_ITEMS) -> dict[str, Any]:
    """The object in a JSON file; arguments as in `read_json`."""
    read = read_json(path, most=most)
    if not isinstance(read, dict):
        raise ModelError(f"{str(path)!r} is no JSON object", "save it again")
    return read


def read_words(folder: Path) -> frozenset[str]:
    """The words of the folder's words.txt; none where it has no such file."""
    path = folder / WORDS
    try:
        content = read_bytes(path, LARGEST_OBJECT) if path.is_file() else b""
        return frozenset(content.decode("utf-8").split())
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r} cannot be read ({cut(error)})", "save it again") from None


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: one, or the several that an index names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        named = read_object(folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
        # a path of another folder is none of the model's files
        own = [name for name in names if Path(name).name == name and (folder / name).is_file()]
        missing = [name for name in names if name not in own]
        if not names or missing:
            raise ModelError(
                f"of the weights in {str(folder)!r} {cut((missing or ['all'])[0])} is missing",
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
    """The shape of every tensor, by name, from the headers of the weights."""
    return {name: shape for path in weight_files(folder) for name, shape in _shapes(path).items()}


def unpickled(path: Path) -> "dict[str, torch.Tensor]":
    """The tensors of a pickled checkpoint; nothing but tensors is ever unpickled."""
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
        shapes: dict[str, tuple[int, ...]] = {}
        for name, tensor in unpickled(path).items():
            held = tensor.untyped_storage().nbytes() // tensor.element_size()
            # one that repeats a few numbers holds no more than these
            shapes[name] = tuple(tensor.shape) if tensor.numel() <= held else (held,)
        return shapes
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(LARGEST_HEADER, size):
                raise ValueError("its header is longer than a header can be")
            return checked_header(parse_json(stream.read(length)), size - 8 - length)
    except OSError as error:
        raise ModelError(
            f"{str(path)!r} cannot be read: {error.strerror}", "see that it is yours to read"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"the weights in {str(path)!r} are damaged or incomplete ({cut(error)})",
            "copy or download the file again",
        ) from None
