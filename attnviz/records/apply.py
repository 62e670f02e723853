"""Make an exhibit of a capture: apply its transforms in a fixed order, and choose the part to show.

    weighted ─► merged ─► rolled out ─► keys dropped ─► reduced

Each is recorded in the capture, so that its result is not taken for a raw pattern.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import END_READ, GATES, RESTS, VALUE_NORMS, Capture, FloatArray
from attnviz.records.exhibit import LITTLE_LEFT, Choice, Exhibit, Filters, HeadMap, whole_map
from attnviz.records.heads import Head, choose_heads, every_head
from attnviz.records.merging import WHOLE, groups_of, joined
from attnviz.records.positions import find_positions, last_word, one_position
from attnviz.records.rests import rests_in, with_rests
from attnviz.records.tokens import Token
from attnviz.records.transforms import (
    PLAIN,
    Contributions,
    How,
    KeysDropped,
    Merged,
    NormBased,
    Over,
    Reduced,
    RolledOut,
    Transform,
    Transforms,
    Unit,
)

Between: TypeAlias = Callable[[], None]
"""Is called before each step of a transform; an error that it raises ends the transform."""

T = TypeVar("T")


def go_on() -> None:
    """Let the transform go on to its end."""


def each(items: Iterable[T], between: Between) -> Iterator[T]:
    """Yield the items, with a call of `between` before each."""
    for item in items:
        between()
        yield item


NOTHING = 1e-6
"""A row with less left than this attended to nothing else; rounding leaves it no zero."""


def without_keys(head_map: HeadMap, keys: Sequence[int]) -> HeadMap:
    """A map without keys (columns), its rows rescaled to sum to 1.

    A row with little left is not rescaled, and one with nothing left is empty.
    """
    weights = head_map.weights.astype(np.float32, copy=True)
    sums = weights.sum(axis=1)
    weights[:, list(keys)] = 0
    rest = weights.sum(axis=1)
    left = np.divide(rest, sums, out=np.zeros_like(rest), where=sums > 0)
    whole = np.where(left < LITTLE_LEFT, sums, rest)[:, None]
    scaled = np.divide(weights, whole, out=np.zeros_like(weights), where=rest[:, None] > NOTHING)
    return replace(head_map, weights=scaled, dropped=tuple(keys), left=left)


def _rescaled(head_map: HeadMap) -> HeadMap:
    """A map of rows that lost keys, each rescaled by its share left, like `without_keys`."""
    head_map = replace(head_map, left=head_map.weights.sum(axis=1))
    return replace(head_map, weights=head_map.weights / head_map.scale[:, None])


# Tokens merged to characters or words, which a person reads.
#
# Attention to a merged key is the sum over its pieces, attention from a merged query the
# mean over its pieces, so that rows still sum to 1. Clark et al. 2019, "What Does BERT
# Look At?", arXiv 1906.04341, section 4.1.


def merged(capture: Capture, unit: Unit, between: Between = go_on) -> Capture:
    """The same capture with the pieces of each character, word or other unit as one token.

    A token that crosses the end of a word joins both words. A character is a grapheme cluster;
    in Chinese or Japanese each is a word.
    """
    of_queries, of_keys = capture.texts
    queries, keys = groups_of(capture, unit)
    return replace(
        capture,
        layers=tuple(
            replace(layer, weights=pooled(layer.weights, queries, keys))
            for layer in each(capture.layers, between)
        ),
        query_tokens=joined(capture, capture.query_tokens, queries, of_queries),
        key_tokens=joined(capture, capture.key_tokens, keys, of_keys),
        extras=_of_merged(capture.extras, queries, keys),
        transforms=(*capture.transforms, Merged(unit)),
    )


def with_wholes(exhibit: Exhibit, unit: Unit = WHOLE) -> Exhibit:
    """An exhibit of whole patterns in which each inset is one token; itself without insets."""
    capture = exhibit.capture
    if not any(token.inset for token in capture.key_tokens):
        return exhibit
    queries, keys = groups_of(capture, unit)
    maps = (whole_map(head_map) for head_map in exhibit.maps)
    return replace(
        exhibit,
        capture=merged(replace(capture, layers=()), unit),
        maps=tuple(replace(m, weights=pooled(m.weights[None], queries, keys)[0]) for m in maps),
        queries=tuple(range(len(queries))),
        keys=exhibit.keys if unit == "patches" else tuple(range(len(keys))),
        origin=exhibit.origin or capture,
    )


def pooled(weights: FloatArray, queries: Sequence[range], keys: Sequence[range]) -> FloatArray:
    """(heads, n_queries, n_keys) to (heads, groups, groups): sums over keys, means over queries."""
    summed = np.add.reduceat(weights, [group.start for group in keys], axis=2)
    total = np.add.reduceat(summed, [group.start for group in queries], axis=1)
    sizes = np.array([len(group) for group in queries], dtype=np.float32)
    return np.asarray(total / sizes[None, :, None], dtype=np.float32)


def _of_merged(
    extras: Mapping[str, FloatArray], queries: Sequence[range], keys: Sequence[range]
) -> Mapping[str, FloatArray]:
    """Merge the extras: means over a query's pieces; a key is a rest if one of its pieces is."""
    extras = {name: array for name, array in extras.items() if name != END_READ}
    if RESTS in extras:
        starts = [group.start for group in keys]
        extras[RESTS] = np.maximum.reduceat(extras[RESTS], starts, axis=-1)
    if GATES not in extras:
        return extras
    sizes, starts = [len(group) for group in queries], [group.start for group in queries]
    means = np.add.reduceat(extras[GATES], starts, axis=-1) / np.array(sizes, np.float32)
    return {**extras, GATES: np.asarray(means, np.float32)}


# Several heads to one map: the mean or the maximum, entry by entry.


def reduce_maps(maps: Sequence[HeadMap], how: How, over: Over) -> tuple[HeadMap, ...]:
    """Reduce maps (n_queries, n_keys) to one for each layer, one for each head number, or one."""
    groups: dict[tuple[int | None, int | None], list[FloatArray]] = {}
    for each_map in maps:
        layer = each_map.layer if over == "heads" else None
        head = each_map.head if over == "layers" else None
        groups.setdefault((layer, head), []).append(each_map.weights)
    return tuple(
        HeadMap(layer, head, how, weights=_reduced(group, how))
        for (layer, head), group in groups.items()
    )


def _reduced(group: Sequence[FloatArray], how: How) -> FloatArray:
    """Reduce one matrix at a time, so that memory holds only a single map more."""
    join = np.add if how == "mean" else np.maximum
    result = group[0].astype(np.float32, copy=True)
    for weights in group[1:]:
        join(result, weights, out=result)
    return result / np.float32(len(group)) if how == "mean" else result


# Attention rollout: how much of each token is in a position, through all layers.
#
# Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", arXiv 2005.00928: the mean
# of a layer's heads, half of it replaced by the identity for the residual connection, multiplied
# through the layers.


def rollout(maps: Sequence[HeadMap], between: Between = go_on) -> Iterator[HeadMap]:
    """Yield the rollout to each layer, from the maps (n, n) of all heads, layer by layer."""
    through: NDArray[np.float64] | None = None
    for layer, heads in each(groupby(maps, key=lambda head_map: head_map.layer), between):
        weights = np.array([head_map.weights for head_map in heads], np.float64)  # (h, n, n)
        mixed = (weights.mean(axis=0) + np.eye(weights.shape[1])) / 2
        through = mixed if through is None else mixed @ through
        yield HeadMap(layer, None, "rollout", weights=through.astype(np.float32))


# Norm-based attention: how much a key adds to a query, rather than only its weight.
#
# Kobayashi et al. 2020, "Attention is Not Only a Weight", arXiv 2004.10102: a head adds
# A[i, j] · f(x_j) for each key, f(x) = (x·W_V + b_V)·W_O; the measure is the length of that vector.
# A weight is never negative, so this is A[i, j] · ‖f(x_j)‖.


def weighted(capture: Capture) -> Capture:
    """A capture that holds norms, with ‖A[i, j] · f(x_j)‖ in place of A[i, j]."""
    norms = capture.extras.get(VALUE_NORMS)  # (layers, heads, n_keys)
    if norms is None:
        raise UsageError(
            f"this capture does not hold the norms of values, which {option('weighted')} needs",
            f"capture the text again with {option('weighted')}",
        )
    layers = tuple(
        replace(layer, weights=layer.weights * norms[layer.layer, list(layer.heads)][:, None, :])
        for layer in capture.layers
    )
    return replace(capture, layers=layers, transforms=(*capture.transforms, NormBased()))


EVERYTHING = Filters()


def check_signed(transforms: Transforms, captured: Capture) -> None:
    """Check that values with a sign are not taken for weights.

    Contributions add up, so that they may be summed over pieces of words, and averaged over heads.

    Raises:
        UsageError: a transform that has no meaning for them.
    """
    contributions = captured.transformed_by(Contributions)
    if contributions:
        changed = replace(transforms, contribution=False, words=False, chars=None, over=None)
        changed = replace(changed, units=())
        changed = replace(changed, reduce=None) if changed.reduce == "mean" else changed
    else:
        changed = replace(transforms, scores=False, implicit=False)
    if captured.signed and changed.any:
        what = "have a sign, and are only summed" if contributions else "are shown unchanged"
        raise UsageError(f"{captured.values} {what}", "leave out every option that changes them")


def _maps_of(capture: Capture) -> tuple[HeadMap, ...]:
    return tuple(
        HeadMap(layer.layer, head, weights=weights)
        for layer in capture.layers
        for head, weights in zip(layer.heads, layer.weights, strict=True)
    )


def whole_exhibit(capture: Capture, choice: Choice | None = None) -> Exhibit:
    """Every map of a capture, with every row and column."""
    queries, keys = range(len(capture.query_tokens)), range(len(capture.key_tokens))
    return Exhibit(capture, _maps_of(capture), tuple(queries), tuple(keys), choice=choice)


def exhibit_of(
    captured: Capture,
    choice: Choice,
    transforms: Transforms = PLAIN,
    filters: Filters = EVERYTHING,
    *,
    one_query: bool = False,
    between: Between = go_on,
) -> Exhibit:
    """Make the exhibit of a capture that holds whole patterns.

    `one_query`: show exactly one query, by default the last word's. `between`: called
    between the layers, as each transform takes a while on a long text.
    """
    if transforms.scores and not captured.signed:
        raise UsageError("a saved capture holds weights, not scores", "give the text again")
    if transforms.contribution and not captured.transformed_by(Contributions):
        wrong = "a saved capture holds weights, not contributions"
        raise UsageError(wrong, "give the text again")
    check_signed(transforms, captured)
    if transforms.drop_sink or transforms.weighted:  # rests cannot be found from norms
        captured = with_rests(captured)
    captured = weighted(captured) if transforms.weighted else captured
    for unit in transforms.merged:
        captured = merged(captured, unit, between)
    exhibit = Exhibit(
        capture=captured,
        maps=_maps_of(captured),
        queries=queries_of(captured.query_tokens, filters, one_query=one_query),
        keys=keys_of(captured.key_tokens, filters),
        top=filters.top,
        least=filters.least or (-inf if captured.signed else 0.0),
        skip=distances_of(captured, filters),
        choice=choice,
    )
    if transforms.rollout:
        rolled = _rolled_out(exhibit, transforms.rollout_layers, between)
        exhibit = _with(exhibit, rolled, RolledOut())
    if transforms.drop_sink or transforms.drop_keys:
        exhibit = _without_keys(exhibit, transforms, between)
    if transforms.reduce is not None:
        exhibit = _reduced_maps(exhibit, transforms.reduce, transforms.over or "all")
    return with_wholes(exhibit, "patches") if transforms.mean_patches else exhibit


def _reduced_maps(exhibit: Exhibit, how: How, over: Over) -> Exhibit:
    maps = _head_maps(exhibit)
    if how == "mean" and exhibit.dropped:  # of rows before they were rescaled
        whole = [replace(each, weights=each.unscaled, left=None) for each in maps]
        reduced = tuple(map(_rescaled, reduce_maps(whole, how, over)))
    else:
        reduced = reduce_maps(maps, how, over)
    return _with(exhibit, reduced, Reduced(how, over))


def _with(exhibit: Exhibit, maps: tuple[HeadMap, ...], transform: Transform) -> Exhibit:
    transforms = (*exhibit.capture.transforms, transform)
    capture = replace(exhibit.capture, transforms=transforms)
    return replace(exhibit, capture=capture, maps=maps)


def _head_maps(exhibit: Exhibit) -> tuple[HeadMap, ...]:
    return tuple(head_map for head_map in exhibit.maps if isinstance(head_map, HeadMap))


def _without_keys(exhibit: Exhibit, transforms: Transforms, between: Between) -> Exhibit:
    """The exhibit without some keys; a query that attends to nothing else is not shown."""
    captured, seen = exhibit.capture, exhibit.capture.allowed_count()
    keys, queries = captured.key_tokens, captured.query_tokens
    all_maps = _dropped_keys(keys, transforms)
    if not exhibit.maps:
        left_keys = tuple(key for key in exhibit.keys if key not in all_maps)
        return replace(exhibit, keys=left_keys, dropped=all_maps)
    maps = list[HeadMap]()
    for head_map in each(_head_maps(exhibit), between):
        own = set[int]()
        if transforms.drop_sink and head_map.layer is not None and head_map.head is not None:
            rests = rests_in(captured, Head(head_map.layer, head_map.head))
            own = {*np.flatnonzero(rests).tolist()}
        maps.append(without_keys(head_map, sorted(own.union(all_maps))))
    dropped = tuple(sorted(set.intersection(*(set(own.dropped) for own in maps))))
    able = [q for q in exhibit.queries if seen[q] > sum(key < seen[q] for key in dropped)]
    left = np.array([own.left for own in maps])[:, able]  # (maps, queries)
    some: NDArray[np.bool_] = np.any(left > NOTHING, axis=0)
    shown = [query for query, any_left in zip(able, some.tolist(), strict=True) if any_left]
    transform = KeysDropped(
        tuple(keys[key].label for key in dropped),
        float(1 - left.mean()) if able else 1.0,
        tuple(queries[query].label for query in able if query not in shown),
        own=sum(len(own.dropped) > len(dropped) for own in maps),
        by_columns=transforms.drop_sink and VALUE_NORMS not in captured.extras,
    )
    return replace(
        _with(exhibit, tuple(maps), transform),
        queries=tuple(shown),
        keys=tuple(key for key in exhibit.keys if key not in dropped),
        dropped=dropped,
    )


def _rolled_out(exhibit: Exhibit, layers: str | None, between: Between) -> tuple[HeadMap, ...]:
    captured = exhibit.capture
    if captured.transformed_by(NormBased):
        raise UsageError("rows that do not sum to 1 cannot be rolled out", "leave one of them out")
    if captured.kind in ("cross", "answer"):
        raise UsageError(
            "attention from one text to another cannot be rolled out",
            f"leave {option('rollout')} out",
        )
    if exhibit.maps and captured.heads != every_head(captured.model.heads_per_layer):
        raise UsageError(
            f"{option('rollout')} needs all heads of all layers",
            f"capture the text again with {option('heads', 'all')}",
        )
    through = list(rollout(_head_maps(exhibit), between))
    named = choose_heads([1] * len(through), layers, None) if layers else ()
    return tuple(through[head.layer] for head in named) or tuple(through[-1:])


def _dropped_keys(tokens: Sequence[Token], transforms: Transforms) -> tuple[int, ...]:
    others = find_positions(tokens, transforms.drop_keys, "drop_keys")
    if len(others) == len(tokens):
        raise UsageError(f"{option('drop_keys')} leaves no key", "leave at least one")
    return tuple(sorted({*([0] if transforms.drop_sink else []), *others}))


def queries_of(
    tokens: Sequence[Token], filters: Filters, *, one_query: bool = False
) -> tuple[int, ...]:
    """The positions of the queries that are shown; a UsageError for one that is not in the text."""
    if not one_query:
        return _positions(tokens, filters.queries, "queries")
    if not filters.queries:
        return (last_word(tokens),)
    if len(filters.queries) > 1:
        raise UsageError("this view shows one query", f"give {option('queries')} once")
    return (one_position(tokens, filters.queries[0], "queries"),)


def keys_of(tokens: Sequence[Token], filters: Filters) -> tuple[int, ...]:
    """The positions of the keys that are shown."""
    return _positions(tokens, filters.keys, "keys")


def _positions(tokens: Sequence[Token], names: Sequence[str], parameter: str) -> tuple[int, ...]:
    return find_positions(tokens, names, parameter) if names else tuple(range(len(tokens)))


def distances_of(captured: Capture, filters: Filters) -> tuple[int, ...]:
    """The distances of links that are left out; empty between two texts."""
    if filters.skip and captured.kind == "cross":
        raise UsageError(
            "between two texts, no token is the token itself or the previous one",
            f"leave {option('skip')} out",
        )
    return filters.skip
