"""A model's card: its named heads, and the figures measured on held-out texts."""

from dataclasses import dataclass

from attnviz.data.head import Head


@dataclass(frozen=True)
class NamedHead:
    """A head that is known for a behaviour, such as "adjectives".

    `title` says what it does: "nouns attend to their adjectives".
    """

    behaviour: str
    head: Head
    title: str


@dataclass(frozen=True)
class Figure:
    """One figure: its `value` on `n` held-out cases, and the `bar` that it had to reach.

    `texts` is what the cases are from; empty for texts like those of the training.
    """

    behaviour: str
    measure: str
    value: float
    bar: float | None
    n: int
    texts: str = ""


@dataclass(frozen=True)
class ModelCard:
    """The contents of a model folder's card.

    `loss_limit`: the loss, in nats per character, above which a text is not of the model's world;
    None where the card does not say. `retrieval`: the heads that look at the token that is copied.
    `stop`: texts that end an answer, where the user names none.
    """

    name: str
    description: str
    bos: bool
    heads: tuple[NamedHead, ...] = ()
    figures: tuple[Figure, ...] = ()
    loss_limit: float | None = None
    retrieval: tuple[Head, ...] = ()
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """A model's sizes; `where` says in words where it comes from."""

    name: str
    layers: int
    heads_per_layer: int
    parameters: int
    context: int
    where: str
