"""`attnviz ablate`: does a head matter? What the model says without it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias, cast

import typer

from attnviz.commands import options as o
from attnviz.commands.answers import note_what_is_left_out
from attnviz.commands.records import deliver_records
from attnviz.commands.reports import deliver_bytes, report_format
from attnviz.commands.session import Session, session_of
from attnviz.console import make_consoles
from attnviz.data.ablate import AblationReport, BeforeAfter, Effect, Replacement
from attnviz.errors import UsageError
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.renderers.picture.paint import DIVERGING
from attnviz.renderers.terminal import ablate as ablation
from attnviz.runs.ablate import Cut, Progress, ablate_each, ablate_together
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import load_model

EPILOG = """
[bold]Examples[/]

attnviz ablate "a fluffy blue creature roamed the verdant forest"

attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue

attnviz ablate "Bark is very cute and he is a" --head L2H1,L3H1 --together

attnviz ablate "some text" --model gpt2 -f jsonl | jq -r 'select(.change < -0.1) | .heads'

attnviz ablate "Bark is very cute and he is a dog" -o ablation.png
"""
TOP = 10

WithOption: TypeAlias = Annotated[
    Replacement,
    typer.Option(
        "--with",
        help="What a head's output becomes: zero, or its mean over the text's positions.",
        rich_help_panel=o.HEADS,
    ),
]
TogetherOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--together",
        help="Ablate the chosen heads at once, and show what comes next before and after.",
        rich_help_panel=o.HEADS,
    ),
]
AnswerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="TOKEN",
        help="Look at how likely this token is after the text. Default: at all tokens of the text.",
        rich_help_panel=o.TEXT,
        show_default=False,
    ),
]
TopOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--top",
        metavar="K",
        min=1,
        help="The K heads that matter most; with --together, so many candidates.",
        rich_help_panel=o.LOOK,
    ),
]


def ablate(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    answer: AnswerOption = None,
    truncate: o.TruncateOption = None,
    bos: o.BosOption = None,
    special: o.SpecialOption = False,
    model: o.ModelOption = "builtin",
    revision: o.RevisionOption = None,
    offline: o.OfflineOption = False,
    engine: o.EngineOption = "auto",
    device: o.DeviceOption = "auto",
    dtype: o.DTypeOption = "auto",
    max_memory: o.MaxMemoryOption = None,
    layer: o.LayerOption = None,
    head: o.HeadOption = None,
    replacement: WithOption = "zero",
    together: TogetherOption = False,
    top: TopOption = TOP,
    cmap: o.CmapOption = None,
    dpi: o.DpiOption = None,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.ReportFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Take one head's output away at a time, and show how much worse the model then guesses.

    The change is in nats of log-probability: of what really followed, or of an --answer.
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = report_format(session, context, output, form)
    if together and chosen.picture:
        raise UsageError("--together is one number, and no picture", "leave one of them out")
    given = read_text(text, file, session.stdin)
    if isinstance(given, SavedCapture):
        raise UsageError("a saved capture cannot be run again", "give the text again")
    if given.note:
        session.note(given.note)
    placement = o.placement_of(device, dtype, max_memory)
    source = Source(model, revision, offline, quiet, None, False, engine, placement)
    options = TextOptions(bos, special, truncate, None, placement.max_memory)
    wanted, cut = HeadOptions(layer, head), Cut(replacement, answer)
    if together:
        if not wanted.named:
            raise UsageError("--together needs heads", "name them, as in --head L1H2,L3H0")
        found = ablate_together(load_model(source), given.text, options, wanted, cut, top)
        note_what_is_left_out(session, found.report.capture.left_out)
        shown = ablation.render_together(found, session.consoles.display)
        deliver_records(session, list(_candidates(found)), shown, chosen.name, output)
        return
    loaded = load_model(source)
    with _progress(session) as told:
        report = ablate_each(loaded, given.text, options, wanted, cut, told)
    note_what_is_left_out(session, report.capture.left_out)
    if chosen.picture:
        from attnviz.renderers.picture.ablate import draw
        from attnviz.renderers.picture.canvas import PictureFormat, figure_bytes

        drawn = draw(report, dpi=dpi or 150, cmap=cmap or DIVERGING)
        name = cast("PictureFormat", chosen.name)
        deliver_bytes(session, figure_bytes(drawn, name, dpi), output)
        return
    effects = sorted(report.effects, key=lambda effect: (-abs(effect.change), effect.heads))
    if o.given(context, ("top",)) or chosen.name == "txt":
        effects = effects[:top]
    shown = ablation.render(report, effects, session.consoles.display)
    deliver_records(session, _records(report, effects), shown, chosen.name, output)


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


def _records(report: AblationReport, effects: Sequence[Effect]) -> list[dict[str, object]]:
    return [_record(report, effect) for effect in effects]


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
    }


def _candidates(found: BeforeAfter) -> Iterator[dict[str, object]]:
    """A row for each candidate before and after, with the effect on all of them."""
    (effect,) = found.report.effects
    for when, outlook in (("before", found.before), ("after", found.after)):
        for rank, candidate in enumerate(outlook.candidates, start=1):
            yield {
                **_record(found.report, effect),
                "when": when,
                "rank": rank,
                "id": candidate.id,
                "token": candidate.label,
                "probability": candidate.probability,
            }
