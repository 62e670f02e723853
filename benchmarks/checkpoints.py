"""Random models of real sizes, in folders, and texts and corpora of as many tokens as are wanted.

python -m benchmarks.checkpoints DIR
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

WORDS = [f"w{i}" for i in range(900)]
GPT2: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0}
LLAMA: dict[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 8192,
    "bos_token_id": None,
    "eos_token_id": None,
}
SMOLLM: dict[str, Any] = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
}
"""The shape of SmolLM2-135M; the tokenizer uses the first 901 rows of the embedding."""
LENGTHS = (14, 16, 64, 512, 900, 1024, 2048, 4096, 8192)
CORPORA = {
    "40x512": (40, 512, 512),
    "1000x512": (1000, 512, 512),
    "40x100": (40, 60, 140),
    "400x100": (400, 60, 140),
    "16x500": (16, 500, 500),
    "200x47": (200, 14, 80),
}
"""The number of documents, and the fewest and most tokens of each."""


def make(folder: Path) -> None:
    """The checkpoints with their tokenizer, texts and corpora; checkpoints are made once."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    for name, build in (
        ("gpt2", lambda: GPT2LMHeadModel(GPT2Config(**GPT2))),
        ("llama", lambda: LlamaForCausalLM(LlamaConfig(**LLAMA))),
        ("smollm", lambda: LlamaForCausalLM(LlamaConfig(**SMOLLM))),
    ):
        if not (folder / name / "model.safetensors").is_file():
            build().save_pretrained(folder / name)
            save_tokenizer(folder / name)
    draw = random.Random(0)
    for length in LENGTHS:
        words = " ".join(draw.choices(WORDS, k=length))
        (folder / f"{length}.txt").write_text(words + "\n")
    for name, (documents, fewest, most) in CORPORA.items():
        (folder / f"{name}.jsonl").write_text(_corpus(documents, fewest, most))


def save_tokenizer(folder: Path) -> None:
    """Write the tokenizer of words into a model's folder."""
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer()))
    # else transformers makes a GPT-2 tokenizer of its own from this file
    settings = json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"})
    (folder / "tokenizer_config.json").write_text(settings)


def _corpus(documents: int, fewest: int, most: int) -> str:
    """Documents of random words, as JSON lines."""
    draw = random.Random(0)
    texts = (draw.choices(WORDS, k=draw.randint(fewest, most)) for _ in range(documents))
    return "".join(json.dumps({"text": " ".join(words)}) + "\n" for words in texts)


def _tokenizer() -> dict[str, Any]:
    """A word is a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"<unk>": 0, **{word: i + 1 for i, word in enumerate(WORDS)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    read: dict[str, Any] = json.loads(tokenizer.to_str())
    return read


if __name__ == "__main__":
    make(Path(sys.argv[1]))
