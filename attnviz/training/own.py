"""A model from a user's own text: tokenizer, training, held-out loss, and a folder that lasts.

The last twentieth of the text is held out. The folder always holds the weights that did
best on it so far, so that an interruption loses nothing but the steps since.
"""

import hashlib
import itertools
import json
import math
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from torch.optim.optimizer import register_optimizer_step_post_hook

from attnviz.data.card import Figure
from attnviz.data.train import Plan
from attnviz.errors import InputError, OutputError, UsageError
from attnviz.models.folder.config import GPTConfig
from attnviz.models.folder.files import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.scratch.checkpoint import load_checkpoint, save_checkpoint
from attnviz.models.scratch.gpt import GPT
from attnviz.models.tokenizer import END
from attnviz.training.card import SCHEMA, figure_entries
from attnviz.training.data import Batch
from attnviz.training.loop import Progress, Recipe, fresh_model, read_state, train
from attnviz.training.trigram import trigram_bits

HELD_OUT = 0.05
STATE, ABOUT, CARD, CURVE = "training.pt", "training.json", "card.json", "loss.png"
SHARD, WORKERS = 50, 2
IntArray = NDArray[np.int64]


def sizes(plan: Plan, vocabulary: int) -> GPTConfig:
    """The model's configuration; a small text may fill less than the vocabulary."""
    return GPTConfig(vocabulary, plan.context, plan.n_embd, plan.n_layer, plan.n_head)


def recipe(plan: Plan) -> Recipe:
    """The training loop's recipe: no penalty, and dropout against learning by heart."""
    return Recipe(
        seed=plan.seed,
        steps=plan.max_steps,
        learning_rate=plan.lr,
        rates=((0, 0.01), (0.03, 1.0), (1, 0.05)),
        penalty=0.0,
        dropout=0.15,
        shard=SHARD,
        workers=WORKERS,
    )


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text cut in two, in tokens; `held_out_bytes` is the size of the second part in UTF-8."""

    tokenizer: Tokenizer
    train: IntArray
    held_out: IntArray
    held_out_bytes: int
    digest: str

    @property
    def vocabulary(self) -> int:
        return int(self.tokenizer.get_vocab_size())


@dataclass(frozen=True)
class Point:
    """How the training stands: losses in bits per byte of text."""

    progress: Progress
    held_out: float


@dataclass(frozen=True)
class Outcome:
    """The best held-out loss and the trigram model's, in bits per byte, and the way there.

    `predicted` is the number of held-out tokens that the losses are over.
    """

    held_out: float
    trigram: float
    points: tuple[Point, ...]
    tokens_per_byte: float
    predicted: int


@dataclass(frozen=True, eq=False)
class Windows:
    """A source of batches: so many random windows of a text, of so many tokens each."""

    tokens: IntArray
    context: int
    rows: int

    def __call__(self, seed: str, steps: int, done: float) -> list[Batch]:
        digest = hashlib.sha256(seed.encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return [self._batch(draw) for _ in range(steps)]

    def _batch(self, draw: np.random.Generator) -> Batch:
        starts = draw.integers(0, len(self.tokens) - self.context, self.rows)
        spans = starts[:, None] + np.arange(self.context + 1)  # (rows, context + 1)
        ids = torch.from_numpy(self.tokens[spans])
        positions = torch.arange(self.context).expand(self.rows, -1)
        return Batch(ids[:, :-1], positions, torch.zeros_like(positions), ids[:, 1:])


def prepare(text: str, plan: Plan, tokenizer: Tokenizer | None = None) -> Corpus:
    """Learn a tokenizer from the text (or take one), and cut the text in two.

    Raises:
        InputError: too little text for a training and a held-out part.
    """
    at = round(len(text) * (1 - HELD_OUT))
    kept, held_out = text[:at], text[at:]
    tokenizer = tokenizer or learn_tokenizer(kept, plan.vocab)
    train_ids, test_ids = (
        np.array(tokenizer.encode(part).ids, np.int64) for part in (kept, held_out)
    )
    needed = 2 * (plan.context + 1)
    if len(train_ids) < 10 * needed or len(test_ids) < needed // 2:
        raise InputError(
            f"the text has {len(train_ids) + len(test_ids):,} tokens, too little to train on",
            f"give some {20 * needed:,} or more, or a smaller --context",
        )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Corpus(tokenizer, train_ids, test_ids, len(held_out.encode()), digest)


def learn_tokenizer(text: str, size: int) -> Tokenizer:
    """Byte-level BPE, as GPT-2's, of at most `size` tokens."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=[END],
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def check_folder(folder: Path, *, resume: bool) -> None:
    """A new or empty folder; to resume, one with an unfinished training.

    Raises:
        UsageError: the folder is another; says whether a training in it is finished.
    """
    begun = (folder / ABOUT).is_file()
    # An interrupted training has a card, too, but beside its state.
    if begun and (folder / CARD).is_file() and not (folder / STATE).is_file():
        raise UsageError(
            f"the training in {str(folder)!r} is finished, and cannot be taken further",
            "choose another folder with -o",
        )
    if resume and not begun:
        raise UsageError(
            f"there is no training in {str(folder)!r}", "leave --resume out to begin one"
        )
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        more = " or go on with --resume" if begun else ""
        raise UsageError(f"{str(folder)!r} is not an empty folder", f"choose another with -o{more}")


def check_plan(plan: Plan) -> None:
    """Sizes that a model can have, and a learning rate above 0.

    Raises:
        UsageError: the heads do not divide the width, or the rate is 0 or not a number.
    """
    if not plan.lr > 0:
        raise UsageError(f"--lr {plan.lr} is no learning rate", "give a number above 0")
    if plan.n_embd % plan.n_head:
        raise UsageError(
            f"--n-embd {plan.n_embd} is not divisible by {plan.n_head} heads",
            "choose a multiple of --n-head",
        )


def begin(text: str, plan: Plan, folder: Path, *, resume: bool) -> tuple[Corpus, Plan]:
    """The corpus and the plan; to resume, those of the folder.

    Raises:
        InputError: too little text.
        UsageError: the folder's training had another text.
    """
    if not resume:
        return prepare(text, plan), plan
    plan = resumed_plan(folder, hashlib.sha256(text.encode()).hexdigest())
    return prepare(text, plan, Tokenizer.from_file(str(folder / TOKENIZER))), plan


def bits_per_byte(point: Point, outcome: Outcome) -> float:
    """The training loss, nats per token, in bits per byte, by the held-out text's tokens."""
    return point.progress.loss / math.log(2) * outcome.tokens_per_byte


def resumed_plan(folder: Path, digest: str) -> Plan:
    """The plan of an unfinished training, of the same text.

    Raises:
        UsageError: it was trained on another text, or its notes cannot be read.
    """
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        plan, text = Plan(**about["plan"]), about["text"]
        _points(folder)
        read_state(folder / STATE, recipe(plan))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError):
        raise UsageError(f"the training in {str(folder)!r} is damaged", "begin anew") from None
    if text != digest:
        raise UsageError(
            f"the training in {str(folder)!r} had another text", "give the same files again"
        )
    return plan


def train_model(
    corpus: Corpus,
    plan: Plan,
    folder: Path,
    report: Callable[[Point], None],
    stepped: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Train, from the beginning or from the folder's state; the folder then holds the model.

    Args:
        corpus: what to learn, and what to measure on.
        plan: the sizes.
        folder: where the model goes.
        report: is told every held-out loss.
        stepped: is told the number of every step taken.

    Raises:
        OutputError: the folder cannot be written; what it held stays whole.
        UsageError: the held-out loss is not finite any more, as the learning rate is too high.
    """
    torch.set_num_threads(1)  # as every worker: sums are then made in the same order everywhere
    config = sizes(plan, corpus.vocabulary)
    model = fresh_model(config, plan.seed)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        points = _points(folder)
        if not points:
            _keep(folder, model, corpus, plan, points)
    best = min((point.held_out for point in points), default=math.inf)

    def after(progress: Progress) -> None:
        nonlocal best
        point = Point(progress, held_out_loss(model, corpus))
        if not math.isfinite(point.held_out):
            raise UsageError(f"the loss is {point.held_out}", "begin anew with a smaller --lr")
        points.append(point)
        with _writing(folder):
            if point.held_out < best:
                best = point.held_out
                _keep(folder, model, corpus, plan, points)
            else:
                _note(folder, corpus, plan, points)
        report(point)

    source = Windows(corpus.train, plan.context, plan.batch)
    done = points[-1].progress.step if points else 0
    with _writing(folder), _counted(done, stepped):
        train(model, source, recipe(plan), after, folder / STATE)
    bits = trigram_bits(corpus.train, corpus.held_out, corpus.vocabulary)
    trigram = bits / corpus.held_out_bytes
    share = len(corpus.held_out) / corpus.held_out_bytes
    held_out, predicted = held_out_loss(load_checkpoint(folder), corpus), len(corpus.held_out) - 2
    return Outcome(held_out, trigram, tuple(points), share, predicted)


@contextmanager
def _counted(done: int, stepped: Callable[[int], None]) -> Iterator[None]:
    """Tell every step of this process's optimizer; the loop itself reports once a shard."""
    steps = itertools.count(done + 1)
    handle = register_optimizer_step_post_hook(lambda *_: stepped(next(steps)))
    try:
        yield
    finally:
        handle.remove()


@torch.inference_mode()
def held_out_loss(model: GPT, corpus: Corpus) -> float:
    """Bits per byte of the held-out text; every token is predicted from half a context or more."""
    was_training = model.training
    model.eval()
    size, ids = model.config.n_positions, torch.from_numpy(corpus.held_out)
    step, bits, done = size // 2, 0.0, 2  # as the trigram model, from the third token on
    for start in range(0, max(1, len(ids) - size + step), step):
        window = ids[start : start + size + 1]
        logits = model(window[None, :-1])[0].double()  # (n, V)
        lost = torch.nn.functional.cross_entropy(logits, window[1:], reduction="none")  # (n)
        fresh = max(0, done - start - 1)
        bits += float(lost[fresh:].sum()) / math.log(2)
        done = start + len(window)
    model.train(was_training)
    return bits / corpus.held_out_bytes


def finish(folder: Path, plan: Plan, outcome: Outcome, files: Sequence[str]) -> None:
    """Write the model's card; the training can then no longer be resumed.

    Raises:
        OutputError: it cannot be written.
    """
    losses = {
        "held-out loss, bits per byte": outcome.held_out,
        "the same of an interpolated trigram model": outcome.trigram,
    }
    about = f"Trained from scratch with attnviz train on {', '.join(files)}."
    with _writing(folder):
        _write_card(folder, plan, about, losses, outcome.predicted)
        (folder / STATE).unlink(missing_ok=True)


def interrupted(folder: Path, corpus: Corpus, plan: Plan, step: int, files: Sequence[str]) -> str:
    """What an interruption at this step leaves, in a sentence; where it is a model, its card too.

    Raises:
        OutputError: the card cannot be written.
    """
    if not step:
        return f"interrupted before the first step; nothing was trained yet in {folder}"
    points = _points(folder)
    if not points:
        return f"interrupted at step {step}, before any loss was measured; --resume goes on"
    best = min(points, key=lambda point: point.held_out)
    at, last = best.progress.step, points[-1].progress.step
    about = f"Trained with attnviz train on {', '.join(files)}, and interrupted; as of step {at}."
    losses = {"held-out loss, bits per byte": best.held_out}
    with _writing(folder):
        _write_card(folder, plan, about, losses, len(corpus.held_out) - 2)
    kept = f"{folder} keeps the model of step {at}, held-out loss {best.held_out:.3f} bits per byte"
    return f"interrupted at step {step}; {kept}; --resume goes on from step {last}"


def _write_card(
    folder: Path, plan: Plan, about: str, losses: Mapping[str, float], predicted: int
) -> None:
    figures = [Figure("language", what, round(v, 4), None, predicted) for what, v in losses.items()]
    card = {
        "schema": SCHEMA,
        "name": folder.name,
        "description": about,
        "bos": False,
        "heads": [],
        "figures": figure_entries(figures),
        "training": asdict(plan),
    }
    _replace(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def _points(folder: Path) -> list[Point]:
    """What an unfinished training noted up to its last state."""
    if not (folder / STATE).is_file():
        return []  # interrupted before the first state was kept
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return [Point(Progress(**p["progress"]), p["held_out"]) for p in about["points"]]


def _keep(folder: Path, model: GPT, corpus: Corpus, plan: Plan, points: list[Point]) -> None:
    """The model as it is now, whole: written beside, then renamed.

    Only the weights change from one time to the next, so that no failure between two
    renames can leave files that do not belong together.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".attnviz-") as beside:
        save_checkpoint(Path(beside), model, corpus.tokenizer)
        for name in (TOKENIZER, CONFIG, WEIGHTS):
            if name == WEIGHTS or not (folder / name).is_file():
                (Path(beside) / name).chmod(0o644)  # safetensors writes for the owner alone
                os.replace(Path(beside) / name, folder / name)
    _note(folder, corpus, plan, points)


def _note(folder: Path, corpus: Corpus, plan: Plan, points: list[Point]) -> None:
    about: dict[str, Any] = {
        "plan": asdict(plan),
        "text": corpus.digest,
        "points": [{"progress": asdict(p.progress), "held_out": p.held_out} for p in points],
    }
    _replace(folder / ABOUT, json.dumps(about) + "\n")


def _replace(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A full disk or a forbidden folder as a sentence.

    Raises:
        OutputError: in place of what the libraries raise.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise _cannot_write(folder, str(error)) from None
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
            raise
        raise _cannot_write(folder, "the disk may be full") from None


def _cannot_write(folder: Path, why: str) -> OutputError:
    return OutputError(
        f"{str(folder)!r} cannot be written ({why.splitlines()[0]})",
        "make room or choose another folder; what it held is whole",
    )
