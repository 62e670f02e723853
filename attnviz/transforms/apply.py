"""A capture to an exhibit: its transforms, applied in one order, and what is shown of the result.

    weighted ─► merged ─► rolled out ─► keys dropped ─► reduced

Each is recorded in the capture, so that nobody takes its result for a raw pattern.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from attnviz.data.capture import Capture
from attnviz.data.exhibit import Choice, Exhibit, Filters, HeadMap
from attnviz.data.head import choose_heads, every_head
from attnviz.data.positions import find_positions, last_word, one_position
from attnviz.data.tokens import Token
from attnviz.data.transforms import (
    PLAIN,
    KeysDropped,
    NormBased,
    Reduced,
    RolledOut,
    Transform,
    Transforms,
)
from attnviz.errors import UsageError, option
from attnviz.transforms.between import Between, go_on
from attnviz.transforms.drop import without_keys
from attnviz.transforms.merge import merged
from attnviz.transforms.reduce import reduce_maps
from attnviz.transforms.rollout import rollout
from attnviz.transforms.weighted import weighted

EVERYTHING = Filters()


def _maps_of(capture: Capture) -> tuple[HeadMap, ...]:
    """Every head of a capture as a map."""
    return tuple(
        HeadMap(layer.layer, head, weights=weights)
        for layer in capture.layers
        for head, weights in zip(layer.heads, layer.weights, strict=True)
    )


def whole_exhibit(capture: Capture, choice: Choice | None = None, caption: str = "") -> Exhibit:
    """Every map of a capture, with every row and column."""
    queries, keys = range(len(capture.query_tokens)), range(len(capture.key_tokens))
    return Exhibit(
        capture, _maps_of(capture), tuple(queries), tuple(keys), choice=choice, caption=caption
    )


def exhibit_of(
    captured: Capture,
    choice: Choice,
    transforms: Transforms = PLAIN,
    filters: Filters = EVERYTHING,
    *,
    one_query: bool = False,
    between: Between = go_on,
) -> Exhibit:
    """Put the heads of a capture on show.

    Args:
        captured: whole patterns of the heads that are shown.
        choice: which heads these are, and why.
        transforms: applied in their order.
        filters: what is shown of the result.
        one_query: exactly one query is shown; the last word's where none is named.
        between: called between the layers, as each transform takes a while on a long text.

    Raises:
        UsageError: a token that is not in the text, an ambiguous one where one position is
            needed, or a transform that this capture cannot have.
    """
    _check_signed(captured, transforms)
    captured = weighted(captured) if transforms.weighted else captured
    captured = merged(captured, transforms.merge, between) if transforms.merge else captured
    queries = queries_of(captured.query_tokens, filters, one_query=one_query)
    made = replace(_whole(captured, choice, filters), queries=queries)
    if transforms.rollout:
        rolled = _rolled_out(made, transforms.rollout_layers, between)
        made = _with(made, rolled, RolledOut())
    made = _without_keys(made, _dropped_keys(captured.key_tokens, transforms), between)
    if transforms.reduce is not None:
        over = transforms.over or "all"
        maps = reduce_maps(_head_maps(made), transforms.reduce, over)
        made = _with(made, maps, Reduced(transforms.reduce, over))
    return made


def _whole(captured: Capture, choice: Choice, filters: Filters) -> Exhibit:
    return Exhibit(
        capture=captured,
        maps=_maps_of(captured),
        queries=(),
        keys=keys_of(captured.key_tokens, filters),
        top=filters.top,
        least=-inf if captured.signed else filters.least,
        skip=distances_of(captured, filters),
        choice=choice,
    )


def _with(exhibit: Exhibit, maps: tuple[HeadMap, ...], transform: Transform) -> Exhibit:
    """The exhibit with maps that a transform made."""
    captured = exhibit.capture
    named = replace(captured, transforms=(*captured.transforms, transform))
    return replace(exhibit, capture=named, maps=maps)


def _head_maps(exhibit: Exhibit) -> tuple[HeadMap, ...]:
    return tuple(head_map for head_map in exhibit.maps if isinstance(head_map, HeadMap))


def _check_signed(captured: Capture, transforms: Transforms) -> None:
    """Scores are no shares of attention, and no transform of shares is applied to them."""
    if transforms.scores and not captured.signed:
        raise UsageError("a saved capture holds weights, not scores", "give the text again")
    if captured.signed and replace(transforms, scores=False).any:
        raise UsageError("scores are shown unchanged", "leave out every option that changes them")


def _without_keys(exhibit: Exhibit, dropped: tuple[int, ...], between: Between) -> Exhibit:
    """The exhibit without some keys; a query that attends to nothing else is not shown."""
    keys = tuple(key for key in exhibit.keys if key not in dropped)
    if not dropped or not exhibit.maps:
        return replace(exhibit, keys=keys, dropped=dropped)
    captured, seen = exhibit.capture, exhibit.capture.allowed_count()
    able = [q for q in exhibit.queries if seen[q] > sum(key < seen[q] for key in dropped)]
    without = without_keys(_head_maps(exhibit), dropped, able, between)
    transform = KeysDropped(
        tuple(captured.key_tokens[key].label for key in dropped),
        without.share,
        tuple(captured.query_tokens[query].label for query in without.empty),
    )
    return replace(
        _with(exhibit, without.maps, transform),
        queries=tuple(query for query in able if query not in without.empty),
        keys=keys,
        dropped=dropped,
    )


def _rolled_out(exhibit: Exhibit, layers: str | None, between: Between) -> tuple[HeadMap, ...]:
    """The rollout to the layers that are named, or to the last.

    Raises:
        UsageError: no such layer; not all heads are there, or they attend to another text.
    """
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
    """The positions of the keys that are left out."""
    others = find_positions(tokens, transforms.drop_keys, "drop_keys")
    if len(others) == len(tokens):
        raise UsageError(f"{option('drop_keys')} takes every key away", "leave at least one")
    return tuple(sorted({*([0] if transforms.drop_sink else []), *others}))


def queries_of(
    tokens: Sequence[Token], filters: Filters, *, one_query: bool = False
) -> tuple[int, ...]:
    """The positions of the queries that are shown.

    Raises:
        UsageError: one that is not in the text, or several where one is shown.
    """
    if not one_query:
        return _positions(tokens, filters.queries, "queries")
    if not filters.queries:
        return (last_word(tokens),)
    if len(filters.queries) > 1:
        raise UsageError("this view shows one query", f"give {option('queries')} once")
    return (one_position(tokens, filters.queries[0], "queries"),)


def keys_of(tokens: Sequence[Token], filters: Filters) -> tuple[int, ...]:
    """The positions of the keys that are shown; raises what `queries_of` raises."""
    return _positions(tokens, filters.keys, "keys")


def _positions(tokens: Sequence[Token], names: Sequence[str], parameter: str) -> tuple[int, ...]:
    return find_positions(tokens, names, parameter) if names else tuple(range(len(tokens)))


def distances_of(captured: Capture, filters: Filters) -> tuple[int, ...]:
    """The distances of links that are left out.

    Raises:
        UsageError: there is no distance between two texts.
    """
    if filters.skip and captured.kind == "cross":
        raise UsageError(
            "between two texts, no token is the token itself or the previous one",
            f"leave {option('no_self')} and {option('no_previous')} out",
        )
    return filters.skip
