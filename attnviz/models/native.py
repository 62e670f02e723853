"""The from-scratch model as a loaded model: patterns recorded at its hook points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnviz.data.capture import ModelIdentity, PatternBlock
from attnviz.data.card import ModelCard
from attnviz.models.card import read_card
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.config import gpt2_config
from attnviz.models.gpt import GPT
from attnviz.models.hooks import Hook, attached
from attnviz.models.loaded import Consumer, Wanted
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer


@dataclass(frozen=True)
class NativeModel:
    """A `gpt.GPT` with its tokenizer and card."""

    model: GPT
    identity: ModelIdentity
    card: ModelCard
    tokenizer: TextTokenizer

    def versions(self) -> Mapping[str, str]:
        return {"torch": str(torch.__version__)}

    def run(self, ids: Sequence[int], wanted: Wanted, consume: Consumer) -> None:
        def recorder(layer: int, heads: tuple[int, ...]) -> Hook:
            def record(pattern: Tensor) -> None:  # (1, h, n, n)
                kept = pattern[0, list(heads)].numpy().astype(np.float32)  # (heads, n, n)
                consume(PatternBlock(layer, heads, 0, kept))

            return record

        hooks = {f"h.{n}.attn.pattern": recorder(n, heads) for n, heads in wanted.items()}
        last = max(wanted, default=-1)
        with torch.inference_mode(), attached(self.model, hooks):
            self.model.hidden(torch.tensor([list(ids)]), n_layer=last + 1)


def load_native(folder: Path, name: str) -> NativeModel:
    """A GPT-2 folder on the from-scratch model.

    Raises:
        ModelError: a file of the folder is missing or damaged.
    """
    config = gpt2_config(folder)
    card = read_card(folder, name, config.sizes.heads_per_layer)
    tokenizer = load_tokenizer(folder, config, card.bos)
    model = load_checkpoint(folder)
    return NativeModel(model, _identity(model, name), card, tokenizer)


def _identity(model: GPT, name: str) -> ModelIdentity:
    return ModelIdentity(
        name=name,
        architecture="gpt2",
        heads_per_layer=model.config.heads_per_layer,
        parameters=sum(p.numel() for p in model.parameters()),
        engine="native",
    )
