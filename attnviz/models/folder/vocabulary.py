"""A folder's tokenizer as transformers makes it, from whatever files the folder has.

transformers reads more than tokenizer.json: its own class for the model may put the steps together
anew, and settings beside it say whether a BOS is added. It is given a clean copy, without any
setting that names another file or code.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer

from attnviz.errors import COMMAND, ModelError
from attnviz.models.folder.files import CONFIG, TOKENIZER, read_object
from attnviz.models.folder.gate import read_bytes, reason
from attnviz.models.folder.tokenizer import (
    LARGEST_TOKENIZER,
    LONGEST_TOKEN,
    check_added,
    check_tokenizer,
)

SETTINGS = "tokenizer_config.json"
SETTING_FILES = (SETTINGS, "special_tokens_map.json", "added_tokens.json")
TEXTS = ("vocab.txt", "vocab.json", "merges.txt")
"""Vocabularies that transformers reads by itself; PIECES need a library of their own."""
PIECES = ("*.model", "*.spm", "*.tiktoken", "vocab.bpe")
ELSEWHERE = ("vocab", "merges", "name_or_path", "auto_map", "chat_template")
"""Settings that name other files or code, or are long; so do those that end in `_file`."""
CONVERT = (
    "import sys, transformers as t; "
    "t.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])"
)
"""Writes tokenizer.json into the folder that is its argument."""


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """The folder's tokenizer_config.json; empty where it has none."""
    return read_object(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}


def backend_of(folder: Path) -> Tokenizer:
    """The fast tokenizer in what `transformers_tokenizer` makes.

    Raises:
        ModelError: a file is too large or malformed.
        Exception: transformers cannot make one.
    """
    if not any((folder / name).is_file() for name in (TOKENIZER, *TEXTS)):
        # many classes begin with a vocabulary of a few special tokens, to which all is unknown
        raise FileNotFoundError("there is no vocabulary among them")
    own = transformers_tokenizer(folder)
    if not hasattr(own, "backend_tokenizer"):
        raise TypeError(f"its {type(own).__name__} is a slow one, which tells no places of tokens")
    backend: Tokenizer = own.backend_tokenizer
    if not (folder / TOKENIZER).is_file():
        check_tokenizer(json.loads(backend.to_str()))
    return backend


def transformers_tokenizer(folder: Path, templates: Sequence[str] | None = None) -> Any:
    """What `AutoTokenizer` makes of a folder, without running code of its own.

    `templates`: the folder's files with chat templates; with them, a tokenizer of an unknown class
    will do, since only what is beside its vocabulary matters.

    Raises:
        ModelError: a file is too large or malformed.
        Exception: transformers cannot make one.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with TemporaryDirectory(prefix="attnviz-") as written:
        clean = Path(written)
        for name in (TOKENIZER, *TEXTS, *(templates or ())):
            if (folder / name).is_file():
                (clean / name).parent.mkdir(exist_ok=True)
                (clean / name).write_bytes(read_bytes(folder / name, LARGEST_TOKENIZER))
        config = read_object(folder / CONFIG)
        kept = {name: config[name] for name in ("model_type", "tokenizer_class") if name in config}
        (clean / CONFIG).write_text(json.dumps(kept))
        for name in SETTING_FILES:
            if (folder / name).is_file():
                read = read_object(folder / name)
                settings = _harmless(read)
                if name == SETTINGS and templates is not None:
                    settings["chat_template"] = read.get("chat_template")
                (clean / name).write_text(json.dumps(settings))
        try:
            return AutoTokenizer.from_pretrained(clean, **local)
        except Exception:
            if templates is None:
                raise
            return PreTrainedTokenizerFast.from_pretrained(clean, **local)


def _harmless(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that name no other file."""
    kept = {
        name: value
        for name, value in settings.items()
        if name not in ELSEWHERE and not name.endswith(("_file", "_object"))
    }
    added = kept.get("added_tokens_decoder")
    entries = list(added.values()) if isinstance(added, dict) else []
    check_added([{"id": 0, **entry} for entry in entries if isinstance(entry, dict)])
    texts = [value for value in kept.values() if isinstance(value, str)]
    if any(len(text) > LONGEST_TOKEN for text in (*kept, *texts)):
        raise ValueError("a setting is longer than a token can be")
    return kept


def no_tokenizer(folder: Path, error: Exception) -> ModelError:
    """The error for a folder without a tokenizer that attnviz can use, and how to make one."""
    held = sorted(path.name for pattern in PIECES for path in folder.glob(pattern))
    settings = tokenizer_settings(folder)
    if settings.get("auto_map") and not held:
        return ModelError(
            f"the tokenizer in {str(folder)!r} brings its own code, which attnviz never runs",
            f"save it as {TOKENIZER}, or use another model",
        )
    if not held:
        return ModelError(
            f"the folder {str(folder)!r} has no {TOKENIZER}, and transformers makes none of its "
            f"files ({reason(error, folder)})",
            "save the tokenizer beside the model (tokenizer.save_pretrained)",
        )
    if name := _slow_class(folder, settings):
        return ModelError(
            f"the {name} that reads {held[0]} in {str(folder)!r} is a slow one, which tells no "
            f"places of tokens and writes no {TOKENIZER}",
            f"use a version of this model that has a {TOKENIZER}, or another model",
        )
    return ModelError(
        f"the folder {str(folder)!r} has {held[0]}, but no {TOKENIZER}",
        f"write it{COMMAND}sentencepiece protobuf tiktoken && python -c {shlex.quote(CONVERT)} "
        f"{shlex.quote(str(folder))} (once)",
    )


def _slow_class(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """The folder's class of tokenizer where transformers has no fast one of it (Marian)."""
    import transformers
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    config = read_object(folder / CONFIG)
    architecture = str(config.get("model_type"))
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    # those that need a library are None where it is missing
    known = TOKENIZER_MAPPING_NAMES.get(architecture, "TokenizersBackend")
    name = str(named or known)
    kind = getattr(transformers, name, getattr(transformers, name.removesuffix("Fast"), None))
    if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedTokenizerFast):
        return None
    if kind is None and named:
        return None  # code of its own
    return name if kind else f"tokenizer of {architecture}"
