"""A model through transformers: GPT-2, its attention recorded by forward hooks.

The model is loaded with the eager implementation, the one whose attention modules
return the pattern they used, so what a hook sees is what the model computed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnviz.data.capture import ModelIdentity, PatternBlock
from attnviz.data.card import ModelCard
from attnviz.data.heads import Head
from attnviz.data.tokens import Token
from attnviz.data.trace import HeadTrace
from attnviz.models.card import read_card
from attnviz.models.checkpoint import check_finite, lacks, other_shape
from attnviz.models.config import gpt2_config
from attnviz.models.folder import damaged, weight_files
from attnviz.models.loaded import Consumer, Wanted
from attnviz.models.tokenizer import TextTokenizer, load_tokenizer


class _LastLayerSeen(Exception):
    """Ends a forward pass after the last layer that was asked for."""


@dataclass(frozen=True)
class HuggingFaceModel:
    """A transformers GPT-2 with its tokenizer; `model` is a GPT2LMHeadModel."""

    model: Any
    identity: ModelIdentity
    card: ModelCard
    tokenizer: TextTokenizer

    def versions(self) -> Mapping[str, str]:
        import transformers

        return {"torch": str(torch.__version__), "transformers": transformers.__version__}

    def run(self, ids: Sequence[int], wanted: Wanted, consume: Consumer) -> None:
        blocks = self.model.transformer.h
        last = max(wanted, default=-1)
        with torch.inference_mode(), ExitStack() as attached:
            for layer, heads in wanted.items():
                hook = _recorder(layer, heads, consume, is_last=layer == last)
                attached.callback(blocks[layer].attn.register_forward_hook(hook).remove)
            with suppress(_LastLayerSeen):
                self.model.transformer(torch.tensor([list(ids)]), use_cache=False)

    def trace(self, text: str, tokens: Sequence[Token], head: Head, query: int) -> HeadTrace:
        raise NotImplementedError


def _recorder(
    layer: int, heads: tuple[int, ...], consume: Consumer, *, is_last: bool
) -> Callable[..., None]:
    def record(_module: object, _inputs: object, output: tuple[Any, ...]) -> None:
        pattern = output[1][0, list(heads)]  # (1, h, n, n) to (heads, n, n)
        consume(PatternBlock(layer, heads, 0, pattern.float().numpy().astype(np.float32)))
        if is_last:
            raise _LastLayerSeen

    return record


def load_huggingface(folder: Path, name: str, revision: str | None) -> HuggingFaceModel:
    """A local folder through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: another architecture, or a file that is missing or damaged.
    """
    config = gpt2_config(folder)
    card = read_card(folder, name, config.sizes.heads_per_layer)
    tokenizer = load_tokenizer(folder, config, card.bos)
    model = _load_weights(folder)
    identity = ModelIdentity(
        name=name,
        architecture="gpt2",
        heads_per_layer=config.sizes.heads_per_layer,
        parameters=model.num_parameters(),
        engine="transformers",
        revision=revision,
    )
    return HuggingFaceModel(model, identity, card, tokenizer)


def _load_weights(folder: Path) -> Any:
    """A GPT2LMHeadModel in float32, with every weight of the folder checked."""
    from transformers import GPT2LMHeadModel
    from transformers.utils import logging

    weight_files(folder)  # says best what is missing
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, report = GPT2LMHeadModel.from_pretrained(
            folder,
            attn_implementation="eager",
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # reported below, by name and shape
            output_loading_info=True,
        )
    except Exception as error:  # a damaged file or setting can raise anything in there
        raise damaged(folder, error) from None
    for name, found, expected in sorted(report["mismatched_keys"]):
        raise other_shape(folder, name, tuple(found), tuple(expected))
    for name in sorted(report["missing_keys"]):
        raise lacks(folder, name)
    check_finite(dict(model.named_parameters()), folder)
    return model.eval()
