"""A model's folder on disk: its files, without torch."""

import json
import math
from importlib.resources import files
from pathlib import Path
from typing import Any

from attnviz.errors import ModelError

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = f"{WEIGHTS}.index.json"  # where the weights are in several files
MERGES = ("vocab.json", "merges.txt")  # a tokenizer as GPT-2 first came with it


def builtin_folder() -> Path:
    """Where the bundled model lies."""
    return Path(str(files("attnviz.models"))) / "builtin"


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json as it stands.

    Raises:
        ModelError: the folder or the file is missing, or it is no JSON object.
    """
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {str(folder)!r}", "check the path")
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"the folder {str(folder)!r} has no {CONFIG}",
            f"choose a folder that a model was saved in ({CONFIG}, {WEIGHTS}, {TOKENIZER})",
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{str(path)!r} cannot be read ({error})", "save the model again"
        ) from None
    if not isinstance(config, dict):
        raise ModelError(f"{str(path)!r} is no model configuration", "save the model again")
    return config


def check_weights_exist(folder: Path) -> None:
    """Whole or in shards, as safetensors.

    Raises:
        ModelError: there are none, or only pickled ones (which could run code).
    """
    if not (folder / WEIGHTS).is_file() and not (folder / INDEX).is_file():
        pickled = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
        refused = f" (pickled weights such as {pickled[0].name} are not loaded)" if pickled else ""
        raise ModelError(
            f"the folder {str(folder)!r} has no {WEIGHTS}{refused}",
            "save the model there with save_pretrained, which writes safetensors",
        )


def _is_extra(name: str) -> bool:
    """Is it no parameter of its own: metadata, a mask buffer of old files, the tied output?"""
    return name.endswith((".attn.bias", ".attn.masked_bias", "lm_head.weight", "__metadata__"))


def count_parameters(folder: Path) -> int:
    """How many numbers model.safetensors holds, read from its header alone.

    Raises:
        ModelError: the file is missing or damaged.
    """
    path = folder / WEIGHTS
    check_weights_exist(folder)
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
        return sum(
            math.prod(entry["shape"]) for name, entry in header.items() if not _is_extra(name)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"the weights in {str(path)!r} are damaged or incomplete ({error})",
            "copy or download the file again",
        ) from None
