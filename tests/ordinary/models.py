"""Ordinary folders: settings as published folders have them, each made a small random model.

The keys, types and values of `table.py` are those that people's folders hold; sizes alone are
shrunk, so that a folder takes a moment to make. What loads there loads at its own size, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.ordinary.vocabularies import tokenizer_of, write_texts

LAYERS, HEADS, D_HEAD, WIDTH, INNER, EXPERTS = 2, 2, 16, 32, 48, 4
_SMALL = (
    (LAYERS, """num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers
        num_decoder_layers"""),
    (HEADS, """num_attention_heads n_head n_heads num_heads encoder_attention_heads
        decoder_attention_heads"""),
    (D_HEAD, "head_dim d_kv"),
    (WIDTH, "hidden_size n_embd n_embed d_model dim word_embed_proj_dim embedding_size"),
    (INNER, """intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim hidden_dim n_inner
        moe_intermediate_size"""),
    (EXPERTS, "num_local_experts num_experts"),
    (4, "rotary_dim"),
    (8, "max_source_positions"),
)  # fmt: skip
SMALL = {name: small for small, names in _SMALL for name in names.split()}
"""The settings that make a model large, and what they are here."""


@dataclass(frozen=True, eq=False)
class Ordinary:
    """The settings of a published model.

    `kind`: that of its vocabulary. `special`: its special tokens with their ids; `around`: those
    that it puts around a text, such as "[CLS] $A [SEP]". Then the content of its JSON files.
    """

    name: str
    kind: str
    special: Mapping[str, int]
    around: str
    config: Mapping[str, Any]
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return self.name


def shrunk(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with small sizes; everything else is as it was."""
    small = {
        name: SMALL[name] if name in SMALL and value is not None else value
        for name, value in config.items()
    }
    heads, grouped = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if grouped is not None:
        small["num_key_value_heads"] = HEADS if grouped == heads else 1
    if "layer_types" in config:
        small["layer_types"] = config["layer_types"][:LAYERS]
    return small


def build(row: Ordinary, folder: Path) -> Path:
    """Write the folder of a row: settings, tokenizer, and seeded random weights."""
    folder.mkdir(parents=True, exist_ok=True)
    config = shrunk(row.config)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    model = made(folder)
    for parameter in model.parameters():  # so that attention is not nearly flat
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    tokenizer_of(row.kind, row.special, row.around).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(row.tokenizer), indent=2))
    (folder / "generation_config.json").unlink(missing_ok=True)
    if row.generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(dict(row.generation), indent=2))
    return folder


def older(row: Ordinary, folder: Path) -> None:
    """Tell the special tokens as folders did before `added_tokens_decoder`."""
    settings = {name: v for name, v in row.tokenizer.items() if name != "added_tokens_decoder"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    named = {name: v for name, v in settings.items() if name.endswith("_token") and v}
    (folder / "special_tokens_map.json").write_text(json.dumps(named))
    (folder / "added_tokens.json").write_text(json.dumps(dict(row.special)))


def only_texts(row: Ordinary, folder: Path) -> None:
    """Write the vocabulary as texts alone, without tokenizer.json."""
    (folder / "tokenizer.json").unlink()
    write_texts(tokenizer_of(row.kind, row.special, ""), folder)


def made(folder: Path) -> Any:
    """The model that config.json names, with seeded random weights."""
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(5)
    named = getattr(transformers, config.architectures[0])
    return named(config).eval()
