"""Parameter counts from only names and shapes: headers of weights, or a configuration.

No weight is read. The shapes of a folder are in the headers of its safetensors files, and
those of other models follow from their sizes.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attnviz.errors import ModelError
from attnviz.models.folder.config import GPTConfig, transformers_config
from attnviz.models.folder.files import read_config, weight_shapes

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Mapping[str, Shape]

# Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1, for gpt3.
GPT_SIZES: Mapping[str, GPTConfig] = {
    "gpt2": GPTConfig(50257, 1024, 768, 12, 12),
    "gpt2-medium": GPTConfig(50257, 1024, 1024, 24, 16),
    "gpt2-large": GPTConfig(50257, 1024, 1280, 36, 20),
    "gpt2-xl": GPTConfig(50257, 1024, 1600, 48, 25),
    "distilgpt2": GPTConfig(50257, 1024, 768, 6, 12),
    "gpt3": GPTConfig(50257, 2048, 12288, 96, 96),
}
UNPUBLISHED = ("gpt3",)
"""Models whose weights are not public; lessons count their parameters."""


def known_total(name: str) -> int:
    """The parameters of a GPT by name, all of them at once."""
    return sum(math.prod(shape) for shape in gpt2_shapes(GPT_SIZES[name]).values())


def gpt2_shapes(sizes: GPTConfig) -> Shapes:
    """Every tensor of a GPT-2 of these sizes, under GPT-2's names."""
    d, d_mlp = sizes.n_embd, sizes.d_mlp
    attention = {"ln_1": (d,), "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
    block = {**attention, "ln_2": (d,), "mlp.c_fc": (d, d_mlp), "mlp.c_proj": (d_mlp, d)}
    shapes: dict[str, Shape] = {"wte.weight": (sizes.vocab_size, d)}
    shapes["wpe.weight"] = (sizes.n_positions, d)
    for layer in range(sizes.n_layer):
        for name, shape in block.items():
            shapes[f"h.{layer}.{name}.weight"] = shape
            shapes[f"h.{layer}.{name}.bias"] = shape[-1:]
    return {**shapes, "ln_f.weight": (d,), "ln_f.bias": (d,)}


def built_shapes(folder: Path) -> Shapes:
    """The tensors that transformers builds from config.json, on the meta device."""
    import torch
    import transformers

    config = transformers_config(folder)
    architecture = next(iter(config.architectures or ()), "")
    built = getattr(transformers, architecture, None)
    if built is None:
        raise ModelError(
            f"the config.json of this model names no architecture that transformers "
            f"{transformers.__version__} has",
            "use a model that names one",
        )
    with torch.device("meta"):
        model = built(config)
    return {name: tuple(p.shape) for name, p in model.named_parameters()}


ModelPart: TypeAlias = Literal["embedding", "attention", "rest"]
Per: TypeAlias = Literal["head", "key/value head", "layer", "model"]


@dataclass(frozen=True)
class Matrix:
    """One kind of matrix or vector; the model has `copies` of it.

    `shape` is the shape of one copy: (d_in, d_out), as in x·W, for the matrices of attention,
    and the shape in the weights for all others. `source` is the name in the weights, with `*`
    for the number of the layer; a projection that the weights join with others (GPT-2's
    `c_attn`) is a matrix of its own here.
    """

    name: str
    part: ModelPart
    shape: tuple[int, ...]
    per: Per
    copies: int
    source: str

    @property
    def each(self) -> int:
        """The parameters of one copy."""
        return math.prod(self.shape)

    @property
    def total(self) -> int:
        return self.each * self.copies

    @property
    def attention(self) -> str:
        """The attention of an encoder-decoder that it belongs to; empty in other models."""
        if self.part != "attention":
            return ""
        if _CROSS.search(self.source):
            return CROSS
        stacks = re.findall(r"(?:^|\.)(encoder|decoder)\.", self.source)
        return stacks[0] if stacks else ""


@dataclass(frozen=True)
class Apart:
    """Numbers in a file that are not parameters of their own, and the reason."""

    source: str
    count: int
    why: str


@dataclass(frozen=True)
class ParameterCount:
    """A model's parameters; `heads` and `kv_heads` count per layer, None where unknown.

    `unembedding` is the output matrix that lessons count beside the embedding to which the model
    ties it; None where no lesson counts the model. `stacks` are the (encoder, decoder) layers of
    an encoder-decoder, which has no `n_layer`.
    """

    name: str
    n_layer: int | None
    heads: int | None
    kv_heads: int | None
    d_model: int | None
    d_head: int | None
    matrices: tuple[Matrix, ...]
    apart: tuple[Apart, ...] = ()
    unembedding: Matrix | None = None
    stacks: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        """All parameters; tied weights count once."""
        return sum(matrix.total for matrix in self.matrices)

    @property
    def lesson_total(self) -> int | None:
        """The parameters as lessons count them: matrices without positions, biases and norms, and
        an unembedding of its own; None where no lesson counts the model."""
        if self.unembedding is None:
            return None
        counted = (m for m in self.matrices if len(m.shape) == 2 and m.name != POSITIONS)
        return sum(matrix.total for matrix in counted) + self.unembedding.total

    @property
    def projections(self) -> tuple[Matrix, ...]:
        """W_Q, W_K, W_V and W_O of each head, without biases, as lessons count them."""
        return tuple(m for m in self.matrices if m.name in PROJECTIONS)

    @property
    def attention(self) -> int:
        """The parameters of all projections."""
        return sum(matrix.total for matrix in self.projections)

    @property
    def attentions(self) -> dict[str, tuple[Matrix, ...]]:
        """W_Q, W_K, W_V and W_O by kind of attention (encoder, decoder, cross); empty where the
        heads of a kind differ in shape."""
        kinds: dict[str, tuple[Matrix, ...]] = {}
        for matrix in self.projections:
            kinds[matrix.attention] = (*kinds.get(matrix.attention, ()), matrix)
        alike = all(tuple(m.name for m in four) == PROJECTIONS for four in kinds.values())
        return kinds if alike else {}


POSITIONS = "wpe.weight"
PROJECTIONS = ("W_Q", "W_K", "W_V", "W_O")
# The attentions of an encoder-decoder, in the order in which they run.
ENCODER, CROSS, DECODER = "encoder", "cross", "decoder"
_CROSS = re.compile(r"cross|encdec|encoder_attn", re.IGNORECASE)


# The names of the projections in the weights of different architectures.
ROLES: Mapping[str, str] = {
    module: role
    for role, modules in {
        "Q": "q_proj query q_lin q wq",
        "K": "k_proj key k_lin k wk",
        "V": "v_proj value v_lin v wv",
        "O": "o_proj out_proj out_lin o wo Wo c_proj dense",
        "QKV": "c_attn query_key_value qkv_proj qkv Wqkv in_proj",
    }.items()
    for module in modules.split()
}
# The built-in translator has names of its own.
_ROLES = {**ROLES, "w_q": "Q", "w_k": "K", "w_v": "V", "w_o": "O"}
_ATTENTION = re.compile(r"attn|attention|\.cross\.", re.IGNORECASE)
_EMBEDDING = re.compile(r"(^|\.)(wte|wpe\w*|shared|\w*embed\w*)\.", re.IGNORECASE)
_MASK_BUFFER = re.compile(r"\.(attn|attention)\.(masked_)?bias$")
_OTHER_BUFFER = re.compile(r"(^|\.)(inv_freq|position_ids|final_logits_bias)$")
_OUTPUT = ("lm_head.weight", "embed_out.weight", "cls.predictions.decoder.weight")
_AGAIN = ("embed_tokens.weight", "cls.predictions.decoder.bias")  # of shared.weight, of a bias
_BUFFER = "not a parameter: a buffer of an old file"
_TIED = "tied to another tensor and counted there"


def known_count(name: str) -> ParameterCount:
    """The count of a GPT by name, one of `GPT_SIZES`, from only its sizes."""
    sizes = GPT_SIZES[name]
    counted = count(name, gpt2_shapes(sizes), vars(sizes))
    if name not in UNPUBLISHED:
        return counted
    shape = sizes.vocab_size, sizes.n_embd
    output = Matrix("unembedding", "embedding", shape, "model", 1, _OUTPUT[0])
    return replace(counted, unembedding=output)


def folder_count(name: str, folder: Path) -> ParameterCount:
    """The count of a checkpoint folder, from its config.json and the headers of its weights."""
    raw, shapes = read_config(folder), weight_shapes(folder)
    tied = any(tensor.endswith((*_OUTPUT, *_AGAIN)) for tensor in shapes)
    if tied:  # by config.json or by default
        default = "tie_word_embeddings" not in raw
        config = transformers_config(folder) if default else None
        tied = bool(config.tie_word_embeddings if config else raw["tie_word_embeddings"])
    return count(name, shapes, raw, tied=tied)


def config_count(name: str, folder: Path) -> ParameterCount:
    """The count of the model that transformers would build from a folder's config.json."""
    return count(name, built_shapes(folder), read_config(folder))


def count(
    name: str, shapes: Shapes, raw: Mapping[str, Any], *, tied: bool = False
) -> ParameterCount:
    """Group a model's tensors, of these shapes, by their part in it.

    `raw`: the configuration, for the number of heads and their width. `tied`: an output matrix in
    the weights is the token embedding once more.
    """
    empty = _empty(name, raw)
    groups: Counter[tuple[str, Shape]] = Counter()
    apart: Counter[tuple[str, str]] = Counter()
    modules: dict[str, int] = {}
    for tensor in shapes:
        modules.setdefault(tensor.rpartition(".")[0], len(modules))
    # in the order of their modules, each module's bias after its weight
    for tensor in sorted(shapes, key=lambda t: (modules[t.rpartition(".")[0]], t.endswith("bias"))):
        shape = shapes[tensor]
        why = _why_apart(tensor, shape, shapes, tied=tied)
        if why:
            apart[_starred(tensor), why] += math.prod(shape)
        else:
            groups[_starred(tensor), shape] += 1
    of_groups = (_matrices(*group, copies, empty) for group, copies in groups.items())
    return replace(
        empty,
        matrices=tuple(sorted(chain.from_iterable(of_groups), key=_rank)),
        apart=tuple(Apart(source, n, why) for (source, why), n in apart.items()),
    )


def _rank(matrix: Matrix) -> tuple[int, int, int]:
    """The order in which a token passes: embedding, attention, the rest of a layer, the output."""
    part = 0 if matrix.part == "embedding" else 1 if matrix.part == "attention" else 2
    names = (*PROJECTIONS, "b_Q", "b_K", "b_V", "b_O")
    name = names.index(matrix.name) if matrix.name in names else len(names)
    stack = ("", ENCODER, DECODER, CROSS).index(matrix.attention)
    if not matrix.attention:
        stack = 2 * matrix.source.startswith(DECODER)
    return (part + (matrix.per == "model" and part > 0), stack, name)


def _empty(name: str, raw: Mapping[str, Any]) -> ParameterCount:
    """The sizes in the configuration, no matrix yet; None where it does not give one number."""
    d_model = _first(raw, "hidden_size", "n_embd", "d_model", "dim")
    heads = _first(raw, "num_attention_heads", "n_head", "n_heads", "num_heads")
    if heads is None and raw.get("encoder_attention_heads") == raw.get("decoder_attention_heads"):
        heads = _first(raw, "encoder_attention_heads")
    kv_heads = 1 if raw.get("multi_query") else _first(raw, "num_key_value_heads", "num_kv_heads")
    d_head = _first(raw, "head_dim", "d_kv") or (d_model // heads if d_model and heads else None)
    n_layer = _first(raw, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    encoder = _first(raw, "n_encoder", "encoder_layers", "num_layers")
    decoder = _first(raw, "n_decoder", "decoder_layers", "num_decoder_layers")
    stacks = (encoder, decoder) if encoder and decoder else None
    return ParameterCount(
        name=name,
        n_layer=None if stacks else n_layer,
        heads=heads,
        kv_heads=kv_heads or heads,
        d_model=d_model,
        d_head=d_head,
        matrices=(),
        stacks=stacks,
    )


def _first(raw: Mapping[str, Any], *names: str) -> int | None:
    values = (raw[name] for name in names if name in raw)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _why_apart(tensor: str, shape: Shape, shapes: Shapes, *, tied: bool) -> str:
    """The reason why these numbers are not parameters of their own; empty if they are."""
    if _OTHER_BUFFER.search(tensor) or (_MASK_BUFFER.search(tensor) and len(shape) != 1):
        return _BUFFER
    if not tied:
        return ""
    shared = any(name.endswith("shared.weight") for name in shapes)
    again = tensor.endswith(_AGAIN[0]) and shared
    bias = tensor.endswith(_AGAIN[1]) and "cls.predictions.bias" in shapes
    return _TIED if again or bias or tensor.endswith(_OUTPUT) else ""


def _starred(tensor: str) -> str:
    """The name with `*` for the number of the layer, and of an expert."""
    starred = re.sub(r"(?<=\.)\d+(?=\.)", "*", tensor, count=1)
    return re.sub(r"(?<=experts\.)\d+(?=\.)", "*", starred)


def _matrices(source: str, shape: Shape, copies: int, sizes: ParameterCount) -> tuple[Matrix, ...]:
    """One group of tensors as matrices; a projection of all heads gives one matrix per head."""
    if heads := _per_head(source, shape, copies, sizes):
        return heads
    *_, module, kind = ("", *source.split("."))
    part: ModelPart = "embedding" if _EMBEDDING.search(source) else "rest"
    if _ATTENTION.search(source):
        part = "attention"
    name = source.split("*.", 1)[-1].removeprefix("transformer.").removeprefix("model.")
    if part == "attention" and _ROLES.get(module) == "O" and kind == "bias":
        name = "b_O"
    return (Matrix(name, part, shape, "layer" if "*" in source else "model", copies, source),)


def _per_head(source: str, shape: Shape, copies: int, sizes: ParameterCount) -> tuple[Matrix, ...]:
    """A projection's matrices, one for each head; none for a tensor that is not one."""
    *_, module, kind = ("", *source.split("."))
    role = _ROLES.get(module)
    if not _ATTENTION.search(source) or role is None or not sizes.heads or not sizes.d_head:
        return ()
    kv_heads = sizes.kv_heads or sizes.heads
    widths = {"Q": sizes.heads, "K": kv_heads, "V": kv_heads, "O": sizes.heads}
    joined = sum(widths[letter] for letter in role) * sizes.d_head
    if kind == "weight" and len(shape) == 2 and joined in shape:
        inner = shape[0] if shape[1] == joined else shape[1]
    elif kind == "bias" and shape == (joined,) and role != "O":
        inner = None
    else:
        return ()
    return tuple(
        Matrix(
            name=("W_" if inner else "b_") + letter,
            part="attention",
            shape=(sizes.d_head,)
            if inner is None
            else ((sizes.d_head, inner) if letter == "O" else (inner, sizes.d_head)),
            per="head" if widths[letter] == sizes.heads else "key/value head",
            copies=copies * widths[letter],
            source=source,
        )
        for letter in role
    )
