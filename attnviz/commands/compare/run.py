"""Does it attend alike? One word in several texts, or one text in two models.

texts ─► tokens ─► runs ─► transforms ─► differences
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.compare.record import (
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
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.apply import NOTHING, exhibit_of
from attnviz.records.capture import Capture, LayerPattern
from attnviz.records.exhibit import Choice, Exhibit, Map, whole_map
from attnviz.records.heads import Head, choose_heads, every_head
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
    """Compare heads over several texts, at one word or, where the tokens align, everywhere."""
    if len(texts) < 2:
        raise UsageError("a single text cannot be compared", "give two or more")
    _check_kind(model)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    exhibits, vectors, queries = [], [], []
    for number, text in enumerate(texts, start=1):
        prepared = prepare(model, text, options)
        captured = _record(prepared, chosen, transforms)
        exhibits.append(exhibit_of(captured, Choice(captured.heads), transforms))
        if query is not None:
            position = _position(captured, query, number)
            if model.can("vectors"):
                vectors.append(model.vectors(prepared.ids, position))
            queries.append(_position(exhibits[-1].capture, query, number))
    aligned = len({len(each.capture.key_tokens) for each in exhibits}) == 1
    if query is not None:  # a causal model does not see how long the text is
        aligned = len(set(queries)) == 1 and (aligned or model.causal)
    elif aligned:
        _check_length(exhibits[0].capture)
    else:
        raise UsageError(
            "these texts have different numbers of tokens, so their rows cannot be compared",
            f"name a word that is in all of them with {option('query')}",
        )
    return TextComparison(
        captures=[_with_maps(each) for each in exhibits],
        queries=tuple(queries) or None,
        by="rows" if aligned else "shares",
        heads=_differences(exhibits, queries, aligned=aligned),
        cosines=tuple(mean_cosine(vectors).tolist()) if vectors else (),
    )


def _record(prepared: Prepared, heads: Sequence[Head], transforms: Transforms) -> Capture:
    captured = prepared.record(heads)
    return prepared.with_norms(captured) if transforms.weighted else captured


def _position(captured: Capture, query: str, number: int) -> int:
    try:
        return one_position(captured.query_tokens, query, "query")
    except UsageError as error:
        raise UsageError(f"text {number}: {error.wrong}", error.hint) from None


def _differences(
    exhibits: Sequence[Exhibit], queries: Sequence[int], *, aligned: bool
) -> list[HeadDifference]:
    """The difference of each head, the largest first."""
    heads = range(len(exhibits[0].maps))
    differences = [_difference(exhibits, i, queries, aligned=aligned) for i in heads]
    return sorted(differences, key=lambda each: (-each.difference, each.head))


def _difference(
    exhibits: Sequence[Exhibit], i: int, queries: Sequence[int], *, aligned: bool
) -> HeadDifference:
    """The difference of head number `i` over all texts."""
    maps = [whole_map(each.maps[i]) for each in exhibits]
    head = _head_of(maps[0])
    if not queries:
        return HeadDifference(head, float(divergence([m.weights for m in maps]).mean()))
    rows = [
        head_map.weights[query, : query + 1 if each.capture.causal else None]
        for each, head_map, query in zip(exhibits, maps, queries, strict=True)
    ]
    sights = []
    for row, query in zip(rows, queries, strict=True):
        strongest = np.argsort(-row, kind="stable")[:STRONGEST].tolist()
        links = [(key, float(row[key])) for key in strongest]
        sights.append(Sight(shares_of(row, query), links))
    compared = rows if aligned else [np.array(sight.shares) for sight in sights]
    return HeadDifference(head, float(divergence(compared)), sights)


def _head_of(head_map: Map) -> Head:
    assert head_map.layer is not None  # no transform here joins heads
    assert head_map.head is not None
    return Head(head_map.layer, head_map.head)


def _with_maps(exhibit: Exhibit) -> Capture:
    """The capture, its patterns as the transforms left them."""
    heads = ((_head_of(m), whole_map(m).weights) for m in exhibit.maps)
    layers = tuple(LayerPattern(h.layer, (h.head,), weights[None].copy()) for h, weights in heads)
    return replace(exhibit.capture, layers=layers)


def compare_models(
    model: "LoadedModel",
    other: "LoadedModel",
    text: str,
    options: TextOptions,
    heads: HeadOptions,
    transforms: Transforms,
    pair: Pairing = "best",
) -> ModelComparison:
    """Compare the heads of two models over one text; over words where their tokens differ."""
    _check_models(model, other, transforms)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    every = every_head(other.identity.heads_per_layer)
    missing = [head for head in chosen if head not in every]
    if pair == "same" and missing:
        raise UsageError(
            f"{other.identity.name} has no head {missing[0]}",
            f"choose heads that both models have, or use {option('pair', 'best')}",
        )
    ours, theirs, words = _aligned(model, other, text, options, transforms)
    if ours.model.name == theirs.model.name and ours.model.fingerprint != theirs.model.fingerprint:
        ours, theirs = _with_fingerprint(ours), _with_fingerprint(theirs)
    similarity = similarities(
        np.stack([ours.weights(head) for head in chosen]),
        np.stack([theirs.weights(head) for head in every]),
    )
    matches, silent = _matched(chosen, every, similarity, pair)
    return ModelComparison(
        captures=(ours, theirs),
        words=words,
        pair=pair,
        matches=matches,
        heads=chosen,
        others=every,
        similarity=similarity,
        silent=silent,
    )


def _check_models(model: "LoadedModel", other: "LoadedModel", transforms: Transforms) -> None:
    for each in (model, other):
        _check_kind(each)
    if model.causal != other.causal:
        back, both = (model, other) if model.causal else (other, model)
        raise UsageError(
            f"{back.identity.name} is causal and {both.identity.name} is not, so their "
            "rows cannot be compared",
            "use two models of one kind",
        )
    if transforms.drop_sink or transforms.drop_keys:
        raise UsageError(
            "two models need not have the same first token or pieces",
            f"leave {option('drop_sink')} and {option('drop_keys')} out",
        )


def _aligned(
    model: "LoadedModel",
    other: "LoadedModel",
    text: str,
    options: TextOptions,
    transforms: Transforms,
) -> tuple[Capture, Capture, bool]:
    """The text by both models over the same units, and whether these are words."""
    ours, theirs = (_captured(each, text, options, transforms) for each in (model, other))
    words = transforms.merge == "words"
    if not words and not _same_tokens(ours, theirs):
        words, by_word = True, replace(transforms, words=True, chars=False)
        ours, theirs = (_captured(each, text, options, by_word) for each in (model, other))
    if not _same_tokens(ours, theirs):  # BOS here and [CLS] there have nothing in common
        ours, theirs = _text_alone(ours), _text_alone(theirs)
    if not _same_tokens(ours, theirs):
        raise InputError(
            "the two models split this text differently, even into words", "give another text"
        )
    _check_length(ours)
    return ours, theirs, words


def _with_fingerprint(captured: Capture) -> Capture:
    """The capture by a model whose name tells its weights, too."""
    name = f"{captured.model.name} {str(captured.model.fingerprint)[:6]}"
    return replace(captured, model=replace(captured.model, name=name))


def _matched(
    heads: Sequence[Head], others: Sequence[Head], similarity: NDArray[np.float64], pair: Pairing
) -> tuple[list[HeadMatch], tuple[Head, ...]]:
    """The pairs, the first one of most interest, and the heads that have none."""
    matches, silent = list[HeadMatch](), list[Head]()
    for head, row in zip(heads, similarity, strict=True):
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


def _captured(
    model: "LoadedModel", text: str, options: TextOptions, transforms: Transforms
) -> Capture:
    prepared = prepare(model, text, options)
    captured = _record(prepared, every_head(model.identity.heads_per_layer), transforms)
    return _with_maps(exhibit_of(captured, Choice(captured.heads), transforms))


def _same_tokens(a: Capture, b: Capture) -> bool:
    ours, theirs = ([(t.special, t.text.strip()) for t in c.key_tokens] for c in (a, b))
    return ours == theirs


def _text_alone(captured: Capture) -> Capture:
    """Only the tokens of the text that are not blank, with rows rescaled to sum to 1.

    Some tokenizers give blanks tokens of their own.
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
    return replace(
        captured,
        layers=tuple(layers),
        query_tokens=tokens,
        key_tokens=tokens,
        transforms=(*captured.transforms, SpecialDropped(float(np.mean(shares)))),
    )
