"""What the last stage of the training keeps: the streams of the model that it goes on from.

A text's streams, after every layer, are to be those of that model; with a contraction, those that
it has over the long form ("did n't" as "did not"), token by token; *'s*, which may be a genitive,
keeps its own. At the end both are mixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from tokenizers import Tokenizer
from torch import Tensor

from attnviz.models.attention import Hook, attached
from attnviz.models.scratch.gpt import GPT
from making.asking import LAYER, AskingBatch
from making.tokenizer import LONG, spelled


@dataclass(frozen=True)
class Streams:
    """The residual stream after each layer, (B, n, d), in order."""

    seen: list[Tensor] = field(default_factory=list)

    def hooks(self, n_layer: int) -> dict[str, Hook]:
        """Hooks that fill this, by hook point."""
        return {f"h.{layer}.resid_post": self.seen.append for layer in range(n_layer)}


@dataclass(frozen=True)
class Keeper:
    """The model that training goes on from; `long` (V) is the id of each token's long form."""

    model: GPT
    long: Tensor

    def loss(self, streams: Streams, batch: AskingBatch) -> Tensor:
        """How far the streams are from this model's: the squared distance of kept tokens, as a
        share of the mean squared length, averaged over tokens and layers."""
        before = Streams()
        fast = torch.cpu._is_avx512_bf16_supported()  # as in `loop.predictions`
        with (
            torch.no_grad(),
            torch.autocast("cpu", torch.bfloat16, enabled=fast),
            attached(self.model, before.hooks(self.model.config.n_layer)),
        ):
            self.model.hidden(self.long[batch.ids], mask=batch.mask(), positions=batch.positions)
        each = [
            (now[batch.kept].float() - then[batch.kept]).square().mean()
            / then[batch.kept].square().mean()
            for now, then in zip(streams.seen, before.seen, strict=True)
        ]
        return torch.stack(each).mean()


def mixed(before: GPT, after: GPT, early: float, late: float) -> GPT:
    """The mean of two models, weight by weight (Wortsman et al. 2022, "Robust fine-tuning of
    zero-shot models", arXiv 2109.01903): it keeps more of the first than further training would.

    Args:
        before: the model that training went on from.
        after: the model that it led to.
        early: the share of the second in the layers up to the asked heads.
        late: its share in everything else.
    """
    first, second = before.state_dict(), after.state_dict()
    names = tuple(f"h.{layer}." for layer in range(LAYER + 1))
    shares = {name: early if name.startswith(names) else late for name in first}
    model = GPT(after.config)
    model.load_state_dict(
        {n: torch.lerp(first[n], second[n], share) for n, share in shares.items()}
    )
    return model.eval()


def long_ids(tokenizer: Tokenizer) -> Tensor:
    """The id of each token's long form, (V), its own where it has none."""
    ids: Mapping[str, int] = tokenizer.get_vocab()
    long = torch.arange(len(ids))
    for short, form in LONG.items():
        long[ids[spelled(short)]] = ids[spelled(form)]
    return long


def keeper(model: GPT, tokenizer: Tokenizer) -> Keeper:
    """A keeper of a model, whose new tokens get the vectors of their long forms in place."""
    long = long_ids(tokenizer)
    with torch.no_grad():
        model.wte.weight.copy_(model.wte.weight[long])
    return Keeper(model.eval().requires_grad_(False), long)
