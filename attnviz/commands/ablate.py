"""`attnviz ablate`: does a head matter? The model's predictions without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, text_alone
from attnviz.data.ablate import AblationReport, BeforeAfter, Effect, Replacement
from attnviz.errors import UsageError, option
from attnviz.renderers.terminal import ablate as table
from attnviz.runs.ablate import Cut, Progress, ablate_each, ablate_together
from attnviz.runs.prepare import load_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPILOG = """
[bold]Examples[/]

attnviz ablate "a fluffy blue creature roamed the verdant forest"

attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue

attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together

attnviz ablate "some text" --model gpt2 -f jsonl | jq -r 'select(.change < -0.1) | .heads'

attnviz ablate "Bark is very cute and he is a dog" -o ablation.png
"""
COMMON = "file answer model heads replacement together top format output quiet".split()
"""The options that the short help lists."""


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
        _deliver_together(session, to, both)
        return
    with _progress(session) as progress:
        report = ablate_each(loaded, given, options, heads.options, cut, progress)
    note_texts(session, [report.capture])
    _deliver_each(session, to, report, how, canvas)


def _check_together(heads: g.WhichHeads, to: Destination) -> None:
    together = option("together")
    if to.format.picture:
        raise UsageError(f"{together} gives one number, not a picture", "leave one of them out")
    if not heads.options.named:
        hint = f"name them, as in {option('heads', 'L1H2,L3H0')}"
        raise UsageError(f"{together} needs heads", hint)


def _deliver_together(session: Session, to: Destination, both: BeforeAfter) -> None:
    display = to.display(session)
    deliver_report(
        session, to, lambda: list(_candidates(both)), lambda: table.render_together(both, display)
    )


def _deliver_each(
    session: Session, to: Destination, report: AblationReport, how: HowAblated, canvas: g.Canvas
) -> None:
    effects = sorted(report.effects, key=lambda effect: (-abs(effect.change), effect.heads))
    if session.chosen("top") or to.format.name == "txt":
        effects = effects[: how.top]

    def draw() -> "Figure":
        from attnviz.renderers.picture import ablate as picture

        return picture.draw(report, **canvas.given)

    deliver_report(
        session,
        to,
        lambda: [_record(report, effect) for effect in effects],
        lambda: table.render(report, effects, to.display(session)),
        draw,
    )


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


def _record(report: AblationReport, effect: Effect) -> dict[str, object]:
    named = [each.behaviour for each in report.capture.named_heads if each.head in effect.heads]
    return {
        "model": report.capture.model.name,
        "heads": ",".join(map(str, effect.heads)),
        "card": named,
        "with": report.replacement,
        "answer": report.answer.label if report.answer else None,
        "tokens": report.tokens,
        "before": report.baseline,
        "after": report.baseline + effect.change,
        "change": effect.change,
        "error": effect.error,
        "answer_exact": report.answer.exact if report.answer else None,
    }


def _candidates(both: BeforeAfter) -> Iterator[dict[str, object]]:
    """A row for each candidate before and after, with the effect on all of them."""
    (effect,) = both.report.effects
    for when, next_tokens in (("before", both.before), ("after", both.after)):
        for rank, candidate in enumerate(next_tokens.candidates, start=1):
            yield {
                **_record(both.report, effect),
                "when": when,
                "rank": rank,
                "id": candidate.id,
                "token": candidate.label,
                "probability": candidate.probability,
                "exact": candidate.exact,
            }
