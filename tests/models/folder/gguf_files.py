"""GGUF files as llama.cpp's converter writes them, by the package of its authors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from attnviz.models.folder.gguf_folder import byte_letters

SMALL: Mapping[str, Any] = {
    **{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 16},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128},
    **{"bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-5},
}
GPT: Mapping[str, Any] = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 1024}
ARCHITECTURES = {"gemma3_text": "gemma3", "mistral": "llama"}
TEXT = Path(__file__).parents[3] / "sample_texts" / "letter.txt"
SPACE = "\u2581"
CONTROL, USER_DEFINED, NORMAL, BYTE, UNKNOWN = 3, 4, 1, 6, 2
Kind = gguf.GGMLQuantizationType


def made(kind: str, vocab_size: int, **settings: Any) -> Any:
    """A seeded model of transformers, of one type."""
    torch.manual_seed(1)
    small = GPT if kind == "gpt2" else SMALL
    config = transformers.CONFIG_MAPPING[kind](**{**small, "vocab_size": vocab_size, **settings})
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval()


def write(
    path: Path,
    model: Any,
    kind: Kind = Kind.F32,
    tokenizer: str = "gpt2",
    factors: Any = None,
    **more: Any,
) -> Path:
    """Write a model.

    `factors`: of its frequencies. `more`: settings beside, or in the place of, its own.
    """
    config = model.config
    own = ARCHITECTURES.get(config.model_type, config.model_type)
    writer = gguf.GGUFWriter(path, own)
    _write_tokens(writer, tokenizer, config.vocab_size)
    for name, value in {**_settings(config), **more}.items():
        if value is not None:
            full = name.replace("ARCH", own)
            writer.kv_data[0].pop(full, None)
            _add(writer, full, value)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    for name, tensor in tensors(model, own).items():
        block = gguf.GGML_QUANT_SIZES[kind][0]
        fits = tensor.ndim == 2 and tensor.shape[-1] % block == 0
        used = kind if fits else Kind.F32
        writer.add_tensor(name, gguf.quantize(tensor, used), raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors(model: Any, architecture: str) -> dict[str, np.ndarray]:
    """The tensors of a model as the converter changes and names them."""
    config, found = model.config, {}
    number = next(n for n, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        module, _, end = name.rpartition(".")
        array, named = tensor.float().numpy(), names.get_name(module)
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(
            named.rpartition(".")[2]
        )
        if architecture == "llama" and heads:
            pairs = array.reshape(getattr(config, heads), 2, -1, *array.shape[1:])
            array = pairs.swapaxes(1, 2).reshape(array.shape)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            array = array + 1
        if architecture == "gpt2" and ".c_" in name:
            array = array.T
        found[f"{named}.{end}"] = np.ascontiguousarray(array)
    return found


def _add(writer: gguf.GGUFWriter, name: str, value: Any) -> None:
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    (writer.add_array if isinstance(value, list) else kinds.get(type(value), writer.add_string))(
        name, value
    )


def _settings(config: Any) -> dict[str, Any]:
    rope = getattr(config, "rope_parameters", None) or {}
    theta = rope.get("full_attention", rope).get("rope_theta")
    return {
        "ARCH.context_length": config.max_position_embeddings,
        "ARCH.block_count": config.num_hidden_layers,
        "ARCH.embedding_length": config.hidden_size,
        "ARCH.feed_forward_length": getattr(config, "intermediate_size", 4 * config.hidden_size),
        "ARCH.attention.head_count": config.num_attention_heads,
        "ARCH.attention.head_count_kv": getattr(config, "num_key_value_heads", None),
        "ARCH.attention.key_length": getattr(config, "head_dim", None),
        "ARCH.attention.layer_norm_rms_epsilon": getattr(config, "rms_norm_eps", None),
        "ARCH.attention.layer_norm_epsilon": getattr(config, "layer_norm_epsilon", None),
        "ARCH.attention.sliding_window": getattr(config, "sliding_window", None),
        "ARCH.attn_logit_softcapping": getattr(config, "attn_logit_softcapping", None),
        "ARCH.final_logit_softcapping": getattr(config, "final_logit_softcapping", None),
        "ARCH.rope.freq_base": None if theta is None else float(theta),
    }


def _write_tokens(writer: gguf.GGUFWriter, kind: str, size: int) -> None:
    tokens, kinds, more = bytes_tokens() if kind == "gpt2" else pieces()
    missing = size - len(tokens)
    writer.add_tokenizer_model(kind)
    writer.add_token_list(tokens + [f"<unused{i}>" for i in range(missing)])
    writer.add_token_types(kinds + [CONTROL] * missing)
    if kind == "gpt2":
        writer.add_tokenizer_pre("default")
        writer.add_token_merges(more)
        writer.add_bos_token_id(0)
    else:
        writer.add_token_scores(more + [0.0] * missing)
        writer.add_bos_token_id(1)
        writer.add_unk_token_id(0)
    writer.add_eos_token_id(2)


def bytes_tokens(size: int = 400) -> tuple[list[str], list[int], list[str]]:
    """The tokens of a tokenizer of bytes, their kinds, and its merges."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    control = ["<|begin|>", "<|user|>", "<|end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=control,
        initial_alphabet=byte_letters(),
        show_progress=False,
    )
    backend.train([str(TEXT)], trainer)
    held = json.loads(backend.to_str())["model"]
    tokens = sorted(held["vocab"], key=held["vocab"].__getitem__)
    merges = [each if isinstance(each, str) else " ".join(each) for each in held["merges"]]
    return tokens, [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3), merges


def pieces(size: int = 600) -> tuple[list[str], list[int], list[float]]:
    """The pieces of a tokenizer of SentencePiece, their kinds, and their scores."""
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.Replace(" ", SPACE)
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=size - 259, show_progress=False)
    backend.train([str(TEXT)], trainer)
    vocabulary = backend.get_vocab()
    learned = sorted(vocabulary, key=vocabulary.__getitem__)
    first = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(learned)
    return first + learned, kinds, [0.0] * 259 + [-float(i) for i in range(len(learned))]
