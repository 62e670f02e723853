"""A folder's config.json, with its sizes checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.folder.files import CONFIG, read_config
from attnviz.models.folder.gate import cut, reason
from attnviz.records.capture import Kind

# The facts that a capture needs of any model.


@dataclass(frozen=True)
class ModelSizes:
    """The facts that a capture needs of a model of any architecture.

    `heads_per_layer`: those of `kind`, one of an encoder-decoder's three attentions.
    `context`: the largest number of tokens that the model takes. `bos_id`: its beginning token.
    """

    architecture: str
    heads_per_layer: tuple[int, ...]
    vocab_size: int
    context: int
    bos_id: int | None
    kind: Kind = "self"


def token_id(value: object, vocab_size: int) -> int | None:
    """An id of the vocabulary, else None.

    A smaller GPT-2's configuration often keeps 50256, the beginning token of the first GPT-2.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < vocab_size:
        return value
    return None


def pair_kind(kind: Kind | None) -> Kind:
    """The kind of an encoder-decoder's attention, by default "cross"."""
    return "cross" if kind in (None, "self") else kind


def check_kind(kind: Kind | None) -> None:
    """Check the kind of attention of a model that is no encoder-decoder.

    Raises:
        UsageError: it is not "self".
    """
    if kind not in (None, "self"):
        raise UsageError(
            f"{option('kind', kind)} is for encoder-decoders, which this model is not",
            "leave it out",
        )


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


# The configuration of any architecture, as transformers reads it, under common names.


NO_LIMIT = 1 << 20
"""The context of a model with relative positions, which only memory limits."""


BEHIND_PADDING = (
    *("roberta", "roberta-prelayernorm", "camembert", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    *("data2vec-text", "ibert", "mpnet", "longformer", "esm", "luke", "markuplm", "lilt"),
    "prophetnet",
)
"""Models whose positions begin after the padding token's id."""


def transformers_config(folder: Path) -> Any:
    """config.json through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: transformers does not know the architecture, or does not take its settings.
    """
    from transformers import AutoConfig
    from transformers.utils import logging

    logging.set_verbosity_error()  # its remarks on settings do not concern attention
    _check_known(read_config(folder), folder)
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # any: its classes compute with the settings
        raise not_taken(folder, error) from None


def not_taken(folder: Path, error: Exception) -> ModelError:
    """The error for settings that transformers' own classes refuse, or fail over."""
    from transformers import __version__

    return ModelError(
        f"transformers {__version__} does not take the config.json in {str(folder)!r} "
        f"({reason(error, folder)})",
        "use the config.json that the model was saved with",
    )


def _check_known(raw: Mapping[str, Any], folder: Path) -> None:
    """Check that transformers has code of its own for this type of model.

    Raises:
        ModelError: it has none; or there is no type.
    """
    from transformers import CONFIG_MAPPING, __version__

    architecture, where = raw.get("model_type"), str(folder)
    if isinstance(architecture, str) and architecture in CONFIG_MAPPING:
        return
    if raw.get("auto_map"):
        raise ModelError(
            f"this model brings its own code, which attnviz never runs: transformers {__version__} "
            f"has none for the model type {cut(repr(architecture))} of {where!r}",
            "use a model whose architecture is in transformers itself",
        )
    if architecture is None:
        raise ModelError(
            f"the config.json in {where!r} has no model_type, by which transformers {__version__} "
            "chooses the architecture",
            "if it is in its authors' format, use its version for transformers; else add the "
            'model_type, such as "bert"',
        )
    raise ModelError(
        f"transformers {__version__} has no model type {cut(repr(architecture))}, which the "
        f"config.json in {where!r} names",
        "use a model that it has, or a version of transformers that has this one",
    )


def sizes_of(folder: Path, kind: Kind | None = None) -> ModelSizes:
    """The sizes of a folder's model, for one kind of attention if it has several.

    Raises:
        ModelError: as `transformers_config`; or the model has no attention heads.
        UsageError: the model does not have this kind of attention.
    """
    config = transformers_config(folder)
    text = config.get_text_config()
    if config.is_encoder_decoder:
        kind = pair_kind(kind)
        heads, layers = _of_pair(text, "encoder" if kind == "encoder" else "decoder")
    else:
        check_kind(kind)
        heads = getattr(text, "num_attention_heads", None)
        layers = getattr(text, "num_hidden_layers", None)
    if not (isinstance(heads, int) and isinstance(layers, int) and heads > 0 < layers):
        raise ModelError(
            f"the model in {str(folder)!r} ({config.model_type}) has no attention heads to show",
            "use a model with attention",
        )
    vocabulary = getattr(text, "vocab_size", None)
    if not isinstance(vocabulary, int):
        raise reads_no_text(config.model_type)
    return ModelSizes(
        architecture=config.model_type,
        heads_per_layer=(heads,) * layers,
        vocab_size=vocabulary,
        context=_context(text),
        bos_id=token_id(getattr(text, "bos_token_id", None), vocabulary),
        kind=kind or "self",
    )


def reads_no_text(architecture: str) -> ModelError:
    """The error for a model of images or sound."""
    return ModelError(f"{architecture} does not read text", "use a language model")


def _of_pair(config: Any, side: str) -> tuple[int | None, int | None]:
    """Heads and layers of one side; BART names them for both, T5 only the decoder's layers."""
    heads = getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads
    layers = getattr(config, f"{side}_layers", None) or getattr(config, f"num_{side}_layers", None)
    return heads, layers or config.num_hidden_layers


def _context(config: Any) -> int:
    names = ("max_encoder_position_embeddings", "max_position_embeddings")
    longest = next((size for name in names if (size := getattr(config, name, None))), None)
    if not isinstance(longest, int) or longest < 1:
        return NO_LIMIT
    if config.model_type in BEHIND_PADDING:
        return longest - int(config.pad_token_id) - 1
    return longest


# The shapes of a model's tensors, by name, without its weights: from its sizes or its config.


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
    shapes: dict[str, Shape] = {"wte.weight": (sizes.vocab_size, d)}
    shapes["wpe.weight"] = (sizes.n_positions, d)
    for layer in range(sizes.n_layer):
        block = {
            "ln_1.weight": (d,),
            "ln_1.bias": (d,),
            "attn.c_attn.weight": (d, 3 * d),
            "attn.c_attn.bias": (3 * d,),
            "attn.c_proj.weight": (d, d),
            "attn.c_proj.bias": (d,),
            "ln_2.weight": (d,),
            "ln_2.bias": (d,),
            "mlp.c_fc.weight": (d, d_mlp),
            "mlp.c_fc.bias": (d_mlp,),
            "mlp.c_proj.weight": (d_mlp, d),
            "mlp.c_proj.bias": (d,),
        }
        shapes |= {f"h.{layer}.{name}": shape for name, shape in block.items()}
    return {**shapes, "ln_f.weight": (d,), "ln_f.bias": (d,)}


def built_shapes(folder: Path) -> Shapes:
    """The tensors that transformers builds from config.json, on the meta device.

    Raises:
        ModelError: transformers has no such architecture.
    """
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
