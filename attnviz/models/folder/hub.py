"""A hub id to a local folder: from the cache without a request, else downloaded once."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from attnviz.errors import ModelError, option
from attnviz.models.folder.files import (
    CONFIG,
    INDEX,
    MERGES,
    TOKENIZER,
    WEIGHTS,
    read_object,
    weight_files,
)
from attnviz.models.folder.gate import cut, is_number, is_size
from attnviz.models.placement import COUNTED, KNOWN_MODELS, nearest
from attnviz.records.heads import LONGEST_NAME, Figure, Head, ModelCard, NamedHead, every_head

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


# A folder's `card.json`, as the training writes it.

T = TypeVar("T")
CARD, SCHEMA = "card.json", 1
MOST, LARGEST = 1_000, 1 << 53
"""The most heads, or figures, that a card may name, and the largest number in it."""
TYPE_NAMES = {bool: "true or false", int: "whole number", str: "text", list: "list"}


def read_card(folder: Path, name: str, heads_per_layer: Sequence[int]) -> ModelCard:
    """The card of a model folder; an empty one where the folder has no card of this program."""
    path = folder / CARD
    raw = read_object(path) if path.is_file() else {}
    schema = raw.get("schema")
    if schema is True or schema != SCHEMA:  # another program may use the same file name
        return ModelCard(name, "", bos=False)
    try:
        card = _card(raw)
    except ValueError as error:
        raise ModelError(
            f"the card {str(path)!r} cannot be read ({error})", "write it again or remove it"
        ) from None
    known = every_head(heads_per_layer)
    for head in (*(named.head for named in card.heads), *card.retrieval):
        if head not in known:
            raise ModelError(
                f"the card {str(path)!r} names the head {head}, which the model lacks",
                "use the card that belongs to this model, or remove it",
            )
    return card


def _card(raw: dict[str, Any]) -> ModelCard:
    return ModelCard(
        name=_text(raw, "name"),
        description=_text(raw, "description"),
        bos=_get(raw, "bos", bool),
        heads=tuple(
            NamedHead(_text(head, "behaviour"), _head(_text(head, "head")), _text(head, "title"))
            for head in _entries(raw, "heads")
        ),
        figures=tuple(_figure(figure) for figure in _entries(raw, "figures")),
        loss_limit=None if raw.get("loss_limit") is None else _number(raw, "loss_limit"),
        retrieval=tuple(map(_head, _some(raw, "retrieval", "heads"))),
        stop=_stop(_some(raw, "stop", "texts")),
    )


def _some(raw: dict[str, Any], name: str, what: str) -> list[Any]:
    some = raw.get(name, [])
    if not isinstance(some, list) or len(some) > MOST:
        raise ValueError(f"{name} is no list of at most {MOST:,} {what}")
    return some


def _stop(texts: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(text, str) and 0 < len(text) <= LONGEST_NAME for text in texts):
        raise ValueError(f"stop has an entry that is no text of 1 to {LONGEST_NAME:,} characters")
    return tuple(texts)


def _head(name: object) -> Head:
    named = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name) if isinstance(name, str) else None
    if named is None:
        raise ValueError(f"{cut(repr(name))} is no head")
    return Head(int(named[1]), int(named[2]))


def _figure(raw: dict[str, Any]) -> Figure:
    n = _get(raw, "n", int)
    if not is_size(n, LARGEST):
        raise ValueError("n is no number of cases")
    return Figure(
        behaviour=_text(raw, "behaviour"),
        measure=_text(raw, "measure"),
        value=_number(raw, "held_out"),
        bar=None if raw.get("bar") is None else _number(raw, "bar"),
        n=n,
        texts=_text(raw, "texts") if "texts" in raw else "",
    )


def _entries(raw: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = _get(raw, name, list)
    if len(entries) > MOST or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{name} is no list of at most {MOST:,} objects")
    return cast("list[dict[str, Any]]", entries)


def _text(raw: dict[str, Any], name: str) -> str:
    text = _get(raw, name, str)
    if len(text) > LONGEST_NAME:
        raise ValueError(f"{name} has more than {LONGEST_NAME:,} characters")
    return text


def _number(raw: dict[str, Any], name: str) -> float:
    value = raw.get(name)
    if not is_number(value) or abs(value) > LARGEST:
        raise ValueError(f"{name} is no number")
    return float(value)


def _get(raw: dict[str, Any], name: str, kind: type[T]) -> T:
    value = raw.get(name)
    if type(value) is not kind:  # not isinstance: True is no number here
        raise ValueError(f"{name} is missing, or no {TYPE_NAMES[kind]}")
    return value
