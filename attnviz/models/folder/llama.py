"""The settings of Llama-like models, from config.json alone, as transformers would take them.

Sizes and defaults are those of the configuration classes of transformers 5, which is not imported.
A setting that is not known here leaves the folder to transformers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attnviz.models.folder.files import cut, plain_config, read_config, weight_shapes

RotaryKind: TypeAlias = Literal["default", "linear", "dynamic", "yarn", "longrope", "llama3"]
Norm: TypeAlias = Literal["rms", "rms before weight", "rms plus one", "layer"]
Activation: TypeAlias = Literal["silu", "gelu", "gelu_tanh"]


class UnknownSettingError(Exception):
    """A setting that the model of our own does not compute; the message names it."""


@dataclass(frozen=True)
class Rotary:
    """The rotation of queries and keys by their positions (Su et al. 2021, arXiv 2104.09864).

    Attributes:
        width: how many numbers of a head are turned.
        theta: the base of the wavelengths.
        longest: the length of text from which "dynamic" stretches them.
        trained: the length of text of the training before they were stretched.
        factor, settings: how far, and the kind's other numbers, as in config.json.
    """

    kind: RotaryKind
    width: int
    theta: float
    longest: int
    trained: int
    factor: float
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes and settings of a Llama-like model; sizes are named as in `GPTConfig`.

    Attributes:
        n_group: the heads of keys and values.
        windows: for each layer how many tokens back a query sees, itself included; None: all.
        rotary: for each layer, None where queries and keys are not turned.
        before, behind: whether norms stand before, and behind, attention and MLP.
        qk_norm: queries and keys are normalised by head, all heads together, or not at all.
        scaling: the factor on q·k. score_cap, logit_cap: the bounds of tanh on scores and logits.
        embedding, residual, logits: the factors on embeddings, additions and logits.
        fused: W_Q, W_K and W_V are one matrix in the weights, and so are both of the MLP.
    """

    architecture: str
    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    n_group: int
    d_head: int
    d_mlp: int
    norm: Norm
    epsilon: float
    activation: Activation
    windows: tuple[int | None, ...]
    rotary: tuple[Rotary | None, ...]
    scaling: float
    tied: bool
    before: bool = True
    behind: bool = False
    qk_norm: Literal["", "head", "whole"] = ""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    fused: bool = False
    score_cap: float | None = None
    logit_cap: float | None = None
    embedding: float = 1.0
    residual: float = 1.0
    logits: float = 1.0
    bos_id: int | None = None
    ends: frozenset[int] = frozenset()

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        return (self.n_head,) * self.n_layer


WINDOWED = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
GEMMA = {
    **{"vocab_size": 256_000, "hidden_size": 2304, "intermediate_size": 9216},
    **{"num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4},
    **{"head_dim": 256, "max_position_embeddings": 8192, "tie_word_embeddings": True},
    **{"bos_token_id": 2, "eos_token_id": 1, "attention_bias": False},
    **{"hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": None},
    **{"query_pre_attn_scalar": 256, "sliding_window": 4096, "layer_types": None},
    **{"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0},
}
SHARED: Mapping[str, Any] = {
    **{"vocab_size": 32_000, "hidden_size": 4096, "intermediate_size": 11_008},
    **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": None},
    **{"max_position_embeddings": 2048, "hidden_act": "silu", "rms_norm_eps": 1e-6},
    **{"tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2},
    **{"rope_parameters": None, "rope_scaling": None, "rope_theta": 10_000.0},
    "partial_rotary_factor": None,
}
QWEN: Mapping[str, Any] = {
    **{"vocab_size": 151_936, "intermediate_size": 22_016, "num_key_value_heads": 32},
    **{"max_position_embeddings": 32_768, "bos_token_id": None, "eos_token_id": None},
    **WINDOWED,
    "layer_types": None,
}
BIASED = {"attention_bias": False}
OWN: Mapping[str, Mapping[str, Any]] = {
    "llama": {**BIASED, "mlp_bias": False, "head_dim": None, "pretraining_tp": 1},
    "mistral": {
        **{"intermediate_size": 14_336, "num_key_value_heads": 8, "head_dim": None},
        **{"max_position_embeddings": 131_072, "sliding_window": 4096},
    },
    "qwen2": QWEN,
    "qwen3": {**QWEN, **BIASED, "head_dim": 128},
    "gemma": {
        **{"vocab_size": 256_000, "hidden_size": 3072, "intermediate_size": 24_576},
        **{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16},
        **{"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 8192},
        **{"eos_token_id": 1, "bos_token_id": 2, "tie_word_embeddings": True, **BIASED},
        "use_bidirectional_attention": None,
    },
    "gemma2": GEMMA,
    "gemma3_text": {
        **GEMMA,
        **{"vocab_size": 262_208, "max_position_embeddings": 131_072},
        **{"final_logit_softcapping": None, "attn_logit_softcapping": None},
        **{"sliding_window_pattern": 6, "rope_theta": 1_000_000.0},
        "rope_local_base_freq": 10_000.0,
    },
    "phi3": {
        **{"vocab_size": 32_064, "hidden_size": 3072, "intermediate_size": 8192},
        **{"max_position_embeddings": 4096, "original_max_position_embeddings": 4096},
        **{"rms_norm_eps": 1e-5, "eos_token_id": 32_000, "sliding_window": None},
    },
    "granite": {
        **BIASED,
        **{"mlp_bias": False, "embedding_multiplier": 1.0, "logits_scaling": 1.0},
        **{"residual_multiplier": 1.0, "attention_multiplier": 1.0},
    },
    "olmo2": {
        **BIASED,
        **{"vocab_size": 50_304, "bos_token_id": None, "eos_token_id": 50_279},
        "rms_norm_eps": 1e-5,
    },
    "smollm3": {
        **{**BIASED, "vocab_size": 128_256, "hidden_size": 2048, "mlp_bias": False},
        **{"num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4},
        **{"max_position_embeddings": 32_768, "rope_theta": 2_000_000.0},
        **{"bos_token_id": 128_000, "eos_token_id": 128_001, "tie_word_embeddings": True},
        **{"no_rope_layers": None, "no_rope_layer_interval": 4, "layer_types": None},
        **{"use_sliding_window": False, "sliding_window": None},
    },
    "stablelm": {
        **{"vocab_size": 50_304, "hidden_size": 2560, "intermediate_size": 6912},
        **{"num_key_value_heads": 32, "max_position_embeddings": 4096},
        **{"layer_norm_eps": 1e-5, "use_qkv_bias": False, "qk_layernorm": False},
        **{"use_parallel_residual": False, "bos_token_id": 0, "eos_token_id": 0},
        "partial_rotary_factor": 0.25,
    },
}
"""What each type has beside, or other than, `SHARED`."""
NO_MATTER = frozenset(
    "architectures attention_dropout attention_probs_dropout_prob attn_implementation auto_map "
    "cache_implementation "
    "chunk_size_feed_forward dtype embd_pdrop hidden_dropout id2label initializer_range label2id "
    "model_type output_attentions output_hidden_states pad_token_id problem_type resid_pdrop "
    "return_dict torch_dtype transformers_version unk_token_id use_cache".split()
)
"""Settings that change nothing in what a run computes, beside all that begin with `_`."""
ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


def llama_config(folder: Path) -> LlamaConfig | None:
    """The configuration of a folder; None of another type.

    Raises:
        UnknownSettingError: transformers has to run it.
        ModelError: config.json cannot be read.
    """
    raw = read_config(folder)
    kind, (_, function) = raw.get("model_type"), plain_config(raw)
    if not isinstance(kind, str) or kind not in OWN:
        return None
    if function not in ("", "eager", "sdpa"):
        raise UnknownSettingError(f"the attention function is {cut(repr(function))}")
    try:
        return _config(kind, raw)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise UnknownSettingError(f"a setting has a wrong type ({cut(error)})") from None


def check_language_model(folder: Path, config: LlamaConfig) -> None:
    """See that a folder holds the weights of a language model, and no other model's.

    Raises:
        UnknownSettingError: transformers has to run it.
    """
    named = read_config(folder).get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    held = weight_shapes(folder)
    whole = config.tied or "lm_head.weight" in held
    other = isinstance(first, str) and not first.endswith("ForCausalLM")
    if other or not whole or "model.embed_tokens.weight" not in held:
        raise UnknownSettingError("its weights are not those of a language model")


def _config(kind: str, raw: Mapping[str, Any]) -> LlamaConfig:
    known = {**SHARED, **OWN[kind]}
    named = {name for name in raw if not name.startswith("_")}
    unknown = sorted(named - known.keys() - NO_MATTER)
    if unknown:
        raise UnknownSettingError(f"{cut(repr(unknown[0]))} is no setting of {kind}")
    s = {**known, **raw}
    for name in ("use_bidirectional_attention", "qk_layernorm", "use_parallel_residual"):
        if s.get(name):
            raise UnknownSettingError(f"{name} is {cut(repr(s[name]))}")
    n_layer, n_head, width = (
        _count(s, name) for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    n_group = n_head if s["num_key_value_heads"] is None else _count(s, "num_key_value_heads")
    d_head = width // n_head if s.get("head_dim") is None else _count(s, "head_dim")
    if n_head % n_group or d_head % 2 or (kind != "gemma" and width % n_head):
        raise UnknownSettingError(f"{n_head} heads do not share {width} numbers evenly")
    sliding = _layer_types(kind, s, n_layer)
    return LlamaConfig(
        architecture=kind,
        vocab_size=_count(s, "vocab_size"),
        n_positions=_count(s, "max_position_embeddings"),
        n_embd=width,
        n_layer=n_layer,
        n_head=n_head,
        n_group=n_group,
        d_head=d_head,
        d_mlp=_count(s, "intermediate_size"),
        windows=tuple(_count(s, "sliding_window") if each else None for each in sliding),
        rotary=_rotaries(kind, s, sliding, d_head),
        scaling=_scaling(kind, s, d_head),
        **_kinds(kind, s, width),
    )


def _kinds(kind: str, s: Mapping[str, Any], width: int) -> dict[str, Any]:
    """What distinguishes the members of the family, beside their sizes."""
    norms = {"qwen3": "head", "gemma3_text": "head", "olmo2": "whole"}
    return {
        "norm": _norm(kind),
        "epsilon": _number(s, "layer_norm_eps" if kind == "stablelm" else "rms_norm_eps"),
        "activation": _activation(kind, s),
        "tied": _flag(s, "tie_word_embeddings"),
        "before": kind != "olmo2",
        "behind": kind in ("olmo2", "gemma2", "gemma3_text"),
        "qk_norm": norms.get(kind, ""),
        "qkv_bias": kind == "qwen2" or _flag(s, "attention_bias") or _flag(s, "use_qkv_bias"),
        "output_bias": _flag(s, "attention_bias"),
        "mlp_bias": _flag(s, "mlp_bias"),
        "fused": kind == "phi3",
        "score_cap": _optional(s, "attn_logit_softcapping"),
        "logit_cap": _optional(s, "final_logit_softcapping"),
        "embedding": width**0.5
        if kind.startswith("gemma")
        else _number(s, "embedding_multiplier", 1.0),
        "residual": _number(s, "residual_multiplier", 1.0),
        "logits": 1 / _number(s, "logits_scaling", 1.0),
        "bos_id": _id(s["bos_token_id"], s["vocab_size"]),
        "ends": _ends(s),
    }


def _norm(kind: str) -> Norm:
    if kind.startswith("gemma"):
        return "rms plus one"
    if kind == "stablelm":
        return "layer"
    return "rms before weight" if kind == "olmo2" else "rms"


def _activation(kind: str, s: Mapping[str, Any]) -> Activation:
    name = s["hidden_activation"] if "hidden_activation" in s else s["hidden_act"]
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UnknownSettingError(f"the activation is {cut(repr(name))}")
    # a remnant of the first files of Gemma, which means the approximation
    return "gelu_tanh" if kind == "gemma" and name == "gelu" else ACTIVATIONS[name]


def _scaling(kind: str, s: Mapping[str, Any], d_head: int) -> float:
    if kind == "granite":
        return _number(s, "attention_multiplier")
    return float((_number(s, "query_pre_attn_scalar", d_head)) ** -0.5)


def _layer_types(kind: str, s: Mapping[str, Any], n_layer: int) -> Sequence[bool]:
    """For each layer, whether its attention has a window."""
    window, given = s.get("sliding_window"), s.get("layer_types")
    layers = range(n_layer)
    if window is None or not s.get("use_sliding_window", True):
        return [False] * n_layer
    if given is not None:
        names = ("full_attention", "sliding_attention")
        if not isinstance(given, list) or len(given) != n_layer or {*given} - {*names}:
            raise UnknownSettingError(f"layer_types is {cut(repr(given))}")
        return [each == "sliding_attention" for each in given]
    if kind in ("qwen2", "qwen3"):
        return [i >= s["max_window_layers"] for i in layers]
    if kind in ("gemma2", "gemma3_text"):
        pattern = 2 if kind == "gemma2" else _count(s, "sliding_window_pattern")
        return [bool((i + 1) % pattern) for i in layers]
    if kind == "smollm3":
        return [not turned for turned in _turned(s, n_layer)]
    return [True] * n_layer


def _turned(s: Mapping[str, Any], n_layer: int) -> Sequence[bool]:
    """For each layer, whether its queries and keys are turned; SmolLM3 leaves some out."""
    given = s.get("no_rope_layers")
    if "no_rope_layers" not in s:
        return [True] * n_layer
    if given is None:
        every = _count(s, "no_rope_layer_interval")
        return [bool((i + 1) % every) for i in range(n_layer)]
    if not isinstance(given, list) or len(given) < n_layer or {*given} - {0, 1}:
        raise UnknownSettingError(f"no_rope_layers is {cut(repr(given))}")
    return [bool(each) for each in given[:n_layer]]


def _rotaries(
    kind: str, s: Mapping[str, Any], sliding: Sequence[bool], d_head: int
) -> tuple[Rotary | None, ...]:
    given, old = s["rope_parameters"], s["rope_scaling"]
    for each in (given, old):
        if each is not None and not isinstance(each, dict):
            raise UnknownSettingError(f"rope_parameters is {cut(repr(each))}")
    if kind == "gemma3_text":
        given = given or {}
        full = {"rope_theta": s["rope_theta"], **(given.get("full_attention") or {}), **(old or {})}
        near = {"rope_theta": s["rope_local_base_freq"], **(given.get("sliding_attention") or {})}
        if given.keys() - {"full_attention", "sliding_attention"}:
            raise UnknownSettingError(f"rope_parameters is {cut(repr(given))}")
        both = [_rotary(kind, s, each, d_head) for each in (full, near)]
        return tuple(both[each] for each in sliding)
    own = dict(old or given or {})
    own.setdefault("rope_theta", s["rope_theta"])
    if s["partial_rotary_factor"] is not None:
        own.setdefault("partial_rotary_factor", s["partial_rotary_factor"])
    rotary = _rotary(kind, s, own, d_head)
    return tuple(rotary if turned else None for turned in _turned(s, len(sliding)))


KINDS: Mapping[str, frozenset[str]] = {
    "default": frozenset(),
    "linear": frozenset({"factor"}),
    "dynamic": frozenset({"factor"}),
    "yarn": frozenset(
        {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}
        | {"truncate", "original_max_position_embeddings"}
    ),
    "longrope": frozenset(
        {"factor", "attention_factor", "short_factor", "long_factor"}
        | {"original_max_position_embeddings"}
    ),
    "llama3": frozenset(
        {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}
    ),
}
"""The kinds of rotation, and the settings of each."""
EVERY = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}


def _rotary(kind: str, s: Mapping[str, Any], own: Mapping[str, Any], d_head: int) -> Rotary:
    name = own.get("rope_type", own.get("type", "default"))
    if kind == "phi3" and name in ("su", "yarn"):
        name = "longrope"
    if name not in KINDS or (kind == "phi3" and name not in ("default", "longrope")):
        raise UnknownSettingError(f"the rotation of positions is {cut(repr(name))}")
    unknown = sorted(own.keys() - EVERY - (KINDS[name] or own.keys()))
    if unknown:
        raise UnknownSettingError(f"{cut(repr(unknown[0]))} is no setting of the rotation {name}")
    longest = _count(s, "max_position_embeddings")
    # of Phi-3 it stands outside, and counts more there
    trained = s.get("original_max_position_embeddings") or own.get(
        "original_max_position_embeddings", longest
    )
    width = _width(kind, str(name), own, d_head)
    scaled = trained is not None and own.get("factor") is None and name in ("yarn", "longrope")
    factor = longest / trained if scaled else own.get("factor", 1.0)
    if name == "longrope":
        for each in ("short_factor", "long_factor"):
            _check_list(own, each, width // 2)
    if name != "default" and "factor" in KINDS[name] - {"longrope"} and not scaled:
        _number(own, "factor")
    if name == "llama3":
        for each in ("low_freq_factor", "high_freq_factor"):
            _number(own, each)
    theta = _number(own, "rope_theta")
    _count({"trained": trained}, "trained")
    return Rotary(name, width, theta, longest, trained, float(factor), own)


def _width(kind: str, name: str, own: Mapping[str, Any], d_head: int) -> int:
    """How many numbers of a head are turned; only the code of two types turns a part."""
    part = kind in ("phi3", "stablelm")
    # the default rotation of the others turns the whole head, whatever is set
    share = own.get("partial_rotary_factor", 1.0) if part or name != "default" else 1.0
    width = int(d_head * share)
    least = max(2 if part else d_head, 4 if name == "dynamic" else 2)
    if not least <= width <= d_head or width % 2:
        raise UnknownSettingError(f"{width} of {d_head} numbers of a head are turned")
    return width


def _check_list(own: Mapping[str, Any], name: str, length: int) -> None:
    given = own.get(name)
    if not isinstance(given, list) or len(given) != length:
        raise UnknownSettingError(f"{name} is not a list of {length} numbers")
    for each in given:
        _number({name: each}, name)


def _count(s: Mapping[str, Any], name: str) -> int:
    value = s.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 31:
        raise UnknownSettingError(f"{name} is {cut(repr(value))}")
    return value


def _number(s: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = s.get(name, default)
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not 0 < value < 1e30:
        raise UnknownSettingError(f"{name} is {cut(repr(value))}")
    return float(value)


def _optional(s: Mapping[str, Any], name: str) -> float | None:
    return None if s.get(name) is None else _number(s, name)


def _flag(s: Mapping[str, Any], name: str) -> bool:
    value = s.get(name, False)
    if not isinstance(value, bool):
        raise UnknownSettingError(f"{name} is {cut(repr(value))}")
    return value


def _id(value: object, vocab_size: int) -> int | None:
    """An id of the vocabulary, else None."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < vocab_size else None  # type: ignore[return-value, operator]


def _ends(s: Mapping[str, Any]) -> frozenset[int]:
    given = s["eos_token_id"]
    ids = (_id(each, s["vocab_size"]) for each in (given if isinstance(given, list) else [given]))
    return frozenset(id_ for id_ in ids if id_ is not None)
