"""`attnviz ablate`: does a head matter? The model's predictions without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver_result, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.lines import Lines, check_one_file, deliver_lines, each_line
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, text_alone
from attnviz.data.ablate import AblationReport, BeforeAfter, Replacement
from attnviz.errors import IdleOption, InputError, UsageError, option
from attnviz.runs.ablate import Cut, Progress, ablate_each, ablate_together
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import load_model
from attnviz.runs.results.ablate import of_ablation, of_mean, of_together
from attnviz.runs.results.result import Result

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

EPILOG = r"""
[bold]Examples[/]

attnviz ablate "a fluffy blue creature roamed the verdant forest"

attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue

attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together

attnviz ablate "some text" --model gpt2 -f jsonl | jq -c 'select(.change < -0.1) | [.layer, .head]'

attnviz ablate "Bark is very cute and he is a dog" -o ablation.png

attnviz ablate --lines --file sample_texts/moles.txt --layer 2
"""
COMMON = "file lines answer model heads replacement together top format output quiet".split()
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
    answers: bool = option_field(
        g.TEXT,
        False,
        "--answers",
        help="With --lines, each line is a text, a tab, and the --answer to measure after it.",
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
    lines: Lines = False,
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
    if to.format.picture:
        session.refuse("top", wrong="does nothing for a picture, which shows every head")
    check_one_file(to, lines=lines)
    if how.answers and (how.answer is not None or not lines):
        raise UsageError(
            f"{option('answers')} takes the answers from the lines",
            f"add {option('lines')}, and leave {option('answer')} out",
        )
    refusal = "a saved capture cannot be run again"
    given = None if lines else text_alone(session, text, refusal)
    loaded = load_model(g.source_of(session, model, run))
    top = how.top if session.chosen("top") else None
    asked = _Asked(loaded, tokens.options(run), heads.options, how)
    if given is None:
        found = list[AblationReport]()
        answers = _of_lines(session, asked, text, top, found)
        mean = partial(of_mean, found, top, together=how.together)
        deliver_lines(session, to, answers, mean, canvas)
        return
    if how.together:
        both = asked.together(given)
        note_texts(session, [both.report.capture])
        deliver_result(session, to, of_together(both))
        return
    with _progress(session) as progress:
        report = asked.each(given, progress)
    note_texts(session, [report.capture])
    deliver_result(session, to, of_ablation(report, top), canvas)


@dataclass(frozen=True)
class _Asked:
    """What is asked of each text."""

    model: "LoadedModel"
    options: TextOptions
    heads: HeadOptions
    how: HowAblated

    def each(self, line: str, progress: Progress | None = None) -> AblationReport:
        text, cut = self._cut(line)
        return ablate_each(self.model, text, self.options, self.heads, cut, progress)

    def together(self, line: str) -> BeforeAfter:
        text, cut = self._cut(line)
        return ablate_together(self.model, text, self.options, self.heads, cut, self.how.top)

    def _cut(self, line: str) -> tuple[str, Cut]:
        """The text of a line, and what is measured.

        Raises:
            InputError: the line has no answer of its own, where each is to have one.
        """
        if not self.how.answers:
            return line, Cut(self.how.replacement, self.how.answer)
        text, tab, answer = line.rpartition("\t")
        if not (tab and text.strip() and answer.strip()):
            raise InputError("there is no text, tab and answer", "separate the two by a tab")
        return text, Cut(self.how.replacement, answer)


def _of_lines(
    session: Session, asked: _Asked, text: g.TextIn, top: int | None, found: list[AblationReport]
) -> Iterator[tuple[int, Result[Any]]]:
    """The result of each line; the reports are kept for their mean."""

    def run(line: str, number: int) -> tuple[int, Result[Any]]:
        if asked.how.together:
            both = asked.together(line)
            found.append(both.report)
            return number, of_together(both, number)
        found.append(asked.each(line))
        return number, of_ablation(found[-1], top, number)

    own = "answer" if asked.how.answers else ""
    return each_line(session, text, run, lambda _: found[-1].capture, own)


def _check_together(heads: g.WhichHeads, to: Destination) -> None:
    together = option("together")
    if to.format.picture:
        raise IdleOption(f"{together} gives one number, not a picture", "leave one of them out")
    if not heads.options.named:
        hint = f"name them, as in {option('heads', 'L1H2,L3H0')}"
        raise IdleOption(f"{together} needs heads", hint)


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
