"""A loader: `example:2` is a GPT-2 of two layers, with random weights and a token for each byte."""

from typing import Any


def load(name: str) -> tuple[Any, Any]:
    """Make the model, which is not trained, and its tokenizer.

    Args:
        name: what follows `example:`, the number of layers.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    numbers = {letter: number for number, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(numbers, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    set_seed(0)
    sizes = {"vocab_size": len(letters), "n_embd": 32, "n_layer": int(name), "n_head": 4}
    config = GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    return GPT2LMHeadModel(config).eval(), PreTrainedTokenizerFast(tokenizer_object=tokenizer)
