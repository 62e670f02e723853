"""Does it attend alike? One word in several texts, or one text in two models.

texts ─► tokens ─► runs ─► transforms ─► differences
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.compare.record import (
    HeadDifference,
    HeadMatch,
    ModelComparison,
    Sight,
    TextComparison,
    divergence,
    mean_cosine,
    shares_of,
    similarities,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare, side_of
from attnviz.kit.scores import check_merge
from attnviz.records.apply import NOTHING, exhibit_of
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.exhibit import Choice, whole_map
from attnviz.records.heads import Head, Pairing, choose_heads, every_head
from attnviz.records.positions import one_position
from attnviz.records.tokens import Token, numbered
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
        hint = "give images as texts" if options.given else "give two or more"
        raise UsageError("a single text cannot be compared", hint)
    model = side_of(model, texts[0], options)
    _check_no_sounds(model)
    _check_kind(model)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    captures, vectors, queries = list[Capture](), list[FloatArray](), list[int]()
    for number, text in enumerate(texts, start=1):
        prepared = prepare(model, text, options)
        captures.append(_captured(prepared, chosen, transforms))
        if query is not None:
            position = _position(prepared.empty, query, number)
            if model.can("vectors"):
                vectors.append(prepared.model.vectors(prepared.ids, position))
            queries.append(_position(captures[-1], query, number))
    aligned = len({len(each.key_tokens) for each in captures}) == 1
    if query is not None:  # a causal model does not see how long the text is
        aligned = len(set(queries)) == 1 and (aligned or model.causal)
    elif aligned:
        _check_length(captures[0])
    if not aligned and (query is None or captures[0].image_alone):
        raise _different_sizes(captures[0])
    differences = [_difference(captures, head, queries, aligned=aligned) for head in chosen]
    return TextComparison(
        captures=captures,
        queries=tuple(queries) or None,
        by="rows" if aligned else "shares",
        heads=sorted(differences, key=lambda each: (-each.difference, each.head)),
        cosines=tuple(mean_cosine(vectors).tolist()) if vectors else (),
    )


def _different_sizes(captured: Capture) -> UsageError:
    if captured.image_alone:
        return UsageError(
            "these images have different grids of patches, so their rows cannot be compared",
            "give images of one size",
        )
    return UsageError(
        "these texts have different numbers of tokens, so their rows cannot be compared",
        f"name a word that is in all of them with {option('query')}",
    )


def _captured(prepared: Prepared, heads: Sequence[Head], transforms: Transforms) -> Capture:
    """A run, its patterns as the transforms leave them."""
    check_merge(prepared.empty, transforms)
    captured = prepared.record(heads)
    if transforms.weighted:
        captured = prepared.with_norms(captured)
    if transforms.drop_sink:
        captured = prepared.with_lengths(captured)
    exhibit = exhibit_of(captured, Choice(captured.heads), transforms)
    maps = zip(captured.heads, map(whole_map, exhibit.maps), strict=True)  # none joins heads
    layers = [LayerPattern(h.layer, (h.head,), own.shares[None]) for h, own in maps]
    return replace(exhibit.capture, layers=tuple(layers))


def _position(captured: Capture, query: str, number: int) -> int:
    try:
        return one_position(captured.query_tokens, query, "query")
    except UsageError as error:
        raise UsageError(f"text {number}: {error.wrong}", error.hint) from None


def _difference(
    captures: Sequence[Capture], head: Head, queries: Sequence[int], *, aligned: bool
) -> HeadDifference:
    """The difference of a head over all texts."""
    patterns = [captured.weights(head) for captured in captures]
    if not queries:
        two_images = captures[0].image_alone and len(patterns) == 2
        moved = _moved(patterns[0], patterns[1]) if two_images else ()
        return HeadDifference(head, float(divergence(patterns).mean()), moved=moved)
    rows = [
        pattern[query, : query + 1 if captured.causal else None]
        for captured, pattern, query in zip(captures, patterns, queries, strict=True)
    ]
    sights = []
    for row, query in zip(rows, queries, strict=True):
        strongest = np.argsort(-row, kind="stable")[:STRONGEST].tolist()
        links = [(key, float(row[key])) for key in strongest]
        sights.append(Sight(shares_of(row, query), links))
    compared = rows if aligned else [np.array(sight.shares) for sight in sights]
    return HeadDifference(head, float(divergence(compared)), sights)


def _moved(first: FloatArray, second: FloatArray) -> tuple[tuple[int, float], ...]:
    """The keys that the second pattern gives the most more, and the most less."""
    change = (second - first).mean(axis=0)
    return tuple((int(key), float(change[key])) for key in (change.argmax(), change.argmin()))


def pairing_of(model: "LoadedModel", other: "LoadedModel") -> Pairing:
    """How heads are paired by default: by name where one model may be the other, trained on."""
    one, two = model.identity, other.identity
    alike = (one.architecture, one.heads_per_layer) == (two.architecture, two.heads_per_layer)
    return "same" if alike else "best"


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
        ours, theirs = (  # their names show their weights, too
            replace(each, model=replace(m, name=f"{m.name} {str(m.fingerprint)[:6]}"))
            for each, m in ((ours, ours.model), (theirs, theirs.model))
        )
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
        grids=grids_of(ours, theirs),
    )


def _check_models(model: "LoadedModel", other: "LoadedModel", transforms: Transforms) -> None:
    for each in (model, other):
        _check_kind(each)
    if model.reads != other.reads:
        raise UsageError(
            f"{model.identity.name} reads {model.reads}s and {other.identity.name} {other.reads}s",
            "use two models that read the same",
        )
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

    def captured(transforms: Transforms) -> list[Capture]:
        return [
            _captured(
                prepare(each, text, options), every_head(each.identity.heads_per_layer), transforms
            )
            for each in (model, other)
        ]

    ours, theirs = captured(transforms)
    if ours.image_alone:
        if not _same_patches(ours, theirs):
            ours, theirs = on_one_grid(ours, theirs)
        return ours, theirs, False
    words = transforms.merge == "words"
    if not words and not _same_tokens(ours, theirs):
        words, (ours, theirs) = True, captured(replace(transforms, words=True, chars=False))
    if not _same_tokens(ours, theirs):  # BOS here and [CLS] there have nothing in common
        ours, theirs = _text_alone(ours), _text_alone(theirs)
    if not _same_tokens(ours, theirs):
        raise InputError(
            "the two models split this text differently, even into words", "give another text"
        )
    _check_length(ours)
    return ours, theirs, words


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


def _check_no_sounds(model: "LoadedModel") -> None:
    if model.reads == "speech":
        raise UsageError(
            "sounds are not compared with each other",
            f"compare two models on one sound with {option('against')}",
        )


def _check_kind(model: "LoadedModel") -> None:
    if model.kind not in ("self", "encoder"):
        raise UsageError(
            "attention to a model's output cannot be compared",
            f"use a model that reads one text, or {option('kind', 'encoder')}",
        )


def _same_patches(a: Capture, b: Capture) -> bool:
    """Whether two models have the same patches of an image, and tokens of the same names."""
    ours, theirs = ([(t.label, t.patch) for t in each.key_tokens] for each in (a, b))
    return ours == theirs


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
    tokens = numbered([captured.key_tokens[i] for i in kept])
    return _over(replace(captured, bos=False), tokens, kept, lambda weights: weights)


def _over(
    captured: Capture,
    tokens: tuple[Token, ...],
    kept: list[int],
    moved: Callable[[FloatArray], FloatArray],
) -> Capture:
    """A capture over other tokens: `moved` makes their weights of those of the kept tokens.

    Rows are scaled to sum to 1.
    """
    layers, shares = [], []
    for layer in captured.layers:
        own = layer.weights[:, kept][:, :, kept]
        shares.append(1 - own.sum(axis=2).mean())
        weights = moved(own)
        sums = weights.sum(axis=2, keepdims=True)
        some = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > NOTHING)
        layers.append(LayerPattern(layer.layer, layer.heads, some))
    all_kept = len(kept) == len(captured.key_tokens)
    dropped = [] if all_kept else [SpecialDropped(float(np.mean(shares)))]
    return replace(
        captured,
        layers=tuple(layers),
        query_tokens=tokens,
        key_tokens=tokens,
        transforms=(*captured.transforms, *dropped),
    )


# Two models over one image, on the finer of their grids of patches.


def patches_of(captured: Capture) -> list[Token]:
    """The tokens that stand for a part of the image."""
    return [token for token in captured.key_tokens if token.patch]


def on_one_grid(ours: Capture, theirs: Capture) -> tuple[Capture, Capture]:
    """Both over the patches of the finer grid that both models saw, without their own tokens."""
    finer = max(ours, theirs, key=lambda each: len(patches_of(each)))
    patches = patches_of(finer)
    shares = [overlaps(patches_of(each), patches).sum(axis=0) for each in (ours, theirs)]
    areas = overlaps(patches, patches).diagonal()
    seen = (np.minimum(shares[0], shares[1]) > areas / 2).tolist()
    if sum(seen) < 2:
        raise InputError("the two models saw no part of this image both", "give another image")
    kept = numbered([token for token, both in zip(patches, seen, strict=True) if both])
    return _spread(ours, kept), _spread(theirs, kept)


def grids_of(ours: Capture, theirs: Capture) -> tuple[tuple[int, int], ...]:
    """The rows and columns of both models' patches, where these alone are compared."""
    both = [each for each in (ours, theirs) if each.image_alone]
    patches = all(token.patch for each in both for token in each.key_tokens)
    return tuple((v.rows, v.columns) for c in both for v in c.images[0].views) if patches else ()


def overlaps(ones: Sequence[Token], others: Sequence[Token]) -> NDArray[np.float64]:
    """(ones, others): the areas that patches have in common, in shares of the image."""
    a, b = (np.array([t.patch.box for t in each if t.patch]) for each in (ones, others))
    sides = [
        np.minimum(a[:, None, high], b[:, high]) - np.maximum(a[:, None, low], b[:, low])
        for low, high in ((0, 2), (1, 3))
    ]
    return np.asarray(np.clip(sides[0], 0, None) * np.clip(sides[1], 0, None))


def _spread(captured: Capture, tokens: tuple[Token, ...]) -> Capture:
    """A capture over other patches: a row is the mean of those that it covers, by area.

    The weight on a patch is spread evenly over its area.
    """
    own = patches_of(captured)
    at, common = [token.index for token in own], overlaps(own, tokens)
    keys = (common / overlaps(own, own).diagonal()[:, None]).astype(np.float32)  # (own, tokens)
    rows = (common / common.sum(axis=0)).T.astype(np.float32)  # (tokens, own)
    return _over(captured, tokens, at, lambda weights: rows @ weights @ keys)
