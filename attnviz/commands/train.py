"""`attnviz train`: a model from the user's own text."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.session import Session, session_of
from attnviz.data.train import Outcome, Plan, Point
from attnviz.errors import UsageError
from attnviz.inputs.text import read_file
from attnviz.writers.atomic import write_bytes

if TYPE_CHECKING:
    from attnviz.training.own_text import OwnText

EPILOG = """
[bold]Examples[/]

attnviz train book.txt -o my-model

attnviz train notes/*.txt -o my-model --n-layer 2 --max-steps 500

attnviz train book.txt -o my-model --resume

attnviz show --model ./my-model "a sentence of the book"
"""
SIZES, RUN = "The model", "The training"
PLAN = Plan()
PLANNED = (
    "n_layer",
    "n_head",
    "n_embd",
    "context_size",
    "vocab",
    "max_steps",
    "batch",
    "lr",
    "seed",
)


def _whole(option: str, what: str, panel: str, least: int = 1) -> object:
    return typer.Option(option, metavar="N", min=least, help=what, rich_help_panel=panel)


FilesArgument: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Texts to learn from.", show_default=False)
]
FolderOption: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="The model's folder.")
]
ResumeOption: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on with an interrupted training of the same files.")
]
LayersOption: TypeAlias = Annotated[int, _whole("--n-layer", "Layers.", SIZES)]
HeadsOption: TypeAlias = Annotated[int, _whole("--n-head", "Heads a layer.", SIZES)]
WidthOption: TypeAlias = Annotated[int, _whole("--n-embd", "The width, d_model.", SIZES, 2)]
ContextOption: TypeAlias = Annotated[int, _whole("--context", "Tokens the model takes.", SIZES, 8)]
VocabularyOption: TypeAlias = Annotated[
    int, _whole("--vocab", "Tokens it knows, at most.", SIZES, 300)
]
StepsOption: TypeAlias = Annotated[int, _whole("--max-steps", "Steps to take.", RUN)]
BatchOption: TypeAlias = Annotated[
    int, _whole("--batch", "Texts a step, each of two workers.", RUN)
]
RateOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--lr", metavar="RATE", min=0.0, help="Highest learning rate.", rich_help_panel=RUN
    ),
]
SeedOption: TypeAlias = Annotated[int, _whole("--seed", "The same seed, the same weights.", RUN, 0)]


def train(
    context: typer.Context,
    files: FilesArgument,
    output: FolderOption,
    resume: ResumeOption = False,
    n_layer: LayersOption = PLAN.n_layer,
    n_head: HeadsOption = PLAN.n_head,
    n_embd: WidthOption = PLAN.n_embd,
    context_size: ContextOption = PLAN.context,
    vocab: VocabularyOption = PLAN.vocab,
    max_steps: StepsOption = PLAN.max_steps,
    batch: BatchOption = PLAN.batch,
    lr: RateOption = PLAN.lr,
    seed: SeedOption = PLAN.seed,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Train the from-scratch model on your own text, on this computer.

    Writes a model folder that show and explain take with --model, with its card and a loss
    curve. Ctrl-C keeps what is reached; --resume goes on.
    """
    from attnviz.training import own, own_folder
    from attnviz.training.recipe import check_plan

    session = session_of(context)
    own_folder.check_folder(output, resume=resume)
    for option in o.given(context, PLANNED) if resume else ():
        option = option.removesuffix("-size")  # of --context, whose name a parameter has already
        raise UsageError(f"{option} was settled when this training began", "leave it out")
    text = "\n".join(read_file(path) for path in files)
    plan = Plan(n_layer, n_head, n_embd, context_size, vocab, max_steps, batch, lr, seed)
    check_plan(plan)
    corpus, plan = own.begin(text, plan, output, resume=resume)
    names = [path.name for path in files]
    outcome = _train(session, corpus, plan, output, names)
    write_bytes(output / own_folder.CURVE, _curve(outcome))
    own_folder.finish(output, plan, outcome, names)
    session.show(_said(output, outcome))


def _train(
    session: Session, corpus: "OwnText", plan: Plan, folder: Path, files: Sequence[str]
) -> Outcome:
    """Behind a progress bar on stderr; an interruption is told with what it leaves."""
    from attnviz.training import own, own_folder
    from attnviz.training.bar import progress_bar

    reached = 0
    try:
        with progress_bar(session.consoles.err, quiet=session.quiet) as bar:
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
        session.note(own_folder.interrupted(folder, corpus, plan, reached, files))
        raise


def _curve(outcome: Outcome) -> bytes:
    from attnviz.renderers.picture.train import loss_curve

    return loss_curve(
        [point.progress.step for point in outcome.points],
        [outcome.bits_per_byte(point) for point in outcome.points],
        [point.held_out for point in outcome.points],
        outcome.trigram,
    )


def _said(folder: Path, outcome: Outcome) -> list[RenderableType]:
    best, trigram = outcome.held_out, outcome.trigram
    return [
        Text(f"{folder}: held-out loss {best:.3f} bits per byte", style="bold"),
        Text(f"an interpolated trigram model over the same tokens: {trigram:.3f}"),
        Text(f"attnviz show --model {folder} shows it; the loss curve is in {folder}/loss.png"),
    ]
