"""Train a model on a user's own text, whose last twentieth is held out."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from attnviz.commands.train.folder import (
    STATE,
    OwnText,
    OwnTraining,
    Windows,
    digest_of,
    points_of,
    prepare,
    resumed_plan,
)
from attnviz.commands.train.loop import fresh_model, next_token_loss, train
from attnviz.commands.train.plan import (
    BROAD,
    UNTRAINED,
    FormedHead,
    Plan,
    Point,
    TrainingOutcome,
    TrainingProgress,
    best_of,
    recipe_of,
    sizes,
)
from attnviz.errors import UsageError, option
from attnviz.kit.write import make_folder
from attnviz.models.catalog import Source, load
from attnviz.models.folder.files import TOKENIZER
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import load_checkpoint
from attnviz.records.capture import IntArray, Wanted
from attnviz.records.heads import by_layer, every_head
from attnviz.records.metrics import ROLES, MeasureHeads, estimates, marks_of_tokens, role_of


def begin(
    text: str, plan: Plan, folder: Path, *, resume: bool, steps: int | None = None
) -> OwnTraining:
    """A training on this text; to resume, with the folder's tokenizer and plan, to `steps`."""
    if not resume:
        prepared = prepare(text, plan)
        make_folder(folder)
        return OwnTraining(folder, prepared, plan)
    plan = resumed_plan(folder, digest_of(text), steps)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    return OwnTraining(folder, prepare(text, plan, tokenizer), plan)


def train_model(
    training: OwnTraining,
    report: Callable[[Point], None],
    stepped: Callable[[int], None] = lambda _: None,
) -> TrainingOutcome:
    """Train, from the beginning or from the folder's state; the folder then holds the model.

    `report` gets every held-out loss, first the one to begin with; `stepped` the number of every
    step. Where a loss is the lowest, the roles of the heads are measured, too. The models of single
    steps that the plan keeps are saved before the step is reported.
    """
    torch.set_num_threads(1)  # as in every worker: sums are made in the same order everywhere
    text, plan, folder = training.text, training.plan, training.folder
    model = fresh_model(sizes(plan, text.vocabulary), plan.seed)
    with training.writing():
        points = points_of(folder)
        if not points:
            points = [Point(UNTRAINED, _finite_loss(model, text))]
            training.keep(model, points)
    report(points[-1])

    def reached(step: int) -> None:
        _keep_reached(training, model, step)
        stepped(step)

    source = Windows(text.train, plan.context, plan.batch)
    done = points[-1].progress.step
    if not done:
        _keep_reached(training, model, 0)
    steps = itertools.count(done + 1)
    # the loop itself reports once a shard
    counted = register_optimizer_step_post_hook(lambda *_: reached(next(steps)))
    with training.writing(), counted:
        recipe, state = recipe_of(plan), folder / STATE
        measure = partial(_measure, training, model, points, report)
        train(model, source, recipe, measure, state, loss=next_token_loss)
    return _outcome(load_checkpoint(folder), text, points)


def _measure(
    training: OwnTraining,
    model: GPT,
    points: list[Point],
    report: Callable[[Point], None],
    progress: TrainingProgress,
) -> None:
    """Add a point of the loss curve; where it is the lowest, keep the weights and their roles."""
    best = best_of(points).held_out
    points.append(Point(progress, _finite_loss(model, training.text)))
    with training.writing():
        if points[-1].held_out < best:
            training.keep(model, points)
            roles = tuple((str(each.head), each.role) for each in formed_heads(training))
            points[-1] = replace(points[-1], roles=roles)
        training.note(points)
    report(points[-1])


def _outcome(best: GPT, text: OwnText, points: Sequence[Point]) -> TrainingOutcome:
    return TrainingOutcome(
        held_out=held_out_loss(best, text),
        trigram=trigram_bits(text.train, text.held_out, text.vocabulary) / text.held_out_bytes,
        points=tuple(points),
        tokens_per_byte=len(text.held_out) / text.held_out_bytes,
    )


MEASURED = 64
"""The most windows of held-out text on which heads are measured."""


def formed_heads(training: OwnTraining) -> tuple[FormedHead, ...]:
    """The heads of the folder's model that have a role on the held-out text, by role.

    Where none does anything but attend to all alike, also the one nearest to a role.
    """
    model, size = load(Source(str(training.folder))), training.plan.context
    heads = every_head(model.identity.heads_per_layer)
    held_out = training.text.held_out
    starts = range(0, len(held_out) - size + 1, size)[:MEASURED]
    score = MeasureHeads(marks_of_tokens(()), causal=True)
    for window in (held_out[start : start + size].tolist() for start in starts):
        score.marks = marks_of_tokens(window)
        model.run(window, Wanted(by_layer(heads)), score)
    rows, formed, others = score.rows(), list[FormedHead](), list[tuple[float, FormedHead]]()
    for head, metrics in score.metrics().items():
        role = role_of(estimates([metrics]), rows)
        if role is not None:
            formed.append(FormedHead(role.name, head, metrics[role.metric], rows[role.metric]))
        for each in ROLES:
            value, over = metrics[each.metric], rows[each.metric]
            if over >= each.rows and each.name != BROAD:
                near = FormedHead(each.name, head, value, over, formed=False)
                others.append((value / each.least, near))
    if others and all(each.role == BROAD for each in formed):
        formed.append(max(others, key=lambda each: each[0])[1])
    order = [role.name for role in ROLES]
    return tuple(sorted(formed, key=lambda each: (order.index(each.role), -each.value)))


def _keep_reached(training: OwnTraining, model: GPT, step: int) -> None:
    """Keep the model of this step, where the plan says so.

    A folder that is there is right: a resumed training makes the same weights again.
    """
    if training.plan.keeps(step) and not training.step_folder(step).exists():
        training.keep_step(model, step, _finite_loss(model, training.text))


def _finite_loss(model: GPT, text: OwnText) -> float:
    loss = held_out_loss(model, text)
    if not math.isfinite(loss):
        smaller = f"a smaller {option('lr')}"
        raise UsageError(f"the loss is {loss}", f"begin anew with {smaller}")
    return loss


@torch.inference_mode()
def held_out_loss(model: GPT, text: OwnText) -> float:
    """Bits per byte of the held-out part; each token is predicted from at least half a context."""
    was_training = model.training
    model.eval()
    size, ids = model.config.n_positions, torch.from_numpy(text.held_out)
    step, bits, done = size // 2, 0.0, 2  # from the third token on, as the trigram model
    for start in range(0, max(1, len(ids) - size + step), step):
        window = ids[start : start + size + 1]
        logits = model(window[None, :-1])[0].double()  # (n, V)
        lost = torch.nn.functional.cross_entropy(logits, window[1:], reduction="none")  # (n)
        fresh = max(0, done - start - 1)
        bits += float(lost[fresh:].sum()) / math.log(2)
        done = start + len(window)
    model.train(was_training)
    return bits / text.held_out_bytes


TUNED_ON, ROUNDS = 0.05, 30


def trigram_bits(train: IntArray, test: IntArray, vocabulary: int) -> float:
    """The bits that an interpolated trigram model needs for all test tokens but the first two.

    Jelinek and Mercer 1980: the relative frequencies of trigram, bigram and unigram and the uniform
    distribution, mixed by weights that are fitted (EM) on the last twentieth of the training
    tokens, which are counted afterwards.
    """
    at = round(len(train) * (1 - TUNED_ON))
    tuning = _components(train[:at], train[at:], vocabulary)  # (tokens, 4)
    weights = np.full(4, 0.25)
    for _ in range(ROUNDS):
        share = tuning * weights
        share /= share.sum(axis=1, keepdims=True)
        weights = share.mean(axis=0)
    return float(-np.log2(_components(train, test, vocabulary) @ weights).sum())


def _components(counted: IntArray, text: IntArray, vocabulary: int) -> NDArray[np.float64]:
    """The probability of each token of a text but the first two by each of the four models."""
    words = counted.tolist()
    one, two, three = Counter(words), Counter(_runs(words, 2)), Counter(_runs(words, 3))
    pairs, singles = Counter(_runs(words[:-1], 2)), Counter(words[:-1])
    return np.array(
        [
            (
                three[a, b, c] / max(1, pairs[a, b]),
                two[b, c] / max(1, singles[b]),
                one[c] / len(words),
                1 / vocabulary,
            )
            for a, b, c in _runs(text.tolist(), 3)
        ]
    )


def _runs(words: list[int], n: int) -> list[tuple[int, ...]]:
    return list(zip(*(words[i:] for i in range(n)), strict=False))
