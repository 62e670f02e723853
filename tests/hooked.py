"""The built-in checkpoint in transformers, and plain hooks on the outputs of its heads."""

from typing import Any

import torch
from transformers import GPT2LMHeadModel

import attnviz
from tests.builtin import FOLDER


class Hooked:
    """The built-in checkpoint in transformers, and plain hooks on head outputs."""

    def __init__(self) -> None:
        self.model = GPT2LMHeadModel.from_pretrained(FOLDER).eval()
        self.tokenizer = attnviz.load_model()._loaded.tokenizer
        self.width = self.model.config.n_embd // self.model.config.n_head

    def ids(self, text: str) -> list[int]:
        return [token.id for token in self.tokenizer.encode(text, bos=True, special=False)]

    def z(self, text: str, layer: int, head: int) -> torch.Tensor:
        """(n, d_v) of a head."""
        given = list[torch.Tensor]()
        module = self.model.transformer.h[layer].attn.c_proj
        handle = module.register_forward_pre_hook(lambda _m, args: given.append(args[0][0]))
        self.logits(text)
        handle.remove()
        return given[0][:, head * self.width : (head + 1) * self.width]

    def logits(self, text: str) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = self.model(torch.tensor([self.ids(text)])).logits[0]
        return logits

    def logits_with(
        self, text: str, layer: int, head: int, instead: torch.Tensor | float
    ) -> torch.Tensor:
        """The logits (n, V) where a head's outputs are these."""

        def change(_module: Any, args: Any) -> Any:
            z = args[0].clone()
            z[0, :, head * self.width : (head + 1) * self.width] = instead
            return (z,)

        module = self.model.transformer.h[layer].attn.c_proj
        handle = module.register_forward_pre_hook(change)
        logits = self.logits(text)
        handle.remove()
        return logits

    def changed(
        self, text: str, layer: int, head: int, instead: torch.Tensor | float
    ) -> torch.Tensor:
        """The change of log-probability of each token that followed (n - 1)."""
        after = self.logits_with(text, layer, head, instead)
        return self.followed(text, after) - self.followed(text)

    def followed(self, text: str, logits: torch.Tensor | None = None) -> torch.Tensor:
        """The log-probability of each token that followed (n - 1), by these logits or its own."""
        ids = self.ids(text)
        logs = (self.logits(text) if logits is None else logits)[:-1].log_softmax(dim=-1)
        return logs[range(len(ids) - 1), ids[1:]]
