"""`attnviz compare`: one word in several texts, or one text in two models."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from attnviz.commands import options as o
from attnviz.commands.answers import note_what_is_left_out
from attnviz.commands.records import deliver_records
from attnviz.commands.reports import deliver_bytes, report_format
from attnviz.commands.session import Session, session_of
from attnviz.console import make_consoles
from attnviz.data.compare import (
    SHARES,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    SideBySide,
    TextComparison,
)
from attnviz.errors import UsageError
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.renderers.terminal import compare as comparison
from attnviz.renderers.titles import about_models, about_texts
from attnviz.runs.compare import compare_models, compare_texts, models_beside, texts_beside
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import load_model
from attnviz.writers.formats import Format

if TYPE_CHECKING:
    from attnviz.renderers.picture.canvas import PictureFormat

EPILOG = """
[bold]Examples[/]

attnviz compare "American shrew mole" "one mole of carbon dioxide" --query mole

attnviz compare "the cat sat on the mat" "the dog sat on the mat"

attnviz compare "the cat sat on the mat" --model gpt2 --against distilgpt2

attnviz compare "American shrew mole" "a biopsy of the mole" --query mole -f jsonl | jq -c .head

attnviz compare "the cat sat" "the dog sat" --head L2H3 -o beside.png
"""
TOP = 8

TextsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT...",
        help="Two texts or more; with --against one. - reads standard input.",
        show_default=False,
    ),
]
AgainstOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="NAME",
        help="Another model for the same text; as --model.",
        rich_help_panel=o.MODEL,
        show_default=False,
    ),
]
QueryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="TOKEN",
        help="The word to be compared; mole#2 is the second one of each text.",
        rich_help_panel=o.TOKENS,
        show_default=False,
    ),
]
TopOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="K",
        min=1,
        help="The K heads that differ most, or are most alike.",
        rich_help_panel=o.LOOK,
        show_default=f"{TOP}; all as rows",
    ),
]


def compare(
    context: typer.Context,
    texts: TextsArgument = None,
    query: QueryOption = None,
    truncate: o.TruncateOption = None,
    bos: o.BosOption = None,
    special: o.SpecialOption = False,
    model: o.ModelOption = "builtin",
    against: AgainstOption = None,
    revision: o.RevisionOption = None,
    offline: o.OfflineOption = False,
    engine: o.EngineOption = "auto",
    device: o.DeviceOption = "auto",
    dtype: o.DTypeOption = "auto",
    max_memory: o.MaxMemoryOption = None,
    kind: o.KindOption = None,
    layer: o.LayerOption = None,
    head: o.HeadOption = None,
    words: o.WordsOption = False,
    chars: o.CharsOption = False,
    weighted: o.WeightedOption = False,
    drop_sink: o.DropSinkOption = False,
    drop_key: o.DropKeyOption = None,
    top: TopOption = None,
    cmap: o.CmapOption = None,
    dpi: o.DpiOption = None,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.ReportFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Compare what a word attends to in several texts, or how two models attend to one text.

    Heads are sorted by how much they differ. With one --head the patterns stand beside each
    other, as they do in a picture.
    """
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = report_format(session, context, output, form)
    show = o.transforms(words, chars, weighted, drop_sink, drop_key)
    given = [_text(session, text) for text in texts or ()]
    placement = o.placement_of(device, dtype, max_memory)
    source = Source(model, revision, offline, quiet, kind, False, engine, placement)
    options = TextOptions(bos, special, truncate, None, placement.max_memory)
    wanted = HeadOptions(layer, head)
    if against is None:
        found = compare_texts(load_model(source), given, query, options, wanted, show)
        for n, captured in enumerate(found.captures, start=1):
            note_what_is_left_out(session, captured.left_out, f"text {n}: ")
        _deliver_texts(session, found, chosen, output, top, dpi, cmap)
        return
    if len(given) != 1 or query is not None:
        raise UsageError("--against compares two models over one text, row by row", _ONE_TEXT)
    other = Source(against, None, offline, quiet, kind, False, engine, placement)
    both = compare_models(load_model(source), load_model(other), given[0], options, wanted, show)
    _deliver_models(session, both, chosen, output, top, dpi, cmap)


_ONE_TEXT = "give one text, and no --query"


def _text(session: Session, argument: str) -> str:
    given = read_text(argument, None, session.stdin)
    if isinstance(given, SavedCapture):
        raise UsageError("saved captures are not compared", "give the texts again")
    return given.text


def _deliver_texts(
    session: Session,
    found: TextComparison,
    form: Format,
    output: Path | None,
    top: int | None,
    dpi: int | None,
    cmap: str | None,
) -> None:
    if form.picture:
        head, about = found.heads[0].head, about_texts(found)
        title = f"{head} in {len(found.captures)} texts: difference {found.heads[0].difference:.2f}"
        if found.queries is not None:
            word = found.captures[0].query_tokens[found.queries[0]].label
            title += f" of the rows of “{word}”"
        title += "" if len(found.heads) == 1 else ", the head that differs most"
        drawn = _drawn(texts_beside(found, head), title, about, form, dpi, cmap)
        deliver_bytes(session, drawn, output)
        return
    display = session.consoles.display
    shown = list(comparison.render_texts(found, found.heads[: top or TOP], display))
    if len(found.heads) == 1:
        shown += comparison.render_beside(texts_beside(found, found.heads[0].head), display)
    heads = found.heads[: top or None]
    records = [record for each in heads for record in _of_texts(found, each)]
    deliver_records(session, records, shown, form.name, output)


def _deliver_models(
    session: Session,
    found: ModelComparison,
    form: Format,
    output: Path | None,
    top: int | None,
    dpi: int | None,
    cmap: str | None,
) -> None:
    best = found.matches[0]
    if form.picture:
        title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
        about = about_models(found)
        drawn = _drawn(models_beside(found, best), title, about, form, dpi, cmap)
        deliver_bytes(session, drawn, output)
        return
    display = session.consoles.display
    shown = list(comparison.render_models(found, found.matches[: top or TOP], display))
    if len(found.matches) == 1:
        shown += comparison.render_beside(models_beside(found, best), display)
    records = _of_models(found, found.matches[: top or None])
    deliver_records(session, records, shown, form.name, output)


def _drawn(
    found: SideBySide,
    title: str,
    about: Sequence[str],
    form: Format,
    dpi: int | None,
    cmap: str | None,
) -> bytes:
    from attnviz.renderers.picture.beside import draw
    from attnviz.renderers.picture.canvas import figure_bytes

    figure = draw(found, title, about, dpi=dpi or 150, cmap=cmap or "viridis")
    return figure_bytes(figure, cast("PictureFormat", form.name), dpi)


def _of_texts(found: TextComparison, each: HeadDifference) -> list[dict[str, object]]:
    """A row for each text; without a word one for the head."""
    common: dict[str, object] = {
        "model": found.captures[0].model.name,
        "head": str(each.head),
        "difference": each.difference,
        "by": found.by,
    }
    if found.queries is None:
        done = dict.fromkeys(name for c in found.captures for name in c.transforms)
        return [{**common, "transforms": list(done)}]
    at = each.head.layer
    before, after = found.cosines[at : at + 2] if found.cosines else (None, None)
    rows = []
    for n, (captured, query, sight) in enumerate(
        zip(found.captures, found.queries, each.sights, strict=True), start=1
    ):
        key, weight = sight.links[0]
        rows.append(
            {
                **common,
                "transforms": list(captured.transforms),
                "cosine_before_layer": before,
                "cosine_after_layer": after,
                "text": n,
                "source": captured.text,
                "query": query,
                "query_token": captured.query_tokens[query].label,
                **dict(zip(SHARES, sight.shares, strict=True)),
                "key": key,
                "key_token": captured.key_tokens[key].label,
                "weight": weight,
            }
        )
    return rows


def _of_models(found: ModelComparison, matches: Sequence[HeadMatch]) -> list[dict[str, object]]:
    ours, theirs = (captured.model.name for captured in found.captures)
    return [
        {
            "model": ours,
            "head": str(match.head),
            "against": theirs,
            "other": str(match.other),
            "similarity": match.similarity,
            "over": "words" if found.words else "tokens",
            "transforms": list(found.captures[0].transforms),
            "against_transforms": list(found.captures[1].transforms),
        }
        for match in matches
    ]
