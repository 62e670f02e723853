"""What was asked to be shown of a capture; and its transforms, applied in one order.

    weighted ─► merge ─► rollout ─► keys left out ─► reduce

Each names itself in the capture, so that nobody takes what it made for a raw pattern.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnviz.data.capture import NORM_BASED, Capture
from attnviz.data.exhibit import HeadMap
from attnviz.data.head import choose_heads, every_head
from attnviz.data.positions import find_positions, last_word, one_position
from attnviz.data.tokens import Token
from attnviz.errors import UsageError
from attnviz.transforms.drop import without_keys
from attnviz.transforms.merge import Unit, merged
from attnviz.transforms.reduce import How, Over, reduce_maps
from attnviz.transforms.rollout import rollout
from attnviz.transforms.weighted import weighted


@dataclass(frozen=True)
class ShowOptions:
    """What to show of a capture; `queries` and `keys` as on the command line.

    They are applied in this order. `scores` stand in the place of weights; `weighted` multiplies
    each with the length of what its key adds; `merge` joins the pieces of characters or of words;
    `rollout` multiplies the layers, and shows the last one's or those of `rollout_layers`;
    `drop_sink` takes the first token's column away, `drop_keys` others; `reduce` joins heads.
    Of what is left, `queries`, `keys`, `skip` (distances), `least` and `top` are shown.
    `one_query` asks for exactly one position; without a name, the last word's.
    """

    scores: bool = False
    weighted: bool = False
    merge: Unit | None = None
    rollout: bool = False
    rollout_layers: str | None = None
    drop_sink: bool = False
    drop_keys: Sequence[str] = ()
    queries: Sequence[str] = ()
    keys: Sequence[str] = ()
    top: int | None = None
    least: float = 0.0
    skip: tuple[int, ...] = ()
    reduce: How | None = None
    over: Over = "all"
    one_query: bool = False

    @property
    def transforming(self) -> bool:
        """Whether whole patterns are needed, as they are changed before anything is shown."""
        changes = self.scores, self.weighted, self.merge, self.rollout, self.reduce
        return any((*changes, self.drop_sink, self.drop_keys))


PLAIN = ShowOptions()


@dataclass(frozen=True, eq=False)
class Transformed:
    """A capture whose transforms are named, and the maps that they made of its patterns.

    `queries` are those asked for that still look at something, `dropped` the keys left out.
    """

    capture: Capture
    maps: tuple[HeadMap, ...]
    queries: tuple[int, ...]
    dropped: tuple[int, ...]


def transformed(captured: Capture, options: ShowOptions) -> Transformed:
    """Apply the transforms, in their order.

    Raises:
        UsageError: a token that is not in the text, or a transform that this capture cannot have.
    """
    if options.scores and not captured.signed:
        raise UsageError("a saved capture holds weights, not scores", "give the text again")
    if captured.signed and replace(options, scores=False).transforming:
        raise UsageError("scores are shown as they are", "leave all that would change them out")
    captured = weighted(captured) if options.weighted else captured
    captured = merged(captured, options.merge) if options.merge else captured
    queries = queries_of(captured.query_tokens, options)
    maps = tuple(HeadMap(h.layer, h.head, weights=captured.weights(h)) for h in captured.heads)
    done: list[str] = []
    if options.rollout:
        maps = _rolled_out(captured, maps, options.rollout_layers)
        done.append(ROLLOUT)
    dropped = _dropped_keys(captured.key_tokens, options)
    if dropped and maps:
        seen = captured.allowed_count()
        able = [q for q in queries if seen[q] > sum(key < seen[q] for key in dropped)]
        without = without_keys(maps, dropped, able)
        maps = without.maps
        queries = tuple(query for query in able if query not in without.empty)
        names = " and ".join(captured.key_tokens[key].label for key in dropped)
        done.append(f"{without.share:.0%} of the weight was on {names}, which is left out")
        if without.empty:
            done.append(_of_nothing([captured.query_tokens[query] for query in without.empty]))
    if options.reduce is not None:
        maps = reduce_maps(maps, options.reduce, options.over)
        done.append(f"{options.reduce} over {_OVER[options.over]}")
    named = replace(captured, transforms=(*captured.transforms, *done))
    return Transformed(named, maps, queries, dropped)


_OVER: dict[Over, str] = {"heads": "heads", "layers": "layers", "all": "all of these"}


ROLLOUT = (
    "attention rollout: half of each layer's mean is the token itself; where tokens see only what "
    "stands before them, it drifts to the first"
)


def _rolled_out(
    captured: Capture, maps: tuple[HeadMap, ...], layers: str | None
) -> tuple[HeadMap, ...]:
    """The rollout to the layers that are named, or to the last.

    Raises:
        UsageError: no such layer; not all heads are there, or they look at another text.
    """
    every = every_head(captured.model.heads_per_layer)
    if captured.transforms and captured.transforms[0] == NORM_BASED:
        raise UsageError("rows that do not sum to 1 cannot be rolled out", "leave one of them out")
    if captured.kind == "cross":
        raise UsageError("attention to another text cannot be rolled out", "leave --rollout out")
    if maps and captured.heads != every:
        raise UsageError(
            "--rollout needs all heads of all layers", "capture the text again with --head all"
        )
    through = list(rollout(maps))
    named = choose_heads([1] * len(through), layers, None) if layers else ()
    return tuple(through[head.layer] for head in named) or tuple(through[-1:])


def _of_nothing(tokens: Sequence[Token]) -> str:
    """Who has no row any more."""
    if len(tokens) > 4:
        return f"{len(tokens)} queries looked at nothing else"
    return f"{' and '.join(token.label for token in tokens)} looked at nothing else"


def _dropped_keys(tokens: Sequence[Token], options: ShowOptions) -> tuple[int, ...]:
    """The positions of the keys that are left out."""
    others = find_positions(tokens, options.drop_keys, "drop_keys")
    return tuple(sorted({*([0] if options.drop_sink else []), *others}))


def queries_of(tokens: Sequence[Token], options: ShowOptions) -> tuple[int, ...]:
    if not options.one_query:
        return positions_of(tokens, options.queries, "queries")
    if not options.queries:
        return (last_word(tokens),)
    if len(options.queries) > 1:
        raise UsageError("this view shows one query", "give --query once")
    return (one_position(tokens, options.queries[0], "queries"),)


def positions_of(tokens: Sequence[Token], names: Sequence[str], option: str) -> tuple[int, ...]:
    return find_positions(tokens, names, option) if names else tuple(range(len(tokens)))
