"""A model's name to a loaded model."""

from difflib import get_close_matches
from pathlib import Path

from attnviz.errors import ModelError
from attnviz.models.checkpoint import WEIGHTS
from attnviz.models.loaded import LoadedModel

BUILTIN = "builtin"
HUB = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2")


def load(
    name: str = BUILTIN, revision: str | None = None, *, offline: bool = False, quiet: bool = False
) -> LoadedModel:
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
    if name not in HUB and (folder.is_dir() or _looks_like_a_path(name)):
        if revision is not None:
            raise ModelError(
                f"--revision {revision} was given for a folder",
                "leave it out; it chooses among versions of a hub model",
            )
        return load_huggingface(folder, name, None)
    from attnviz.models.hub import fetch

    folder = fetch(name, revision, offline=offline, quiet=quiet, nearest=nearest(name))
    return load_huggingface(folder, name, revision or folder.name)


def _builtin(revision: str | None) -> LoadedModel:
    from attnviz.models.native import builtin_folder, load_native, untrained

    if revision is not None:
        raise ModelError(
            "the built-in model has no revisions", "leave --revision out, or name a hub model"
        )
    folder = builtin_folder()
    return load_native(folder, BUILTIN) if (folder / WEIGHTS).is_file() else untrained()


def _looks_like_a_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def nearest(name: str) -> str:
    """`(did you mean gpt2?)`, or nothing where no known name is near."""
    near = get_close_matches(name, (BUILTIN, *HUB), n=1)
    return f" (did you mean {near[0]}?)" if near and near[0] != name else ""
