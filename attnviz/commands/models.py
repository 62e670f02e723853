"""`attnviz models`: which models there are, and what a model's card says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.card import Figure, ModelCard
from attnviz.errors import ModelError
from attnviz.models.catalog import Source, describe, known_models, parameters_of
from attnviz.models.known import BUILTIN, COUNTED, EMBEDDINGS, NAMES, ModelFacts
from attnviz.renderers.terminal.listing import Column, listing
from attnviz.renderers.terminal.prose import folded

EPILOG = """
[bold]Examples[/]

attnviz models

attnviz models builtin

attnviz models builtin -f json | jq '.[].named_heads'
"""

ABOUT_EMBEDDINGS = (
    "The token embeddings of builtin, compared with each other: attention without W_Q, W_K and "
    "W_V, as lessons begin it. One head, L0H0; nothing in it was trained to be compared."
)

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
    cells = session.consoles.out.width
    if name is None:
        known = known_models()
        deliver_records(session, [_facts(m) for m in known], _listed(known, cells), chosen, output)
    else:
        facts, card = _described(name)
        records = [{**_facts(facts), **_card(card)}]
        deliver_records(session, records, _card_shown(facts, card, cells), chosen, output)


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


def _listed(known: Sequence[ModelFacts], width: int) -> Iterator[RenderableType]:
    numbers = [Column(name, right=True) for name in ("layers", "heads", "parameters", "context")]
    rows = [
        (
            model.name,
            str(model.layers),
            f"{model.layers} × {model.heads_per_layer}",
            f"{model.parameters:,}",
            f"{model.context:,}",
            model.where,
        )
        for model in known
    ]
    yield from listing((Column("model"), *numbers, Column("where")), rows, width)
    yield Text()
    others = "Other models of the hub work by their id, a model's folder by its path."
    yield from folded(Text(others, "dim"), width)


def _described(name: str) -> tuple[ModelFacts, ModelCard]:
    """As the catalog has it; embeddings with a card of their own, as they run no layer."""
    if name == EMBEDDINGS:
        facts, _ = describe(BUILTIN)
        counted = parameters_of(Source(BUILTIN))
        size = next(m.total for m in counted.matrices if m.source.endswith("wte.weight"))
        alone = replace(facts, name=name, layers=1, heads_per_layer=1, parameters=size)
        return alone, ModelCard(name, ABOUT_EMBEDDINGS, bos=False)
    if name in COUNTED and name not in NAMES:
        raise ModelError(
            f"{name!r} is no known model to run, as its weights are not public",
            f"attnviz params {name} counts its parameters, as of {', '.join(COUNTED)}",
        )
    return describe(name)


def amount(number: int, what: str) -> str:
    """`1 layer`, `2 layers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _card_shown(facts: ModelFacts, card: ModelCard, width: int) -> Iterator[RenderableType]:
    heads = f"{amount(facts.layers, 'layer')} × {amount(facts.heads_per_layer, 'head')}"
    size = f"{facts.parameters:,} parameters, a context of {facts.context:,} tokens"
    yield from folded(Text(f"{facts.name}: {heads}, {size}", style="bold"), width)
    if card.description:
        yield from folded(Text(card.description), width)
    if card.heads:
        yield Text()
        columns = (Column("head"), Column("behaviour"), Column("what it does", wraps=True))
        rows = [(str(head.head), head.behaviour, head.title) for head in card.heads]
        yield from listing(columns, rows, width)
    if card.figures:
        yield Text()
        yield from _figures(card.figures, width)
    if not card.heads and not card.figures and not card.description:
        yield from folded(Text("It has no card: no head of it is named.", style="dim"), width)


def _figures(figures: Sequence[Figure], width: int) -> Iterator[Text]:
    """The figures, with their bars where one of them has one."""
    with_bars = any(figure.bar is not None for figure in figures)
    columns = [
        Column("behaviour"),
        Column("measured on held-out texts", wraps=True),
        Column("value", right=True),
        *([Column("bar", right=True)] if with_bars else []),
        Column("cases", right=True),
    ]
    rows = []
    for figure in figures:
        bar = "" if figure.bar is None else f"{figure.bar:.2f}"
        numbers = (f"{figure.value:.3f}", *([bar] if with_bars else []), f"{figure.n:,}")
        rows.append((figure.behaviour, figure.measure, *numbers))
    yield from listing(columns, rows, width)
