"""`attnviz predict`: what the model says comes next, and what it looked at for it."""

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import typer

from attnviz.commands import options as o
from attnviz.commands.answers import note_what_is_left_out
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.predict import NextTokens, Prediction
from attnviz.errors import UsageError
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.renderers.terminal import predict as page
from attnviz.runs.options import TextOptions
from attnviz.runs.predict import Reading, predict_text
from attnviz.runs.prepare import load_model

EPILOG = """
[bold]Examples[/]

attnviz predict "a fluffy blue creature roamed the verdant forest . the creature was"

attnviz predict "Bark is very cute and he is a" --lens

attnviz predict "Harry Potter went to" --model gpt2 --top 3 -f jsonl | jq -r .token
"""

TopOption: TypeAlias = Annotated[
    int,
    typer.Option("--top", metavar="K", min=1, help="So many candidates.", rich_help_panel=o.LOOK),
]
EachOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--each",
        help="After every position: the token that followed, its probability and rank.",
        rich_help_panel=o.LOOK,
    ),
]
LensOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--lens",
        help="What the model would say if it stopped after each layer (the logit lens).",
        rich_help_panel=o.LOOK,
    ),
]


def predict(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    each: EachOption = False,
    lens: LensOption = False,
    top: TopOption = Reading.top,
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
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.RecordFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Show the tokens that may come next, with their probabilities.

    Below them stands what the last position looks at in each layer: the links by which the
    model gathered its evidence.
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = record_format(session, output, form)
    given = read_text(text, file, session.stdin)
    if isinstance(given, SavedCapture):
        raise UsageError("a saved capture holds no predictions", "give the text again")
    if given.note:
        session.note(given.note)
    placement = o.placement_of(device, dtype, max_memory)
    source = Source(model, revision, offline, quiet, None, False, engine, placement)
    options = TextOptions(bos, special, truncate, None, placement.max_memory)
    found = predict_text(load_model(source), given.text, options, Reading(top, each, lens))
    note_what_is_left_out(session, found.capture.left_out)
    shown = page.render(found, session.consoles.display)
    deliver_records(session, list(_records(found)), shown, chosen, output)


def _records(found: Prediction) -> Iterator[dict[str, object]]:
    """A row for each candidate: of every position, of every layer, of the whole model."""
    for outlook in (*found.each, *found.lens[:-1], found.last):
        yield from _candidates(found, outlook)


def _candidates(found: Prediction, outlook: NextTokens) -> Iterator[dict[str, object]]:
    true = outlook.followed
    for rank, candidate in enumerate(outlook.candidates, start=1):
        yield {
            "position": outlook.position,
            "after": found.capture.query_tokens[outlook.position].label,
            "layer": outlook.layer,
            "rank": rank,
            "id": candidate.id,
            "token": candidate.label,
            "probability": candidate.probability,
            "followed": true.label if true else None,
            "followed_probability": true.probability if true else None,
            "followed_rank": outlook.rank,
        }
