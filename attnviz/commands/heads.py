"""`attnviz heads`: what each head does, in numbers, and the role that follows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from typing import Annotated, Literal, TypeAlias, cast

import typer

from attnviz.commands import options as o
from attnviz.commands.answers import note_what_is_left_out
from attnviz.commands.records import deliver_records
from attnviz.commands.reports import deliver_bytes, report_format
from attnviz.commands.session import Session, session_of
from attnviz.console import make_consoles
from attnviz.data.heads import METRICS, HeadMetrics, HeadReport
from attnviz.errors import UsageError
from attnviz.inputs.capture_file import load_capture
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.renderers.terminal import heads as headtable
from attnviz.renderers.titles import heads_title
from attnviz.runs.heads import Probe, score_capture, score_probe, score_text
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import load_model
from attnviz.transforms.apply import ShowOptions

EPILOG = """
[bold]Examples[/]

attnviz heads

attnviz heads "a fluffy blue creature roamed the verdant forest" --sort distance --top 5

attnviz heads --probe --model gpt2 --role induction -f jsonl | jq -r '[.head, .induction] | @tsv'

attnviz heads -o heads.png
"""

Convention: TypeAlias = Literal["second", "whole"]
Score: TypeAlias = Literal[
    "entropy", "normalised", "distance", "previous", "first", "self", "duplicate", "induction"
]
RoleName: TypeAlias = Literal[
    "induction", "duplicate token", "previous token", "self", "sink", "broad"
]

PROBE = "The probe"
OF_PROBE = ("convention", "length", "samples", "seed")
TRANSFORMS = ("words", "chars", "weighted", "drop_sink", "drop_key")
OF_TEXT = ("file", "special", "truncate", "target", *TRANSFORMS)

ProbeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--probe",
        help="Measure on random tokens that come twice. Without a text: the default.",
        rich_help_panel=PROBE,
    ),
]
ConventionOption: TypeAlias = Annotated[
    Convention,
    typer.Option(
        "--convention",
        help="Means over the rows of the second copy, or over whole diagonals, as "
        "TransformerLens takes them.",
        rich_help_panel=PROBE,
    ),
]
LengthOption: TypeAlias = Annotated[
    int,
    typer.Option("--length", metavar="N", min=2, help="Tokens repeated.", rich_help_panel=PROBE),
]
SamplesOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--samples", metavar="N", min=1, help="How often they are drawn.", rich_help_panel=PROBE
    ),
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Of the draw.", rich_help_panel=PROBE)
]
SortOption: TypeAlias = Annotated[
    Score | None,
    typer.Option(
        "--sort",
        help="Largest first. Default: by layer and head.",
        rich_help_panel=o.LOOK,
        show_default=False,
    ),
]
TopOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="K",
        min=1,
        help="Only the first K heads.",
        rich_help_panel=o.LOOK,
        show_default=False,
    ),
]
RoleOption: TypeAlias = Annotated[
    RoleName | None,
    typer.Option(
        "--role", help="Only heads of this role.", rich_help_panel=o.LOOK, show_default=False
    ),
]


def heads(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    probe: ProbeOption = False,
    convention: ConventionOption = "second",
    length: LengthOption = Probe.length,
    samples: SamplesOption = Probe.samples,
    seed: SeedOption = Probe.seed,
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
    target: o.TargetOption = None,
    kind: o.KindOption = None,
    layer: o.LayerOption = None,
    head: o.HeadOption = None,
    words: o.WordsOption = False,
    chars: o.CharsOption = False,
    weighted: o.WeightedOption = False,
    drop_sink: o.DropSinkOption = False,
    drop_key: o.DropKeyOption = None,
    sort: SortOption = None,
    top: TopOption = None,
    role: RoleOption = None,
    cmap: o.CmapOption = None,
    dpi: o.DpiOption = None,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.ReportFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Score every head, over a text or on the standard probe, and name the role that follows.

    Entropy, distance, and the weight on the token before, on the first one, on itself, on
    earlier copies (duplicate) and on what followed them (induction).
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = report_format(session, context, output, form)
    wanted = HeadOptions(layer, head)
    placement = o.placement_of(device, dtype, max_memory)
    source = Source(model, revision, offline, quiet, kind, False, engine, placement)
    options = TextOptions(bos, special, truncate, target, placement.max_memory)
    on_probe = probe or (text is None and file is None)
    _check(context, on_probe=on_probe)
    if on_probe:
        standard = Probe(length, samples, seed, whole=convention == "whole")
        report = score_probe(load_model(source), standard, options, wanted)
    else:
        show = o.transforms(words, chars, weighted, drop_sink, drop_key)
        report = _over_text(context, session, source, options, wanted, show)
    report = _narrowed(report, sort, top, role)
    if chosen.picture:
        from attnviz.renderers.picture import heads as headmap
        from attnviz.renderers.picture.canvas import PictureFormat, figure_bytes

        drawn = headmap.draw(report, dpi=dpi or 150, cmap=cmap or "viridis")
        name = cast("PictureFormat", chosen.name)
        deliver_bytes(session, figure_bytes(drawn, name, dpi), output)
    else:
        records = [_record(report, found) for found in report.heads]
        shown = headtable.render(report, session.consoles.out.width)
        deliver_records(session, records, shown, chosen.name, output)


def _check(context: typer.Context, *, on_probe: bool) -> None:
    """Only options that mean something here."""
    if on_probe and context.params["text"] is not None:
        raise UsageError("the probe is a text of its own", "leave --probe or the text out")
    for option in o.given(context, OF_TEXT) if on_probe else ():
        raise UsageError(f"{option} does nothing for the probe", "leave it out")
    for option in o.given(context, OF_PROBE) if not on_probe else ():
        raise UsageError(f"{option} is for the probe", "leave it out, or leave the text out")


def _over_text(
    context: typer.Context,
    session: Session,
    source: Source,
    options: TextOptions,
    wanted: HeadOptions,
    show: ShowOptions,
) -> HeadReport:
    given = read_text(context.params["text"], context.params["file"], session.stdin)
    if isinstance(given, SavedCapture):
        o.refuse_run_options(o.given(context, o.RUN))
        return score_capture(load_capture(given.path), wanted, show)
    if given.note:
        session.note(given.note)
    report = score_text(load_model(source), given.text, options, wanted, show)
    note_what_is_left_out(session, report.capture.left_out)
    return report


def _narrowed(
    report: HeadReport, sort: Score | None, top: int | None, role: RoleName | None
) -> HeadReport:
    """Sorted and filtered; the share of sinks stays that of all heads measured."""
    found: Sequence[HeadMetrics] = report.heads
    if role is not None:
        found = [each for each in found if each.role is not None and each.role.name == role]
        if not found:
            roles = dict.fromkeys(each.role.name for each in report.heads if each.role)
            raise UsageError(
                f"no head here has the role {role!r}", f"there are: {', '.join(roles) or 'none'}"
            )
    if sort is not None:
        found = sorted(found, key=lambda each: _descending(each.metrics[sort].mean))
    return replace(report, heads=found[:top])


def _descending(value: float) -> float:
    return 1.0 if isnan(value) else -value


def _record(report: HeadReport, found: HeadMetrics) -> dict[str, object]:
    return {
        "model": report.capture.model.name,
        "head": str(found.head),
        "role": found.role.name if found.role else None,
        "passed": f"{found.role.metric} ≥ {found.role.least:g}" if found.role else None,
        "card": list(found.named),
        **dict(_numbers(found)),
        "measured": heads_title(report),
    }


def _numbers(found: HeadMetrics) -> Iterator[tuple[str, float | None]]:
    for name in METRICS:
        score = found.metrics[name]
        yield name, None if isnan(score.mean) else score.mean
        yield f"{name}_error", None if score.error is None or isnan(score.error) else score.error
