"""`attnviz train`: a model from the user's own text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.train.plan import Plan, Point, TrainingOutcome
from attnviz.errors import readable
from attnviz.inputs.text import read_file
from attnviz.kit import options as g
from attnviz.kit.option import command, panel_option
from attnviz.kit.session import Session
from attnviz.kit.write import write_bytes

if TYPE_CHECKING:
    from attnviz.commands.train.folder import OwnText

EPILOG = """
Examples

attnviz train book.txt -o my-model

attnviz train notes/*.txt -o my-model --n-layer 2 --max-steps 500

attnviz train book.txt -o my-model --resume

attnviz train book.txt -o my-model --keep-every 100

attnviz show --model ./my-model "a sentence of the book"
"""
COMMON = "output resume n_layer n_head n_embd context_size max_steps seed quiet".split()
"""The options that the short help lists."""
SIZES, RUN = "The model", "The training"
PLAN = Plan()


def _count(panel: str, flag: str, what: str, least: int = 1, most: int = 1 << 16) -> Any:
    return panel_option(panel, flag, metavar="N", min=least, max=most, help=what)


@dataclass(frozen=True)
class Planned:
    """The sizes of the model, and how it is trained."""

    n_layer: Annotated[int, _count(SIZES, "--n-layer", "Layers.", 1, 1000)] = PLAN.n_layer
    n_head: Annotated[int, _count(SIZES, "--n-head", "Heads per layer.")] = PLAN.n_head
    n_embd: Annotated[int, _count(SIZES, "--n-embd", "The width of the model, d_model.", 2)] = (
        PLAN.n_embd
    )
    context_size: Annotated[
        int, _count(SIZES, "--context", "The context: the most tokens the model takes.", 8)
    ] = PLAN.context
    vocab: Annotated[
        int, _count(SIZES, "--vocab", "The most tokens in its vocabulary.", 300, 1 << 20)
    ] = PLAN.vocab
    max_steps: Annotated[
        int, _count(RUN, "--max-steps", "The number of training steps.", 1, 1 << 30)
    ] = PLAN.max_steps
    batch: Annotated[int, _count(RUN, "--batch", "Texts per step for each of the two workers.")] = (
        PLAN.batch
    )
    lr: Annotated[
        float, panel_option(RUN, "--lr", metavar="RATE", min=0.0, help="The highest learning rate.")
    ] = PLAN.lr
    seed: Annotated[
        int,
        _count(
            RUN,
            "--seed",
            "The random seed; the same seed gives the same weights.",
            0,
            g.LARGEST_SEED,
        ),
    ] = PLAN.seed
    keep_every: Annotated[
        int | None,
        panel_option(
            RUN,
            "--keep-every",
            metavar="N",
            min=1,
            help="Keep the model every N steps, at step 0 and at the last, in DIR/step-000000 and "
            "on.",
        ),
    ] = PLAN.keep_every

    @property
    def plan(self) -> Plan:
        """The record that the training takes."""
        sizes = self.n_layer, self.n_head, self.n_embd, self.context_size, self.vocab
        return Plan(*sizes, self.max_steps, self.batch, self.lr, self.seed, self.keep_every)


@command
def train(
    session: Session,
    *,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Text files to train on.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The model's folder.")
    ],
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training on the same files.")
    ] = False,
    planned: Planned,
    noise: g.Noise,
) -> None:
    """Train a from-scratch model on your own text, on this computer.

    The result is a model folder, with a card and a loss curve, that show and explain take with
    --model. Ctrl-C keeps the best weights so far; --resume continues.
    """
    from attnviz.commands.train import folder as train_folder
    from attnviz.commands.train import own
    from attnviz.commands.train.plan import check_plan

    train_folder.check_folder(output, resume=resume)
    if resume:
        session.refuse(Planned, wrong="was set when this training began")
    text = "\n".join(read_file(path) for path in files)
    check_plan(planned.plan)
    corpus, plan = own.begin(text, planned.plan, output, resume=resume)
    names = [path.name for path in files]
    outcome = _train(session, corpus, plan, output, names)
    write_bytes(output / train_folder.CURVE, _curve(outcome, output.name, names))
    train_folder.finish(output, plan, outcome, names)
    session.wrote(output)
    session.show(_said(output, outcome))


def _train(
    session: Session, corpus: "OwnText", plan: Plan, folder: Path, files: Sequence[str]
) -> TrainingOutcome:
    """Behind a progress bar on stderr; an interruption is told with what it leaves."""
    from attnviz.commands.train import folder as train_folder
    from attnviz.commands.train import own
    from attnviz.commands.train.loop import STEPS

    reached = 0
    try:
        with session.bar(STEPS, stays=True) as bar:
            task = bar.add_task("starting", total=plan.max_steps)

            def stepped(step: int) -> None:
                nonlocal reached
                if not reached:
                    bar.update(task, description="no held-out loss yet")
                reached = step
                bar.update(task, completed=step)

            def report(point: Point) -> None:
                said = f"held-out loss {point.held_out:.3f} bits per byte"
                bar.update(task, description=said)

            return own.train_model(corpus, plan, folder, report, stepped)
    except KeyboardInterrupt:
        session.note(train_folder.interrupted(folder, corpus, plan, reached, files))
        raise


def _curve(outcome: TrainingOutcome, model: str, files: Sequence[str]) -> bytes:
    from attnviz.commands.train.shown import loss_curve

    points = outcome.points
    return loss_curve(
        [point.progress.step for point in points],
        [outcome.bits_per_byte(point) for point in points[1:]],
        [point.held_out for point in points],
        outcome.trigram,
        readable(f"{model}, trained from scratch on {', '.join(files)}"),
    )


def _said(folder: Path, outcome: TrainingOutcome) -> list[RenderableType]:
    best, trigram = outcome.held_out, outcome.trigram
    return [
        Text(f"{folder}: held-out loss {best:.3f} bits per byte", style="bold"),
        Text(f"an interpolated trigram model over the same tokens: {trigram:.3f}"),
        Text(f"to show it: attnviz show --model {folder}; its loss curve: {folder}/loss.png"),
    ]
