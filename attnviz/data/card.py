"""A model's card: its named heads, and the figures measured on held-out texts."""

from dataclasses import dataclass

from attnviz.data.head import Head


@dataclass(frozen=True)
class NamedHead:
    """A head that is known for a behaviour, such as "adjectives": "nouns look at their adjectives".

    `fit` holds the numbers of the rule that picks a default head, for this behaviour
    (see `analyses/named_head.py`); empty means that it is never picked.
    """

    behaviour: str
    head: Head
    title: str
    fit: tuple[float, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One measured figure: `value` on held-out texts, the `bar` it had to reach, over `n` cases."""

    behaviour: str
    measure: str
    value: float
    bar: float | None
    n: int


@dataclass(frozen=True)
class ModelCard:
    """What a model folder says about itself."""

    name: str
    description: str
    bos: bool
    heads: tuple[NamedHead, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """A model's sizes; `where` says in words where it comes from."""

    name: str
    layers: int
    heads_per_layer: int
    parameters: int
    context: int
    where: str
