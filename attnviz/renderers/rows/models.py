"""Models as rows: their sizes, and what their cards say."""

from typing import Annotated, TypedDict

from attnviz.records.heads import ModelCard, ModelFacts
from attnviz.records.rows import HeadNumber, LayerNumber


class ModelRow(TypedDict):
    """A model's sizes."""

    name: str
    layers: int
    heads: Annotated[int, "How many heads all layers have together."]
    heads_per_layer: int
    parameters: int
    context: Annotated[int, "The most tokens that it takes."]
    where: Annotated[str, "Where it comes from, for a person."]


def model_row(facts: ModelFacts) -> ModelRow:
    """The sizes of a model."""
    return {
        "name": facts.name,
        "layers": facts.layers,
        "heads": facts.layers * facts.heads_per_layer,
        "heads_per_layer": facts.heads_per_layer,
        "parameters": facts.parameters,
        "context": facts.context,
        "where": facts.where,
    }


class NamedHeadRow(TypedDict):
    """A head that is known for a behaviour."""

    behaviour: str
    layer: LayerNumber
    head: HeadNumber
    title: Annotated[str, "What it is known for, for a person."]


class FigureRow(TypedDict):
    """A figure that was measured on texts that the model was not trained on."""

    behaviour: str
    measure: str
    value: float
    bar: Annotated[float | None, "What it had to reach."]
    n: Annotated[int, "How many cases it is over."]
    texts: Annotated[str, "What the cases are from."]


class CardRow(ModelRow):
    """A model's sizes and its card."""

    description: str
    bos: Annotated[bool, "Whether a beginning token stands before a text by default."]
    named_heads: list[NamedHeadRow]
    figures: list[FigureRow]


def card_row(facts: ModelFacts, card: ModelCard) -> CardRow:
    """The sizes of a model, and its card."""
    return {
        **model_row(facts),
        "description": card.description,
        "bos": card.bos,
        "named_heads": [
            {
                "behaviour": named.behaviour,
                "layer": named.head.layer,
                "head": named.head.head,
                "title": named.title,
            }
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
