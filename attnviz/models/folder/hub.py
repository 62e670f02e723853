"""A hub id to a local folder: from the cache without a request, else downloaded once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attnviz.errors import ModelError, option
from attnviz.models.folder.files import (
    CONFIG,
    INDEX,
    MERGES,
    TOKENIZER,
    WEIGHTS,
    weight_files,
)
from attnviz.models.placement import COUNTED, KNOWN_MODELS, nearest

# Weights only as safetensors: pickled files can run code, so they are not even fetched.
PATTERNS = [
    *(CONFIG, WEIGHTS, INDEX, "model-*.safetensors"),
    *(TOKENIZER, *MERGES, "tokenizer_config.json", "generation_config.json", "card.json"),
    *("vocab.txt", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "additional_chat_templates/*.jinja"),
]
TIMEOUT = 10  # seconds


def fetch(name: str, revision: str | None, *, offline: bool, quiet: bool) -> Path:
    """The local folder of a hub model; one that is complete in the cache needs no request."""
    folder = cached(name, revision)
    if folder is not None:
        return folder
    if offline:
        raise _not_fetched(name, f"{option('offline')} was given")
    import huggingface_hub as hub
    from huggingface_hub.utils import disable_progress_bars

    if quiet:
        disable_progress_bars()
    with _download_errors(name, revision):
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=PATTERNS))


def cached(name: str, revision: str | None = None) -> Path | None:
    """The cached folder, if it holds the configuration, the tokenizer and all weights."""
    import huggingface_hub as hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError:
        raise _no_name(name) from None
    there = {path.name for path in folder.iterdir()}
    if CONFIG not in there or not (TOKENIZER in there or there.issuperset(MERGES)):
        return None
    try:
        return folder if weight_files(folder) else None
    except ModelError:  # an interrupted download: some files are missing
        return None


def cached_names() -> list[str]:
    """The models in the cache of the hub, whether all their files are there or not."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = sorted(Path(HF_HUB_CACHE).glob("models--*/snapshots/*"))
    names = (each.parts[-3].removeprefix("models--").replace("--", "/") for each in folders)
    return [*dict.fromkeys(names)]


def fetch_config(name: str, revision: str | None, *, offline: bool) -> Path:
    """The folder in the cache that holds a hub model's config.json, and perhaps nothing else."""
    import huggingface_hub as hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    def fetched(*, local: bool) -> Path:
        path = hub.hf_hub_download(name, CONFIG, revision=revision, local_files_only=local)
        return Path(path).parent

    try:
        return fetched(local=True)
    except LocalEntryNotFoundError:
        if offline:
            raise _not_fetched(name, f"{option('offline')} was given", COUNTED) from None
    except HFValidationError:
        raise _no_name(name) from None
    with _download_errors(name, revision, COUNTED):
        # A download is retried for a long time; this one request fails early.
        hub.HfApi().model_info(name, revision=revision, timeout=TIMEOUT)
        return fetched(local=False)


@contextmanager
def _download_errors(
    name: str, revision: str | None, names: Sequence[str] = KNOWN_MODELS
) -> Iterator[None]:
    """Turn the errors of a download into sentences; `name` may misspell one of `names`."""
    from huggingface_hub.errors import (
        GatedRepoError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)  # it reports every try
    try:
        yield
    except RevisionNotFoundError:
        raise ModelError(
            f"the model {name!r} has no revision {revision!r}",
            f"correct {option('revision')}, or leave it out",
        ) from None
    except GatedRepoError:
        raise ModelError(
            f"the hub gives {name!r} only to those who accepted its terms",
            "accept them on its page, then run: hf auth login",
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"the hub has no model {name!r}{nearest(name, names)}",
            "check its name; a model that is not public needs: hf auth login",
        ) from None
    except RemoteEntryNotFoundError:
        raise ModelError(
            f"the hub has {name!r}, but no {CONFIG} in it", "use a model that transformers can load"
        ) from None
    except Exception:  # without a network, a library in there can raise anything
        raise _not_fetched(name, "the hub could not be reached", names) from None
    finally:
        logging.set_verbosity(verbosity)


def _no_name(name: str) -> ModelError:
    return ModelError(
        f"{name!r} is neither a folder nor a model's name{nearest(name)}",
        "give builtin, a hub id such as gpt2, or a folder",
    )


def _not_fetched(name: str, why: str, names: Sequence[str] = KNOWN_MODELS) -> ModelError:
    return ModelError(
        f"the model {name!r}{nearest(name, names)} is not in the cache and was not fetched: {why}",
        f"fetch it once where there is a network (hf download {name}), or use builtin"
        + (f"; the folder {name} here is ./{name}" if Path(name).is_dir() else ""),
    )
