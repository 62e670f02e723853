"""`attnviz show`: a text goes in, its attention comes out."""

import typer

from attnviz.commands import options as o
from attnviz.commands.answers import Request, answer_lines, answer_text
from attnviz.commands.checks import check_combination
from attnviz.commands.deliver import Look, check_output, deliver
from attnviz.commands.needs import needs_of
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.models.catalog import Source
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.transforms.apply import ShowOptions
from attnviz.writers.formats import choose_format

EPILOG = """
[bold]Examples[/]

attnviz show "a fluffy blue creature roamed the verdant forest"

attnviz show "Bark is very cute and he is a dog" --view text --query he

attnviz show --model translator "a fluffy blue creature"

attnviz show --file sample_texts/mystery.txt --head all -o heads.png

echo "a fluffy blue creature" | attnviz show - -f jsonl | jq -c 'select(.weight > 0.3)'
"""


def show(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    lines: o.LinesOption = False,
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
    verify: o.VerifyOption = False,
    target: o.TargetOption = None,
    kind: o.KindOption = None,
    causal: o.CausalOption = False,
    layer: o.LayerOption = None,
    head: o.HeadOption = None,
    reduce: o.ReduceOption = None,
    over: o.OverOption = None,
    rollout: o.RolloutOption = False,
    weighted: o.WeightedOption = False,
    scores: o.ScoresOption = False,
    chars: o.CharsOption = False,
    words: o.WordsOption = False,
    drop_sink: o.DropSinkOption = False,
    drop_key: o.DropKeyOption = None,
    query: o.QueryOption = None,
    key: o.KeyOption = None,
    top: o.TopOption = None,
    least: o.MinOption = 0.0,
    no_self: o.NoSelfOption = False,
    no_previous: o.NoPreviousOption = False,
    view: o.ViewOption = None,
    orient: o.OrientOption = None,
    cmap: o.CmapOption = None,
    color_scale: o.ColorScaleOption = None,
    dpi: o.DpiOption = None,
    title: o.TitleOption = None,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.FormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Show which tokens attend to which.

    Without a choice of heads it shows the one that tells most about this text; the
    first line says which one that is, and why.
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = choose_format(output, form, session.environment.stdout.isatty())
    check_combination(context.params, chosen)
    check_output(output, chosen)
    everything = (
        view in ("grid", "links") or rollout or reduce is not None or chosen.name in ("npz", "html")
    )
    placement = o.placement_of(device, dtype, max_memory)
    look = Look(view, orient, cmap, color_scale, dpi, title)
    wanted = ShowOptions(
        scores=scores,
        weighted=weighted and chosen.name != "npz",
        merge="words" if words else "chars" if chars else None,
        rollout=rollout,
        rollout_layers=layer if rollout else None,
        drop_sink=drop_sink,
        drop_keys=tuple(drop_key or ()),
        queries=tuple(query or ()),
        keys=tuple(key or ()),
        top=top,
        least=least,
        skip=(*((0,) if no_self else ()), *((1,) if no_previous else ())),
        reduce=reduce,
        over=over or "all",
        one_query=view == "text",
    )
    request = Request(
        model=Source(model, revision, offline, quiet, kind, causal, engine, placement),
        text=TextOptions(bos, special, truncate, target, placement.max_memory),
        heads=HeadOptions(None if rollout else layer, head, everything),
        show=wanted,
        needs=needs_of(chosen, look, wanted, session.consoles.display, norms=weighted),
        verify=verify,
        run_options=o.given(context, o.RUN),
    )
    answer = answer_lines if lines else answer_text
    deliver(session, answer(session, request, text, file), chosen, look, output)
