"""The folder that a GGUF file stands for, with its settings and its tokenizer as they are saved.

It is kept in the user's cache, with a link to the file in the place of weights; all that reads a
folder reads it.
"""

import atexit
import json
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from attnviz.errors import ModelError, series
from attnviz.models.folder.files import (
    CONFIG,
    LINK,
    SHAPES,
    TOKENIZER,
    UNPACKED,
    cache_folder,
    cut,
    is_size,
)
from attnviz.models.folder.gguf import ARCHITECTURES, GgufFile, damaged_gguf, read_gguf, shapes_of
from attnviz.models.folder.steps import GEMMA, GPT2, MODELS, SPACE, WORDS, Json, split_by, steps_of
from attnviz.models.folder.tokenizer import SETTINGS, check_tokenizer

FORMAT = 1
"""Changes with what is made of a file, so that no folder of an earlier version is taken."""


def folder_of_gguf(path: Path) -> Path:
    """The folder of a file; made once for each state of the file.

    Raises:
        ModelError: the file is damaged, or of a kind that attnviz does not read.
        UsageError: the package gguf is not installed.
    """
    path = path.expanduser().absolute()
    state = read_gguf(path).path.stat()
    about = repr((FORMAT, str(path), state.st_size, state.st_mtime_ns)).encode()
    mark = blake2b(about, digest_size=8).hexdigest()
    return _made(path, cache_folder() / f"{path.name[:80]}-{mark}")


def _made(path: Path, folder: Path) -> Path:
    """Write the folder, unless it is there whole; for this process alone if the cache is shut."""
    if folder in UNPACKED:
        return UNPACKED[folder]
    if all((folder / name).exists() for name in (CONFIG, TOKENIZER, SHAPES, SETTINGS, LINK)):
        return folder
    try:
        content = _files(read_gguf(path))
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
        raise damaged_gguf(path, error) from None
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".attnviz-", dir=folder.parent) as beside:
            _write(Path(beside) / "new", path, content)
            rmtree(folder, ignore_errors=True)  # a part of one, of which something was deleted
            os.rename(Path(beside) / "new", folder)
        return folder
    made = Path(mkdtemp(prefix="attnviz-"))
    atexit.register(rmtree, made, ignore_errors=True)
    with suppress(OSError):
        _write(made / "model", path, content)
        return UNPACKED.setdefault(folder, made / "model")
    raise ModelError(f"what is made of {str(path)!r} cannot be written", "make room on the disk")


def _write(folder: Path, path: Path, content: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / LINK).symlink_to(path)


def _files(file: GgufFile) -> dict[str, str]:
    """The texts of the folder's files, by name."""
    if file.architecture not in ARCHITECTURES:
        raise ModelError(
            f"attnviz reads the GGUF files of {series(ARCHITECTURES)}, but {str(file.path)!r} is "
            f"of {cut(file.architecture)}",
            "give the folder of the model that it was made from",
        )
    if file.settings.get("split.count", 1) > 1:
        raise ModelError(
            f"{str(file.path)!r} is one of several files",
            "join them with llama-gguf-split --merge",
        )
    shapes = shapes_of(file)
    tokenizer = _tokenizer(file)
    check_tokenizer(tokenizer)
    files: dict[str, Any] = {
        CONFIG: _config(file),
        TOKENIZER: tokenizer,
        SHAPES: shapes,
        "generation_config.json": {f"{name}_token_id": _id(file, name) for name in ("bos", "eos")},
        SETTINGS: {"tokenizer_class": "TokenizersBackend", **_special(file), **_adds(file)},
    }
    template = file.settings.get("tokenizer.chat_template")
    texts = {name: json.dumps(each, ensure_ascii=False) for name, each in files.items()}
    return texts | ({"chat_template.jinja": template} if isinstance(template, str) else {})


# The settings of the model.

LLAMA = {
    "context_length": "max_position_embeddings",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.key_length": "head_dim",
    "rope.freq_base": "rope_theta",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
GPT = {
    "context_length": "n_positions",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "embedding_length": "n_embd",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
WITH_WINDOW = ("llama", "phi3", "gemma2", "gemma3")
SCALED_BY_WIDTH = {("gemma2", 46), ("gemma3", 62)}
"""The architecture and layers of the 27B models, whose scores are scaled as llama.cpp knows it."""


def _config(file: GgufFile) -> Json:
    """The config.json of a file."""
    names = GPT if file.architecture == "gpt2" else LLAMA
    config: Json = {own: file.get(name) for name, own in names.items()}
    config = {name: value for name, value in config.items() if value is not None}
    for name, value in config.items():
        if not isinstance(value, int | float):
            raise ValueError(f"{name} is {cut(value)}")
    ends = [_id(file, name) for name in ("eos", "eot")]
    config |= {
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "bos_token_id": _id(file, "bos"),
        "eos_token_id": [*dict.fromkeys(id_ for id_ in ends if id_ is not None)] or None,
        "dtype": "float32",
    }
    if file.architecture == "gpt2":
        return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **config}
    whole = {**config, **_of_llama(file, config)}
    return {n: value for n, value in whole.items() if value is not None or n.endswith("_id")}


def _of_llama(file: GgufFile, config: Mapping[str, Any]) -> Json:
    """What a file says in another way than config.json, or not at all."""
    kind = own = file.architecture
    window = file.get("attention.sliding_window") if kind in WITH_WINDOW else None
    if own == "llama" and window:
        kind = "mistral"
    width = config["hidden_size"] // config["num_attention_heads"]
    d_head = config.get("head_dim", width)
    more: Json = {
        "model_type": "gemma3_text" if own == "gemma3" else kind,
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "tie_word_embeddings": "output.weight" not in file.tensors,
        # the config.json of these two has no such setting
        "head_dim": None if own in ("qwen2", "phi3") else d_head,
    }
    if window:
        more["sliding_window"] = window
    if own in ("llama", "qwen3") and "blk.0.attn_q.bias" in file.tensors:
        more["attention_bias"] = True
    if own in ("gemma2", "gemma3"):
        of_width = (own, config["num_hidden_layers"]) in SCALED_BY_WIDTH
        more["query_pre_attn_scalar"] = width if of_width else d_head
    turned = file.get("rope.dimension_count", d_head)
    if own == "phi3":
        more |= {"partial_rotary_factor": turned / d_head, "pad_token_id": None}
        more["original_max_position_embeddings"] = file.get(
            "rope.scaling.original_context_length", config["max_position_embeddings"]
        )
    elif (
        turned != d_head
        or (own == "qwen2" and d_head != width)
        or file.get("attention.value_length", d_head) != d_head
    ):
        raise ValueError(f"its heads have {d_head} numbers, of which {turned} are turned")
    rotation = _rotation(file, config["max_position_embeddings"])
    return more | ({"rope_scaling": rotation} if rotation else {})


def _rotation(file: GgufFile, longest: int) -> Json:
    """The scaling of positions; of a Llama 3 it stands as a factor for each frequency."""
    short, long = (
        _numbers(file, f"rope_factors_{name}.weight") or _numbers(file, "rope_freqs.weight")
        for name in ("short", "long")
    )
    trained = file.get("rope.scaling.original_context_length", longest)
    if short and long:
        factors = {"rope_type": "longrope", "short_factor": short, "long_factor": long}
        if file.architecture == "phi3":
            return factors
        same = {"factor": 1.0, "attention_factor": 1.0}
        return {**factors, **same, "original_max_position_embeddings": longest}
    name, factor = file.get("rope.scaling.type", "none"), file.get("rope.scaling.factor", 1.0)
    if name == "none" or factor in (0, 1):
        return {}
    scaling = {"rope_type": name, "factor": factor}
    return scaling | ({"original_max_position_embeddings": trained} if name == "yarn" else {})


def _numbers(file: GgufFile, name: str) -> list[float]:
    """The numbers of a small tensor; none of one that is not there."""
    tensor = file.tensors.get(name)
    if tensor is None:
        return []
    if tensor.kind != "F32" or len(tensor.shape) != 1:
        raise ValueError(f"{name} is not a list of numbers")
    with file.path.open("rb") as stream:
        stream.seek(tensor.offset)
        return [*array("f", stream.read(tensor.size))]


# The tokenizer.

CONTROL, USER_DEFINED = 3, 4
LONGEST_PIECE, MOST_CHARACTERS = 256, 1 << 22
PAIRS_OF_EACH = 8
"""Pairs of halves for each piece, of which real vocabularies have two."""
SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
LLAMA3 = WORDS.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
SPLITS: Mapping[str, str] = {
    **dict.fromkeys(("default", "gpt-2", "smollm", "phi-2", "olmo", "mpt"), ""),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "dbrx", "smaug-bpe"), LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), WORDS),
}
"""How text is split before its bytes are merged, by the names of llama.cpp; empty: as GPT-2's."""


def _id(file: GgufFile, name: str) -> int | None:
    id_ = file.settings.get(f"tokenizer.ggml.{name}_token_id")
    return id_ if is_size(id_, len(_tokens(file)) - 1) else None


def _tokens(file: GgufFile) -> list[str]:
    tokens = file.settings["tokenizer.ggml.tokens"]
    if not isinstance(tokens, list) or not all(isinstance(each, str) for each in tokens):
        raise ValueError("its tokens are not a list of texts")
    return tokens


def _special(file: GgufFile) -> Json:
    ids = {name: _id(file, key) for name, key in SPECIAL.items()}
    return {f"{name}_token": _tokens(file)[id_] for name, id_ in ids.items() if id_ is not None}


def _adds(file: GgufFile) -> dict[str, bool]:
    """Whether special tokens are put around a text; where it is not said, as llama.cpp does."""
    name, split = (file.settings.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    first = name == "llama" or SPLITS.get(split or "") == LLAMA3
    given = (file.settings.get(f"tokenizer.ggml.add_{key}_token") for key in ("bos", "eos"))
    bos, eos = (
        default if each is None else bool(each)
        for each, default in zip(given, (first, False), strict=True)
    )
    return {"add_bos_token": bos, "add_eos_token": eos}


def _tokenizer(file: GgufFile) -> Json:
    """The tokenizer.json of a file."""
    name = file.settings["tokenizer.ggml.model"]
    if name not in ("gpt2", "llama"):
        raise ModelError(
            f"the tokenizer in {str(file.path)!r} is of a kind that attnviz does not read: "
            f"{cut(name)}",
            "give the folder of the model that it was made from",
        )
    vocabulary, merges, steps = _bytes(file) if name == "gpt2" else _pieces(file)
    flags = MODELS["GPT2Tokenizer" if name == "gpt2" else "LlamaTokenizer"]
    unknown = "<unk>" if file.architecture.startswith("gemma") and "<unk>" in vocabulary else None
    return {
        "version": "1.0",
        "added_tokens": _added(file, vocabulary),
        **steps,
        "post_processor": _around(file),
        "model": {
            **{"type": "BPE", "vocab": vocabulary, "merges": merges, "dropout": None},
            **flags,
            "unk_token": unknown,
        },
    }


def _bytes(file: GgufFile) -> tuple[dict[str, int], list[str], Json]:
    """The vocabulary, the merges and the steps of a tokenizer of bytes."""
    split = SPLITS.get(file.settings.get("tokenizer.ggml.pre", "default"))
    if split is None:
        raise ModelError(
            f"the tokenizer in {str(file.path)!r} splits text in a way that attnviz does not "
            f"know: {cut(file.settings.get('tokenizer.ggml.pre'))}",
            "give the folder of the model that it was made from",
        )
    letters = byte_letters()
    alphabet = {*letters}
    vocabulary = {
        token
        if alphabet.issuperset(token)
        else "".join(letters[byte] for byte in token.encode()): i
        for i, token in enumerate(_tokens(file))
    }
    steps = {**GPT2, "pre_tokenizer": split_by(split)} if split else GPT2
    return vocabulary, file.settings["tokenizer.ggml.merges"], steps


def byte_letters() -> list[str]:
    """The letter of each byte in such a vocabulary: a visible one stands for itself."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = count(256)
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


def _pieces(file: GgufFile) -> tuple[dict[str, int], list[list[str]], Json]:
    """Those of a tokenizer of SentencePiece, whose merges follow from the scores of its pieces."""
    tokens, steps = _tokens(file), steps_of("LlamaTokenizer", {})
    rank: Sequence[float] = file.settings["tokenizer.ggml.scores"]
    if file.architecture.startswith("gemma"):
        tokens = [SPACE * len(each) if not each.strip(" ") else each for each in tokens]
        rank, steps = range(0, -len(tokens), -1), GEMMA
    elif file.architecture == "phi3":
        before = [{"type": "Prepend", "prepend": SPACE}, GEMMA["normalizer"]]
        steps |= {"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": before}}
    vocabulary = {token: i for i, token in enumerate(tokens)}
    return vocabulary, [*_merges(vocabulary, rank)], steps


def _merges(vocabulary: Mapping[str, int], rank: Sequence[float]) -> Iterator[list[str]]:
    """The pairs of pieces that make a piece, the best piece first; of it, the longest halves."""
    if sum(map(len, vocabulary)) > MOST_CHARACTERS or max(map(len, vocabulary)) > LONGEST_PIECE:
        raise ValueError("its pieces are too long")
    found: list[tuple[tuple[float, int, int], int, int]] = []
    for token, id_ in vocabulary.items():
        halves = ((token[:at], token[at:]) for at in range(1, len(token)))
        ids = ((vocabulary.get(a), vocabulary.get(b), len(a), len(b)) for a, b in halves)
        pairs = sorted((a, b, *sizes) for a, b, *sizes in ids if a is not None and b is not None)
        found += [((rank[id_], first, second), a, b) for a, b, first, second in pairs]
        if len(found) > PAIRS_OF_EACH * len(vocabulary):
            raise ValueError("its pieces can be put together in too many ways")
    found.sort(key=lambda pair: pair[0], reverse=True)
    tokens = {id_: token for token, id_ in vocabulary.items()}
    return ([tokens[a], tokens[b]] for _, a, b in found)


def _added(file: GgufFile, vocabulary: Mapping[str, int]) -> list[Json]:
    """The tokens that are never split: those of the model's own, and those that a user added."""
    kinds: Sequence[int] = file.settings.get("tokenizer.ggml.token_type", ())
    named = {*_special(file).values()}
    return [
        {
            **{"id": id_, "content": token, "special": kind == CONTROL or token in named},
            **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
        }
        for id_, (token, kind) in enumerate(zip(_tokens(file), kinds, strict=False))
        if (kind in (CONTROL, USER_DEFINED) or token in named) and vocabulary.get(token) == id_
    ]


def _around(file: GgufFile) -> Json:
    """The step that puts special tokens around a text, or the texts of a pair."""
    adds, special = _adds(file), _special(file)
    ids = {name: _id(file, name) for name in ("bos", "eos")}
    put = {name: adds[f"add_{name}_token"] and ids[name] is not None for name in ids}

    def text(name: str, number: int) -> list[Json]:
        token = {
            each: {"SpecialToken": {"id": special[f"{each}_token"], "type_id": number}}
            for each in put
            if put[each]
        }
        own = {"Sequence": {"id": name, "type_id": number}}
        return [each for each in (token.get("bos"), own, token.get("eos")) if each]

    return {
        "type": "TemplateProcessing",
        "single": text("A", 0),
        "pair": [*chain(text("A", 0), text("B", 1))],
        "special_tokens": {
            token: {"id": token, "ids": [ids[name]], "tokens": [token]}
            for name in put
            if put[name] and (token := special[f"{name}_token"])
        },
    }
