"""A hub id to a local folder: from the cache without a request, else downloaded once."""

from pathlib import Path

from attnviz.errors import ModelError
from attnviz.models.folder import CONFIG, INDEX, MERGES, TOKENIZER, WEIGHTS
from attnviz.models.known import nearest

# Weights only as safetensors: pickled files can run code, so they are not even fetched.
PATTERNS = [
    *(CONFIG, WEIGHTS, INDEX, "model-*.safetensors"),
    *(TOKENIZER, *MERGES, "tokenizer_config.json", "card.json"),
]


def fetch(name: str, revision: str | None, *, offline: bool, quiet: bool) -> Path:
    """The local folder of a hub model.

    A complete folder in the cache is used as it is and causes no request at all.

    Raises:
        ModelError: not in the cache and offline, out of reach, or no such model.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import (
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import disable_progress_bars

    if quiet:
        disable_progress_bars()
    try:
        cached = _cached(name, revision)
        if cached is not None:
            return cached
        if offline:
            raise LocalEntryNotFoundError("--offline was given")
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=PATTERNS))
    except HFValidationError:
        raise ModelError(
            f"{name!r} is neither a folder nor a model's name",
            "give builtin, a hub id such as gpt2, or a folder",
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            f"the model {name!r} has no revision {revision!r}", "leave --revision out, or mend it"
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(f"the hub has no model {name!r}{nearest(name)}", _how(name)) from None
    except (LocalEntryNotFoundError, OSError) as error:
        why = "--offline was given" if offline else _reason(error)
        raise ModelError(
            f"the model {name!r} is not in the cache and was not fetched ({why}){nearest(name)}",
            _how(name),
        ) from None


def _cached(name: str, revision: str | None) -> Path | None:
    """The cached folder, if it holds configuration, tokenizer and weights."""
    import huggingface_hub as hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    there = {path.name for path in folder.iterdir()}
    complete = (
        CONFIG in there
        and not there.isdisjoint((WEIGHTS, INDEX))
        and (TOKENIZER in there or there.issuperset(MERGES))
    )
    return folder if complete else None


def _reason(error: Exception) -> str:
    return "the hub could not be reached" if not isinstance(error, PermissionError) else str(error)


def _how(name: str) -> str:
    return f"fetch it once where there is a network: hf download {name}, or use --model builtin"
