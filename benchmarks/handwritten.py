"""Models written by hand, of which every answer is known: induction, and modular addition.

    python -m benchmarks.handwritten FOLDER    # save both, for `attnviz … --model FOLDER/induction`

Both are GPT-2s. A number x of the stream stands in two places, as x and as -x, so that every vector
has the mean 0 and a layer norm only scales it: by 1 / sqrt(2 · sum of x² / d).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from transformers.utils import logging

LETTERS = "abcdefgh"
UNKNOWN = "[UNK]"
"""Any other word, which says nothing."""
GAMMA = 3.0
"""The score that the induction head gives to what followed an earlier copy; all others have 0."""
SHARP = 60.0
"""The score that the previous-token head gives to the token before: in float32 all its weight."""
KAPPA = 2.0
"""The logit of a token that a head writes whole, before the last norm scales it."""
P, MODES, NEURONS = 13, (1, 3, 4, 6), 9
"""The modulus; the Fourier mode of each head; how many neurons square each of them."""


def induction_model() -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """Two layers of two heads without MLPs: L0H0 writes the token before, L1H0 continues with it.

    L0H1 and L1H1 attend evenly, and write nothing.
    """
    letters, positions = len(LETTERS), 2 * len(LETTERS)
    half = 3 * letters + positions
    token, previous, out = (np.arange(letters) + i * letters for i in range(3))
    place = np.arange(positions) + 3 * letters
    model = _gpt2(2 * half, heads=2, layers=2, vocabulary=letters + 1, positions=positions)
    stream, narrow = model.transformer, 2 * half // 2
    _write(stream.wte.weight, range(letters), token)
    _write(stream.wpe.weight, range(positions), place)
    first, second = (block.attn for block in stream.h)
    after_tokens, after_previous = np.sqrt(half / 2), np.sqrt(half / 3)  # what the norms scale by
    sharp = SHARP * narrow**0.5 / after_tokens**2
    _read(first, "query", place, [0, *range(positions - 1)], sharp)
    _read(first, "key", place, range(positions), 1)
    _read(first, "value", token, range(letters), 1 / after_tokens)
    _write(first.c_proj.weight, range(letters), previous)
    _read(second, "query", token, range(letters), GAMMA * narrow**0.5 / after_previous**2)
    _read(second, "key", previous, range(letters), 1)
    _read(second, "value", token, range(letters), 1 / after_previous)
    _write(second.c_proj.weight, range(letters), out)
    with torch.no_grad():
        model.lm_head.weight[range(letters), out] = KAPPA
    return model, _words(LETTERS)


def addition_model() -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """a + b modulo `P`, of texts such as `3 11 =`: the network of Zhong et al. 2023 ("pizza").

    Each head attends evenly, and carries one Fourier mode of both numbers to `=`; the sum of two
    vectors on a circle points half-way, and neurons double its angle.
    """
    modes, numbers = len(MODES), np.arange(P)
    half = 6 * modes
    embedded, carried, doubled = (np.arange(2 * modes) + i * 2 * modes for i in range(3))
    width = 2 * half
    model = _gpt2(width, heads=modes, layers=1, vocabulary=P + 2, inner=modes * NEURONS)
    block, narrow = model.transformer.h[0], width // modes
    angles = 2 * np.pi * np.outer(numbers, MODES) / P  # (P, modes)
    waves = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], 2).reshape(P, -1)).float()
    with torch.no_grad():
        model.transformer.wte.weight[:P, embedded] = waves
        model.transformer.wte.weight[:P, embedded + half] = -waves
        scaled = np.sqrt(half / modes)  # by the norm of a number
        for h in range(modes):
            own = [2 * h, 2 * h + 1]
            _read(block.attn, "value", embedded[own], [h * narrow, h * narrow + 1], 3 / scaled)
            _write(block.attn.c_proj.weight, [h * narrow, h * narrow + 1], carried[own])
            around = torch.arange(NEURONS) * 2 * torch.pi / NEURONS
            neurons = torch.arange(NEURONS) + h * NEURONS
            circle = torch.stack([around.cos(), around.sin()])  # (2, neurons)
            twice = torch.stack([(2 * around).cos(), (2 * around).sin()], dim=1)
            block.mlp.c_fc.weight[carried[own][:, None], neurons] = circle
            block.mlp.c_proj.weight[neurons[:, None], doubled[own]] = twice
            block.mlp.c_proj.weight[neurons[:, None], doubled[own] + half] = -twice
        model.lm_head.weight[:P, doubled] = waves
    return model, _words([*map(str, numbers), "="])


def _gpt2(width: int, *, heads: int, layers: int, vocabulary: int, **more: int) -> GPT2LMHeadModel:
    """A GPT-2 of nothing but zeros, whose norms only scale."""
    config = GPT2Config(
        vocab_size=vocabulary,
        n_embd=width,
        n_head=heads,
        n_layer=layers,
        n_positions=more.get("positions", 8),
        n_inner=more.get("inner", 4),
        activation_function="relu",
        layer_norm_epsilon=1e-12,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if ".ln_" in name and name.endswith("weight") else 0.0)
    return model


def _read(
    attn: torch.nn.Module, what: str, places: Sequence[int], to: Sequence[int], by: float
) -> None:
    """Let queries, keys or values of the first heads have numbers of the stream in their places."""
    start = ("query", "key", "value").index(what) * attn.embed_dim
    with torch.no_grad():
        attn.c_attn.weight[list(places), [start + i for i in to]] = by


def _write(weight: Tensor, rows: Sequence[int], places: Sequence[int]) -> None:
    """Let each row write 1 to a place of the stream, and -1 to its mirror."""
    with torch.no_grad():
        weight[list(rows), list(places)] = 1.0
        weight[list(rows), [place + weight.size(1) // 2 for place in places]] = -1.0


def _words(words: Sequence[str]) -> PreTrainedTokenizerFast:
    every = (*words, UNKNOWN)
    made = Tokenizer(WordLevel({word: i for i, word in enumerate(every)}, UNKNOWN))
    made.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made)


def main(folder: str) -> None:
    logging.disable_progress_bar()
    for name, (model, tokenizer) in (
        ("induction", induction_model()),
        ("addition", addition_model()),
    ):
        model.save_pretrained(Path(folder) / name)
        tokenizer.save_pretrained(Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
