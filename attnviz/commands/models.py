"""`attnviz models`: which models there are, and what a model's card says."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from attnviz.draw.titles import amount
from attnviz.errors import ModelError
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.option import command
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.models.catalog import Source, describe, identity_of, known_models, parameters_of
from attnviz.models.placement import BUILTIN, COUNTED, EMBEDDINGS, KNOWN_MODELS
from attnviz.records.heads import ModelCard, ModelFacts
from attnviz.renderers.rows.models import CardRow, ModelRow, card_row, model_row
from attnviz.renderers.terminal import models as table

EPILOG = """
Examples

attnviz models

attnviz models builtin

attnviz models builtin -f json | jq '.rows[].named_heads'
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
    result: Result[Any] = _every_model() if name is None else _one_model(name)
    if to.format.name == "json":
        shown = known_models() if name is None else [result.record[0]]
        made = [identity_of(Source(each.name), each.parameters) for each in shown]
        result = replace(result, models=made)
    deliver_result(session, to, result)


def _every_model() -> Result[Sequence[ModelFacts]]:
    known = known_models()
    return Result(
        "models",
        known,
        amount(len(known), "model"),
        (ModelRow,),
        lambda: [model_row(model) for model in known],
        lambda display: table.listed(known, display.width),
    )


def _one_model(name: str) -> Result[tuple[ModelFacts, ModelCard]]:
    facts, card = _described(name)
    return Result(
        "models",
        (facts, card),
        name,
        (CardRow,),
        lambda: [card_row(facts, card)],
        lambda display: table.render_card(facts, card, display.width),
    )


def _described(name: str) -> tuple[ModelFacts, ModelCard]:
    """As the catalog has it; embeddings with a card of their own, as they run no layer."""
    if name == EMBEDDINGS:
        facts, _ = describe(BUILTIN)
        counted = parameters_of(Source(BUILTIN))
        size = next(m.total for m in counted.matrices if m.source.endswith("wte.weight"))
        alone = replace(facts, name=name, layers=1, heads_per_layer=1, parameters=size)
        return alone, ModelCard(name, ABOUT_EMBEDDINGS, bos=False)
    if name in COUNTED and name not in KNOWN_MODELS:
        raise ModelError(
            f"{name!r} cannot be run, because its weights are not public",
            f"attnviz params {name} counts its parameters; it knows {', '.join(COUNTED)}",
        )
    return describe(name)
