"""Comparisons as rows: heads by how differently they attend, or by the head most like them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from attnviz.commands.compare.record import (
    Basis,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    Pairing,
    Sight,
    TextComparison,
)
from attnviz.commands.compare.run import models_beside, texts_beside
from attnviz.commands.compare.titles import about_models, about_texts, texts_title
from attnviz.console import Display
from attnviz.draw.titles import amount
from attnviz.kit.result import Result
from attnviz.records.capture import Capture
from attnviz.records.rows import (
    SCHEMA,
    HeadNumber,
    LayerNumber,
    ModelName,
    head_name,
    measured,
    model_to_dict,
)
from attnviz.records.transforms import transform_to_dict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


Transforms = Annotated[list[dict[str, Any]], "The transforms of the patterns, each with a kind."]
Difference = Annotated[float, "From 0 (the head attends alike) to 1 (disjoint)."]
Compared = Annotated[Basis, "Whole rows, or the shares of self, first, previous and other tokens."]


class DifferenceRow(TypedDict):
    """How differently a head attends in several texts."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    difference: Difference
    by: Compared
    transforms: Transforms


class SightRow(TypedDict):
    """What a head's one query attends to in one of the texts."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    difference: Difference
    by: Compared
    transforms: Transforms
    cosine_before_layer: Annotated[
        float | None, "Mean cosine of the word's vectors, before the head's layer."
    ]
    cosine_after_layer: Annotated[float | None, "The same, after it."]
    text: Annotated[int, "The number of the text, from 1."]
    source: Annotated[str, "The text."]
    query: Annotated[int, "The position of the word in it."]
    query_token: str
    self: Annotated[float, "The weight on the word itself."]
    first: Annotated[float, "The weight on the first token."]
    previous: Annotated[float, "The weight on the token before."]
    others: Annotated[float, "The weight on all others."]
    key: Annotated[int, "The position of the strongest key."]
    key_token: str
    weight: Annotated[float, "The weight on it."]
    query_exact: str
    key_exact: str


def difference_rows(
    comparison: TextComparison, top: int | None = None
) -> list[DifferenceRow] | list[SightRow]:
    """A row for each head; where a word is compared, one for each text."""
    heads = comparison.heads[:top]
    if comparison.queries is not None:
        return [row for each in heads for row in _sights(comparison, each, comparison.queries)]
    return [_difference(comparison, each) for each in heads]


def _difference(comparison: TextComparison, each: HeadDifference) -> DifferenceRow:
    return {
        "model": comparison.captures[0].model.name,
        "layer": each.head.layer,
        "head": each.head.head,
        "difference": each.difference,
        "by": comparison.by,
        "transforms": _transforms(*comparison.captures),
    }


def _sights(
    comparison: TextComparison, each: HeadDifference, queries: Sequence[int]
) -> list[SightRow]:
    texts = zip(comparison.captures, queries, each.sights, strict=True)
    return [
        _sight(comparison, each, number, captured, query, sight)
        for number, (captured, query, sight) in enumerate(texts, start=1)
    ]


def _sight(
    comparison: TextComparison,
    each: HeadDifference,
    number: int,
    captured: Capture,
    query: int,
    sight: Sight,
) -> SightRow:
    at = each.head.layer
    before, after = comparison.cosines[at : at + 2] if comparison.cosines else (None, None)
    itself, first, previous, others = sight.shares  # in the order of SHARES
    key, weight = sight.links[0]
    return {
        "model": captured.model.name,
        "layer": each.head.layer,
        "head": each.head.head,
        "difference": each.difference,
        "by": comparison.by,
        "transforms": _transforms(captured),
        "cosine_before_layer": measured(before),
        "cosine_after_layer": measured(after),
        "text": number,
        "source": captured.text,
        "query": query,
        "query_token": captured.query_tokens[query].label,
        "self": itself,
        "first": first,
        "previous": previous,
        "others": others,
        "key": key,
        "key_token": captured.key_tokens[key].label,
        "weight": weight,
        "query_exact": captured.query_tokens[query].exact,
        "key_exact": captured.key_tokens[key].exact,
    }


class MatchRow(TypedDict):
    """A head, and the head of another model that it is compared with."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    against: Annotated[str, "The other model."]
    against_layer: LayerNumber
    against_head: HeadNumber
    similarity: Annotated[float, "1: the same rows; 0: disjoint ones."]
    over: Annotated[Literal["tokens", "words"], "What was compared."]
    pair: Annotated[Pairing, "How the second head was chosen."]
    transforms: Transforms
    against_transforms: Transforms


def match_rows(comparison: ModelComparison, matches: Sequence[HeadMatch]) -> list[MatchRow]:
    """A row for each of these pairs."""
    ours, theirs = comparison.captures
    return [
        {
            "model": ours.model.name,
            "layer": match.head.layer,
            "head": match.head.head,
            "against": theirs.model.name,
            "against_layer": match.other.layer,
            "against_head": match.other.head,
            "similarity": match.similarity,
            "over": "words" if comparison.words else "tokens",
            "pair": comparison.pair,
            "transforms": _transforms(ours),
            "against_transforms": _transforms(theirs),
        }
        for match in matches
    ]


def comparison_facts(comparison: ModelComparison) -> dict[str, Any]:
    """What there is to know of the matrix of similarities (heads, others), as it is saved."""
    ours, theirs = comparison.captures
    return {
        "schema": SCHEMA,
        "command": "compare",
        "model": model_to_dict(ours.model),
        "against": model_to_dict(theirs.model),
        "text": ours.text,
        "over": "words" if comparison.words else "tokens",
        "pair": comparison.pair,
        "heads": [head_name(head) for head in comparison.heads],
        "against_heads": [head_name(head) for head in comparison.others],
        "transforms": _transforms(ours),
        "against_transforms": _transforms(theirs),
    }


def _transforms(*captures: Capture) -> list[dict[str, Any]]:
    """The transforms of the captures, each once."""
    every = dict.fromkeys(each for captured in captures for each in captured.transforms)
    return [transform_to_dict(each) for each in every]


# Comparisons as results.


SHOWN = 8
"""Heads that the terminal shows."""


def of_texts(comparison: TextComparison, top: int | None = None) -> Result[TextComparison]:
    """Several texts through one model; of the `top` heads that differ most."""
    head = comparison.heads[0].head

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.compare import terminal as table

        alone = texts_beside(comparison, head) if len(comparison.heads) == 1 else None
        return table.render_texts(comparison, comparison.heads[: top or SHOWN], alone, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.compare.picture import draw_beside

        said = texts_title(comparison), about_texts(comparison)
        return draw_beside(texts_beside(comparison, head), *said, **look)

    model = comparison.captures[0].model.name
    about = f"{model}, {amount(len(comparison.captures), 'text')}"
    return Result(
        "compare",
        comparison,
        about,
        (DifferenceRow, SightRow),
        lambda: difference_rows(comparison, top),
        shown,
        draw,
        captures=comparison.captures,
    )


def of_models(comparison: ModelComparison, top: int | None = None) -> Result[ModelComparison]:
    """One text through two models; of the `top` pairs of heads."""
    best = comparison.matches[0]

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.compare import terminal as table

        alone = models_beside(comparison, best) if len(comparison.matches) == 1 else None
        return table.render_models(comparison, comparison.matches[: top or SHOWN], alone, display)

    def draw(**look: Any) -> "Drawn":
        if len(comparison.heads) > 1:
            from attnviz.commands.compare import picture as compare_picture

            return compare_picture.draw_models(comparison, **look)
        from attnviz.commands.compare.picture import draw_beside

        title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
        return draw_beside(models_beside(comparison, best), title, about_models(comparison), **look)

    ours, theirs = (captured.model.name for captured in comparison.captures)
    return Result(
        "compare",
        comparison,
        f"{ours} and {theirs}",
        (MatchRow,),
        lambda: match_rows(comparison, comparison.matches[:top]),
        shown,
        draw,
        _archive=lambda: (comparison_facts(comparison), {"similarity": comparison.similarity}),
        captures=comparison.captures,
    )
