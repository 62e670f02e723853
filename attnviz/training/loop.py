"""The training loop: AdamW, a warm-up, a plateau and a linear decay; resumable, seeded, on CPU.

Each worker is a process with one thread, its own batches and a copy of the model; the workers
average their gradients. On small matrices two processes, unlike threads, do twice the work of one.
"""

import contextlib
import random
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing import get_context
from torch.optim import Optimizer

from attnviz.data.train import UNTRAINED, Progress
from attnviz.models.folder.config import GPTConfig
from attnviz.models.hooks import Hook, attached
from attnviz.models.scratch.gpt import GPT
from attnviz.training.asking import Asking
from attnviz.training.data import PADDING, Batch
from attnviz.training.loss import cross_entropy, fast_bfloat16
from attnviz.training.muon import Muon
from attnviz.training.penalty import penalty_hooks
from attnviz.training.recipe import Recipe

Source: TypeAlias = Callable[[str, int, float], list[Batch]]
"""From a seed, a number of batches and the share of the training done, always the same batches."""


def train(
    model: GPT,
    source: Source,
    recipe: Recipe,
    report: Callable[[Progress], None],
    state_file: Path | None = None,
) -> Progress:
    """Train in place, from `state_file` if it exists; the progress at the end.

    Raises:
        ValueError: the state was made by another recipe.
    """
    state = read_state(state_file, recipe)
    with _others(model, source, recipe, state_file):
        return _train(model, source, recipe, state, report, state_file)


@contextlib.contextmanager
def _others(model: GPT, source: Source, recipe: Recipe, state_file: Path | None) -> Iterator[None]:
    """Run the other workers, if any; this process is the first of their group."""
    if recipe.workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        rest = (type(model), model.config, source, recipe, state_file)
        others = [
            get_context("spawn").Process(target=_work, args=(meeting, rank, *rest), daemon=True)
            for rank in range(1, recipe.workers)
        ]
        for process in others:
            process.start()
        dist.init_process_group("gloo", init_method=meeting, rank=0, world_size=recipe.workers)
        try:
            yield
        finally:
            dist.destroy_process_group()
            for process in others:
                process.terminate()
                process.join()


def _work(
    meeting: str,
    rank: int,
    kind: type[GPT],
    config: GPTConfig,
    source: Source,
    recipe: Recipe,
    state_file: Path | None,
) -> None:
    """Everything that another worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first worker answers Ctrl-C
    torch.set_num_threads(1)
    # before the group meets, and so before the first worker overwrites it
    state = read_state(state_file, recipe)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=recipe.workers)
    model = kind(config)
    _train(model, source, recipe, state, lambda _: None, None)
    dist.destroy_process_group()


def _train(
    model: GPT,
    source: Source,
    recipe: Recipe,
    state: dict[str, Any] | None,
    report: Callable[[Progress], None],
    state_file: Path | None,
) -> Progress:
    """One worker's share of the training; the first worker saves and reports."""
    rank = dist.get_rank() if recipe.workers > 1 else 0
    optimizers = optimizers_of(model, recipe)
    now = UNTRAINED
    if state:
        model.load_state_dict(state["model"])
        for optimizer, its_state in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(its_state)
        now = Progress(**state["progress"])
    elif recipe.workers > 1:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, src=0)
    model.train().requires_grad_(True)
    while now.step < recipe.steps:
        seed = f"{recipe.seed} {now.step // recipe.shard} {rank}"
        size = min(recipe.shard, recipe.steps - now.step)
        shard = _in_step(source(seed, size, now.step / recipe.steps), recipe.seed + now.step)
        torch.manual_seed(zlib.crc32(seed.encode()))  # the same dropout after an interruption
        now = _train_on(shard, model, optimizers, recipe, now)
        if state_file:
            _save(state_file, model, optimizers, now, recipe)
        report(now)
    model.eval()
    return now


def _in_step(shard: list[Batch], seed: int) -> list[Batch]:
    """The batches in a random order of widths that is the same for every worker.

    Workers wait for each other after every step, so their batches should take equally long.
    """
    ordered = sorted(shard, key=lambda batch: batch.ids.size(1))
    random.Random(seed).shuffle(ordered)
    return ordered


def _train_on(
    shard: list[Batch], model: GPT, optimizers: list[Optimizer], recipe: Recipe, now: Progress
) -> Progress:
    """One step for each batch; the progress after them."""
    started = time.perf_counter()
    tokens = sum(int((b.documents != PADDING).sum()) for b in shard)
    losses, entropies = [], []
    for step, batch in enumerate(shard, start=now.step):
        for group in [group for optimizer in optimizers for group in optimizer.param_groups]:
            group["lr"] = recipe.rate(step)
        loss, entropy = _step(model, optimizers, batch, recipe, step)
        losses.append(loss)
        entropies.append(entropy)
    return Progress(
        step=now.step + len(shard),
        tokens=now.tokens + recipe.workers * tokens,
        seconds=now.seconds + time.perf_counter() - started,
        loss=sum(losses) / len(losses),
        entropy=sum(entropies) / len(entropies),
    )


def _step(
    model: GPT, optimizers: list[Optimizer], batch: Batch, recipe: Recipe, step: int
) -> tuple[float, float]:
    where, targets = batch.predictions()
    costs: list[Tensor] = []
    # one layer a step, in turn: on average the same as all layers, in a fraction of the time
    layer = step % model.config.n_layer
    hooks = penalty_hooks(layer, batch, recipe, costs) if recipe.penalised(step) else {}
    if recipe.dropout:
        hooks |= _dropout_hooks(model, recipe.dropout)
    with torch.autocast("cpu", torch.bfloat16, enabled=fast_bfloat16()), attached(model, hooks):
        hidden = model.hidden(batch.ids, mask=batch.mask(), positions=batch.positions)  # (B, n, d)
    normed = model.ln_f(hidden.flatten(0, 1)[where].float())  # (predictions, d)
    loss = cross_entropy(normed, model.wte.weight, targets, recipe.sampled)
    penalty = sum(costs, torch.zeros(()))
    total = loss + recipe.penalty_at(step) * penalty
    if isinstance(model, Asking):
        total = total + recipe.asking * model.loss(hidden, batch.asked, recipe.sampled)
    total.backward()  # type: ignore[no-untyped-call]
    if recipe.workers > 1:
        _average_gradients(model, recipe.workers)
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item(), penalty.item()


def _dropout_hooks(model: GPT, share: float) -> dict[str, Hook]:
    """Dropout on the embeddings and on each head's result, as in GPT-2's training."""

    def drop(value: Tensor) -> Tensor:
        return torch.nn.functional.dropout(value, share)

    layers = range(model.config.n_layer)
    return {"h.0.resid_pre": drop, **{f"h.{n}.attn.z": drop for n in layers}}


def optimizers_of(model: GPT, recipe: Recipe) -> list[Optimizer]:
    """AdamW for everything; or Muon for the matrices of the blocks, and AdamW for the rest."""
    if not recipe.muon:
        return [optimizer_of(model, recipe)]
    blocks = [p for p in model.h.parameters() if p.dim() > 1]
    taken = {id(p) for p in blocks}
    rest = [p for p in model.parameters() if id(p) not in taken]
    groups = [
        {"params": [p for p in rest if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)
    return [Muon(blocks, recipe.learning_rate, recipe.weight_decay), adam]


def optimizer_of(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices only, as in GPT-2's reproductions."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)


def _average_gradients(model: GPT, workers: int) -> None:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.nn.utils.parameters_to_vector(gradients)
    dist.all_reduce(flat)
    torch.nn.utils.vector_to_parameters(flat.div_(workers), gradients)


def _save(
    path: Path, model: GPT, optimizers: list[Optimizer], now: Progress, recipe: Recipe
) -> None:
    """Save beside the old state, then rename, so that an interruption leaves a complete one."""
    partial = path.with_suffix(".partial")
    state = {
        "model": model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        "progress": asdict(now),
        "recipe": asdict(recipe),
    }
    try:
        torch.save(state, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_state(path: Path | None, recipe: Recipe) -> dict[str, Any] | None:
    """The state to resume from, if there is one.

    Raises:
        ValueError: it was made by another recipe.
    """
    if path is None or not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise ValueError(f"{path} was made by another recipe: {state['recipe']}")
    return state


def fresh_model(config: GPTConfig, seed: int) -> GPT:
    """A model with random weights that depend on the seed alone."""
    torch.manual_seed(seed)
    return GPT(config)


def fresh_asking(config: GPTConfig, seed: int) -> Asking:
    """The same, of a model that is asked for words."""
    torch.manual_seed(seed)
    return Asking(config)
