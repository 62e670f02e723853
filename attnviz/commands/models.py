"""`attnviz models`: which models there are, and what a model's card says."""

from dataclasses import replace
from typing import Annotated

import typer

from attnviz.commands import completion
from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver_report, destination_of
from attnviz.commands.grouping import command
from attnviz.commands.session import Session
from attnviz.data.card import ModelCard, ModelFacts
from attnviz.errors import ModelError
from attnviz.models.catalog import Source, describe, known_models, parameters_of
from attnviz.models.known import BUILTIN, COUNTED, EMBEDDINGS, NAMES
from attnviz.renderers.terminal import models as table

EPILOG = """
[bold]Examples[/]

attnviz models

attnviz models builtin

attnviz models builtin -f json | jq '.[].named_heads'
"""
COMMON = "format output quiet".split()
"""The options that the short help lists."""

ABOUT_EMBEDDINGS = (
    "The token embeddings of builtin, compared with each other: attention without W_Q, W_K and "
    "W_V, the first step of many lessons. One head, L0H0. The embeddings were not trained to be "
    "compared."
)


@command
def models(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="builtin, a hub id, or a model's folder.",
            show_default=False,
            autocompletion=completion.models,
        ),
    ] = None,
    screen: g.Screen,
    output: g.RecordOutput,
    noise: g.Noise,
) -> None:
    """List the available models, or show one model's card: named heads and figures."""
    to = destination_of(session, output)
    width = to.display(session).width
    if name is None:
        known = known_models()
        deliver_report(
            session,
            to,
            lambda: [_facts(model) for model in known],
            lambda: table.listed(known, width),
        )
        return
    facts, card = _described(name)
    deliver_report(
        session,
        to,
        lambda: [{**_facts(facts), **_card(card)}],
        lambda: table.card(facts, card, width),
    )


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
                "texts": figure.texts or "held-out texts",
            }
            for figure in card.figures
        ],
    }


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
            f"{name!r} cannot be run, because its weights are not public",
            f"attnviz params {name} counts its parameters; it knows {', '.join(COUNTED)}",
        )
    return describe(name)
