"""A folder's config.json, with its sizes checked."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from attnviz.errors import ModelError, option
from attnviz.models.folder.files import CONFIG, read_config
from attnviz.models.folder.sizes import ModelSizes, check_kind, pair_kind, token_id
from attnviz.records.capture import Kind

SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
# The settings that gpt.py computes; it must not run a folder with any other.
COMPUTED: Mapping[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "tie_word_embeddings": (True,),
    "add_cross_attention": (False,),
    "reorder_and_upcast_attn": (False,),
}


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a model; the names are those of GPT-2's config.json."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5

    @property
    def d_mlp(self) -> int:
        """Width of the hidden layer of the MLP; four times d_model unless given."""
        return self.n_inner or 4 * self.n_embd

    @property
    def parameters(self) -> int:
        """How many numbers the model has, counted without building it."""
        d, mlp = self.n_embd, self.d_mlp
        layer = 4 * d * d + 2 * d * mlp + 9 * d + mlp
        return (self.vocab_size + self.n_positions + 2) * d + self.n_layer * layer

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """How many heads each layer has."""
        return (self.n_head,) * self.n_layer


@dataclass(frozen=True)
class FolderConfig:
    """A folder's config.json: sizes, which tokens begin and end a text, and the whole as `raw`."""

    sizes: GPTConfig
    bos_id: int | None
    ends: frozenset[int]
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The sizes of an encoder-decoder; `n_positions` bounds each of the two sequences."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_encoder: int
    n_decoder: int
    n_head: int
    n_inner: int
    layer_norm_epsilon: float = 1e-5

    @property
    def parameters(self) -> int:
        """How many numbers the model has, counted without building it."""
        d, mlp = self.n_embd, self.n_inner
        attention, rest = 4 * d * d + 4 * d, 2 * d * mlp + mlp + d + 4 * d
        encoder, decoder = attention + rest, 2 * attention + rest + 2 * d
        layers = self.n_encoder * encoder + self.n_decoder * decoder
        return (self.vocab_size + 2 * self.n_positions + 4) * d + layers


SEQ2SEQ = "attnviz-seq2seq"


def seq2seq_config(folder: Path) -> Seq2SeqConfig:
    """Read and check the configuration of a from-scratch encoder-decoder.

    Raises:
        ModelError: the file is missing or damaged.
    """
    raw = read_config(folder)
    sizes: dict[str, Any] = {}
    for item in fields(Seq2SeqConfig):
        value = raw.get(item.name)
        if item.name == "layer_norm_epsilon":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _wrong(folder, item.name, value, "a number")
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _wrong(folder, item.name, value, "a whole number from 1")
        sizes[item.name] = value
    config = Seq2SeqConfig(**sizes)
    if config.n_embd % config.n_head:
        raise _wrong(folder, "n_head", config.n_head, f"a divisor of n_embd {config.n_embd}")
    return config


def folder_sizes(folder: Path, kind: Kind | None = None) -> ModelSizes:
    """The sizes of a folder's model, for any architecture.

    Args:
        folder: the folder of the model.
        kind: which of an encoder-decoder's attentions, by default "cross".

    Raises:
        ModelError: config.json is missing or damaged, or names an architecture that
            transformers does not know.
        UsageError: the model does not have this kind of attention.
    """
    architecture = read_config(folder).get("model_type")
    if architecture == SEQ2SEQ:
        pair = seq2seq_config(folder)
        kind = pair_kind(kind)
        layers = pair.n_encoder if kind == "encoder" else pair.n_decoder
        heads = (pair.n_head,) * layers
        return ModelSizes(SEQ2SEQ, heads, pair.vocab_size, pair.n_positions, None, kind)
    if architecture != "gpt2":
        from attnviz.models.folder.architecture import sizes_of

        return sizes_of(folder, kind)
    check_kind(kind)
    config = gpt2_config(folder)
    sizes = config.sizes
    return ModelSizes(
        "gpt2", sizes.heads_per_layer, sizes.vocab_size, sizes.n_positions, config.bos_id
    )


def gpt2_config(folder: Path) -> FolderConfig:
    """Read and check the configuration of a GPT-2 folder.

    Raises:
        ModelError: the file is missing or damaged, or it has another architecture or
            impossible sizes.
    """
    raw = read_config(folder)
    architecture = raw.get("model_type")
    if architecture != "gpt2":
        raise ModelError(
            f"the model in {str(folder)!r} has the architecture {architecture!r}, not gpt2",
            f"leave {option('engine')} out",
        )
    for name in SIZES:
        value = raw.get(name, _DEFAULTS[name])
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _wrong(folder, name, value, "a whole number from 1")
    sizes = {name: raw.get(name, _DEFAULTS[name]) for name in SIZES}
    if sizes["n_embd"] % sizes["n_head"]:
        raise _wrong(folder, "n_head", sizes["n_head"], f"a divisor of n_embd {sizes['n_embd']}")
    inner, epsilon = raw.get("n_inner"), raw.get("layer_norm_epsilon", 1e-5)
    if inner is not None and (not isinstance(inner, int) or inner < 1):
        raise _wrong(folder, "n_inner", inner, "null or a whole number from 1")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise _wrong(folder, "layer_norm_epsilon", epsilon, "a number")
    bos = token_id(raw.get("bos_token_id"), sizes["vocab_size"])
    end = token_id(raw.get("eos_token_id"), sizes["vocab_size"])
    ends = frozenset(() if end is None else (end,))
    config = GPTConfig(**sizes, n_inner=inner, layer_norm_epsilon=epsilon)
    return FolderConfig(config, bos, ends, raw)


# Old files leave out the settings of the first GPT-2.
_DEFAULTS = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}


def check_computable(config: FolderConfig, folder: Path) -> None:
    """Check that the from-scratch model computes exactly this kind of GPT-2.

    Raises:
        ModelError: it does not compute a setting, which is named.
    """
    for name, values in COMPUTED.items():
        value = config.raw.get(name, values[0])
        if value not in values:
            wanted = " or ".join(map(repr, values))
            raise _wrong(folder, name, value, f"{wanted} for the from-scratch model")


def _wrong(folder: Path, name: str, value: object, wanted: str) -> ModelError:
    return ModelError(
        f"in {str(folder / CONFIG)!r} {name} is {value!r}, and must be {wanted}",
        "use the config.json that the model was saved with",
    )
