"""A model's folder on disk: its files, each checked at this gate before anything is built from it.

A model's folder is a download from a stranger. Sizes are checked against the files that are there,
because a few bytes of configuration can ask for any amount of memory or time. Whatever fails a
check, here or where a folder is read, is a `ModelError` that names it.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import AttnvizError, ModelError

if TYPE_CHECKING:
    import torch

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
IMAGES = "preprocessor_config.json"  # how images are read
INDEX = f"{WEIGHTS}.index.json"  # where the weights are in several files
ADAPTER, PARAMS = "adapter_config.json", "params.json"
PICKLED, GGUF = "pytorch_model.bin", ".gguf"
LINK, SHAPES = "attnviz-model.gguf", "attnviz-shapes.json"  # of the file that a folder stands for
WORDS = "words.txt"  # of a translator: the words that it was trained to translate, one a line
MERGES = ("vocab.json", "merges.txt")  # the first form of GPT-2's tokenizer

LARGEST_OBJECT, MOST_ITEMS = 1 << 24, 1 << 20
"""The most bytes and entries of a JSON file other than the tokenizer's: an index of weights has
100,000 entries."""
MOST_SETTINGS = 1 << 18
"""The most entries of a config.json: some hundreds, and two for each label of a classifier."""
LARGEST_HEADER = 1 << 24
MOST_AXES, LARGEST_SIZE = 64, (1 << 63) - 1
"""The most axes of a tensor and its longest one, as in PyTorch."""
DEEPEST = 64
QUOTED, REASON = 80, 200
"""The most characters of a foreign text that a message quotes, and of a library's reason."""

ITEM_BYTES: Mapping[str, float] = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
    "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1, "F4": 0.5, "F6_E2M3": 0.75, "F6_E3M2": 0.75,
}  # fmt: skip
"""Bytes of a number of each type of safetensors."""
_LIMITS = {
    1_000: """num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers
        num_encoder_layers num_decoder_layers n_encoder n_decoder attention_types""",
    4_096: """num_attention_heads n_head n_heads num_heads num_key_value_heads num_kv_heads
        encoder_attention_heads decoder_attention_heads""",
    1 << 31: """vocab_size n_positions max_position_embeddings n_ctx n_embd hidden_size d_model
        dim embedding_size n_inner intermediate_size ffn_dim d_ff head_dim d_kv d_head
        encoder_ffn_dim decoder_ffn_dim hidden_dim""",
    1 << 15: "num_experts num_local_experts n_routed_experts n_shared_experts moe_num_experts",
    100_000: "num_labels type_vocab_size",
}
LIMITS = {name: most for most, names in _LIMITS.items() for name in names.split()}
"""The largest value of a setting that makes a model large, or slow to build.

A GPT-Neo's `attention_types` [[["global", "local"], 12]] counts as 24 layers.
"""
COUNTS = "layers|groups?(?:_num)?|heads|blocks|networks|functions|experts|stages|hashes"
PARTS = re.compile(rf"(?:{COUNTS})$")
MOST = 1_000
"""The largest number of any other setting that counts parts of a model by its name."""
EPSILON = re.compile(r"(?:^|_)(?:eps|epsilon)$")
ROOM = 1 << 20
"""The number of parameters that a model may have beyond twice those of its files: unsaved ones."""


def read_object(path: Path, *, most: int = MOST_ITEMS) -> dict[str, Any]:
    """Read the object in a JSON file, of at most `most` entries at all depths.

    Whoever uses a number checks it: many size nothing, and may be anything. A tokenizer without a
    limit has the `model_max_length` 1e30 written as an integer, a Mamba's `time_step_limit` is
    [0.0, Infinity].

    Raises:
        ModelError: it cannot be read, is too large or too deep, holds halves of characters, or is
            no object.
    """
    try:
        read = parse_json(read_bytes(path, LARGEST_OBJECT), most=most)
    except OSError as error:
        raise ModelError(
            f"{str(path)!r} cannot be read: {error.strerror}", "see that it is yours to read"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{str(path)!r} cannot be read ({cut(error)})", "save or download it again"
        ) from None
    if not isinstance(read, dict):
        raise ModelError(f"{str(path)!r} is no JSON object", "save it again")
    return read


def read_bytes(path: Path, largest: int) -> bytes:
    """Read the content of a file.

    Raises:
        ValueError: it is larger than this; no more is read, as a device may have no end.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"it has more than {largest:,} bytes")
    return content


def parse_json(content: bytes, *, most: int = MOST_ITEMS) -> Any:
    """The content of JSON; `most` as in `read_object`.

    Raises:
        ValueError, RecursionError: it is too large or too deep, or holds halves of characters.
    """
    read = json.loads(content)
    if _count(read, DEEPEST) > most:
        raise ValueError(f"it has more than {most:,} entries")
    return read


def _count(value: object, depth: int) -> int:
    """Count the entries; no string may hold half a character, no depth be too large."""
    if depth == 0:
        raise ValueError("it is nested too deep")
    if isinstance(value, str):
        value.encode("utf-8")  # UnicodeEncodeError is a ValueError
    if isinstance(value, dict):
        for key in value:
            key.encode("utf-8")
        value = list(value.values())
    return 1 + (sum(_count(each, depth - 1) for each in value) if isinstance(value, list) else 0)


def cut(text: object, most: int = QUOTED) -> str:
    """Cut a foreign text, or what an error says, in one line of at most 80 characters."""
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def checked_header(header: object, rest: int) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor, from a safetensors file's header, which `rest` bytes follow.

    Raises:
        ValueError: an entry is malformed, or the tensors are not these bytes, each byte once.
    """
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    spans: list[tuple[int, int]] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        sizes = all(is_size(n, LARGEST_SIZE) for n in (*shape, begin, end))
        if len(shape) > MOST_AXES or not sizes:
            raise ValueError(f"the sizes of {cut(name)} are not whole numbers")
        if math.prod(shape) * ITEM_BYTES[kind] != end - begin:
            raise ValueError(f"{cut(name)} has another size than its shape says")
        spans.append((begin, end))
        shapes[name] = tuple(shape)
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            raise ValueError("its tensors overlap, or leave bytes between them")
        at = end
    if at != rest:
        raise ValueError("the file has another size than its header says")
    return shapes


def is_size(value: object, largest: float = math.inf) -> bool:
    """Whether a foreign value is a whole number from 0 to `largest`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest


def check_settings(raw: Mapping[str, Any], where: Path) -> None:
    """Check that no setting of config.json asks for an impossible model.

    Settings may be given for each layer, as a list, and for parts of the model, as objects. One
    that is not in `LIMITS` may be a count by its name, or the epsilon of a norm. What is too small,
    or no number, makes no model large: whoever reads it refuses it, or does without.
    """
    for name, value in raw.items():
        if isinstance(value, dict):
            check_settings(value, where)
        counts = PARTS.search(name) and not isinstance(value, list)
        most = LIMITS.get(name, MOST if counts else None)
        if most is not None and not all(number <= most for number in _nested(value)):
            wanted = f"{most:,} at most"
        elif name == "architectures" and [*_nested(value)]:
            wanted = "a list of names"
        elif EPSILON.search(name) and not all(0 <= number <= 1 for number in _nested(value)):
            wanted = "a number from 0 to 1"
        else:
            continue
        raise ModelError(
            f"in {str(where)!r} {name} is {cut(repr(value))}, but must be {wanted}",
            "use the config.json that the model was saved with",
        )


def _nested(value: object) -> Iterator[float]:
    """A number, or those in a list, at any depth; NaN and infinities, too."""
    if isinstance(value, int | float):
        yield value
    for each in value if isinstance(value, list) else ():
        yield from _nested(each)


def check_asked(asked: int, held: int, folder: Path) -> None:
    """Check that a model has no more numbers (`asked`) than its files can give it (`held`)."""
    if asked > 2 * held + ROOM:
        raise ModelError(
            f"the config.json in {str(folder)!r} asks for {asked:,} parameters, but the weights "
            f"hold {held:,}",
            "use the config.json that belongs to these weights",
        )


@contextmanager
def foreign(folder: Path | None) -> Iterator[None]:
    """Turn what a library raises over a model's files into one error; silence its stderr."""
    with _silent():
        try:
            yield
        except AttnvizError:
            raise
        except BaseException as error:  # a panic of a compiled library is no Exception
            if not isinstance(error, Exception) and "panic" not in type(error).__name__.lower():
                raise  # a signal that ends the program says nothing about the model
            raise damaged(folder, error) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Send the file descriptor of stderr, which compiled libraries write to, to nowhere."""
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # stderr is closed
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def damaged(folder: Path | None, error: BaseException) -> ModelError:
    """The error for a model that cannot be read, or fails."""
    where = f" in {str(folder)!r}" if folder else ""
    return ModelError(
        f"the model{where} is damaged or incomplete ({reason(error, folder)})",
        "copy or download it again",
    )


def reason(error: BaseException, folder: Path | None = None) -> str:
    """The reason why a library fails over a model, in one line, without the path of its folder."""
    if not isinstance(error, Exception):  # a panic speaks of the library's own source
        return "a library that reads it breaks off"
    message = str(error).strip() or type(error).__name__
    if folder is not None:
        for path in (str(folder.absolute()), str(folder)):
            message = message.replace(path, "the folder")
    return cut(message, REASON)


# The files of a folder, read through these checks.


def bundled_folder(name: str) -> Path:
    """The folder of a bundled model, called as it is but for `builtin`."""
    return Path(str(files("attnviz"))) / "builtin" / ("gpt" if name == "builtin" else name)


def cache_folder() -> Path:
    """The folder for data that programs can recreate (XDG Base Directory Specification)."""
    kept = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(kept) if os.path.isabs(kept) else Path("~/.cache").expanduser()
    return base / "attnviz"


UNPACKED: dict[Path, Path] = {}
"""The folders that this process made of GGUF files, by their places in a cache that is shut."""


def linked_gguf(folder: Path) -> Path | None:
    """The GGUF file that a folder was made of, as the user named it; a stranger's has none."""
    own = folder.parent == cache_folder() or folder in UNPACKED.values()
    return (folder / LINK).readlink() if own and (folder / LINK).is_symlink() else None


def is_gguf(path: Path) -> bool:
    """Whether a file begins as GGUF does, whatever its name is; a pipe is none."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(4) == b"GGUF"
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; no name is too long to ask."""
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file system takes
        return False


def read_config(folder: Path) -> dict[str, Any]:
    """Read the folder's config.json, unchanged."""
    if not is_folder(folder):
        raise _no_folder(folder)
    path = folder / CONFIG
    if not path.is_file():
        raise _no_config(folder)
    config = read_object(path, most=MOST_SETTINGS)
    check_settings(config, path)
    return config


def plain_config(raw: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Settings without the attention function, perhaps a kernel to be fetched, and its name."""
    asked = dict[str, None]()

    def drop(entry: dict[str, Any]) -> dict[str, Any]:
        named = (entry.pop(name, None) for name in ("_attn_implementation", "attn_implementation"))
        asked.update({cut(value): None for value in named if value})
        return entry

    return json.loads(json.dumps(raw), object_hook=drop), ", ".join(asked)


def _no_folder(path: Path) -> ModelError:
    if not os.path.isfile(path):
        kind = "GGUF file" if path.suffix.lower() == GGUF else "model folder"
        return ModelError(f"there is no {kind} {str(path)!r}", "check the path")
    return ModelError(
        f"{str(path)!r} is a file, but a model is a folder or a GGUF file", "give its folder"
    )


def _no_config(folder: Path) -> ModelError:
    if (folder / ADAPTER).is_file():
        base = read_object(folder / ADAPTER).get("base_model_name_or_path")
        named = f" for {base!r}" if isinstance(base, str) and cut(base) == base != "" else ""
        return ModelError(
            f"the folder {str(folder)!r} holds only a PEFT adapter{named}, and no model",
            "in Python, load that model with transformers, the adapter with "
            "peft.PeftModel.from_pretrained, and give both to attnviz.load_model(model, tokenizer)",
        )
    if (folder / PARAMS).is_file():
        return ModelError(
            f"the folder {str(folder)!r} is in its authors' format ({PARAMS}), without {CONFIG}",
            "use the model's version for transformers, or convert it",
        )
    return ModelError(
        f"the folder {str(folder)!r} has no {CONFIG}",
        f"choose a folder that a model was saved in ({CONFIG}, {WEIGHTS}, {TOKENIZER})",
    )


def read_words(folder: Path) -> frozenset[str]:
    """Read the words of the folder's words.txt; none where it has no such file."""
    path = folder / WORDS
    try:
        content = read_bytes(path, LARGEST_OBJECT) if path.is_file() else b""
        return frozenset(content.decode("utf-8").split())
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r} cannot be read ({cut(error)})", "save it again") from None


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: one, or the several that an index names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        named = read_object(folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
        # a path of another folder is none of the model's files
        own = [name for name in names if Path(name).name == name and (folder / name).is_file()]
        missing = [name for name in names if name not in own]
        if not names or missing:
            raise ModelError(
                f"of the weights in {str(folder)!r} {cut((missing or ['all'])[0])} is missing",
                "copy or download the model again",
            )
        return [folder / name for name in names]
    if linked_gguf(folder):
        return [folder / LINK]
    if (folder / PICKLED).is_file():
        return [folder / PICKLED]
    pickled = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
    refused = f" (pickled weights such as {pickled[0].name} are not loaded)" if pickled else ""
    raise ModelError(
        f"the folder {str(folder)!r} has no {WEIGHTS}{refused}",
        "save the model there with save_pretrained, which writes safetensors",
    )


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor, by name, from the headers of the weights."""
    each = map(tensor_shapes, weight_files(folder))
    return {name: shape for shapes in each for name, shape in shapes.items()}


def unpickled(path: Path) -> "dict[str, torch.Tensor]":
    """The tensors of a pickled checkpoint; nothing but tensors is ever unpickled."""
    import torch

    try:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # written before torch had a format that can be mapped
            state = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): tensor for name, tensor in state.items() if tensor.dim() >= 0}
    except Exception:  # a foreign or damaged pickle can raise anything
        raise ModelError(
            f"the pickled weights in {str(path)!r} are damaged, or hold more than tensors, which "
            "is not loaded as it could run code",
            "save the model again with save_pretrained, which writes safetensors",
        ) from None


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in one file of weights, by name, from its header."""
    if path.name == LINK:
        listed = read_object(path.with_name(SHAPES))
        return {name: tuple(shape) for name, shape in listed.items()}
    if path.name == PICKLED:
        shapes: dict[str, tuple[int, ...]] = {}
        for name, tensor in unpickled(path).items():
            held = tensor.untyped_storage().nbytes() // tensor.element_size()
            # one that repeats a few numbers holds no more than these
            shapes[name] = tuple(tensor.shape) if tensor.numel() <= held else (held,)
        return shapes
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(LARGEST_HEADER, size):
                raise ValueError("its header is longer than a header can be")
            return checked_header(parse_json(stream.read(length)), size - 8 - length)
    except OSError as error:
        raise ModelError(
            f"{str(path)!r} cannot be read: {error.strerror}", "see that it is yours to read"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"the weights in {str(path)!r} are damaged or incomplete ({cut(error)})",
            "copy or download the file again",
        ) from None
