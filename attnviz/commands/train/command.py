"""`attnviz train`: a model from the user's own text."""

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from attnviz.commands.train.plan import (
    BROAD,
    FormedHead,
    Plan,
    Point,
    TrainingOutcome,
    best_of,
    formed_at,
    last_losses,
)
from attnviz.draw.titles import amount, duration
from attnviz.errors import readable
from attnviz.inputs.text import read_file
from attnviz.kit import completion
from attnviz.kit.option import command, positional
from attnviz.kit.session import Session
from attnviz.kit.write import write_bytes
from attnviz.records.metrics import METRICS, ROLES

if TYPE_CHECKING:
    from attnviz.commands.train.folder import OwnTraining

EXAMPLES = """
attnviz train book.txt -o my-model
attnviz train notes/*.txt -o my-model --n-layer 2 --max-steps 500
attnviz train book.txt -o my-model --resume
attnviz train book.txt -o my-model --resume --max-steps 4000
attnviz train book.txt -o my-model --keep-every 100
attnviz show --model ./my-model "a sentence of the book"
"""
SHORT_HELP = "output resume n_layer n_head n_embd context max_steps seed quiet"


@command
def train(
    session: Session,
    *,
    files: Annotated[
        list[Path], positional("FILE", "Text files to train on.", autocompletion=completion.TEXTS)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The model's folder.")
    ],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a training on the same files, or take it further."
        ),
    ] = False,
    plan: Plan,
) -> None:
    """Train a from-scratch model on your own text, on this computer.

    The result is a model folder, with a card and a loss curve, that show and explain take with
    --model. Ctrl-C keeps the best weights so far; --resume continues, and with more --max-steps
    also takes a finished training further.
    """
    from attnviz.commands.train import folder as train_folder
    from attnviz.commands.train import own
    from attnviz.commands.train.plan import check_plan

    train_folder.check_folder(output, resume=resume)
    settled = (each.name for each in fields(Plan) if each.name != "max_steps" and resume)
    session.refuse(*settled, wrong="was set when this training began")
    steps = plan.max_steps if session.given("max_steps") else None
    text = "\n".join(read_file(path) for path in files)
    check_plan(plan)
    training = own.begin(text, plan, output, resume=resume, steps=steps)
    names = [path.name for path in files]
    outcome = _train(session, training, names)
    title = readable(f"{output.name}, trained from scratch on {', '.join(names)}")
    write_bytes(output / train_folder.CURVE, loss_curve(outcome, title))
    formed = own.formed_heads(training)
    training.finish(outcome, names, formed)
    session.wrote(output)
    heads = heads_told(formed, training.plan.n_layer * training.plan.n_head, outcome.points)
    session.show(_found(output, files, outcome, heads))


def _found(
    output: Path, files: Sequence[Path], outcome: TrainingOutcome, heads: str
) -> Iterator[Text]:
    """The losses, the heads that formed, and the command to continue if the loss did not rise."""
    yield Text(f"{output}: held-out loss {outcome.held_out:.3f} bits per byte", style="bold")
    yield Text(f"an interpolated trigram model over the same tokens: {outcome.trigram:.3f}")
    yield Text(last_losses(outcome.points))
    yield Text(heads)
    if best_of(outcome.points) is (last := outcome.points[-1]):
        further = ["attnviz", "train", *map(str, files), "-o", str(output)]
        further += ["--resume", "--max-steps", str(2 * last.progress.step)]
        yield Text("a head can form late, while the loss hardly changes; to go on:")
        yield Text(f"  {readable(shlex.join(further))}")
    yield Text(f"to show it: attnviz show --model {output}; its loss curve: {output}/loss.png")


def _train(session: Session, training: "OwnTraining", files: Sequence[str]) -> TrainingOutcome:
    """With a line for each held-out loss; an interruption is noted with the files it leaves."""
    from attnviz.commands.train import own
    from attnviz.commands.train.loop import STEPS

    total, reached = training.plan.max_steps, 0
    pace = Pace(total)

    try:
        with session.bar(STEPS, stays=session.environment.stderr.isatty()) as bar:
            task = bar.add_task("starting", total=total)

            def stepped(step: int) -> None:
                nonlocal reached
                reached = step
                bar.update(task, completed=step)
                if pace.reach(step):  # long before the next loss
                    session.logged(f"step {step:,} of {total:,}{pace.left()}")

            def report(point: Point) -> None:
                bar.update(task, description=f"held-out loss {point.held_out:.3f} bits per byte")
                session.logged(f"{loss_told(point, total)}{pace.left()}")

            return own.train_model(training, report, stepped)
    except KeyboardInterrupt:
        session.note(training.interrupted(reached, files))
        raise


class Pace:
    """The pace of the steps of a training, by the clock."""

    SURE = 2.0  # seconds after which it is known

    def __init__(self, total: int) -> None:
        self._total = total
        self._times = list[tuple[int, float]]()
        self._known = False

    def reach(self, step: int) -> bool:
        """Note the time of a step; whether the pace is known from this step on."""
        self._times[1:] = [(step, time.monotonic())]
        was, self._known = self._known, self._times[-1][1] - self._times[0][1] >= self.SURE
        return self._known and not was

    def left(self) -> str:
        """`, about 9 minutes left`; empty at the end, and where it is not known yet."""
        if len(self._times) < 2 or self._times[1][0] >= self._total:
            return ""
        (first, began), (step, now) = self._times
        seconds = (self._total - step) * (now - began) / (step - first)
        return f", about {duration(seconds)} left"


def loss_told(point: Point, total: int) -> str:
    """`step 50 of 2,000: held-out loss 1.921 bits per byte, 13 s`."""
    now = point.progress
    untrained = "" if now.step else " (untrained)"
    loss = f"held-out loss {point.held_out:.3f} bits per byte{untrained}"
    return f"step {now.step:,} of {total:,}: {loss}, {now.seconds:.0f} s"


def heads_told(formed: Sequence[FormedHead], heads: int, points: Sequence[Point]) -> str:
    """The heads that have a role on the held-out text, by role, with its metric and its first step.

    A head that attends to everything alike, as one without training does, is only counted; where
    there is no other, the head nearest to a role is named.
    """
    by_role: dict[str, list[str]] = {}
    broad = sum(each.role == BROAD for each in formed)
    others = heads - sum(each.formed for each in formed)
    none = "none"
    for each in formed:
        if not each.formed:
            role = next(role for role in ROLES if role.name == each.role)
            none = (
                f"none; nearest to one is {each.head}: mean {METRICS[role.metric].meaning} "
                f"{each.value:.2f} ({each.role}: from {role.least:.2f})"
            )
        elif each.role != BROAD:
            step = formed_at(points, each)
            since = "" if step is None else f" (from step {step:,})"
            by_role.setdefault(each.role, []).append(f"{each.head} {each.value:.2f}{since}")
    told = [f"{role}: {', '.join(some)}" for role, some in by_role.items()] or [none]
    told += [f"{amount(broad, 'head')} broad"] if broad else []
    told += [f"{amount(others, 'head')} without a role"] if others else []
    return f"heads that formed, measured on the held-out text: {'; '.join(told)}"


# The loss curve, as a picture.

TRAINING, TRIGRAM = "training text, mean since the point before", "trigram model, held out"
LETTERS = 90


def loss_curve(outcome: TrainingOutcome, title: str) -> bytes:
    """A PNG of the losses (bits per byte) over the steps, with a trigram model's as a line.

    The loss on the training text has no point at step 0, before which nothing was trained on.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from attnviz.draw.picture.canvas import drawing, figure_bytes, use_fonts
    from attnviz.draw.picture.frame import GREY

    steps = [point.progress.step for point in outcome.points]
    held_out = [point.held_out for point in outcome.points]
    training = [outcome.bits_per_byte(point) for point in outcome.points[1:]]
    losses = [*training, *held_out, outcome.trigram]
    low, high = min(losses), max(losses)
    with drawing():
        fonts = use_fonts([title])
        figure = Figure(figsize=(6.4, 4.0), dpi=150, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.plot(steps[1:], training, ".-", color="#3b528b", linewidth=1.2, label=TRAINING)
        axes.plot(steps, held_out, ".-", color="#d1495b", linewidth=1.6, label="held-out text")
        axes.axhline(outcome.trigram, color=GREY, linestyle="--", linewidth=1, label=TRIGRAM)
        heading = fill(fonts.spell(title), LETTERS)
        axes.set_title(heading, fontsize=9, loc="left", color=GREY, parse_math=False)
        axes.set_xlabel("step")
        axes.set_ylabel("loss, bits per byte")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        axes.set_xlim(0, 1.01 * steps[-1])
        axes.set_ylim(max(0.0, low - 0.1), high + 0.05 * (high - low))
        return figure_bytes(figure, "png")
