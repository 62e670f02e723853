"""The folder of a training on a user's own text, which outlasts interruptions and full disks.

It always holds the weights with the best held-out loss so far; an interruption loses only the
steps since the last shard.
"""

import hashlib
import json
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from attnviz.commands.train.loop import Batch, partial_file, read_state
from attnviz.commands.train.plan import (
    FormedHead,
    Plan,
    Point,
    TrainingOutcome,
    TrainingProgress,
    recipe_of,
)
from attnviz.errors import InputError, OutputError, UsageError, option
from attnviz.kit import write
from attnviz.models.folder.config import MODEL_CARD
from attnviz.models.folder.files import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import save_checkpoint
from attnviz.models.tokenizer import END
from attnviz.records.capture import IntArray
from attnviz.records.heads import Figure, ModelCard
from attnviz.records.metrics import METRICS, ROLES

# A user's own text as training data: a tokenizer learned from it, a held-out part, batches.

HELD_OUT = 0.05


@dataclass(frozen=True, eq=False)
class OwnText:
    """The tokens of a text in two parts; `held_out_bytes` is the second part's size in UTF-8."""

    tokenizer: Tokenizer
    train: IntArray
    held_out: IntArray
    held_out_bytes: int
    digest: str

    @property
    def vocabulary(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @property
    def predicted(self) -> int:
        """The number of held-out tokens that the losses are over."""
        return len(self.held_out) - 2


@dataclass(frozen=True, eq=False)
class Windows:
    """A source of batches: `rows` random windows of a text, of `context` tokens each."""

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


def prepare(text: str, plan: Plan, tokenizer: Tokenizer | None = None) -> OwnText:
    """Split a text, and encode both parts; without a tokenizer, learn one from the first part."""
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
            f"give some {20 * needed:,} or more, or a smaller {option('context')}",
        )
    return OwnText(tokenizer, train_ids, test_ids, len(held_out.encode()), digest_of(text))


def digest_of(text: str) -> str:
    """The digest by which a resumed training recognises its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def learn_tokenizer(text: str, size: int) -> Tokenizer:
    """A byte-level BPE tokenizer, as GPT-2's, of at most `size` tokens."""
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


STATE, ABOUT, CARD, CURVE = "training.pt", "training.json", "card.json", "loss.png"


def check_folder(folder: Path, *, resume: bool) -> None:
    """Check that the folder is new or empty, or to resume, that it has a training to go on."""
    write.check_folder(folder)
    begun, shown = (folder / ABOUT).is_file(), repr(str(folder))
    another = f"choose another folder with {option('output')}"
    if begun and (folder / CARD).is_file() and not (folder / STATE).is_file():
        raise UsageError(
            f"the training in {shown} has lost its {STATE}, so it cannot be continued", another
        )
    if resume and not begun:
        hint = f"leave {option('resume')} out to begin one"
        raise UsageError(f"there is no training in {shown}", hint)
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        more = f" or go on with {option('resume')}" if begun else ""
        raise UsageError(f"{shown} is not an empty folder", f"{another}{more}")


def resumed_plan(folder: Path, digest: str, steps: int | None = None) -> Plan:
    """The plan of a training on the text with this digest, to go on with, to `steps` if given."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        plan, trained_on = Plan(**about["plan"]), about["text"]
        points = points_of(folder)
        read_state(folder / STATE, recipe_of(plan))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError):
        raise UsageError(f"the training in {str(folder)!r} is damaged", "begin anew") from None
    if trained_on != digest:
        raise UsageError(
            f"the training in {str(folder)!r} had another text", "give the same files again"
        )
    plan = plan if steps is None else replace(plan, max_steps=steps)
    done = points[-1].progress.step if points else 0
    if plan.max_steps <= done:
        hint = f"to go on, give more, such as {option('max_steps', 2 * done)}"
        raise UsageError(f"the training in {str(folder)!r} has done its {done:,} steps", hint)
    return plan


def points_of(folder: Path) -> list[Point]:
    """The loss curve of a training up to its last saved state."""
    if not (folder / STATE).is_file():
        return []  # interrupted before the first state was saved
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return [
        Point(
            TrainingProgress(**p["progress"]), p["held_out"], tuple(map(tuple, p.get("roles", ())))
        )
        for p in about["points"]
    ]


@dataclass(frozen=True, eq=False)
class OwnTraining:
    """A training on a user's own text, and the folder that it fills."""

    folder: Path
    text: OwnText
    plan: Plan

    def keep(self, model: GPT, points: Sequence[Point]) -> None:
        """Save the model as it is now, beside the old files, then rename.

        Only the weights change from one time to the next, so that a failure between two renames
        cannot leave files that do not belong together.
        """
        folder = self.folder
        with tempfile.TemporaryDirectory(dir=folder, prefix=".attnviz-") as beside:
            save_checkpoint(Path(beside), model, self.text.tokenizer)
            for name in (TOKENIZER, CONFIG, WEIGHTS):
                if name == WEIGHTS or not (folder / name).is_file():
                    (Path(beside) / name).chmod(0o644)  # safetensors writes only for the owner
                    os.replace(Path(beside) / name, folder / name)
        self.note(points)

    def note(self, points: Sequence[Point]) -> None:
        """Save the plan and the loss curve."""
        about = {
            "plan": asdict(self.plan),
            "text": self.text.digest,
            "points": [asdict(point) for point in points],
        }
        with partial_file(self.folder / ABOUT) as partial:
            partial.write_text(json.dumps(about) + "\n", encoding="utf-8")

    def step_folder(self, step: int) -> Path:
        """The folder of the model as it was after a step; by name, they are in order."""
        return self.folder / f"step-{step:06}"

    def keep_step(self, model: GPT, step: int, loss: float) -> None:
        """Save the model as it is after a step in a folder of its own, beside it, then rename."""
        target = self.step_folder(step)
        about = f"Trained with attnviz train, as of step {step:,} of {self.plan.max_steps:,}."
        with (
            self.writing(),
            tempfile.TemporaryDirectory(dir=self.folder, prefix=".attnviz-") as beside,
        ):
            partial = Path(beside) / target.name
            save_checkpoint(partial, model, self.text.tokenizer)
            (partial / WEIGHTS).chmod(0o644)  # safetensors writes only for the owner
            self._write_card(partial, about, loss)
            partial.rename(target)

    def finish(
        self, outcome: TrainingOutcome, files: Sequence[str], formed: Sequence[FormedHead] = ()
    ) -> None:
        """Write the model's card; the state stays, with which the training can go on."""
        about = f"Trained from scratch with attnviz train on {', '.join(files)}."
        with self.writing():
            self._write_card(self.folder, about, outcome.held_out, outcome.trigram, formed)

    def interrupted(self, step: int, files: Sequence[str]) -> str:
        """A sentence about what an interruption at this step leaves; writes the model's card."""
        folder = self.folder
        if not step:
            return f"interrupted before the first step; nothing was trained yet in {folder}"
        resume, points = option("resume"), points_of(folder)
        if not points:
            return f"interrupted at step {step}, before any loss was measured; {resume} continues"
        best = min(points, key=lambda point: point.held_out)
        at, last, loss = best.progress.step, points[-1].progress.step, best.held_out
        about = (
            f"Trained with attnviz train on {', '.join(files)}, and interrupted; as of step {at}."
        )
        with self.writing():
            self._write_card(folder, about, loss)
        kept = f"{folder} keeps the model of step {at}, held-out loss {loss:.3f} bits per byte"
        return f"interrupted at step {step}; {kept}; {resume} continues from step {last}"

    def _write_card(
        self,
        folder: Path,
        description: str,
        loss: float,
        trigram: float | None = None,
        formed: Sequence[FormedHead] = (),
    ) -> None:
        losses = {
            "held-out loss, bits per byte": loss,
            "the same of an interpolated trigram model": trigram,
        }
        figures = [
            Figure("language", name, round(value, 4), None, self.text.predicted)
            for name, value in losses.items()
            if value is not None
        ]
        meanings = {role.name: METRICS[role.metric].meaning for role in ROLES}
        for each in (each for each in formed if each.formed):
            measure = f"{each.head}: mean {meanings[each.role]}"
            figures.append(Figure(each.role, measure, round(each.value, 4), None, each.rows))
        about = ModelCard(folder.name, description, bos=False, figures=tuple(figures))
        card = {**MODEL_CARD.row(about), "training": asdict(self.plan)}
        with partial_file(folder / CARD) as partial:
            text = json.dumps(card, indent=2, ensure_ascii=False)
            partial.write_text(f"{text}\n", encoding="utf-8")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raise an OutputError for a full disk or a forbidden folder, whatever library met it."""
        try:
            yield
            return
        except (OSError, SafetensorError) as error:
            why = str(error).splitlines()[0]
        except RuntimeError as error:
            if "PytorchStreamWriter" not in str(error) and "inline_container" not in str(error):
                raise
            why = "the disk may be full"
        raise OutputError(
            f"{str(self.folder)!r} cannot be written ({why})",
            "make room or choose another folder; what it held is whole",
        )
