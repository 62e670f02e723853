"""A folder's tokenizer: the gate of tokenizer.json, and what transformers makes of other files.

A compiled tokenizer cannot be stopped from outside, neither by Ctrl-C nor by a limit of time. So
what would make its output huge is refused beforehand; a process of its own, with limits, would take
over 100 ms to start, 50 of them of a processor. A regular expression is not judged: its library
gives a search up that tries ten million ways at one place, and one that is slow at every place ends
with the process. transformers reads more than tokenizer.json: its own class for the model may put
the steps together anew, and settings beside it say whether a BOS is added. It is given a clean
copy, without any setting that names another file or code.
"""

import json
import re
import shlex
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer

from attnviz.errors import COMMAND, ModelError
from attnviz.models.folder.files import (
    CONFIG,
    TOKENIZER,
    cut,
    is_size,
    read_bytes,
    read_object,
    reason,
)

LARGEST_TOKENIZER = 1 << 26
"""The most bytes of a tokenizer.json; the largest of real models have half of it."""
MOST_TOKENS = 1 << 21
MOST_ADDED = 1 << 17
LONGEST_TOKEN = 1 << 10
MOST_LETTERS = 1 << 21
"""The most characters of all added tokens together, each as often as normalizers repeat one."""
LONGEST_WORD = 1_000
"""The longest word that WordPiece may cut, whose time grows with its square and more."""
MOST_STEPS = 64
MOST_AROUND = 64
"""The most special tokens that may be put around a text."""
LARGEST_GROWTH = 32
"""The most characters that may stand for one after all replacements."""
LONGEST_REGEX = 1 << 12
LONGEST_CHARSMAP = 1 << 22
LONGEST_MAPPED = 256
"""The most bytes that a map of characters may put for one."""
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
INSIDE = ("normalizers", "pretokenizers", "processors", "decoders")
"""Under which names a sequence keeps its steps."""


def check_tokenizer(raw: object) -> None:
    """Check the content of a tokenizer.json."""
    tokenizer = _object(raw, "the file")
    _check_model(_object(tokenizer.get("model"), "model"))
    steps = {part: list(_steps(tokenizer.get(part), MOST_STEPS)) for part in PARTS}
    for part in PARTS:
        _check_steps(part, steps[part])
    growth = _grown("text", [*steps["normalizer"], *steps["pre_tokenizer"]])
    check_added(tokenizer.get("added_tokens") or [], growth)


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def _check_model(model: Mapping[str, Any]) -> None:
    """Check the vocabulary, its ids, the token for unknown words, and the merges."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        words: Collection[Any] = vocabulary
        _check_ids(vocabulary.values())
    elif isinstance(vocabulary, list):
        words = [entry[0] for entry in vocabulary if isinstance(entry, list) and len(entry) == 2]
        if len(words) < len(vocabulary):
            raise ValueError("the vocabulary is not a list of words and scores")
    else:
        raise ValueError("it has no vocabulary")
    if not 0 < len(words) <= MOST_TOKENS:
        raise ValueError(f"the vocabulary has {len(words):,} tokens")
    check_words(words, "the vocabulary")
    longest = model.get("max_input_chars_per_word")
    if longest is not None and not is_size(longest, LONGEST_WORD):
        raise ValueError(f"max_input_chars_per_word is {cut(repr(longest))}")
    unknown, at = model.get("unk_token"), model.get("unk_id")
    needed = unknown is not None or model.get("type") in ("WordPiece", "WordLevel")
    if needed and unknown not in words:
        raise ValueError(f"the vocabulary lacks its token for unknown words, {cut(repr(unknown))}")
    if at is not None and not is_size(at, len(words) - 1):
        raise ValueError(f"unk_id {cut(at)} is outside the vocabulary")
    _check_merges(model.get("merges") or [])


def _check_ids(ids: Collection[Any]) -> None:
    whole = {*map(type, ids)} <= {int}  # a large vocabulary has 200,000, too many to call for each
    if not whole or not 0 <= min(ids, default=0) <= max(ids, default=0) <= MOST_TOKENS:
        raise ValueError(f"a token's id is not a whole number from 0 to {MOST_TOKENS:,}")


def check_words(words: Collection[object], where: str) -> None:
    wrong = [word for word in words if not isinstance(word, str) or len(word) > LONGEST_TOKEN]
    if wrong:
        raise ValueError(f"{where} holds {cut(repr(wrong[0]))}")


def _check_merges(merges: object) -> None:
    """Check that every merge is of two tokens: a list, or two words with a space between."""
    if not isinstance(merges, list) or len(merges) > MOST_TOKENS:
        raise ValueError("the merges are not a list of pairs")
    pairs = {*map(type, merges)} <= {list} and {*map(len, merges)} <= {2}
    if pairs and {*map(type, chain.from_iterable(merges))} <= {str} and all(map(all, merges)):
        return  # which half a million are found to be quickly
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        two = isinstance(pair, list) and len(pair) == 2
        if not two or not all(isinstance(token, str) and token for token in pair):
            raise ValueError(f"{cut(repr(merge))} is not a pair of tokens to merge")


def check_added(added: object, growth: int = LARGEST_GROWTH) -> None:
    """Check the added tokens; normalizers, which make a text grow, may be applied to them, too.

    Raises:
        ValueError: as `check_tokenizer`.
    """
    if not isinstance(added, list) or len(added) > MOST_ADDED:
        raise ValueError("the added tokens are not a list")
    for token in added:
        entry = _object(token, "an added token")
        _check_ids([entry.get("id")])
        check_words([entry.get("content")], "the list of added tokens")
        if not entry["content"]:
            raise ValueError("an added token is empty")
    if growth * sum(len(token["content"]) for token in added) > MOST_LETTERS:
        raise ValueError("the added tokens have too many characters")


def _steps(step: object, left: int) -> Iterator[Mapping[str, Any]]:
    """A step, or all steps of a sequence of them, to any depth."""
    if step is None:
        return
    if left == 0:
        raise ValueError("steps are nested too deep")
    step = _object(step, "a step")
    inside = [step[name] for name in INSIDE if isinstance(step.get(name), list)]
    if not inside:
        yield step
    for each in chain(*inside):
        yield from _steps(each, left - 1)


def _check_steps(part: str, steps: list[Mapping[str, Any]]) -> None:
    """Check the steps of one part, and by how much they can make a text grow."""
    if len(steps) > MOST_STEPS:
        raise ValueError(f"the {part} has {len(steps):,} steps")
    for step in steps:
        pattern, charsmap = step.get("pattern"), step.get("precompiled_charsmap")
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if regex is not None and (not isinstance(regex, str) or len(regex) > LONGEST_REGEX):
            raise ValueError("a regular expression is too long")
        for name in ("single", "pair"):
            if isinstance(step.get(name), list) and len(step[name]) > MOST_AROUND:
                raise ValueError(f"{len(step[name]):,} tokens are put around a text")
        special = step.get("special_tokens")
        for token in special.values() if isinstance(special, dict) else ():
            ids = _object(token, "a special token").get("ids")
            if not isinstance(ids, list) or len(ids) > MOST_AROUND:
                raise ValueError("a special token stands for too many")
        if charsmap is not None:
            if not isinstance(charsmap, str) or len(charsmap) > LONGEST_CHARSMAP:
                raise ValueError("the map of characters is too long")
            content = b64decode(charsmap)
            put = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
            if max(map(len, put)) > LONGEST_MAPPED:
                raise ValueError("the map of characters puts a long text for one")
    _grown(part, steps)


def _grown(what: str, steps: Sequence[Mapping[str, Any]]) -> int:
    """The number of characters that may stand for one after these steps."""
    growth = 1
    for step in steps:
        put = [step.get(name) for name in ("content", "prepend", "prefix", "suffix", "replacement")]
        growth *= max((len(text) for text in put if isinstance(text, str) and text), default=1)
    if growth > LARGEST_GROWTH:
        raise ValueError(f"its steps make a {what} more than {LARGEST_GROWTH} times as long")
    return growth


SETTINGS = "tokenizer_config.json"
SETTING_FILES = (SETTINGS, "special_tokens_map.json", "added_tokens.json")
TEXTS = (
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "emoji.json", "byte_maps.json"),
    *("word_shape.json", "word_pronunciation.json", "prophetnet.tokenizer"),
)
"""Vocabularies that transformers reads by itself; PIECES need a library of their own."""
PACKAGES = re.compile(r"sacremoses|rjieba|jieba|fugashi|sudachipy|rhoknp|phonemizer", re.I)
"""The packages that some tokenizers need, as their errors name them."""
PIECES = ("*.model", "*.spm", "*.tiktoken", "vocab.bpe")
ELSEWHERE = ("vocab", "merges", "name_or_path", "auto_map", "chat_template")
"""Settings that name other files or code, or are long; so do those that end in `_file`."""
TYPES = "token_type_ids"
"""The input of a model that distinguishes the texts of a pair."""
CONVERT = (
    "import sys, transformers as t; "
    "t.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])"
)
"""Writes tokenizer.json into the folder that is its argument."""


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """The folder's tokenizer_config.json; empty where it has none."""
    return read_object(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}


def backend_of(folder: Path) -> tuple[Any, bool]:
    """The fast tokenizer in what `transformers_tokenizer` makes, or one of Python; and whether it
    gives token types.

    Raises:
        ModelError: a file is too large or malformed.
        Exception: transformers cannot make one.
    """
    there = any((folder / name).is_file() for name in (TOKENIZER, *TEXTS))
    own = transformers_tokenizer(folder)
    if not there and (own.is_fast or own.vocab_files_names):
        # many classes begin with a vocabulary of a few special tokens, to which all is unknown
        raise FileNotFoundError("there is no vocabulary among them")
    if not own.is_fast:
        from attnviz.models.folder.python_tokenizer import PythonTokenizer

        check_words(own.get_vocab(), "the vocabulary")
        return PythonTokenizer(own), False
    backend: Tokenizer = own.backend_tokenizer
    if not (folder / TOKENIZER).is_file():
        check_tokenizer(json.loads(backend.to_str()))
    return backend, TYPES in own.model_input_names


def transformers_tokenizer(folder: Path, templates: Sequence[str] | None = None) -> Any:
    """Make the tokenizer of a folder with `AutoTokenizer`, without running code of its own.

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
    for name, value in kept.items():
        if name.endswith("_kwargs") and isinstance(value, dict):  # for another program: only names
            named = {k: v for k, v in value.items() if not isinstance(v, str) or v.isidentifier()}
            kept[name] = named
    added = kept.get("added_tokens_decoder")
    entries = list(added.values()) if isinstance(added, dict) else []
    check_added([{"id": 0, **entry} for entry in entries if isinstance(entry, dict)])
    texts = [value for value in kept.values() if isinstance(value, str)]
    if any(len(text) > LONGEST_TOKEN for text in (*kept, *texts)):
        raise ValueError("a setting is longer than a token can be")
    return kept


def no_tokenizer(folder: Path, error: Exception) -> ModelError:
    """The error for a folder without a tokenizer that attnviz can use, and how to make one."""
    if package := PACKAGES.search(str(error)):
        return ModelError(
            f"the tokenizer in {str(folder)!r} needs a package that is not there",
            f"install it{COMMAND}{package[0].lower()}",
        )
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
            f"the {name} that reads {held[0]} in {str(folder)!r} is a slow one, which has no "
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
    name = str(named or TOKENIZER_MAPPING_NAMES.get(architecture, "TokenizersBackend"))
    kind = getattr(transformers, name, getattr(transformers, name.removesuffix("Fast"), None))
    fast = isinstance(kind, type) and issubclass(kind, transformers.PreTrainedTokenizerFast)
    if fast or (kind is None and named):  # or code of its own
        return None
    return name if kind else f"tokenizer of {architecture}"
