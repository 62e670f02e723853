"""tokenizer.json with the steps that transformers would put together for a folder, without it.

The classes of transformers keep the vocabulary and the merges of a tokenizer.json, and build the
steps around them anew. Here is what four of them build. Where it is not certain that the result
would be the same, the folder is left to transformers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnviz.models.folder.files import CONFIG, read_object
from attnviz.models.folder.tokenizer import tokenizer_settings

Json = dict[str, Any]

AS_SAVED = ("TokenizersBackend", "PreTrainedTokenizer")
REGISTERED = {
    "qwen2": "Qwen2Tokenizer",
    **dict.fromkeys(("granite", "mistral", "olmo2", "phi3", "stablelm"), "TokenizersBackend"),
}
"""Models whose class does not depend on the one that their files name."""
UNNAMED = {
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "GemmaTokenizer"),
    "qwen3": "Qwen2Tokenizer",
}
"""The class of a model whose files name none, where it is not that of a saved tokenizer."""
SPACE = "\u2581"
REPLACED: Json = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
PIECES: list[Json] = [REPLACED, {"type": "ByteFallback"}, {"type": "Fuse"}]
BYTES: Json = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLIT: Json = {
    "type": "Split",
    "pattern": {"Regex": WORDS},
    "behavior": "Isolated",
    "invert": False,
}
IN_BYTES: Json = {**BYTES, "add_prefix_space": False, "use_regex": False}
QWEN2: Json = {
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, IN_BYTES]},
    "decoder": {**BYTES, "use_regex": True},
}
GPT2: Json = {
    "normalizer": None,
    "pre_tokenizer": {**BYTES, "add_prefix_space": False, "use_regex": True},
    "decoder": {**BYTES, "use_regex": True},
}
GEMMA: Json = {
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
    "pre_tokenizer": {
        **{"type": "Split", "pattern": {"String": " "}},
        **{"behavior": "MergedWithPrevious", "invert": False},
    },
    "decoder": {"type": "Sequence", "decoders": PIECES},
}
MODELS: Mapping[str, Json] = {
    "LlamaTokenizer": {"fuse_unk": True, "byte_fallback": True, "unk_token": None},
    "GemmaTokenizer": {"fuse_unk": True, "byte_fallback": True, "unk_token": "<unk>"},
    "Qwen2Tokenizer": {"fuse_unk": False, "byte_fallback": False, "unk_token": None},
    "GPT2Tokenizer": {"fuse_unk": False, "byte_fallback": False, "unk_token": None},
}
"""What each class asks of its BPE."""


def with_its_steps(folder: Path, raw: Mapping[str, Any]) -> Json | None:
    """The content of a tokenizer.json as transformers would use it; None if that is not known."""
    settings, config = tokenizer_settings(folder), read_object(folder / CONFIG)
    model = raw["model"]
    kind = str(config.get("model_type"))
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    name = named or UNNAMED.get(kind, AS_SAVED[0])
    known = isinstance(name, str) and isinstance(model, dict) and not settings.get("auto_map")
    if not known or not _same_tokens(settings, raw):
        return None
    name = REGISTERED.get(kind, str(name).removesuffix("Fast"))
    in_bytes = "'ByteLevel'" in repr(raw.get("pre_tokenizer"))
    if name == "LlamaTokenizer" and in_bytes:
        name = AS_SAVED[0]
    built: Json = {}
    if name not in AS_SAVED:
        if name not in MODELS or model.get("type") != "BPE":
            return None
        unknown = MODELS[name]["unk_token"]
        if unknown is not None and unknown not in model["vocab"]:
            return None
        flags = {"dropout": None, "ignore_merges": False, **MODELS[name]}
        built = {**steps_of(name, settings), "model": {**model, **flags}}
    elif kind == "mistral" and len(model.get("vocab") or ()) > 100_000:
        return None  # transformers mends the pattern of some of them
    return {**raw, **built}


def split_by(regex: str) -> Json:
    """The step that splits a text by an expression, then into bytes."""
    split = {**SPLIT, "pattern": {"Regex": regex}}
    return {"type": "Sequence", "pretokenizers": [split, IN_BYTES]}


def steps_of(name: str, settings: Mapping[str, Any]) -> Json:
    """The steps that a class of transformers builds with these settings."""
    if name == "GPT2Tokenizer":
        first = bool(settings.get("add_prefix_space", False))
        return {**GPT2, "pre_tokenizer": {**GPT2["pre_tokenizer"], "add_prefix_space": first}}
    if name != "LlamaTokenizer":
        return GEMMA if name == "GemmaTokenizer" else QWEN2
    prefix = settings.get("add_prefix_space") is not False
    scheme = "always" if settings.get("legacy") else "first"
    before = {"type": "Metaspace", "replacement": SPACE, "split": False}
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * prefix
    return {
        "normalizer": None,
        "pre_tokenizer": {**before, "prepend_scheme": scheme if prefix else "never"},
        "decoder": {"type": "Sequence", "decoders": [*PIECES, *strip]},
    }


SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "mask_token", "sep_token")
KEPT = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


def _content(token: object) -> object:
    return token.get("content") if isinstance(token, dict) else token


def _same_tokens(settings: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """Whether the settings name no token that is not among the added ones, or is other there."""
    added = {str(token["id"]): token for token in raw.get("added_tokens") or ()}
    contents = {token["content"] for token in added.values()}
    extra = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    own = [_content(settings.get(name)) for name in SPECIAL]
    own += [*map(_content, extra.values() if isinstance(extra, dict) else extra)]
    if any(each is not None and each not in contents for each in own):
        return False
    listed = settings.get("added_tokens_decoder") or {}
    return isinstance(listed, dict) and all(
        id_ in added and all(added[id_].get(key) == token.get(key) for key in KEPT)
        for id_, token in listed.items()
    )
