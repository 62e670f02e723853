"""Give a checkpoint the tokens of contractions: `python -m making.renewed FOLDER`.

Each gets the vector of what it stands for ("n't" that of "not"), so that a contraction reads as its
long form does, and every other text exactly as before. They take the place of words that the cuts
of the tokenizer no longer make ("didn").
"""

from pathlib import Path
from typing import Annotated

import torch
import typer
from tokenizers import Tokenizer

from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import load_checkpoint, save_checkpoint
from making import tokenizer as tokenizers
from making.tokenizer import LONG, spelled


def renew(model: GPT, tokenizer: Tokenizer) -> None:
    """Copy the vectors of long forms, in place."""
    ids = tokenizer.get_vocab()
    with torch.no_grad():
        for short, long in LONG.items():
            model.wte.weight[ids[spelled(short)]] = model.wte.weight[ids[spelled(long)]]


def main(folder: Annotated[Path, typer.Argument(help="a checkpoint of making.builtin")]) -> None:
    """Renew the checkpoint in its folder."""
    model, tokenizer = load_checkpoint(folder), tokenizers.build()
    renew(model, tokenizer)
    save_checkpoint(folder, model, tokenizer)


if __name__ == "__main__":
    typer.run(main)
