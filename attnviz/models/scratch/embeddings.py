"""Attention before there were queries, keys and values: token embeddings compared directly.

This is the parameter-free self-attention with which lessons begin: the weights are the
softmax of the dot products of the token embeddings, without W_Q, W_K, W_V, positions or
scaling, and without a mask unless `causal` is set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnviz.models.attention import (
    attention_pattern,
    causal_mask,
    dot_products,
    masked,
    weighted_sum,
)
from attnviz.models.fingerprint import fingerprint
from attnviz.models.folder.config import folder_sizes
from attnviz.models.handover import Handover
from attnviz.models.known import EMBEDDINGS
from attnviz.models.scratch.checkpoint import load_checkpoint
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer
from attnviz.models.tracing import numbers
from attnviz.records.capture import Consumer, Kind, ModelIdentity, Wanted
from attnviz.records.heads import Head, ModelCard, NamedHead
from attnviz.records.tokens import Token
from attnviz.records.trace import EmbeddingTrace

TITLE = "token embeddings compared with each other, nothing learned to be compared"


@dataclass(frozen=True)
class EmbeddingModel:
    """The embedding (V, d) of a model, as a model with one layer and one head."""

    embedding: Tensor
    tokenizer: TextTokenizer
    causal: bool
    kind: Kind = "self"
    sinks: bool = False

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        return 4 * (3 * n_queries * n_keys + n_keys * self.embedding.size(1))

    @property
    def identity(self) -> ModelIdentity:
        size = self.embedding.numel()
        mark = fingerprint({EMBEDDINGS: self.embedding})
        return ModelIdentity(EMBEDDINGS, EMBEDDINGS, (1,), size, "native", fingerprint=mark)

    @property
    def card(self) -> ModelCard:
        return ModelCard(
            EMBEDDINGS, TITLE, bos=False, heads=(NamedHead("similarity", Head(0, 0), TITLE),)
        )

    def versions(self) -> Mapping[str, str]:
        return {"torch": str(torch.__version__)}

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        _, _, pattern = self._compared(ids)
        Handover(wanted, consume).take_rows(0, 0, pattern[None])

    def compare(self, text: str, tokens: Sequence[Token], query: int) -> EmbeddingTrace:
        """Every step of the comparison."""
        x, products, pattern = self._compared([token.id for token in tokens])
        return EmbeddingTrace(
            text=text,
            tokens=tuple(tokens),
            model=self.identity,
            versions=self.versions(),
            query=query,
            causal=self.causal,
            x=numbers(x),
            products=numbers(products),
            pattern=numbers(pattern),
            output=numbers(weighted_sum(pattern, x)),
        )

    def _compared(self, ids: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding[list(ids)]  # (n, d)
        products = dot_products(x, x)  # (n, n)
        if self.causal:
            products = masked(products, causal_mask(len(ids)))
        return x, products, attention_pattern(products)


def load_embeddings(folder: Path, *, causal: bool) -> EmbeddingModel:
    """Load the token embeddings of a GPT-2 folder.

    Raises:
        ModelError: a file of the folder is missing or damaged.
    """
    tokenizer = load_tokenizer(folder, folder_sizes(folder), bos=False)
    return EmbeddingModel(load_checkpoint(folder).wte.weight, tokenizer, causal)
