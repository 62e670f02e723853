"""The from-scratch model as a loaded model: patterns recorded at its hook points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from attnviz.data.capture import ModelIdentity, PatternBlock
from attnviz.data.card import ModelCard
from attnviz.models.card import read_card
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.folder import read_config
from attnviz.models.gpt import GPT, GPTConfig
from attnviz.models.hooks import Hook, attached
from attnviz.models.loaded import Consumer, Wanted
from attnviz.models.tokenizer import END, TextTokenizer, load_tokenizer


@dataclass(frozen=True)
class NativeModel:
    """A `gpt.GPT` with its tokenizer and card."""

    model: GPT
    identity: ModelIdentity
    card: ModelCard
    tokenizer: TextTokenizer

    @property
    def context(self) -> int:
        return self.model.config.n_positions

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
    model = load_checkpoint(folder)
    tokenizer = load_tokenizer(folder, read_config(folder).get("bos_token_id"))
    return NativeModel(model, _identity(model, name), read_card(folder, name), tokenizer)


def _identity(model: GPT, name: str, *, trained: bool = True) -> ModelIdentity:
    config = model.config
    return ModelIdentity(
        name=name,
        architecture="gpt2",
        heads_per_layer=(config.n_head,) * config.n_layer,
        parameters=sum(p.numel() for p in model.parameters()),
        engine="native",
        trained=trained,
    )


def untrained() -> NativeModel:
    """A small seeded model in memory over plain bytes, for a checkout without weights."""
    alphabet = [END, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(GPTConfig(len(alphabet), 256, 32, n_layer=2, n_head=4)).eval()
    card = ModelCard("untrained", "Random weights: its patterns mean nothing.", bos=True)
    identity = _identity(model, "untrained", trained=False)
    return NativeModel(model, identity, card, TextTokenizer(backend, 0))
