"""The training loop: AdamW, a warm-up, a plateau and a linear decay; resumable, seeded, on CPU."""

import itertools
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from attnviz.models.config import GPTConfig
from attnviz.models.gpt import GPT
from attnviz.models.hooks import Hook, attached
from attnviz.training.data import PADDING, Batch, Packing, batches
from attnviz.training.loss import chunked_cross_entropy
from attnviz.training.tokenizer import WordEncoder

Arrays: TypeAlias = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights.

    The learning rate runs in straight lines through `rates`: (share of the steps,
    share of `learning_rate`). `penalty` is added to the loss from `penalty_from` (a
    share of the steps) on: so many nats of loss per nat of the attention rows' mean
    entropy.
    """

    seed: int = 0
    steps: int = 24_000
    learning_rate: float = 2e-3
    rates: tuple[tuple[float, float], ...] = ((0, 0.005), (1 / 150, 1.0), (0.35, 1.0), (1, 0.01))
    weight_decay: float = 0.1
    penalty: float = 0.08
    penalty_from: float = 0.42
    clip: float = 1.0
    shard: int = 100

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        shares, heights = zip(*self.rates, strict=True)
        return self.learning_rate * float(np.interp(step / self.steps, shares, heights))

    def penalised(self, step: int) -> bool:
        return self.penalty > 0 and step >= self.penalty_from * self.steps


@dataclass(frozen=True)
class Progress:
    """What the loop reports after a shard of steps; the losses are means over it.

    `tokens` and `seconds` count from the beginning, over interruptions.
    """

    step: int
    tokens: int
    seconds: float
    loss: float
    entropy: float


def train(
    model: GPT,
    tokenizer: Tokenizer,
    recipe: Recipe,
    report: Callable[[Progress], None],
    state_file: Path | None = None,
) -> Progress:
    """Train in place; where it ended. Resumes from `state_file` if it is there.

    Raises:
        ValueError: the state was made by another recipe.
    """
    optimizer = _optimizer(model, recipe)
    now = _resume(state_file, model, optimizer, recipe)
    model.train().requires_grad_(True)
    packing = Packing(model.config.n_positions)
    shards = _shards(tokenizer.to_str(), recipe, now.step // recipe.shard, packing)
    while now.step < recipe.steps:
        now = _train_on(next(shards)[: recipe.steps - now.step], model, optimizer, recipe, now)
        if state_file:
            _save(state_file, model, optimizer, now, recipe)
        report(now)
    shards.close()
    model.eval()
    return now


def _train_on(
    shard: list[Batch], model: GPT, optimizer: torch.optim.Optimizer, recipe: Recipe, now: Progress
) -> Progress:
    """One step for each batch; how things stand after them."""
    started = time.perf_counter()
    losses, entropies = [], []
    for step, batch in enumerate(shard, start=now.step):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        loss, entropy = _step(model, optimizer, batch, recipe, recipe.penalised(step))
        losses.append(loss)
        entropies.append(entropy)
    return Progress(
        step=now.step + len(shard),
        tokens=now.tokens + sum(int((b.documents != PADDING).sum()) for b in shard),
        seconds=now.seconds + time.perf_counter() - started,
        loss=sum(losses) / len(losses),
        entropy=sum(entropies) / len(entropies),
    )


def _step(
    model: GPT, optimizer: torch.optim.Optimizer, batch: Batch, recipe: Recipe, penalised: bool
) -> tuple[float, float]:
    where, targets = batch.predictions()
    entropies: list[Tensor] = []
    hooks = _entropy_hooks(model, entropies) if penalised else {}
    with torch.autocast("cpu", torch.bfloat16), attached(model, hooks):
        hidden = model.hidden(batch.ids, mask=batch.mask(), positions=batch.positions)  # (B, n, d)
    normed = model.ln_f(hidden.flatten(0, 1)[where].float())  # (predictions, d)
    loss = chunked_cross_entropy(normed, model.wte.weight, targets)
    entropy = torch.stack(entropies).mean() if entropies else torch.zeros(())
    total = loss + recipe.penalty * entropy
    total.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item(), entropy.item()


def _entropy_hooks(model: GPT, into: list[Tensor]) -> dict[str, Hook]:
    """Hooks that collect the mean entropy, in nats, of each layer's attention rows."""

    def record(pattern: Tensor) -> None:  # (B, h, n, n)
        safe = pattern.float().clamp_min(1e-9)
        into.append(-(safe * safe.log()).sum(-1).mean())

    return {f"h.{n}.attn.pattern": record for n in range(model.config.n_layer)}


def _optimizer(model: GPT, recipe: Recipe) -> torch.optim.AdamW:
    """Weight decay on matrices only, as GPT-2's reproductions have it."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)


def _shards(
    tokenizer: str, recipe: Recipe, first: int, packing: Packing
) -> Generator[list[Batch], None, None]:
    """Shards of batches; the next one is written by another process while this one is used."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:

        def order(number: int) -> Future[list[Arrays]]:
            seed = f"{recipe.seed} {number}"
            return pool.submit(_make_shard, tokenizer, seed, recipe.shard, packing)

        coming = order(first)
        for number in itertools.count(first + 1):
            arrays = coming.result()
            coming = order(number)
            yield [Batch(*(torch.from_numpy(a) for a in batch)) for batch in arrays]


_encoders: dict[str, WordEncoder] = {}


def _make_shard(tokenizer: str, seed: str, steps: int, packing: Packing) -> list[Arrays]:
    """In the other process: one shard, as numpy arrays."""
    if tokenizer not in _encoders:
        _encoders[tokenizer] = WordEncoder(Tokenizer.from_str(tokenizer))
    made = batches(seed, steps, _encoders[tokenizer], packing)
    return [tuple(t.numpy() for t in (b.ids, b.positions, b.documents, b.targets)) for b in made]


def _save(
    path: Path, model: GPT, optimizer: torch.optim.Optimizer, now: Progress, recipe: Recipe
) -> None:
    """Written beside and renamed, so that an interruption leaves the last whole state."""
    partial = path.with_suffix(".partial")
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "progress": asdict(now),
        "recipe": asdict(recipe),
    }
    torch.save(state, partial)
    partial.replace(path)


def _resume(
    path: Path | None, model: GPT, optimizer: torch.optim.Optimizer, recipe: Recipe
) -> Progress:
    """Load the state, if there is one; where to go on from."""
    if path is None or not path.exists():
        return Progress(step=0, tokens=0, seconds=0.0, loss=0.0, entropy=0.0)
    state = torch.load(path, weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise ValueError(f"{path} was made by another recipe: {state['recipe']}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return Progress(**state["progress"])


def fresh_model(config: GPTConfig, seed: int) -> GPT:
    """A model with random weights that depend on the seed alone."""
    torch.manual_seed(seed)
    return GPT(config)
