"""The gate of a GGUF file: what its header says, checked before anything is built from it.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import mmap
import re
import struct
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attnviz.errors import ModelError, missing
from attnviz.models.folder.files import cut
from attnviz.models.folder.tokenizer import LARGEST_TOKENIZER, MOST_TOKENS

PLAIN = ("F32", "F16", "BF16")
"""The kinds of tensors that are mapped as they are; all others are dequantised."""
MAGIC, VERSIONS = b"GGUF", (2, 3)
SCALARS: Mapping[int, str] = dict(enumerate("BbHhIif")) | {7: "?", 10: "Q", 11: "q", 12: "d"}
"""The types of values by their numbers, as `struct` writes them."""
STRING, ARRAY = 8, 9
MOST_SETTINGS, MOST_TENSORS, MOST_AXES = 4096, 1 << 17, 4
LONGEST_SETTING = 1 << 20
"""The most bytes of a text; chat templates have 20,000."""
LARGEST_ALIGNMENT = 1 << 16


@dataclass(frozen=True)
class GgufTensor:
    """A tensor's place in a file: `kind` as GGML names it, `shape` with the rows first."""

    shape: tuple[int, ...]
    kind: str
    offset: int
    size: int


@dataclass(frozen=True)
class GgufFile:
    """The header of a file: its settings, and its tensors by name."""

    path: Path
    settings: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    @property
    def architecture(self) -> str:
        return str(self.settings["general.architecture"])

    def get(self, name: str, default: Any = None) -> Any:
        """A setting of this architecture: `block_count` of a Llama is `llama.block_count`."""
        return self.settings.get(f"{self.architecture}.{name}", default)

    @property
    def quantization(self) -> str:
        """How its weights are quantised, as llama.cpp names the whole of them: `Q4_K_M`."""
        from gguf import LlamaFileType

        bytes_of = Counter[str]()
        for tensor in self.tensors.values():
            bytes_of[tensor.kind] += tensor.size
        quantised = Counter({k: n for k, n in bytes_of.items() if k not in PLAIN})
        most = (quantised or bytes_of).most_common(1)[0][0]
        stated = self.settings.get("general.file_type")
        names = {each.value: each.name for each in LlamaFileType if each.value < 1000}
        name = names.get(stated if isinstance(stated, int) else -1, most)
        name = name.removeprefix("MOSTLY_").removeprefix("ALL_")
        return name if (name in PLAIN) == (not quantised) else most


def check_package() -> None:
    """See that the package of llama.cpp's authors is there."""
    if find_spec("gguf") is None:
        raise missing("reading a GGUF file needs the package gguf", "gguf")


def read_gguf(path: Path) -> GgufFile:
    """Read the header of a file; no tensor is read.

    Raises:
        ModelError: it cannot be read, or its header asks for what the file does not hold.
        UsageError: the package gguf is not installed.
    """
    check_package()
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ModelError(
            f"{str(path)!r} cannot be read: {error.strerror}", "see that it is yours to read"
        ) from None
    except (ArithmeticError, KeyError, TypeError, ValueError, struct.error) as error:
        raise damaged_gguf(path, error) from None


def damaged_gguf(path: Path, error: object) -> ModelError:
    """The error for a file whose content contradicts itself."""
    return ModelError(
        f"the GGUF file {str(path)!r} is damaged or incomplete ({cut(error)})",
        "copy or download it again",
    )


@lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> GgufFile:
    """`changed`: when the file was; a changed one is read anew."""
    with path.open("rb") as stream:
        size = path.stat().st_size
        if size < 24:
            raise ValueError("it has no header")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            cursor = _Cursor(content, min(size, LARGEST_TOKENIZER))
            tensor_count, settings = _settings(cursor)
            return GgufFile(path, settings, _tensors(cursor, tensor_count, settings, size))


class _Cursor:
    """A place in the header, which moves over what is read."""

    def __init__(self, content: mmap.mmap, end: int) -> None:
        self.content, self.end, self.at = content, end, 0
        self.items_left = MOST_TOKENS

    def take(self, form: str) -> tuple[Any, ...]:
        layout = struct.Struct(f"<{form}")
        return layout.unpack(self.bytes(layout.size))

    def bytes(self, length: int) -> bytes:
        begin, self.at = self.at, self.at + length
        if self.at > self.end:
            raise ValueError("its header ends too early")
        return self.content[begin : self.at]

    def text(self, most: int = LONGEST_SETTING) -> str:
        (length,) = self.take("Q")
        if length > most:
            raise ValueError(f"a text has {length:,} bytes")
        return self.bytes(length).decode()

    def value(self, kind: int) -> Any:
        if kind in SCALARS:
            return self.take(SCALARS[kind])[0]
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise ValueError(f"a setting has the type {kind}, which does not exist")
        of, count = self.take("IQ")
        self.items_left -= count
        if self.items_left < 0:
            raise ValueError(f"its lists have more than {MOST_TOKENS:,} entries")
        if of == STRING:
            return [self.text() for _ in range(count)]
        if of not in SCALARS:
            raise ValueError("a list is nested, or of a type that does not exist")
        items = array(SCALARS[of].replace("?", "B"))
        items.frombytes(self.bytes(count * items.itemsize))
        return items


def _settings(cursor: _Cursor) -> tuple[int, dict[str, Any]]:
    """The number of tensors, and the settings by name."""
    magic, version, tensors, count = cursor.take("4sIQQ")
    if magic != MAGIC or version not in VERSIONS:
        raise ValueError(f"it is of version {version}, and not of {VERSIONS[0]} or {VERSIONS[1]}")
    if not 0 < tensors <= MOST_TENSORS or count > MOST_SETTINGS:
        raise ValueError(f"it has {tensors:,} tensors and {count:,} settings")
    settings: dict[str, Any] = {}
    for _ in range(count):
        name = cursor.text(1 << 16)
        if name in settings:
            raise ValueError(f"it has {cut(name)} twice")
        settings[name] = cursor.value(cursor.take("I")[0])
    if not isinstance(settings.get("general.architecture"), str):
        raise ValueError("it names no architecture")
    return tensors, settings


def _tensors(
    cursor: _Cursor, count: int, settings: Mapping[str, Any], size: int
) -> dict[str, GgufTensor]:
    """The tensors by name; they lie behind the header, none over another."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    alignment = settings.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= LARGEST_ALIGNMENT or alignment % 8:
        raise ValueError(f"its alignment is {cut(alignment)}")
    found: dict[str, GgufTensor] = {}
    for _ in range(count):
        name, (axes,) = cursor.text(1 << 10), cursor.take("I")
        if name in found or not 0 < axes <= MOST_AXES:
            raise ValueError(f"{cut(name)} has {axes:,} axes, or is there twice")
        shape = cursor.take("Q" * axes)[::-1]
        number, offset = cursor.take("IQ")
        kind = GGMLQuantizationType(number)
        block, width = GGML_QUANT_SIZES[kind]
        if not all(shape) or shape[-1] % block or offset % alignment:
            raise ValueError(f"{cut(name)} has a size or a place that {kind.name} cannot have")
        found[name] = GgufTensor(shape, kind.name, offset, math.prod(shape) // block * width)
    start = at = -(-cursor.at // alignment) * alignment
    for name, tensor in sorted(found.items(), key=lambda item: item[1].offset):
        begin = start + tensor.offset
        if begin < at or begin + tensor.size > size:
            raise ValueError(f"{cut(name)} lies over another tensor, or beyond the file's end")
        at = begin + tensor.size
        found[name] = GgufTensor(tensor.shape, tensor.kind, begin, tensor.size)
    return found


# The names and forms of tensors in transformers.

PARTS: Mapping[str, str] = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_output": "self_attn.o_proj",
    "attn_qkv": "self_attn.qkv_proj",
    **{f"attn_{letter}": f"self_attn.{letter}_proj" for letter in "qkv"},
    **{f"attn_{letter}_norm": f"self_attn.{letter}_norm" for letter in "qk"},
    **{f"ffn_{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")},
}
AROUND: Mapping[str, str] = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""The names of norms where others come behind."""
OWN: Mapping[str, Mapping[str, str]] = {
    "gemma2": AROUND,
    "gemma3": AROUND,
    "phi3": {"ffn_up": "mlp.gate_up_proj"},
    "gpt2": {
        "token_embd": "wte",
        "position_embd": "wpe",
        "output_norm": "ln_f",
        "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
}
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma", *OWN)
"""Those whose models attnviz runs itself."""
ROTATIONS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors that are settings in transformers."""
NAME = re.compile(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)")


def published(file: GgufFile, name: str) -> str | None:
    """The name of a tensor in transformers; None of one that is none there.

    Raises:
        ModelError: this architecture has no such tensor.
    """
    match, gpt2 = NAME.fullmatch(name), file.architecture == "gpt2"
    if name in ROTATIONS or (gpt2 and name == "output.weight"):  # its embedding once more
        return None
    layer, part, end = match.groups() if match else (None, "", "")
    own = {**PARTS, **OWN.get(file.architecture, {})}.get(part)
    if own is None:
        raise ModelError(
            f"the GGUF file {str(file.path)!r} has a tensor {cut(name)!r}, which attnviz does not "
            f"know of {cut(file.architecture)}",
            "give the folder of the model that it was made from",
        )
    prefix = "transformer." if gpt2 else ""
    if layer is not None:
        prefix += f"h.{layer}." if gpt2 else f"model.layers.{layer}."
    return f"{prefix}{own}.{end}"


def is_turned(file: GgufFile, name: str) -> bool:
    """Whether rows and columns of a matrix change places: GPT-2's layers keep them so."""
    return file.architecture == "gpt2" and name.startswith("blk.") and name.endswith(".weight")


def shapes_of(file: GgufFile) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor under its name in transformers."""
    names = ((own, published(file, own)) for own in file.tensors)
    return {
        name: file.tensors[own].shape[:: -1 if is_turned(file, own) else 1]
        for own, name in names
        if name is not None
    }
