"""`attnviz ablate`: does a head matter? The model's predictions without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver_result, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, text_alone
from attnviz.data.ablate import Replacement
from attnviz.errors import UsageError, option
from attnviz.runs.ablate import Cut, Progress, ablate_each, ablate_together
from attnviz.runs.prepare import load_model
from attnviz.runs.results.ablate import of_ablation, of_together

EPILOG = r"""
[bold]Examples[/]

attnviz ablate "a fluffy blue creature roamed the verdant forest"

attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue

attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together

attnviz ablate "some text" --model gpt2 -f jsonl | jq -c 'select(.change < -0.1) | [.layer, .head]'

attnviz ablate "Bark is very cute and he is a dog" -o ablation.png
"""


@dataclass(frozen=True)
class HowAblated:
    """What is done to heads, and which prediction is measured."""

    answer: str | None = option_field(
        g.TEXT,
        None,
        "--answer",
        metavar="TOKEN",
        help="Measure the probability of this token after the text. Default: all tokens of the "
        "text.",
    )
    replacement: Replacement = option_field(
        g.HEADS,
        "zero",
        "--with",
        help="What replaces a head's output: zero, or its mean over the text's positions.",
    )
    together: bool = option_field(
        g.HEADS,
        False,
        "--together",
        help="Ablate the chosen heads at once, and show the next tokens before and after.",
    )
    top: int = option_field(
        g.LOOK,
        10,
        "--top",
        metavar="K",
        min=1,
        help="Show the K heads that matter most; with --together, K candidates.",
    )


@command
def ablate(
    session: Session,
    *,
    text: g.TextIn,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    heads: g.WhichHeads,
    how: HowAblated,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Ablate heads one at a time and measure the effect on predictions.

    The effect is the change in log-probability, in nats, of the tokens that followed or of an
    --answer. A negative change means that the head helps.
    """
    to = destination_of(session, output)
    if how.together:
        _check_together(heads, to)
    given = text_alone(session, text, "a saved capture cannot be run again")
    loaded = load_model(g.source_of(session, model, run))
    options, cut = tokens.options(run), Cut(how.replacement, how.answer)
    if how.together:
        both = ablate_together(loaded, given, options, heads.options, cut, how.top)
        note_texts(session, [both.report.capture])
        deliver_result(session, to, of_together(both))
        return
    with _progress(session) as progress:
        report = ablate_each(loaded, given, options, heads.options, cut, progress)
    note_texts(session, [report.capture])
    top = how.top if session.given("top") else None
    deliver_result(session, to, of_ablation(report, top), canvas)


def _check_together(heads: g.WhichHeads, to: Destination) -> None:
    together = option("together")
    if to.format.picture:
        raise UsageError(f"{together} gives one number, not a picture", "leave one of them out")
    if not heads.options.named:
        hint = f"name them, as in {option('heads', 'L1H2,L3H0')}"
        raise UsageError(f"{together} needs heads", hint)


@contextmanager
def _progress(session: Session) -> Iterator[Progress | None]:
    """A bar on stderr, where that is a terminal; None where nobody would see it."""
    console = session.consoles.err
    if session.quiet or not console.is_interactive:
        yield None
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task("ablating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
