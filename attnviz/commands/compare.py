"""`attnviz compare`: one word in several texts, or one text in two models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnviz.commands import completion
from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_strange, note_texts, text_alone
from attnviz.data.capture import Capture
from attnviz.data.compare import (
    SHARES,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    SideBySide,
    TextComparison,
)
from attnviz.data.transforms import transform_to_dict
from attnviz.errors import UsageError, option
from attnviz.renderers.terminal import compare as table
from attnviz.renderers.titles import about_models, about_texts, texts_title
from attnviz.runs.compare import compare_models, compare_texts, models_beside, texts_beside
from attnviz.runs.prepare import load_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPILOG = """
[bold]Examples[/]

attnviz compare "American shrew mole" "one mole of carbon dioxide" --query mole

attnviz compare "the cat sat on the mat" "the dog sat on the mat"

attnviz compare "the cat sat on the mat" --model gpt2 --against distilgpt2

attnviz compare "American shrew mole" "a biopsy of the mole" --query mole -f jsonl | jq -c .head

attnviz compare "the cat sat" "the dog sat" --head L3H2 -o beside.png
"""
COMMON = "query against model heads top words drop_sink format output quiet".split()
"""The options that the short help lists."""
TOP = 8


@dataclass(frozen=True)
class WhatCompared:
    """What is compared."""

    query: str | None = option_field(
        g.TOKENS,
        None,
        "--query",
        metavar="TOKEN",
        help="The word to compare; mole#2 is its second occurrence in each text.",
    )
    against: str | None = option_field(
        g.MODEL,
        None,
        "--against",
        metavar="NAME",
        help="Another model to run on the same text, given as for --model.",
        autocompletion=completion.models,
    )
    top: int | None = option_field(
        g.LOOK,
        None,
        "--top",
        metavar="K",
        min=1,
        help="Show the K heads that differ most, or are most alike.",
        show_default=f"{TOP}; all as rows",
    )


@command
def compare(
    session: Session,
    *,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT...",
            help="Two or more texts; one with --against. - reads standard input.",
            show_default=False,
        ),
    ] = None,
    compared: WhatCompared,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.Kind,
    heads: g.WhichHeads,
    transforms: g.HeadTransforms,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Compare what a word attends to in several texts, or two models on one text.

    Heads are sorted by how much they differ. With one --head, or in a picture, the patterns
    are shown side by side.
    """
    to = destination_of(session, output)
    refusal = "saved captures are not compared"
    hint = "give the texts again"
    given = [
        text_alone(session, g.TextIn(text), refusal, hint, alone=False) for text in texts or ()
    ]
    source = g.source_of(session, model, run, kind)
    how = tokens.options(run), heads.options, transforms.transforms()
    if compared.against is None:
        by_text = compare_texts(load_model(source), given, compared.query, *how)
        note_texts(session, by_text.captures)
        _deliver_texts(session, to, by_text, compared.top, canvas)
        return
    if len(given) != 1 or compared.query is not None:
        raise UsageError(
            f"{option('against')} compares two models over one text, row by row",
            f"give one text, and no {option('query')}",
        )
    other = replace(source, name=compared.against, revision=None)
    by_model = compare_models(load_model(source), load_model(other), given[0], *how)
    note_strange(session, [any(captured.strange for captured in by_model.captures)], "text")
    _deliver_models(session, to, by_model, compared.top, canvas)


def _deliver_texts(
    session: Session,
    to: Destination,
    comparison: TextComparison,
    top: int | None,
    canvas: g.Canvas,
) -> None:
    display, head = to.display(session), comparison.heads[0].head
    alone = texts_beside(comparison, head) if len(comparison.heads) == 1 else None
    deliver_report(
        session,
        to,
        lambda: [r for each in comparison.heads[:top] for r in _of_texts(comparison, each)],
        lambda: table.render_texts(comparison, comparison.heads[: top or TOP], alone, display),
        lambda: _drawn(
            texts_beside(comparison, head), texts_title(comparison), about_texts(comparison), canvas
        ),
    )


def _deliver_models(
    session: Session,
    to: Destination,
    comparison: ModelComparison,
    top: int | None,
    canvas: g.Canvas,
) -> None:
    display, best = to.display(session), comparison.matches[0]
    alone = models_beside(comparison, best) if len(comparison.matches) == 1 else None
    title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
    deliver_report(
        session,
        to,
        lambda: _of_models(comparison, comparison.matches[:top]),
        lambda: table.render_models(comparison, comparison.matches[: top or TOP], alone, display),
        lambda: _drawn(models_beside(comparison, best), title, about_models(comparison), canvas),
    )


def _drawn(sides: SideBySide, title: str, about: Sequence[str], canvas: g.Canvas) -> "Figure":
    from attnviz.renderers.picture.beside import draw

    return draw(sides, title, about, **canvas.given)


def _transforms(*captures: Capture) -> list[dict[str, Any]]:
    """The transforms of the captures, each once."""
    every = dict.fromkeys(each for captured in captures for each in captured.transforms)
    return [transform_to_dict(each) for each in every]


def _of_texts(comparison: TextComparison, each: HeadDifference) -> list[dict[str, object]]:
    """A row for each text; without a word one for the head."""
    common: dict[str, object] = {
        "model": comparison.captures[0].model.name,
        "head": str(each.head),
        "difference": each.difference,
        "by": comparison.by,
    }
    if comparison.queries is None:
        done = _transforms(*comparison.captures)
        return [{**common, "transforms": done}]
    at = each.head.layer
    before, after = comparison.cosines[at : at + 2] if comparison.cosines else (None, None)
    rows = []
    for n, (captured, query, sight) in enumerate(
        zip(comparison.captures, comparison.queries, each.sights, strict=True), start=1
    ):
        key, weight = sight.links[0]
        rows.append(
            {
                **common,
                "transforms": _transforms(captured),
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
                "query_exact": captured.query_tokens[query].exact,
                "key_exact": captured.key_tokens[key].exact,
            }
        )
    return rows


def _of_models(
    comparison: ModelComparison, matches: Sequence[HeadMatch]
) -> list[dict[str, object]]:
    ours, theirs = (captured.model.name for captured in comparison.captures)
    return [
        {
            "model": ours,
            "head": str(match.head),
            "against": theirs,
            "other": str(match.other),
            "similarity": match.similarity,
            "over": "words" if comparison.words else "tokens",
            "transforms": _transforms(comparison.captures[0]),
            "against_transforms": _transforms(comparison.captures[1]),
        }
        for match in matches
    ]
