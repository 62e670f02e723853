"""A model's name to a loaded model."""

from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.data.card import ModelCard
from attnviz.errors import ModelError
from attnviz.models.card import read_card
from attnviz.models.folder import (
    CONFIG,
    WEIGHTS,
    builtin_folder,
    count_parameters,
    read_config,
)
from attnviz.models.known import BUILTIN, HUB_MODELS, NAMES, ModelFacts, nearest

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def known_models() -> tuple[ModelFacts, ...]:
    """The built-in model, and the models of the hub that need no more than their name."""
    return (_facts_of(builtin_folder(), BUILTIN, "bundled"), *HUB_MODELS)


def describe(name: str) -> tuple[ModelFacts, ModelCard]:
    """A model's sizes and card; nothing is fetched.

    Raises:
        ModelError: it is not known and no model's folder, or the folder is damaged.
    """
    if name == BUILTIN:
        return known_models()[0], read_card(builtin_folder(), name)
    for facts in HUB_MODELS:
        if facts.name == name:
            return facts, ModelCard(name, "", bos=False)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise ModelError(
            f"{name!r} is neither a known model nor a folder{nearest(name)}",
            f"known are {', '.join(NAMES)}",
        )
    return _facts_of(folder, name, "a folder"), read_card(folder, name)


def _facts_of(folder: Path, name: str, where: str) -> ModelFacts:
    config = read_config(folder)
    try:
        sizes = (int(config["n_layer"]), int(config["n_head"]))
        context = int(config["n_positions"])
    except (KeyError, TypeError, ValueError):
        raise ModelError(
            f"{str(folder / CONFIG)!r} describes no GPT-2", "choose the folder of a GPT-2 model"
        ) from None
    return ModelFacts(name, *sizes, count_parameters(folder), context, where)


def load(
    name: str = BUILTIN, revision: str | None = None, *, offline: bool = False, quiet: bool = False
) -> "LoadedModel":
    """Load a model: the bundled one, a local folder, or one from the hub's cache or the hub.

    A name that is both a folder here and a known hub model (`gpt2`) is the hub model;
    written as a path (`./gpt2`) it is the folder.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    if name == BUILTIN:
        return _builtin(revision)
    from attnviz.models.huggingface import load_huggingface

    folder = Path(name).expanduser()
    if name not in NAMES and (folder.is_dir() or _looks_like_a_path(name)):
        if revision is not None:
            raise ModelError(
                f"--revision {revision} was given for a folder",
                "leave it out; it chooses among versions of a hub model",
            )
        return load_huggingface(folder, name, None)
    from attnviz.models.hub import fetch

    folder = fetch(name, revision, offline=offline, quiet=quiet)
    return load_huggingface(folder, name, folder.name)  # the cache names it by its commit


def _builtin(revision: str | None) -> "LoadedModel":
    from attnviz.models.native import load_native, untrained

    if revision is not None:
        raise ModelError(
            "the built-in model has no revisions", "leave --revision out, or name a hub model"
        )
    folder = builtin_folder()
    return load_native(folder, BUILTIN) if (folder / WEIGHTS).is_file() else untrained()


def _looks_like_a_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1
