"""Does it attend alike? One word in several texts, or one text in two models.

texts ─► tokens ─► runs ─► transforms ─► differences

The file is long because both comparisons share their steps.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.compare.record import (
    By,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    Pairing,
    Sight,
    TextComparison,
    divergence,
    mean_cosine,
    shares_of,
    similarities,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.models.loaded import HasStream
from attnviz.records.apply import exhibit_of
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.exhibit import Choice, Exhibit, Map, whole_map
from attnviz.records.heads import Head, choose_heads, every_head
from attnviz.records.patterns import NOTHING
from attnviz.records.positions import one_position
from attnviz.records.tokens import numbered
from attnviz.records.transforms import SpecialDropped, Transforms

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

STRONGEST = 3


def compare_texts(
    model: "LoadedModel",
    texts: Sequence[str],
    query: str | None,
    options: TextOptions,
    heads: HeadOptions,
    transforms: Transforms,
) -> TextComparison:
    """Compare heads over several texts, at one word or, where the tokens align, everywhere.

    Raises:
        UsageError: fewer than two texts, a word that a text lacks or has several times, or no
            word where the texts have other numbers of tokens.
        InputError: a text that the model cannot take.
    """
    if len(texts) < 2:
        raise UsageError("a single text cannot be compared", "give two or more")
    _check_kind(model)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    made, vectors, queries = [], [], []
    for number, text in enumerate(texts, start=1):
        prepared = prepare(model, text, options)
        captured = prepared.record(chosen)
        captured = prepared.with_norms(captured) if transforms.weighted else captured
        if query is not None:
            position = _position(captured, query, number)
            if isinstance(model, HasStream):
                vectors.append(model.vectors(prepared.ids, position))
        made.append(exhibit_of(captured, Choice(captured.heads), transforms))
        if query is not None:
            queries.append(_position(made[-1].capture, query, number))
    aligned = len({len(each.capture.key_tokens) for each in made}) == 1
    if query is None and aligned:
        _check_length(made[0].capture)
    if query is not None:  # a causal model does not see how long the text is
        aligned = len(set(queries)) == 1 and (aligned or model.causal)
    if query is None and not aligned:
        raise UsageError(
            "these texts have different numbers of tokens, so their rows cannot be compared",
            f"name a word that is in all of them with {option('query')}",
        )
    differences = [_difference(made, i, queries, aligned=aligned) for i in range(len(made[0].maps))]
    differences.sort(key=lambda each: (-each.difference, each.head))
    by: By = "rows" if aligned else "shares"
    cosines = tuple(mean_cosine(vectors).tolist()) if vectors else ()
    captures = [_with_maps(each) for each in made]
    return TextComparison(captures, tuple(queries) or None, by, differences, cosines)


def _position(captured: Capture, query: str, number: int) -> int:
    try:
        return one_position(captured.query_tokens, query, "query")
    except UsageError as error:
        raise UsageError(f"text {number}: {error.wrong}", error.hint) from None


def _difference(
    made: Sequence[Exhibit], i: int, queries: Sequence[int], *, aligned: bool
) -> HeadDifference:
    """One head in all texts."""
    maps = [whole_map(each.maps[i]) for each in made]
    head = _head_of(maps[0])
    if not queries:
        return HeadDifference(head, float(divergence([m.weights for m in maps]).mean()))
    seen = [
        query + 1 if each.capture.causal else None
        for each, query in zip(made, queries, strict=True)
    ]
    rows = [m.weights[q, :n] for m, q, n in zip(maps, queries, seen, strict=True)]
    sights = [_sight(row, query) for row, query in zip(rows, queries, strict=True)]
    compared = rows if aligned else [np.array(sight.shares) for sight in sights]
    return HeadDifference(head, float(divergence(compared)), sights)


def _sight(row: FloatArray, query: int) -> Sight:
    strongest = np.argsort(-row, kind="stable")[:STRONGEST].tolist()
    return Sight(shares_of(row, query), [(key, float(row[key])) for key in strongest])


def _head_of(head_map: Map) -> Head:
    assert head_map.layer is not None  # no transform here joins heads
    assert head_map.head is not None
    return Head(head_map.layer, head_map.head)


def _with_maps(made: Exhibit) -> Capture:
    """The capture, its patterns as the transforms left them."""
    heads = ((_head_of(m), whole_map(m).weights) for m in made.maps)
    layers = tuple(LayerPattern(h.layer, (h.head,), weights[None].copy()) for h, weights in heads)
    return replace(made.capture, layers=layers)


def compare_models(
    model: "LoadedModel",
    other: "LoadedModel",
    text: str,
    options: TextOptions,
    heads: HeadOptions,
    transforms: Transforms,
    pair: Pairing = "best",
) -> ModelComparison:
    """Compare the heads of two models over one text; where their tokens differ, over words.

    Raises:
        UsageError: one is causal and the other is not, or they attend to another text, or one has
            heads that the other lacks, where those of the same name are compared.
        InputError: not even their words are the same.
    """
    _check_kinds(model, other)
    if transforms.drop_sink or transforms.drop_keys:
        raise UsageError(
            "two models need not have the same first token or pieces",
            f"leave {option('drop_sink')} and {option('drop_keys')} out",
        )
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    every = every_head(other.identity.heads_per_layer)
    missing = [head for head in chosen if head not in every]
    if pair == "same" and missing:
        raise UsageError(
            f"{other.identity.name} has no head {missing[0]}",
            f"choose heads that both models have, or use {option('pair', 'best')}",
        )
    made = [_captured(each, text, options, transforms) for each in (model, other)]
    words = transforms.merge == "words"
    if not words and not _same_tokens(*made):
        words = True
        made = [
            _captured(m, text, options, replace(transforms, words=True, chars=False))
            for m in (model, other)
        ]
    both = made[0], made[1]
    if not _same_tokens(*both):  # BOS here and [CLS] there have nothing to do with each other
        both = _text_alone(made[0]), _text_alone(made[1])
    if not _same_tokens(*both):
        raise InputError(
            "the two models split this text differently, even into words", "give another text"
        )
    both = _told_apart(*both)
    _check_length(both[0])
    ours, theirs = (_stacked(c, h) for c, h in zip(both, (chosen, every), strict=True))
    alike = similarities(ours, theirs)
    matches, silent = _matched(chosen, every, alike, pair)
    return ModelComparison(both, words, pair, matches, chosen, every, alike, silent)


def _told_apart(ours: Capture, theirs: Capture) -> tuple[Capture, Capture]:
    """Captures by two models: where these have one name and other weights, it gets more."""
    if ours.model.name != theirs.model.name or ours.model.fingerprint == theirs.model.fingerprint:
        return ours, theirs

    def named(captured: Capture) -> Capture:
        name = f"{captured.model.name} {str(captured.model.fingerprint)[:6]}"
        return replace(captured, model=replace(captured.model, name=name))

    return named(ours), named(theirs)


def _matched(
    heads: Sequence[Head], others: Sequence[Head], alike: NDArray[np.float64], pair: Pairing
) -> tuple[list[HeadMatch], tuple[Head, ...]]:
    """The pairs in their order, and the heads that have none."""
    matches, silent = list[HeadMatch](), list[Head]()
    for head, row in zip(heads, alike, strict=True):
        at = others.index(head) if pair == "same" else None
        if np.isnan(row if at is None else row[at]).all():
            silent.append(head)
            continue
        at = int(np.nanargmax(row)) if at is None else at
        matches.append(HeadMatch(head, others[at], float(row[at])))
    if not matches:
        raise InputError(
            "these heads have no weight on the text, only on special tokens", "choose others"
        )
    sign = 1 if pair == "same" else -1
    matches.sort(key=lambda match: (sign * match.similarity, match.head))
    return matches, tuple(silent)


def _check_length(captured: Capture) -> None:
    if len(captured.key_tokens) < 2:
        raise InputError(
            "a single token attends to nothing but itself, in every head", "give longer texts"
        )


def _check_kind(model: "LoadedModel") -> None:
    if model.kind not in ("self", "encoder"):
        raise UsageError(
            "attention to a model's output cannot be compared",
            f"use a model that reads one text, or {option('kind', 'encoder')}",
        )


def _check_kinds(model: "LoadedModel", other: "LoadedModel") -> None:
    _check_kind(model)
    _check_kind(other)
    if model.causal != other.causal:
        back, both = (model, other) if model.causal else (other, model)
        raise UsageError(
            f"{back.identity.name} is causal and {both.identity.name} is not, so their "
            "rows cannot be compared",
            "use two models of one kind",
        )


def _captured(
    model: "LoadedModel", text: str, options: TextOptions, transforms: Transforms
) -> Capture:
    prepared = prepare(model, text, options)
    captured = prepared.record(every_head(model.identity.heads_per_layer))
    captured = prepared.with_norms(captured) if transforms.weighted else captured
    return _with_maps(exhibit_of(captured, Choice(captured.heads), transforms))


def _same_tokens(a: Capture, b: Capture) -> bool:
    ours, theirs = ([(t.special, t.text.strip()) for t in c.key_tokens] for c in (a, b))
    return ours == theirs


def _text_alone(captured: Capture) -> Capture:
    """Only what stands in the text: rows keep what they have on it, brought to a sum of 1.

    Blanks are left out, too: some tokenizers give them tokens of their own.
    """
    kept = [t.index for t in captured.key_tokens if not t.special and t.text.strip()]
    if len(kept) == len(captured.key_tokens):
        return captured
    layers, shares = [], []
    for layer in captured.layers:
        weights = layer.weights[:, kept][:, :, kept]
        sums = weights.sum(axis=2, keepdims=True)
        shares.append(1 - sums.mean())
        some = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > NOTHING)
        layers.append(LayerPattern(layer.layer, layer.heads, some))
    tokens = numbered([captured.key_tokens[i] for i in kept])
    done = (*captured.transforms, SpecialDropped(float(np.mean(shares))))
    return replace(
        captured, layers=tuple(layers), query_tokens=tokens, key_tokens=tokens, transforms=done
    )


def _stacked(captured: Capture, heads: Sequence[Head]) -> FloatArray:
    return np.stack([captured.weights(head) for head in heads])
