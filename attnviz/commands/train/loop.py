"""The loss of a step, and the loop: AdamW, a warm-up and a linear decay; resumable, seeded, on CPU.

Each worker is a process with one thread, its own batches and a copy of the model; the workers
average their gradients. On small matrices two processes, unlike threads, do twice the work of one.
"""

import contextlib
import os
import random
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing import get_context
from torch.optim import Optimizer

from attnviz.commands.train.plan import UNTRAINED, Recipe, TrainingProgress
from attnviz.models.attention import Hook, attached
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT

# A batch of the training (packed rows, a block-diagonal mask), and the loss of a step.

DROPOUT = 0.15
IGNORED = -1
PADDING = -1


@dataclass(frozen=True)
class Batch:
    """Ids, positions, document numbers and targets, each (B, n).

    Padding has document `PADDING`; where no target counts, there is `IGNORED`.
    """

    ids: Tensor
    positions: Tensor
    documents: Tensor
    targets: Tensor

    def mask(self) -> Tensor:
        """(B, 1, n, n), True where a query may attend: the same document, and not the future.

        Padding attends to itself, so that no row is empty.
        """
        n = self.ids.size(1)
        same = self.documents[:, :, None] == self.documents[:, None, :]  # (B, n, n)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        return (same & causal).unsqueeze(1)

    def predictions(self) -> tuple[Tensor, Tensor]:
        """The flat indices of the tokens whose successor counts, and those successors."""
        flat = self.targets.flatten()
        where = (flat != IGNORED).nonzero().squeeze(1)
        return where, flat[where]


@dataclass(frozen=True)
class StepLoss:
    """`total` is what a step lowers. What is reported, in nats: the loss of the predicted tokens,
    and the entropy of the attention, where it costs something."""

    total: Tensor
    predicted: float
    entropy: float = 0.0


def next_token_loss(model: GPT, batch: Batch, step: int) -> StepLoss:
    """Mean cross-entropy of the next tokens; dropout against overfitting, as in GPT-2's training.

    Dropout acts on the embeddings and on each head's result.
    """
    layers = range(model.config.n_layer)
    drop = partial(torch.nn.functional.dropout, p=DROPOUT)
    hooks = {"h.0.resid_pre": drop, **{f"h.{n}.attn.z": drop for n in layers}}
    _, normed, targets = predictions(model, batch, hooks)
    logits = (normed @ model.wte.weight.t()).float()  # (predictions, V)
    loss = torch.nn.functional.cross_entropy(logits, targets)
    return StepLoss(loss, loss.item())


def predictions(
    model: GPT, batch: Batch, hooks: Mapping[str, Hook]
) -> tuple[Tensor, Tensor, Tensor]:
    """The last residual stream (B, n, d); its normed rows that predict (p, d), and targets (p)."""
    where, targets = batch.predictions()
    # others emulate it, many times slower
    fast = torch.cpu._is_avx512_bf16_supported()
    with torch.autocast("cpu", torch.bfloat16, enabled=fast), attached(model, hooks):
        hidden = model.hidden(batch.ids, mask=batch.mask(), positions=batch.positions)  # (B, n, d)
    return hidden, model.ln_f(hidden.flatten(0, 1)[where].float()), targets


# The loop.

M = TypeVar("M", bound=GPT)
B = TypeVar("B", bound=Batch)
BatchSource: TypeAlias = Callable[[str, int, float], list[B]]
"""From a seed, a number of batches and the share of the training done, always the same batches."""
Loss: TypeAlias = Callable[[M, B, int], StepLoss]
"""From the model, a batch and the number of the step."""
Optimizers: TypeAlias = Callable[[GPT, Recipe], list[Optimizer]]


def adamw(model: nn.Module, recipe: Recipe) -> list[Optimizer]:
    """AdamW with weight decay on matrices only, as in GPT-2's reproductions."""
    return [adamw_of(model.parameters(), recipe)]


def adamw_of(parameters: Iterable[nn.Parameter], recipe: Recipe) -> torch.optim.AdamW:
    """AdamW for some parameters of a model, with weight decay on the matrices among them."""
    each = list(parameters)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in each if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in each if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)


def train(
    model: M,
    source: BatchSource[B],
    recipe: Recipe,
    report: Callable[[TrainingProgress], None],
    state_file: Path | None = None,
    *,
    loss: Loss[M, B],
    optimizers: Optimizers = adamw,
) -> TrainingProgress:
    """Train in place, from `state_file` if it exists; the progress at the end.

    `source`, `loss` and `optimizers` are pickled for the other workers.
    """
    course = _Course(source, recipe, loss, optimizers)
    state = read_state(state_file, recipe)
    with _others(model, course, state_file):
        return _train(model, course, state, report, state_file)


@dataclass(frozen=True)
class _Course(Generic[M, B]):
    """Everything that the workers share, but for the model and the state."""

    source: BatchSource[B]
    recipe: Recipe
    loss: Loss[M, B]
    optimizers: Optimizers


@contextlib.contextmanager
def _others(model: M, course: _Course[M, B], state_file: Path | None) -> Iterator[None]:
    workers = course.recipe.workers
    if workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        rest = (type(model), model.config, course, state_file)
        others = [
            get_context("spawn").Process(target=_work, args=(meeting, rank, *rest), daemon=True)
            for rank in range(1, workers)
        ]
        for process in others:
            process.start()
        dist.init_process_group("gloo", init_method=meeting, rank=0, world_size=workers)
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
    kind: type[M],
    config: GPTConfig,
    course: _Course[M, B],
    state_file: Path | None,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first worker answers Ctrl-C
    torch.set_num_threads(1)
    # before the group meets, and so before the first worker overwrites it
    state = read_state(state_file, course.recipe)
    dist.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=course.recipe.workers
    )
    model = kind(config)
    _train(model, course, state, lambda _: None, None)
    dist.destroy_process_group()


def _train(
    model: M,
    course: _Course[M, B],
    state: dict[str, Any] | None,
    report: Callable[[TrainingProgress], None],
    state_file: Path | None,
) -> TrainingProgress:
    """One worker's share of the training; the first worker saves and reports."""
    recipe = course.recipe
    rank = dist.get_rank() if recipe.workers > 1 else 0
    optimizers = course.optimizers(model, recipe)
    now = UNTRAINED
    if state:
        model.load_state_dict(state["model"])
        for optimizer, its_state in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(its_state)
        now = TrainingProgress(**state["progress"])
    elif recipe.workers > 1:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, src=0)
    model.train().requires_grad_(True)
    while now.step < recipe.steps:
        seed = f"{recipe.seed} {now.step // recipe.shard} {rank}"
        size = min(recipe.shard, recipe.steps - now.step)
        batches = course.source(seed, size, now.step / recipe.steps)
        # in one order of widths for all workers, which wait for each other after every step
        shard = sorted(batches, key=lambda batch: batch.ids.size(1))
        random.Random(recipe.seed + now.step).shuffle(shard)
        torch.manual_seed(zlib.crc32(seed.encode()))  # the same dropout after an interruption
        now = _train_on(shard, model, optimizers, course, now)
        if state_file:
            _save(state_file, model, optimizers, now, recipe)
        report(now)
    model.eval()
    return now


def _train_on(
    shard: list[B],
    model: M,
    optimizers: list[Optimizer],
    course: _Course[M, B],
    now: TrainingProgress,
) -> TrainingProgress:
    recipe = course.recipe
    started = time.perf_counter()
    tokens = sum(int((b.documents != PADDING).sum()) for b in shard)
    losses, entropies = [], []
    for step, batch in enumerate(shard, start=now.step):
        for group in [group for optimizer in optimizers for group in optimizer.param_groups]:
            group["lr"] = recipe.rate(step)
        lost = course.loss(model, batch, step)
        _descend(model, optimizers, lost, recipe)
        losses.append(lost.predicted)
        entropies.append(lost.entropy)
    return TrainingProgress(
        step=now.step + len(shard),
        tokens=now.tokens + recipe.workers * tokens,
        seconds=now.seconds + time.perf_counter() - started,
        loss=sum(losses) / len(losses),
        entropy=sum(entropies) / len(entropies),
    )


def _descend(model: GPT, optimizers: list[Optimizer], loss: StepLoss, recipe: Recipe) -> None:
    loss.total.backward()  # type: ignore[no-untyped-call]
    if recipe.workers > 1:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.nn.utils.parameters_to_vector(gradients)
        dist.all_reduce(flat)
        torch.nn.utils.vector_to_parameters(flat.div_(recipe.workers), gradients)
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def _save(
    path: Path, model: GPT, optimizers: list[Optimizer], now: TrainingProgress, recipe: Recipe
) -> None:
    state = {
        "model": model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        "progress": asdict(now),
        "recipe": asdict(recipe),
    }
    with partial_file(path) as partial:
        torch.save(state, partial)


@contextlib.contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """A file to write, which then takes this place; an interruption leaves the old one complete."""
    partial = path.with_suffix(".partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_state(path: Path | None, recipe: Recipe) -> dict[str, Any] | None:
    """Read the state to resume from, if there is one.

    Raises:
        ValueError: it was made by another recipe, but for the number of steps.
    """
    if path is None or not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if {**state["recipe"], "steps": recipe.steps} != asdict(recipe):
        raise ValueError(f"{path} was made by another recipe: {state['recipe']}")
    return state


def fresh_model(config: GPTConfig, seed: int) -> GPT:
    """A model with random weights that depend only on the seed."""
    torch.manual_seed(seed)
    return GPT(config)


STEPS = "{task.completed}/{task.total} steps, {task.description}"
"""The text beside the bar of a training."""
