"""`attnviz train`: a model from the user's own text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from attnviz.commands.train.plan import FormedHead, Plan, Point, TrainingOutcome, outlook
from attnviz.draw.titles import amount
from attnviz.errors import readable, spelled
from attnviz.inputs.text import read_file
from attnviz.kit.option import command
from attnviz.kit.session import Session, as_flag
from attnviz.kit.write import write_bytes

if TYPE_CHECKING:
    from attnviz.commands.train.folder import OwnTraining

EXAMPLES = """
attnviz train book.txt -o my-model
attnviz train notes/*.txt -o my-model --n-layer 2 --max-steps 500
attnviz train book.txt -o my-model --resume
attnviz train book.txt -o my-model --keep-every 100
attnviz show --model ./my-model "a sentence of the book"
"""
SHORT_HELP = "output resume n_layer n_head n_embd context max_steps seed quiet"


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
    plan: Plan,
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
        session.refuse(Plan, wrong="was set when this training began")
    text = "\n".join(read_file(path) for path in files)
    check_plan(plan)
    training = own.begin(text, plan, output, resume=resume)
    names = [path.name for path in files]
    outcome = _train(session, training, names)
    title = readable(f"{output.name}, trained from scratch on {', '.join(names)}")
    write_bytes(output / train_folder.CURVE, loss_curve(outcome, title))
    formed = own.formed_heads(training)
    training.finish(outcome, names, formed)
    session.wrote(output)
    session.show(_found(output, outcome, formed, training.plan.n_layer * training.plan.n_head))


def _found(
    output: Path, outcome: TrainingOutcome, formed: Sequence[FormedHead], heads: int
) -> Iterator[Text]:
    """The loss, whether going on would pay, and the heads that formed."""
    yield Text(f"{output}: held-out loss {outcome.held_out:.3f} bits per byte", style="bold")
    yield Text(f"an interpolated trigram model over the same tokens: {outcome.trigram:.3f}")
    if told := outlook(outcome.points):
        yield Text(spelled(told, as_flag))
    yield Text(heads_told(formed, heads))
    yield Text(f"to show it: attnviz show --model {output}; its loss curve: {output}/loss.png")


def _train(session: Session, training: "OwnTraining", files: Sequence[str]) -> TrainingOutcome:
    """Behind a progress bar on stderr; an interruption is told with what it leaves."""
    from attnviz.commands.train import own
    from attnviz.commands.train.loop import STEPS

    reached = 0
    try:
        with session.bar(STEPS, stays=session.environment.stderr.isatty()) as bar:
            total = training.plan.max_steps
            task = bar.add_task("starting", total=total)

            def stepped(step: int) -> None:
                nonlocal reached
                if not reached:
                    bar.update(task, description="no held-out loss yet")
                reached = step
                bar.update(task, completed=step)

            def report(point: Point) -> None:
                said = f"held-out loss {point.held_out:.3f} bits per byte"
                bar.update(task, description=said)
                now = point.progress
                session.logged(f"step {now.step:,} of {total:,}: {said}, {now.seconds:.0f} s")

            return own.train_model(training, report, stepped)
    except KeyboardInterrupt:
        session.note(training.interrupted(reached, files))
        raise


def heads_told(formed: Sequence[FormedHead], heads: int) -> str:
    """The heads that have a role on the held-out text, by role, with what it follows from.

    A head that attends to everything alike, as one without training does, is only counted.
    """
    by_role: dict[str, list[str]] = {}
    for each in formed:
        by_role.setdefault(each.role, []).append(f"{each.head} {each.value:.2f}")
    broad, others = len(by_role.pop("broad", ())), heads - len(formed)
    told = [f"{role}: {', '.join(some)}" for role, some in by_role.items()] or ["none"]
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
