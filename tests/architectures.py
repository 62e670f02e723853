"""Tiny seeded models of many architectures, from transformers' own configuration classes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models import gptj

from attnviz.models.huggingface.model import CausalLM, HuggingFaceModel
from attnviz.records.capture import Kind, ModelIdentity
from attnviz.records.heads import ModelCard
from tests.conftest import bytes_tokenizer, loaded_once

BEFORE_5_24 = not hasattr(gptj.modeling_gptj, "eager_attention_forward")
"""Whether GPT-J and CodeGen keep their attention to themselves, as they did until then."""
N = 11
SIZES: Mapping[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT_SIZES: Mapping[str, Any] = {
    "vocab_size": 61,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PAIR_SIZES: Mapping[str, Any] = {
    "vocab_size": 61,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
T5_SIZES: Mapping[str, Any] = {
    "vocab_size": 61,
    "d_model": 24,
    "d_kv": 6,
    "d_ff": 40,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
OVER_BYTES = {"vocab_size": 257}
BART_OVER_BYTES: Mapping[str, Any] = {
    **PAIR_SIZES,
    **OVER_BYTES,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 4,
    "eos_token_id": 1,
    "bos_token_id": 0,
    "pad_token_id": 2,
    "forced_eos_token_id": None,
}
Tiny = tuple[str, str, Mapping[str, Any]]
"""The names of a configuration and of a model, and their settings."""


@dataclass(frozen=True)
class Architecture:
    """One architecture: its configuration, and what is particular about its attention.

    `kind`: of an encoder-decoder, which attention. `sinks`: rows do not sum to 1.
    `fallback`: its attention function cannot be switched.
    """

    name: str
    what: str
    config: Callable[[], Any]
    kind: Kind = "self"
    sinks: bool = False
    fallback: bool = False
    causal: bool = True
    image: bool = False

    def model(self, implementation: str | None = None) -> Any:
        """The model, always with the same weights, in evaluation mode."""
        torch.manual_seed(3)
        if self.fallback and implementation is None:
            implementation = "eager"
        model = transformers.AutoModel.from_config(
            self.config(), attn_implementation=implementation
        )
        for parameter in model.parameters():  # so that attention is not nearly flat
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.3)
        return model.eval()

    def inputs(self) -> dict[str, Tensor]:
        """One text, or one image."""
        if self.image:
            return {"pixel_values": torch.randn(1, 3, 16, 16, generator=_seeded())}
        ids = torch.randint(3, 61, (1, N), generator=_seeded())
        if self.kind == "self":
            return {"input_ids": ids}
        return {"input_ids": ids, "decoder_input_ids": ids[:, :7]}


def named(name: str) -> Architecture:
    """The architecture of this name."""
    return next(each for each in ARCHITECTURES if each.name == name)


def edit_config(folder: Path, **changes: Any) -> None:
    """Change settings in a folder's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def save_over_bytes(folder: Path, model: Any) -> Path:
    """Save a model of transformers with a tokenizer of bytes, and return its folder."""
    model.save_pretrained(folder)
    bytes_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def gpt2_in_memory(seed: int = 0) -> tuple[Any, Any]:
    """A seeded GPT-2 of transformers over bytes, and its tokenizer."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 257, "n_positions": 64, "n_embd": 12, "n_layer": 2, "n_head": 3}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())
    return transformers.GPT2LMHeadModel(config).eval(), tokenizer


def folders_of(models: Mapping[str, Tiny], folder: Path) -> Callable[[str], Path]:
    """Makes the folder of each of these models, over bytes, seeded, with weights that matter."""

    @cache
    def made(name: str) -> Path:
        config, model, settings = models[name]
        torch.manual_seed(0)
        built = getattr(transformers, model)(getattr(transformers, config)(**settings))
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.normal_(std=0.3)
        return loaded_once(save_over_bytes(folder / name, built))

    return made


def engine_of(model: Any, kind: Kind = "self", engine: type[HuggingFaceModel] = CausalLM) -> Any:
    """A transformers model of two layers as an engine, which is given ids: it has no tokenizer."""
    return engine(
        identity=ModelIdentity("tiny", model.config.model_type, (4, 4), 0, "transformers"),
        card=ModelCard("tiny", "", bos=False),
        tokenizer=None,  # type: ignore[arg-type]
        causal=True,
        kind=kind,
        model=model,
    )


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def _sized(name: str, sizes: Mapping[str, Any] = SIZES, **more: Any) -> Callable[[], Any]:
    return lambda: getattr(transformers, f"{name}Config")(**{**sizes, **more})


GQA = {"num_key_value_heads": 2, "head_dim": 6}
ROTARY = {"rotary_dim": 4}
EXPERTS = {"num_experts_per_tok": 2}

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture("gpt2", "decoder, learned positions", _sized("GPT2", GPT_SIZES)),
    Architecture("opt", "decoder, learned positions", _sized("OPT", ffn_dim=40,
        word_embed_proj_dim=24)),
    Architecture("gpt_neox", "decoder, rotary", _sized("GPTNeoX")),
    Architecture("gpt_bigcode", "multi-query attention", _sized("GPTBigCode", GPT_SIZES)),
    Architecture("biogpt", "decoder", _sized("BioGpt")),
    Architecture("llama", "grouped queries, rotary", _sized("Llama", **GQA)),
    Architecture("mistral", "sliding window", _sized("Mistral", **GQA, sliding_window=4)),
    Architecture("qwen2", "grouped queries", _sized("Qwen2", **GQA)),
    Architecture("qwen3", "norms of q and k", _sized("Qwen3", **GQA)),
    Architecture("phi3", "joined projections", _sized("Phi3", **GQA)),
    Architecture("gemma", "multi-query attention", _sized("Gemma", num_key_value_heads=1,
        head_dim=8)),
    Architecture("gemma2", "soft cap, sliding window", _sized("Gemma2", **GQA, sliding_window=4)),
    Architecture("gemma3_text", "sliding window", _sized("Gemma3Text", **GQA, sliding_window=4)),
    Architecture("olmo2", "norms of q and k, post-norm", _sized("Olmo2", **GQA)),
    Architecture("granite", "scaled residuals", _sized("Granite", **GQA)),
    Architecture("cohere", "parallel layers", _sized("Cohere", **GQA)),
    Architecture("stablelm", "rotary in part", _sized("StableLm", num_key_value_heads=4)),
    Architecture("starcoder2", "grouped queries", _sized("Starcoder2", **GQA)),
    Architecture("smollm3", "layers without positions", _sized("SmolLM3", **GQA)),
    Architecture("mixtral", "mixture of experts", _sized("Mixtral", **GQA, **EXPERTS,
        num_local_experts=4)),
    Architecture("qwen3_moe", "mixture of experts", _sized("Qwen3Moe", **GQA, **EXPERTS,
        num_experts=4, moe_intermediate_size=16)),
    Architecture("gpt_oss", "attention sinks, mixture of experts", _sized("GptOss", **GQA,
        **EXPERTS, num_local_experts=4, sliding_window=4), sinks=True),
    Architecture("lfm2", "hybrid: convolution and attention", _sized("Lfm2", **GQA,
        layer_types=["conv", "full_attention"], block_ff_dim=40)),
    Architecture("bert", "encoder", _sized("Bert"), causal=False),
    Architecture("roberta", "encoder", _sized("Roberta"), causal=False),
    Architecture("electra", "encoder, narrow embedding", _sized("Electra", embedding_size=12),
        causal=False),
    Architecture("albert", "encoder, one layer for all", _sized("Albert", embedding_size=12),
        causal=False),
    Architecture("distilbert", "encoder", _sized("DistilBert", dim=24, hidden_dim=40, n_layers=2,
        n_heads=4), causal=False),
    Architecture("modernbert", "encoder, rotary, local and global", _sized("ModernBert",
        local_attention=4, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2),
        causal=False),
    Architecture("t5", "encoder-decoder, position bias", _sized("T5", T5_SIZES), kind="cross",
        causal=False),
    Architecture("bart", "encoder-decoder", _sized("Bart", PAIR_SIZES), kind="cross", causal=False),
    Architecture("marian", "encoder-decoder", _sized("Marian", PAIR_SIZES), kind="decoder"),
    Architecture("vit", "vision encoder", _sized("ViT", image_size=16, patch_size=4), causal=False,
        image=True),
    Architecture("gptj", "its modules return it", _sized("GPTJ", GPT_SIZES, **ROTARY),
        fallback=BEFORE_5_24),
    Architecture("gpt_neo", "its modules return it", _sized("GPTNeo", num_layers=2, num_heads=4,
        attention_types=[[["global", "local"], 1]], window_size=4), fallback=True),
    Architecture("bloom", "its modules return it", _sized("Bloom", n_layer=2, n_head=4),
        fallback=True),
    Architecture("falcon", "its modules return it when asked", _sized("Falcon"), fallback=True),
    Architecture("codegen", "its modules return it", _sized("CodeGen", GPT_SIZES, **ROTARY),
        fallback=BEFORE_5_24),
    Architecture("xglm", "its modules return it", _sized("XGLM", {"vocab_size": 61, "d_model": 24,
        "ffn_dim": 40, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 64}),
        fallback=True),
    Architecture("mpnet", "encoder, its modules return it", _sized("MPNet"), fallback=True,
        causal=False),
    Architecture("deberta-v2", "encoder, its modules return it when asked", _sized("DebertaV2"),
        fallback=True, causal=False),
)  # fmt: skip
