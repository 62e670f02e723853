"""`attnviz models`: which models there are, and what a model's card says."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.card import Figure, ModelCard
from attnviz.models.catalog import describe, known_models
from attnviz.models.known import ModelFacts

EPILOG = """
[bold]Examples[/]

attnviz models

attnviz models builtin

attnviz models builtin -f json | jq '.[].named_heads'
"""

NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="builtin, a hub id, or a model's folder.", show_default=False
    ),
]


def models(
    context: typer.Context,
    name: NameArgument = None,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.RecordFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """List the models that there are, or show one model's card: named heads and figures."""
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = record_format(session, output, form)
    if name is None:
        known = known_models()
        deliver_records(session, [_facts(m) for m in known], _listed(known), chosen, output)
    else:
        facts, card = describe(name)
        records = [{**_facts(facts), **_card(card)}]
        deliver_records(session, records, _card_shown(facts, card), chosen, output)


def _facts(model: ModelFacts) -> dict[str, object]:
    return {
        "name": model.name,
        "layers": model.layers,
        "heads": model.layers * model.heads_per_layer,
        "heads_per_layer": model.heads_per_layer,
        "parameters": model.parameters,
        "context": model.context,
        "where": model.where,
    }


def _card(card: ModelCard) -> dict[str, object]:
    return {
        "description": card.description,
        "bos": card.bos,
        "named_heads": [
            {"behaviour": named.behaviour, "head": str(named.head), "title": named.title}
            for named in card.heads
        ],
        "figures": [
            {
                "behaviour": figure.behaviour,
                "measure": figure.measure,
                "value": figure.value,
                "bar": figure.bar,
                "n": figure.n,
            }
            for figure in card.figures
        ],
    }


def _listed(known: Sequence[ModelFacts]) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    for column in ("layers", "heads", "parameters", "context"):
        table.add_column(column, justify="right")
    table.add_column("where")
    for model in known:
        heads = f"{model.layers} × {model.heads_per_layer}"
        numbers = (heads, f"{model.parameters:,}", f"{model.context:,}")
        table.add_row(model.name, str(model.layers), *numbers, model.where)
    yield table
    yield Text()
    yield Text("Other models of the hub work by their id, a model's folder by its path.", "dim")


def _card_shown(facts: ModelFacts, card: ModelCard) -> Iterator[RenderableType]:
    heads = f"{facts.layers} layers × {facts.heads_per_layer} heads"
    size = f"{facts.parameters:,} parameters, a context of {facts.context:,} tokens"
    yield Text(f"{facts.name}: {heads}, {size}", style="bold")
    if card.description:
        yield Text(card.description)
    if card.heads:
        yield Text()
        named = Table(box=None, pad_edge=False, header_style="bold")
        named.add_column("head", no_wrap=True)
        named.add_column("behaviour", no_wrap=True)
        named.add_column("what it does")
        for head in card.heads:
            named.add_row(str(head.head), head.behaviour, head.title)
        yield named
    if card.figures:
        yield Text()
        yield _figures(card.figures)
    if not card.heads and not card.figures:
        yield Text("It has no card: no head of it is named.", style="dim")


def _figures(figures: Sequence[Figure]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("behaviour", no_wrap=True)
    table.add_column("measured on held-out texts")
    for column in ("value", "bar", "cases"):
        table.add_column(column, justify="right", no_wrap=True)
    for figure in figures:
        bar = "" if figure.bar is None else f"{figure.bar:.2f}"
        table.add_row(figure.behaviour, figure.measure, f"{figure.value:.3f}", bar, f"{figure.n:,}")
    return table
