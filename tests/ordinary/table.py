"""The settings of published models, a row for each: facts of their files, sizes and all."""

from typing import Any

from tests.ordinary.models import Ordinary

ENDLESS = 1000000000000000019884624838656
"""`int(1e30)`, which transformers writes for a tokenizer without a limit."""


def _added(*tokens: str, first: int, special: bool = True, **more: bool) -> dict[str, Any]:
    """An `added_tokens_decoder` of tokens with ids that follow each other."""
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, **more}
    return {
        str(id_): {"content": token, **flags, "special": special}
        for id_, token in enumerate(tokens, start=first)
    }


def _token(content: str, kind: str = "AddedToken") -> dict[str, Any]:
    """A special token as an object, as older files have it."""
    flags = {"lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    return {"__type": kind, "content": content, **flags}


ENDOFTEXT = {"<|endoftext|>": 50256}
SAMPLED = {"do_sample": True, "temperature": 0.6, "top_p": 0.9}
SUMMARY = {
    "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
    "summary_type": "cls_index", "summary_use_proj": True,
}  # fmt: skip

GPTS = (
    Ordinary(
        "gpt2", "bytes", ENDOFTEXT, "",
        {
            "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
            "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
            "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
            "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
            "resid_pdrop": 0.1, **SUMMARY, "vocab_size": 50257,
            "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        },
        {"model_max_length": 1024},
        {"bos_token_id": 50256, "eos_token_id": 50256, "transformers_version": "4.26.0.dev0"},
    ),
    Ordinary(
        "gpt-neo-125m", "bytes", ENDOFTEXT, "",
        {
            "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"],
            "attention_dropout": 0,
            "attention_layers": ["global", "local"],
            "attention_types": [[["global", "local"], 1]],
            "bos_token_id": 50256, "embed_dropout": 0, "eos_token_id": 50256,
            "gradient_checkpointing": False, "hidden_size": 768, "initializer_range": 0.02,
            "intermediate_size": None, "layer_norm_epsilon": 1e-05,
            "max_position_embeddings": 2048, "model_type": "gpt_neo", "num_heads": 12,
            "num_layers": 12, "resid_dropout": 0, **SUMMARY, "use_cache": True,
            "vocab_size": 50257, "window_size": 256,
        },
        {
            "errors": "replace", "unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>", "add_prefix_space": False, "model_max_length": 2048,
            "special_tokens_map_file": None, "tokenizer_class": "GPT2Tokenizer",
        },
        {"_from_model_config": True, "bos_token_id": 50256, "eos_token_id": 50256},
    ),
    Ordinary(
        "gpt-j-6b", "bytes", ENDOFTEXT, "",
        {
            "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"],
            "attn_pdrop": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256,
            "gradient_checkpointing": False, "initializer_range": 0.02,
            "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16,
            "n_inner": None, "n_layer": 28, "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True,
            "rotary_dim": 64, "scale_attn_weights": True, **SUMMARY, "tie_word_embeddings": False,
            "tokenizer_class": "GPT2Tokenizer", "use_cache": True, "vocab_size": 50400,
        },
        {
            "errors": "replace", "add_prefix_space": False, "model_max_length": 2048,
            "unk_token": _token("<|endoftext|>"), "bos_token": _token("<|endoftext|>"),
            "eos_token": _token("<|endoftext|>"), "special_tokens_map_file": None,
            "name_or_path": "gpt2", "from_slow": True, "tokenizer_class": "GPT2Tokenizer",
        },
    ),
    Ordinary(
        "pythia-410m", "bytes", {"<|endoftext|>": 0, "<|padding|>": 1}, "",
        {
            "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
            "hidden_act": "gelu", "hidden_size": 1024, "initializer_range": 0.02,
            "intermediate_size": 4096, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
            "model_type": "gpt_neox", "num_attention_heads": 16, "num_hidden_layers": 24,
            "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False,
            "torch_dtype": "float16", "use_cache": True, "use_parallel_residual": True,
            "vocab_size": 50304,
        },
        {
            "unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>", "add_prefix_space": False,
            "tokenizer_class": "GPTNeoXTokenizer",
        },
    ),
    Ordinary(
        "opt-125m", "bytes", {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, "</s> $A",
        {
            "_name_or_path": "opt-125m", "activation_dropout": 0.0, "activation_function": "relu",
            "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2,
            "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 3072,
            "hidden_size": 768, "init_std": 0.02, "layerdrop": 0.0,
            "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 12,
            "num_hidden_layers": 12, "pad_token_id": 1, "prefix": "</s>",
            "torch_dtype": "float16", "use_cache": True, "vocab_size": 50272,
            "word_embed_proj_dim": 768,
        },
        {
            "errors": "replace", "unk_token": _token("</s>"), "bos_token": _token("</s>"),
            "eos_token": _token("</s>"), "pad_token": _token("<pad>"), "add_prefix_space": False,
            "add_bos_token": True, "special_tokens_map_file": None,
            "tokenizer_class": "GPT2Tokenizer",
        },
        {"_from_model_config": True, "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1},
    ),
    Ordinary(
        "bloom-560m", "bytes", {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3}, "",
        {
            "apply_residual_connection_post_layernorm": False, "attention_dropout": 0.0,
            "architectures": ["BloomForCausalLM"], "bias_dropout_fusion": True, "bos_token_id": 1,
            "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02,
            "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom",
            "n_embed": 1024, "n_inner": None, "n_layer": 24, "num_attention_heads": 16,
            "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1, "hidden_size": 1024,
            "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False,
            "unk_token_id": 0, "use_cache": True, "vocab_size": 250880,
        },
        {
            "unk_token": "<unk>", "eos_token": "</s>", "bos_token": "<s>", "pad_token": "<pad>",
            "name_or_path": "tokenizer", "special_tokens_map_file": None, "padding_side": "left",
            "tokenizer_class": "BloomTokenizerFast", "add_prefix_space": False,
        },
    ),
    Ordinary(
        "falcon-7b", "bytes", {"<|endoftext|>": 11, ">>TITLE<<": 0}, "",
        {
            "alibi": False, "apply_residual_connection_post_layernorm": False,
            "architectures": ["FalconForCausalLM"], "attention_dropout": 0.0,
            "auto_map": {
                "AutoConfig": "configuration_falcon.FalconConfig",
                "AutoModel": "modeling_falcon.FalconModel",
                "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
            },
            "bias": False, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0,
            "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
            "model_type": "falcon", "multi_query": True, "new_decoder_architecture": False,
            "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": True,
            "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True,
            "vocab_size": 65024,
        },
        {
            "add_prefix_space": False, "eos_token": "<|endoftext|>", "model_max_length": 2048,
            "model_input_names": ["input_ids", "attention_mask"], "special_tokens_map_file": None,
            "name_or_path": "tiiuae/falcon_tokenizer", "tokenizer_class": "PreTrainedTokenizerFast",
        },
        {"_from_model_config": True, "bos_token_id": 1, "eos_token_id": 11},
    ),
    Ordinary(
        "starcoder2-3b", "bytes", {"<|endoftext|>": 0, "<fim_prefix>": 1, "<fim_middle>": 2}, "",
        {
            "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1,
            "residual_dropout": 0.1, "embedding_dropout": 0.1, "bos_token_id": 0,
            "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072,
            "initializer_range": 0.018042, "intermediate_size": 12288,
            "max_position_embeddings": 16384, "mlp_type": "default", "model_type": "starcoder2",
            "norm_epsilon": 1e-05, "norm_type": "layer_norm", "num_attention_heads": 24,
            "num_hidden_layers": 30, "num_key_value_heads": 2, "rope_theta": 999999.4420358813,
            "sliding_window": 4096, "torch_dtype": "bfloat16", "use_bias": True,
            "use_cache": True, "vocab_size": 49152,
        },
        {
            "add_prefix_space": False, "additional_special_tokens": ["<|endoftext|>"],
            "added_tokens_decoder": _added("<|endoftext|>", "<fim_prefix>", first=0),
            "bos_token": "<|endoftext|>", "clean_up_tokenization_spaces": True,
            "eos_token": "<|endoftext|>", "model_max_length": ENDLESS,
            "tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>", "vocab_size": 49152,
        },
    ),
)  # fmt: skip

LLAMA_2 = {"<unk>": 0, "<s>": 1, "</s>": 2}
LLAMA_3 = {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|eot_id|>": 128009}
CHATML = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
SPM = {
    "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False,
    "legacy": False, "model_max_length": ENDLESS, "pad_token": None, "sp_model_kwargs": {},
}  # fmt: skip
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 4096,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None,
    "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip
MISTRAL = {
    "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True,
    "vocab_size": 32000,
}  # fmt: skip
QWEN = {
    "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
    "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 21,
    "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True,
    "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
QWEN_TOKENIZER = {
    "add_bos_token": False, "add_prefix_space": False,
    "added_tokens_decoder": _added("<|endoftext|>", "<|im_start|>", "<|im_end|>", first=151643),
    "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": None,
    "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
    "model_max_length": 131072, "pad_token": "<|endoftext|>", "split_special_tokens": False,
    "tokenizer_class": "Qwen2Tokenizer", "unk_token": None,
}  # fmt: skip
QWEN_GENERATION = {
    "bos_token_id": 151643, "pad_token_id": 151643, "do_sample": True,
    "eos_token_id": [151645, 151643], "repetition_penalty": 1.1, "temperature": 0.7,
    "top_p": 0.8, "top_k": 20,
}  # fmt: skip

LLAMAS = (
    Ordinary(
        "llama-2-7b", "pieces", LLAMA_2, "<s> $A",
        {"_name_or_path": "meta-llama/Llama-2-7b-hf", **LLAMA},
        {
            **SPM, "bos_token": _token("<s>"), "eos_token": _token("</s>"),
            "unk_token": _token("<unk>"), "padding_side": "right",
            "tokenizer_class": "LlamaTokenizer",
        },
        {"_from_model_config": True, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
         "temperature": 0.9, "do_sample": True, "top_p": 0.6, "max_length": 4096},
    ),
    Ordinary(
        "tinyllama-1.1b-chat", "pieces", LLAMA_2, "<s> $A",
        {**LLAMA, "hidden_size": 2048, "num_key_value_heads": 4, "intermediate_size": 5632,
         "num_hidden_layers": 22, "max_position_embeddings": 2048, "rope_theta": 10000.0,
         "torch_dtype": "bfloat16"},
        {
            **SPM, "added_tokens_decoder": _added("<unk>", "<s>", "</s>", first=0),
            "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "<unk>",
            "model_max_length": 2048, "tokenizer_class": "LlamaTokenizer",
            "use_default_system_prompt": False,
        },
        {"bos_token_id": 1, "eos_token_id": 2, "max_length": 2048, "pad_token_id": 0},
    ),
    Ordinary(
        "llama-3-8b", "gpt-4 bytes", LLAMA_3, "<|begin_of_text|> $A",
        {**LLAMA, "bos_token_id": 128000, "eos_token_id": 128001, "intermediate_size": 14336,
         "max_position_embeddings": 8192, "num_key_value_heads": 8, "rope_theta": 500000.0,
         "torch_dtype": "bfloat16", "vocab_size": 128256},
        {
            "added_tokens_decoder": {
                **_added("<|begin_of_text|>", "<|end_of_text|>", first=128000),
                **_added("<|eot_id|>", first=128009),
            },
            "bos_token": "<|begin_of_text|>", "clean_up_tokenization_spaces": True,
            "eos_token": "<|end_of_text|>", "model_max_length": ENDLESS,
            "model_input_names": ["input_ids", "attention_mask"],
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        {"bos_token_id": 128000, "eos_token_id": [128001, 128009], "max_length": 4096, **SAMPLED},
    ),
    Ordinary(
        "llama-3.2-1b-instruct", "gpt-4 bytes", LLAMA_3, "<|begin_of_text|> $A",
        {**LLAMA, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009],
         "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
         "max_position_embeddings": 131072, "mlp_bias": False, "num_hidden_layers": 16,
         "num_key_value_heads": 8, "rope_theta": 500000.0, "tie_word_embeddings": True,
         "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                          "original_max_position_embeddings": 8192, "rope_type": "llama3"},
         "vocab_size": 128256},
        {
            "added_tokens_decoder": _added("<|begin_of_text|>", "<|end_of_text|>", first=128000),
            "bos_token": "<|begin_of_text|>", "clean_up_tokenization_spaces": True,
            "eos_token": "<|eot_id|>", "model_max_length": 131072,
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        {"bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], **SAMPLED},
    ),
    Ordinary(
        "mistral-7b-v0.1", "pieces", LLAMA_2, "<s> $A", MISTRAL,
        {
            **SPM, "added_tokens_decoder": _added("<unk>", "<s>", "</s>", first=0),
            "additional_special_tokens": [], "bos_token": "<s>", "eos_token": "</s>",
            "unk_token": "<unk>", "legacy": True, "spaces_between_special_tokens": False,
            "tokenizer_class": "LlamaTokenizer", "use_default_system_prompt": False,
        },
        {"_from_model_config": True, "bos_token_id": 1, "eos_token_id": 2},
    ),
    Ordinary(
        "mistral-7b-instruct-v0.3", "pieces",
        {**LLAMA_2, "[INST]": 3, "[/INST]": 4, "[TOOL_CALLS]": 5}, "<s> $A",
        {**MISTRAL, "attention_dropout": 0.0, "rope_theta": 1000000.0, "sliding_window": None,
         "vocab_size": 32768},
        {
            **SPM, "add_prefix_space": None, "tokenizer_class": "LlamaTokenizer",
            "added_tokens_decoder": _added(*LLAMA_2, "[INST]", "[/INST]", "[TOOL_CALLS]", first=0),
            "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
        },
    ),
    Ordinary(
        "mixtral-8x7b", "pieces", LLAMA_2, "<s> $A",
        {**MISTRAL, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
         "attention_dropout": 0.0, "num_experts_per_tok": 2, "num_local_experts": 8,
         "output_router_logits": False, "router_aux_loss_coef": 0.02, "rope_theta": 1000000.0,
         "sliding_window": None},
        {**SPM, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "legacy": True,
         "tokenizer_class": "LlamaTokenizer"},
    ),
    Ordinary(
        "qwen2-0.5b", "gpt-4 bytes", CHATML, "",
        {**QWEN, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
        QWEN_TOKENIZER, {"bos_token_id": 151643, "do_sample": False, "eos_token_id": 151643,
                         "max_new_tokens": 2048},
    ),
    Ordinary(
        "qwen2.5-7b-instruct", "gpt-4 bytes", CHATML, "",
        {**QWEN, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
         "tie_word_embeddings": False},
        {**QWEN_TOKENIZER, "model_max_length": 131072}, QWEN_GENERATION,
    ),
    Ordinary(
        "qwen3-4b", "gpt-4 bytes", {**CHATML, "<think>": 151667, "</think>": 151668}, "",
        {**QWEN, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
         "attention_bias": False, "head_dim": 128, "rope_scaling": None, "sliding_window": None,
         "max_position_embeddings": 40960},
        {**QWEN_TOKENIZER,
         "added_tokens_decoder": _added("<think>", "</think>", first=151667, special=False)},
        {**QWEN_GENERATION, "repetition_penalty": 1.0, "temperature": 0.6, "top_p": 0.95},
    ),
    Ordinary(
        "qwen3-30b-a3b", "gpt-4 bytes", CHATML, "",
        {**QWEN, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
         "attention_bias": False, "decoder_sparse_step": 1, "head_dim": 128, "mlp_only_layers": [],
         "moe_intermediate_size": 768, "norm_topk_prob": True, "num_experts": 128,
         "num_experts_per_tok": 2, "output_router_logits": False, "rope_scaling": None,
         "router_aux_loss_coef": 0.001, "sliding_window": None, "tie_word_embeddings": False},
        QWEN_TOKENIZER, QWEN_GENERATION,
    ),
)  # fmt: skip
GEMMA_SPECIAL = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}
GEMMA = {
    "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 1,
    "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "initializer_range": 0.02,
    "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "hidden_size": 2048, "intermediate_size": 16384, "pad_token_id": 0,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "use_cache": True,
    "vocab_size": 256000,
}  # fmt: skip
GEMMA_TOKENIZER = {
    **SPM, "added_tokens_decoder": _added(*GEMMA_SPECIAL, first=0), "bos_token": "<bos>",
    "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>",
    "spaces_between_special_tokens": False, "tokenizer_class": "GemmaTokenizer",
    "use_default_system_prompt": False,
}  # fmt: skip
HARMONY = {"<|startoftext|>": 199998, "<|endoftext|>": 199999, "<|return|>": 200002,
           "<|channel|>": 200005, "<|start|>": 200006, "<|end|>": 200007}  # fmt: skip
COHERE = {"<PAD>": 0, "<UNK>": 1, "<CLS>": 2, "<SEP>": 3, "<MASK_TOKEN>": 4, "<BOS_TOKEN>": 5,
          "<|END_OF_TURN_TOKEN|>": 255001}  # fmt: skip

DECODERS = (
    Ordinary(
        "gemma-2b", "gemma", GEMMA_SPECIAL, "<bos> $A",
        {**GEMMA, "architectures": ["GemmaForCausalLM"], "hidden_act": "gelu",
         "hidden_activation": None, "model_type": "gemma", "rope_scaling": None},
        GEMMA_TOKENIZER, {"_from_model_config": True, "bos_token_id": 2, "eos_token_id": 1,
                          "pad_token_id": 0},
    ),
    Ordinary(
        "gemma-2-2b-it", "gemma", GEMMA_SPECIAL, "<bos> $A",
        {**GEMMA, "architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 50.0,
         "cache_implementation": "hybrid", "eos_token_id": [1, 107],
         "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh",
         "model_type": "gemma2", "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
         "sliding_window": 4096},
        GEMMA_TOKENIZER, {"bos_token_id": 2, "cache_implementation": "hybrid",
                          "eos_token_id": [1, 107], "pad_token_id": 0},
    ),
    Ordinary(
        "gemma-3-1b-it", "gemma", GEMMA_SPECIAL, "<bos> $A",
        {**GEMMA, "architectures": ["Gemma3ForCausalLM"], "attn_logit_softcapping": None,
         "cache_implementation": "hybrid", "eos_token_id": [1, 106],
         "final_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh",
         "max_position_embeddings": 32768, "model_type": "gemma3_text",
         "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000, "rope_scaling": None,
         "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
         "vocab_size": 262144},
        {**GEMMA_TOKENIZER, "boi_token": "<start_of_image>", "image_token": "<image_soft_token>",
         "extra_special_tokens": {"image_token": "<image_soft_token>"}},
        {"cache_implementation": "hybrid", "do_sample": True, "eos_token_id": [1, 106],
         "top_k": 64, "top_p": 0.95},
    ),
    Ordinary(
        "phi-2", "bytes", ENDOFTEXT, "",
        {
            "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 50256,
            "embd_pdrop": 0.0, "eos_token_id": 50256, "hidden_act": "gelu_new",
            "hidden_size": 2560, "initializer_range": 0.02, "intermediate_size": 10240,
            "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "phi",
            "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
            "partial_rotary_factor": 0.4, "qk_layernorm": False, "resid_pdrop": 0.1,
            "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": False,
            "torch_dtype": "float16", "use_cache": True, "vocab_size": 51200,
        },
        {
            "add_prefix_space": False, "added_tokens_decoder": _added(*ENDOFTEXT, first=50256),
            "bos_token": "<|endoftext|>", "clean_up_tokenization_spaces": True,
            "eos_token": "<|endoftext|>", "model_max_length": 2048, "return_token_type_ids": False,
            "tokenizer_class": "CodeGenTokenizer", "unk_token": "<|endoftext|>",
        },
    ),
    Ordinary(
        "phi-3-mini-128k", "pieces", {**LLAMA_2, "<|endoftext|>": 32000, "<|end|>": 32007}, "",
        {
            "architectures": ["Phi3ForCausalLM"], "attention_bias": False,
            "attention_dropout": 0.0, "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000,
            "auto_map": {
                "AutoConfig": "configuration_phi3.Phi3Config",
                "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM",
            },
            "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
            "intermediate_size": 8192, "max_position_embeddings": 131072, "model_type": "phi3",
            "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
            "original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0,
            "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 262144,
            "rope_scaling": {"type": "longrope", "long_factor": [1.08, 1.11, 1.14, 1.34, 1.59, 1.6,
                             2.6, 5.3], "short_factor": [1.0, 1.02, 1.03, 1.03, 1.05, 1.1, 1.2,
                             1.4]},
            "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True,
            "attention_type": "default", "vocab_size": 32064,
        },
        {
            **SPM, "add_bos_token": False, "bos_token": "<s>", "eos_token": "<|endoftext|>",
            "added_tokens_decoder": _added("<|endoftext|>", first=32000), "padding_side": "left",
            "model_max_length": 131072, "pad_token": "<|endoftext|>", "unk_token": "<unk>",
            "tokenizer_class": "LlamaTokenizer", "use_default_system_prompt": False,
        },
        {"bos_token_id": 1, "eos_token_id": [32000, 32001, 32007], "pad_token_id": 32000},
    ),
    Ordinary(
        "stablelm-2-1.6b", "gpt-4 bytes", {"<|endoftext|>": 100257, "<|im_start|>": 100264}, "",
        {
            "architectures": ["StableLmForCausalLM"], "bos_token_id": 100257,
            "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 2048,
            "initializer_range": 0.02, "intermediate_size": 5632, "layer_norm_eps": 1e-05,
            "max_position_embeddings": 4096, "model_type": "stablelm", "num_attention_heads": 32,
            "num_hidden_layers": 24, "num_key_value_heads": 32, "partial_rotary_factor": 0.25,
            "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "float16",
            "use_cache": True, "use_qkv_bias": True, "vocab_size": 100352,
        },
        {
            "added_tokens_decoder": _added("<|endoftext|>", first=100257),
            "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": None,
            "model_max_length": ENDLESS, "tokenizer_class": "GPT2Tokenizer",
            "unk_token": "<|endoftext|>",
        },
    ),
    Ordinary(
        "gpt-oss-20b", "gpt-4 bytes", HARMONY, "",
        {
            "architectures": ["GptOssForCausalLM"], "attention_bias": True,
            "attention_dropout": 0.0, "eos_token_id": 200002, "experts_per_token": 2,
            "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length":
            4096, "initializer_range": 0.02, "intermediate_size": 2880,
            "layer_types": ["sliding_attention", "full_attention"] * 12,
            "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
            "num_experts_per_tok": 2, "num_hidden_layers": 24, "num_key_value_heads": 8,
            "num_local_experts": 32, "output_router_logits": False, "pad_token_id": 199999,
            "rms_norm_eps": 1e-05, "rope_theta": 150000, "router_aux_loss_coef": 0.9,
            "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                             "original_max_position_embeddings": 4096, "rope_type": "yarn",
                             "truncate": False},
            "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": False,
            "use_cache": True, "vocab_size": 201088,
        },
        {
            "added_tokens_decoder": _added("<|startoftext|>", "<|endoftext|>", first=199998),
            "bos_token": "<|startoftext|>", "clean_up_tokenization_spaces": False,
            "eos_token": "<|return|>", "extra_special_tokens": {}, "pad_token": "<|endoftext|>",
            "model_input_names": ["input_ids", "attention_mask"], "model_max_length": ENDLESS,
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        {"bos_token_id": 199998, "do_sample": True, "eos_token_id": [200002, 199999],
         "pad_token_id": 199999},
    ),
    Ordinary(
        "olmo-2-1b", "gpt-4 bytes", {"<|endoftext|>": 100257, "<|pad|>": 100277}, "",
        {
            "architectures": ["Olmo2ForCausalLM"], "attention_bias": False,
            "attention_dropout": 0.0, "eos_token_id": 100257, "hidden_act": "silu",
            "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
            "max_position_embeddings": 4096, "model_type": "olmo2", "num_attention_heads": 16,
            "num_hidden_layers": 16, "num_key_value_heads": 16, "pad_token_id": 100277,
            "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 500000,
            "tie_word_embeddings": False, "use_cache": False, "vocab_size": 100352,
        },
        {
            "add_prefix_space": False, "added_tokens_decoder": _added("<|endoftext|>",
            first=100257), "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
            "model_max_length": ENDLESS, "pad_token": "<|pad|>", "tokenizer_class":
            "GPT2Tokenizer", "unk_token": "<|endoftext|>",
        },
    ),
    Ordinary(
        "granite-3.1-2b", "bytes", {"<|end_of_text|>": 0, "<|start_of_role|>": 49152}, "",
        {
            "architectures": ["GraniteForCausalLM"], "attention_bias": False,
            "attention_dropout": 0.1, "attention_multiplier": 0.015625, "bos_token_id": 0,
            "embedding_multiplier": 12.0, "eos_token_id": 0, "hidden_act": "silu",
            "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
            "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": False,
            "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40,
            "num_key_value_heads": 8, "pad_token_id": 0, "residual_multiplier": 0.22,
            "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 5000000.0,
            "tie_word_embeddings": True, "use_cache": True, "vocab_size": 49155,
        },
        {
            "add_bos_token": False, "add_prefix_space": False, "errors": "replace",
            "bos_token": "<|end_of_text|>", "eos_token": "<|end_of_text|>",
            "model_max_length": 9223372036854775807, "pad_token": "<|end_of_text|>",
            "tokenizer_class": "GPT2Tokenizer", "unk_token": "<|end_of_text|>", "vocab_size": 49152,
        },
    ),
    Ordinary(
        "command-r", "bytes", COHERE, "<BOS_TOKEN> $A",
        {
            "architectures": ["CohereForCausalLM"], "attention_bias": False,
            "attention_dropout": 0.0, "bos_token_id": 5, "eos_token_id": 255001,
            "hidden_act": "silu", "hidden_size": 8192, "initializer_range": 0.02,
            "intermediate_size": 22528, "layer_norm_eps": 1e-05, "logit_scale": 0.0625,
            "max_position_embeddings": 8192, "model_max_length": 131072, "model_type": "cohere",
            "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64,
            "pad_token_id": 0, "pretraining_tp": 1, "rope_theta": 8000000.0,
            "torch_dtype": "float16", "use_cache": True, "use_qk_norm": False,
            "vocab_size": 256000,
        },
        {
            "add_bos_token": True, "add_eos_token": False, "add_prefix_space": False,
            "added_tokens_decoder": _added(*COHERE, first=0), "bos_token": "<BOS_TOKEN>",
            "eos_token": "<|END_OF_TURN_TOKEN|>", "legacy": True, "merges_file": None,
            "model_max_length": ENDLESS, "pad_token": "<PAD>", "sp_model_kwargs": {},
            "tokenizer_class": "CohereTokenizer", "unk_token": None, "vocab_file": None,
        },
    ),
    Ordinary(
        "smollm3-3b", "gpt-4 bytes", {"<|begin_of_text|>": 128000, "<|im_end|>": 128012}, "",
        {
            "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False,
            "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128012,
            "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
            "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28,
            "mlp_bias": False, "model_type": "smollm3", "no_rope_layer_interval": 4,
            "no_rope_layers": [1, 0], "layer_types": ["full_attention"] * 36,
            "num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 4,
            "pad_token_id": 128004, "pretraining_tp": 2, "rms_norm_eps": 1e-06,
            "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None,
            "use_cache": False, "use_sliding_window": False, "vocab_size": 128256,
        },
        {
            "bos_token": None, "clean_up_tokenization_spaces": True, "eos_token": "<|im_end|>",
            "fast": False, "model_max_length": 131072, "pad_token": "<|im_end|>",
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
        {"bos_token_id": 128000, "do_sample": True, "eos_token_id": 128012, **SAMPLED},
    ),
)  # fmt: skip

CLS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
ROBERTA = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 50264}
BERT = {
    "attention_probs_dropout_prob": 0.1, "classifier_dropout": None, "hidden_act": "gelu",
    "gradient_checkpointing": False, "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
    "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2,
    "use_cache": True, "vocab_size": 30522,
}  # fmt: skip
BERT_TOKENIZER = {
    "added_tokens_decoder": {
        **_added("[PAD]", first=0),
        **_added("[UNK]", "[CLS]", "[SEP]", "[MASK]", first=100),
    },
    "clean_up_tokenization_spaces": True, "cls_token": "[CLS]", "do_basic_tokenize": True,
    "do_lower_case": True, "mask_token": "[MASK]", "model_max_length": 512, "never_split": None,
    "pad_token": "[PAD]", "sep_token": "[SEP]", "strip_accents": None,
    "tokenize_chinese_chars": True, "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]",
}  # fmt: skip
ROBERTA_TOKENIZER = {
    "add_prefix_space": False, "bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>",
    "errors": "replace", "mask_token": _token("<mask>"), "pad_token": "<pad>", "sep_token": "</s>",
    "tokenizer_class": "RobertaTokenizer", "trim_offsets": True, "unk_token": "<unk>",
}  # fmt: skip

ENCODERS = (
    Ordinary(
        "bert-base-uncased", "words", CLS, "[CLS] $A [SEP]",
        {"architectures": ["BertForMaskedLM"], "model_type": "bert", **BERT},
        {"do_lower_case": True, "model_max_length": 512},
    ),
    Ordinary(
        "bert-base-ner", "cased words", CLS, "[CLS] $A [SEP]",
        {"_num_labels": 9, "architectures": ["BertForTokenClassification"], "model_type": "bert",
         **BERT, "directionality": "bidi", "output_past": True, "pooler_fc_size": 768,
         "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
         "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
         "id2label": {"0": "O", "1": "B-MISC", "2": "I-MISC"},
         "label2id": {"B-MISC": 1, "I-MISC": 2, "O": 0}, "vocab_size": 28996},
        {**BERT_TOKENIZER, "do_lower_case": False, "max_len": 512},
    ),
    Ordinary(
        "distilbert-sst-2", "words", CLS, "[CLS] $A [SEP]",
        {
            "activation": "gelu", "architectures": ["DistilBertForSequenceClassification"],
            "attention_dropout": 0.1, "dim": 768, "dropout": 0.1, "finetuning_task": "sst-2",
            "hidden_dim": 3072, "id2label": {"0": "NEGATIVE", "1": "POSITIVE"},
            "initializer_range": 0.02, "label2id": {"NEGATIVE": 0, "POSITIVE": 1},
            "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12,
            "n_layers": 6, "output_past": True, "pad_token_id": 0, "qa_dropout": 0.1,
            "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True,
            "vocab_size": 30522,
        },
        {"model_max_length": 512, "do_lower_case": True},
    ),
    Ordinary(
        "electra-small", "words", CLS, "[CLS] $A [SEP]",
        {"architectures": ["ElectraForPreTraining"], **BERT, "embedding_size": 128,
         "model_type": "electra", "summary_activation": "gelu", "summary_last_dropout": 0.1,
         "summary_type": "first", "summary_use_proj": True},
        {**BERT_TOKENIZER, "tokenizer_class": "ElectraTokenizer"},
    ),
    Ordinary(
        "mpnet-base", "words",
        {"<s>": 0, "<pad>": 1, "</s>": 2, "[UNK]": 104, "<mask>": 30526}, "<s> $A </s>",
        {**BERT, "architectures": ["MPNetForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2,
         "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "mpnet",
         "pad_token_id": 1, "relative_attention_num_buckets": 32, "vocab_size": 30527},
        {"do_lower_case": True, "bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>",
         "cls_token": "<s>", "unk_token": "[UNK]", "pad_token": "<pad>", "mask_token": "<mask>",
         "tokenize_chinese_chars": True, "strip_accents": None, "model_max_length": 512,
         "tokenizer_class": "MPNetTokenizer"},
    ),
    Ordinary(
        "roberta-base-squad2", "bytes", ROBERTA, "<s> $A </s>",
        {**BERT, "architectures": ["RobertaForQuestionAnswering"], "bos_token_id": 0,
         "eos_token_id": 2, "language": "english", "layer_norm_eps": 1e-05, "name": "Roberta",
         "max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1,
         "type_vocab_size": 1, "vocab_size": 50265},
        {**ROBERTA_TOKENIZER, "model_max_length": 512, "full_tokenizer_file": None},
    ),
    Ordinary(
        "xlm-roberta-base", "unigram",
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 160}, "<s> $A </s>",
        {**BERT, "architectures": ["XLMRobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2,
         "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "xlm-roberta",
         "output_past": True, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 250002},
        {"model_max_length": 512},
    ),
    Ordinary(
        "albert-base-v2", "unigram",
        {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}, "[CLS] $A [SEP]",
        {**BERT, "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0,
         "bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1,
         "embedding_size": 128, "eos_token_id": 3, "gap_size": 0, "hidden_act": "gelu_new",
         "hidden_dropout_prob": 0, "inner_group_num": 1, "model_type": "albert",
         "net_structure_type": 0, "num_hidden_groups": 1, "num_memory_blocks": 0,
         "vocab_size": 30000},
        {"model_max_length": 512, "tokenizer_class": "PreTrainedTokenizerFast"},
    ),
    Ordinary(
        "deberta-v3-base", "unigram",
        {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "<unk>": 3, "[MASK]": 160}, "[CLS] $A [SEP]",
        {
            "architectures": ["DebertaV2ForMaskedLM"], "attention_probs_dropout_prob": 0.1,
            "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
            "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-07,
            "legacy": True, "max_position_embeddings": 512, "max_relative_positions": -1,
            "model_type": "deberta-v2", "norm_rel_ebd": "layer_norm", "num_attention_heads": 12,
            "num_hidden_layers": 12, "pad_token_id": 0, "pooler_dropout": 0,
            "pooler_hidden_act": "gelu", "pooler_hidden_size": 32, "pos_att_type": "p2c|c2p",
            "position_biased_input": False, "position_buckets": 256, "relative_attention": True,
            "share_att_key": True, "type_vocab_size": 0, "vocab_size": 128100,
        },
        {"do_lower_case": False, "vocab_type": "spm", "bos_token": "[CLS]", "eos_token": "[SEP]",
         "mask_token": "[MASK]", "pad_token": "[PAD]", "unk_token": "<unk>",
         "tokenizer_class": "PreTrainedTokenizerFast"},
    ),
    Ordinary(
        "modernbert-base", "bytes",
        {"[UNK]": 50280, "[CLS]": 50281, "[SEP]": 50282, "[PAD]": 50283, "[MASK]": 50284},
        "[CLS] $A [SEP]",
        {
            "architectures": ["ModernBertForMaskedLM"], "attention_bias": False,
            "attention_dropout": 0.0, "bos_token_id": 50281, "classifier_activation": "gelu",
            "classifier_bias": False, "classifier_dropout": 0.0, "classifier_pooling": "mean",
            "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False,
            "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3,
            "global_rope_theta": 160000.0, "gradient_checkpointing": False,
            "hidden_activation": "gelu", "hidden_size": 768, "initializer_cutoff_factor": 2.0,
            "initializer_range": 0.02, "intermediate_size": 1152, "layer_norm_eps": 1e-05,
            "local_attention": 128, "local_rope_theta": 10000.0, "max_position_embeddings": 8192,
            "mlp_bias": False, "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False,
            "norm_eps": 1e-05, "num_attention_heads": 12, "num_hidden_layers": 22,
            "pad_token_id": 50283, "position_embedding_type": "absolute", "sep_token_id": 50282,
            "reference_compile": None, "repad_logits_with_grad": False,
            "sparse_pred_ignore_index": -100, "sparse_prediction": False,
            "tie_word_embeddings": True, "vocab_size": 50368,
        },
        {
            "clean_up_tokenization_spaces": True, "cls_token": "[CLS]", "mask_token": "[MASK]",
            "model_input_names": ["input_ids", "attention_mask"], "model_max_length": 8192,
            "pad_token": "[PAD]", "sep_token": "[SEP]", "unk_token": "[UNK]",
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    ),
)  # fmt: skip

T5 = {
    "architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions":
    512, "num_heads": 8, "num_layers": 6, "output_past": True, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "vocab_size": 32128,
}  # fmt: skip
T5_SPECIAL = {"<pad>": 0, "</s>": 1, "<unk>": 2}
BART = {
    "activation_dropout": 0.0, "activation_function": "gelu", "add_bias_logits": False,
    "add_final_layer_norm": False, "attention_dropout": 0.0, "bos_token_id": 0,
    "classif_dropout": 0.0, "d_model": 1024, "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0, "decoder_layers": 12,
    "decoder_start_token_id": 2, "dropout": 0.1, "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096, "encoder_layerdrop": 0.0, "encoder_layers": 12, "eos_token_id": 2,
    "init_std": 0.02, "is_encoder_decoder": True, "max_position_embeddings": 1024,
    "normalize_before": False, "num_hidden_layers": 12, "pad_token_id": 1,
    "scale_embedding": False, "use_cache": True, "vocab_size": 50264,
}  # fmt: skip
BEAMS = {"num_beams": 4, "early_stopping": True, "length_penalty": 2.0, "max_length": 142,
         "min_length": 56, "no_repeat_ngram_size": 3}  # fmt: skip
NLLB = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "eng_Latn": 160, "deu_Latn": 161}

PAIRS = (
    Ordinary(
        "t5-small", "unigram", T5_SPECIAL, "$A </s>",
        {**T5, "n_positions": 512, "task_specific_params": {
            "summarization": {"early_stopping": True, "length_penalty": 2.0, "max_length": 200,
                              "num_beams": 4, "prefix": "summarize: "}}},
        {"model_max_length": 512, "extra_ids": 0, "eos_token": "</s>", "unk_token": "<unk>",
         "pad_token": "<pad>", "tokenizer_class": "PreTrainedTokenizerFast"},
        {"_from_model_config": True, "decoder_start_token_id": 0, "eos_token_id": 1,
         "pad_token_id": 0},
    ),
    Ordinary(
        "flan-t5-base", "unigram", T5_SPECIAL, "$A </s>",
        {**T5, "d_model": 768, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 12,
         "num_layers": 12, "relative_attention_max_distance": 128, "tie_word_embeddings": False,
         "dense_act_fn": "gelu_new", "is_gated_act": True, "use_cache": True},
        {"additional_special_tokens": [], "eos_token": "</s>", "extra_ids": 0,
         "model_max_length": 512, "pad_token": "<pad>", "sp_model_kwargs": {},
         "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"},
        {"_from_model_config": True, "decoder_start_token_id": 0, "eos_token_id": 1,
         "pad_token_id": 0},
    ),
    Ordinary(
        "mt5-small", "unigram", T5_SPECIAL, "$A </s>",
        {**T5, "architectures": ["MT5ForConditionalGeneration"], "d_ff": 1024,
         "feed_forward_proj": "gated-gelu", "model_type": "mt5", "num_decoder_layers": 8,
         "num_heads": 6, "num_layers": 8, "tie_word_embeddings": False,
         "tokenizer_class": "T5Tokenizer", "vocab_size": 250112},
        {"model_max_length": ENDLESS, "eos_token": "</s>", "unk_token": "<unk>",
         "pad_token": "<pad>", "extra_ids": 0, "additional_special_tokens": None,
         "tokenizer_class": "PreTrainedTokenizerFast"},
    ),
    Ordinary(
        "bart-large-cnn", "bytes", ROBERTA, "<s> $A </s>",
        {**BART, "_num_labels": 3, "architectures": ["BartForConditionalGeneration"], **BEAMS,
         "force_bos_token_to_be_generated": True, "forced_bos_token_id": 0,
         "forced_eos_token_id": 2, "gradient_checkpointing": False,
         "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "model_type": "bart",
         "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}, "output_past": True,
         "prefix": " ", "task_specific_params": {"summarization": BEAMS}, "vocab_size": 50265},
        {"model_max_length": 1024},
        {"_from_model_config": True, "bos_token_id": 0, "decoder_start_token_id": 2,
         "eos_token_id": 2, "forced_bos_token_id": 0, "forced_eos_token_id": 2, **BEAMS,
         "pad_token_id": 1},
    ),
    Ordinary(
        "mbart-large-50", "unigram",
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "en_XX": 160, "de_DE": 161},
        "en_XX $A </s>",
        {**BART, "activation_function": "relu", "architectures": ["MBartForConditionalGeneration"],
         "add_final_layer_norm": True, "forced_eos_token_id": 2, "gradient_checkpointing": False,
         "max_length": 200, "model_type": "mbart", "normalize_before": True,
         "normalize_embedding": True, "num_beams": 5, "output_past": True,
         "scale_embedding": True, "static_position_embeddings": False,
         "tokenizer_class": "MBart50Tokenizer", "vocab_size": 250054},
        {"language_codes": "ML50", "model_max_length": 1024, "src_lang": "en_XX",
         "tgt_lang": None, "tokenizer_class": "PreTrainedTokenizerFast"},
        {"_from_model_config": True, "bos_token_id": 0, "decoder_start_token_id": 2,
         "early_stopping": True, "eos_token_id": 2, "forced_eos_token_id": 2, "max_length": 200,
         "num_beams": 5, "pad_token_id": 1},
    ),
    Ordinary(
        "opus-mt-en-de", "unigram", {"</s>": 0, "<unk>": 1, "<pad>": 58100}, "$A </s>",
        {**BART, "_num_labels": 3, "activation_function": "swish",
         "architectures": ["MarianMTModel"], "bad_words_ids": [[58100]],
         "decoder_start_token_id": 58100, "eos_token_id": 0, "forced_eos_token_id": 0,
         "max_length": 512, "max_position_embeddings": 512, "model_type": "marian",
         "normalize_embedding": False, "num_beams": 6, "pad_token_id": 58100,
         "scale_embedding": True, "static_position_embeddings": True, "vocab_size": 58101},
        {"source_lang": "eng", "target_lang": "deu", "model_max_length": 512,
         "tokenizer_class": "PreTrainedTokenizerFast"},
        {"_from_model_config": True, "bad_words_ids": [[58100]], "bos_token_id": 0,
         "decoder_start_token_id": 58100, "eos_token_id": 0, "forced_eos_token_id": 0,
         "max_length": 512, "num_beams": 6, "pad_token_id": 58100},
    ),
    Ordinary(
        "nllb-200-600m", "unigram", NLLB, "eng_Latn $A </s>",
        {**BART, "activation_function": "relu", "architectures": ["M2M100ForConditionalGeneration"],
         "encoder_layerdrop": 0.05, "decoder_layerdrop": 0.05, "max_length": 200,
         "model_type": "m2m_100", "scale_embedding": True, "torch_dtype": "float32",
         "tokenizer_class": "NllbTokenizer", "vocab_size": 256206},
        {"additional_special_tokens": ["eng_Latn", "deu_Latn"], "bos_token": "<s>",
         "cls_token": "<s>", "eos_token": "</s>", "mask_token": _token("<mask>"),
         "model_max_length": 1024, "pad_token": "<pad>", "sep_token": "</s>",
         "sp_model_kwargs": {}, "src_lang": "eng_Latn", "tgt_lang": None, "unk_token": "<unk>",
         "tokenizer_class": "PreTrainedTokenizerFast"},
        {"_from_model_config": True, "bos_token_id": 0, "decoder_start_token_id": 2,
         "eos_token_id": 2, "max_length": 200, "pad_token_id": 1},
    ),
    Ordinary(
        "pegasus-xsum", "unigram", {"<pad>": 0, "</s>": 1, "<mask_1>": 2, "<unk>": 105},
        "$A </s>",
        {**BART, "activation_function": "relu", "add_final_layer_norm": True,
         "architectures": ["PegasusForConditionalGeneration"], "decoder_start_token_id": 0,
         "eos_token_id": 1, "extra_pos_embeddings": 1, "force_bos_token_to_be_generated": False,
         "forced_eos_token_id": 1, "length_penalty": 0.6, "max_length": 64,
         "max_position_embeddings": 512, "model_type": "pegasus", "normalize_before": True,
         "num_beams": 8, "pad_token_id": 0, "scale_embedding": True,
         "static_position_embeddings": True, "vocab_size": 96103,
         "task_specific_params": {"summarization_xsum": {"length_penalty": 0.6, "max_length": 64,
                                                         "num_beams": 8}}},
        {"model_max_length": 512, "tokenizer_class": "PreTrainedTokenizerFast"},
        {"_from_model_config": True, "decoder_start_token_id": 0, "eos_token_id": 1,
         "forced_eos_token_id": 1, "length_penalty": 0.6, "max_length": 64, "num_beams": 8,
         "pad_token_id": 0},
    ),
)  # fmt: skip

EVERY = (*GPTS, *LLAMAS, *DECODERS, *ENCODERS, *PAIRS)
