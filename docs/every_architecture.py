"""Measure the capture of every text architecture of transformers that can be built tiny.

python docs/every_architecture.py [NAME…]     prints a line for each; `make_models.py` writes them

Each one is built by its own configuration class with small sizes and random weights, and saved.
Then attnviz loads the folder and captures a text, as it does for a user. The weights are compared
with those that transformers returns in eager mode. The tokenizer is one of bytes or, where it is
Python alone and can be built tiny, the type's own. Each architecture has a process of its own,
with a limit of time and memory.
"""

import inspect
import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from logging import CRITICAL
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
import transformers
from transformers.models.auto import configuration_auto, modeling_auto

import attnviz
from attnviz.errors import AttnvizError
from tests.conftest import bytes_tokenizer
from tests.ordinary.python_tokenizers import PYTHON_ONLY

TEXT, TARGET = "a fluffy blue creature", "une créature"
LISTS = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
_SMALL: tuple[tuple[int, str], ...] = (
    (257, "vocab_size vocab_size_per_layer_input"),
    (32, """hidden_size d_model n_embd dim emb_dim embed_dim hidden_dim word_embed_proj_dim
        encoder_hidden_size true_hidden_size intra_bottleneck_size embedding_size
        hidden_size_per_layer_input"""),
    (4, """num_attention_heads n_head n_heads num_heads encoder_attention_heads
        decoder_attention_heads attention_heads num_encoder_attention_heads
        num_decoder_attention_heads num_experts num_local_experts n_routed_experts
        moe_num_experts encoder_num_experts sliding_window attention_window local_attention
        window_size"""),
    (2, """num_key_value_heads num_kv_heads num_hidden_layers n_layer n_layers num_layers
        encoder_layers decoder_layers num_encoder_layers num_decoder_layers num_experts_per_tok
        moe_k moe_topk n_group topk_group"""),
    (8, "head_dim d_kv attention_head_dim rotary_dim qk_nope_head_dim qk_rope_head_dim v_head_dim"),
    (40, """intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim
        ffn_hidden_size moe_intermediate_size shared_expert_intermediate_size feed_forward_size"""),
    (64, "max_position_embeddings n_positions n_ctx max_seq_len"),
    (16, "q_lora_rank kv_lora_rank o_lora_rank"),
    (1, "n_shared_experts num_shared_experts moe_num_shared_experts bos_token_id"),
    (0, "pad_token_id decoder_start_token_id"),
)  # fmt: skip
SMALL = {name: size for size, names in _SMALL for name in names.split()} | {"eos_token_id": 2}
"""Small values of the settings that architectures name their sizes by."""
MOST = 20_000_000  # parameters of what counts as tiny
SECONDS, GIGABYTES = 120, 6
EXACT = 1e-5
WAYS: tuple[Mapping[str, Any], ...] = (
    {},
    {"num_key_value_heads": 4},  # multi-head latent attention
    {"head_dim": None},
    {"num_hidden_layers": None},
    {"layer_types": None, "head_dim": None},
)
"""Other values, or None for the class's own, where the small ones do not fit together."""


@dataclass(frozen=True)
class Measured:
    """What became of one architecture; `said` is a difference or a reason.

    `outcome`: "exact"; "refused"; "wrong"; "fails in transformers", where it cannot run what its
    own class built; "not tiny"; or "no weights to compare", where transformers returns none.
    """

    name: str
    outcome: str
    said: str = ""


def names() -> list[str]:
    """The model types that transformers has a language model for."""
    lists = (getattr(modeling_auto, f"MODEL_FOR_{each}_MAPPING_NAMES") for each in LISTS)
    return sorted({name for each in lists for name in each})


def tiny(name: str, way: Mapping[str, Any]) -> Any:
    """A configuration of a model type with small sizes; of several parts, that of its text."""
    made = configuration_auto.CONFIG_MAPPING[name]().get_text_config()
    usual = made.to_dict()
    sizes = {n: v for n, v in SMALL.items() if n in usual or _settable(made, n)}
    if isinstance(kinds := usual.get("layer_types"), list):
        sizes["layer_types"] = (list(dict.fromkeys(kinds))[-2:] * 2)[:2]
    sizes |= {n: v for n, v in way.items() if n in usual}
    return type(made)(**{n: v for n, v in sizes.items() if v is not None})


def _settable(config: Any, name: str) -> bool:
    return hasattr(config, name) and not isinstance(getattr(type(config), name, None), property)


def built(name: str) -> Any:
    """A model with random weights that are large enough for its attention not to be flat.

    Raises:
        Exception: what transformers raises for the last of all ways to build and run it.
    """
    for way in WAYS:
        try:
            config = tiny(name, way)
            with torch.device("meta"):
                meta = transformers.AutoModel.from_config(config)
            if (size := meta.num_parameters()) > MOST:
                raise ValueError(f"{size:,} parameters")
            torch.manual_seed(3)
            model = _class_of(config).from_config(config).eval()
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    torch.nn.init.normal_(parameter, std=0.3)
            ids = torch.tensor([[5, 9, 7, 8]])
            pair = {"decoder_input_ids": ids} if config.is_encoder_decoder else {}
            with torch.no_grad():
                model(input_ids=ids, **pair)
        except Exception as error:  # any library's
            last = error
        else:
            return model
    raise last


def _class_of(config: Any) -> Any:
    pairs = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    causal = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if config.model_type in pairs and config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    known = config.model_type in causal
    return transformers.AutoModelForCausalLM if known else transformers.AutoModel


def measure(name: str) -> Measured:
    """Build, save, capture and compare one architecture."""
    try:
        model = built(name)
    except Exception as error:  # any library's
        outcome = "not tiny" if str(error).endswith(" parameters") else "fails in transformers"
        return Measured(name, outcome, _shortly(error))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        if name in PYTHON_ONLY:  # its own
            PYTHON_ONLY[name].save(Path(folder))
        else:
            bytes_tokenizer().save(str(Path(folder) / "tokenizer.json"))
        pair = bool(model.config.is_encoder_decoder)
        try:
            loaded = attnviz.load_model(folder)
            captured = loaded.capture(TEXT, target=TARGET if pair else None)
        except AttnvizError as error:
            return Measured(name, "refused", error.wrong.replace(folder, "FOLDER"))
        except Exception as error:  # a bug of attnviz
            return Measured(name, "wrong", _shortly(error))
        try:
            theirs = _eager(folder, captured, pair=pair)
        except Exception as error:  # any library's
            return Measured(name, "no weights to compare", _shortly(error))
        ours = [layer.weights for layer in captured.record.layers]
        if len(ours) != len(theirs):
            return Measured(name, "wrong", f"{len(ours)} layers, not {len(theirs)}")
        apart = _apart_by(ours, theirs)
        allowed = EXACT
        if apart > EXACT:  # fifty layers of large random weights are more than float32 can follow
            exact = _eager(folder, captured, pair=pair, dtype=torch.float64)
            allowed = 2 * _apart_by(theirs, exact)
        return Measured(name, "exact" if apart <= allowed else "wrong", f"{apart:.1e}")


def _apart_by(some: Sequence[Any], others: Sequence[Any]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


def _eager(
    folder: str, captured: Any, *, pair: bool, dtype: torch.dtype = torch.float32
) -> list[Any]:
    """What transformers returns of the same tokens, (h, n_q, n_k) for each layer that attends."""
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=dtype
    ).eval()
    inputs = {"input_ids": torch.tensor([[t.id for t in captured.record.key_tokens]])}
    if pair:  # a token's row is that of the position that predicts it
        written = [token.id for token in captured.record.query_tokens]
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        starts = (getattr(model.config, each, None) for each in names)
        start = next(each for each in starts if each is not None)
        inputs["decoder_input_ids"] = torch.tensor([[start, *written[:-1]]])
    # FSMT has no causal mask where it fills a cache
    takes = "use_cache" in inspect.signature(model.forward).parameters
    cache = {"use_cache": False} if takes else {}
    with torch.no_grad():
        output = model(**inputs, **cache, output_attentions=True)
    found = output["cross_attentions" if pair else "attentions"]
    weights = (each[0].numpy() for each in found if each is not None)
    # MiniMax returns the state of its linear attention among them
    shape = len(captured.record.query_tokens), len(captured.record.key_tokens)
    return [each for each in weights if each.shape[-2:] == shape]


def _shortly(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:150]


def _apart(name: str, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
    torch.set_num_threads(1)
    pipe.send(measure(name))


def measured(asked: Sequence[str]) -> Iterator[Measured]:
    """Each architecture, in a process of its own; what all of them import is imported here."""
    torch.set_num_threads(1)  # threads do not outlive a fork
    measure("llama")
    context = multiprocessing.get_context("fork")
    for name in asked:
        ours, theirs = context.Pipe()
        process = context.Process(target=_apart, args=(name, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            ended = ours.poll(SECONDS)
            yield ours.recv() if ended else Measured(name, "fails in transformers", "too slow")
        except EOFError:
            yield Measured(name, "fails in transformers", "its process died")
        process.kill()
        process.join()


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity(CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    for each in measured(sys.argv[1:] or names()):
        print(f"{each.name:24} {each.outcome:22} {each.said}", flush=True)
