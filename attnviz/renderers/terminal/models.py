"""Models as a table, and one model's card."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.records.heads import Figure, ModelCard, ModelFacts


def listed(known: Sequence[ModelFacts], width: int) -> Iterator[RenderableType]:
    """The models that there are, a row each."""
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
    others = "To use another model, give its id on the hub or the path of its folder."
    yield from folded(Text(others, "dim"), width)


def render_card(facts: ModelFacts, card: ModelCard, width: int) -> Iterator[RenderableType]:
    """One model's sizes, its named heads, and its figures."""
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
    for texts in dict.fromkeys(figure.texts for figure in card.figures):
        yield Text()
        yield from _figures([f for f in card.figures if f.texts == texts], width)
    if not card.heads and not card.figures and not card.description:
        yield from folded(
            Text("It has no card, so none of its heads is named.", style="dim"), width
        )


def _figures(figures: Sequence[Figure], width: int) -> Iterator[Text]:
    """The figures on texts of one kind, with their bars where one of them has one."""
    with_bars = any(figure.bar is not None for figure in figures)
    columns = [
        Column("behaviour"),
        Column(f"measured on {figures[0].texts or 'held-out texts'}", wraps=True),
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
