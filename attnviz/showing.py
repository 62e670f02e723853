"""Capture to exhibit: which heads, rows and columns are shown, and no more kept than they need.

    capture ─► pick heads ─► merge, reduce ─► exhibit

A text too long to keep its patterns whole is run once the heads are picked, straight into
what its view needs of them. Nothing here prints.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attnviz.analyses.default_head import Choice, default_head, generic_choice
from attnviz.analyses.generic_head import GenericScores
from attnviz.data.capture import Capture
from attnviz.data.exhibit import Exhibit, HeadMap
from attnviz.data.heads import Head, choose_heads, every_head
from attnviz.data.positions import find_positions, last_word, one_position
from attnviz.data.tokens import Token
from attnviz.errors import UsageError
from attnviz.pipeline import (
    LINK_BYTES,
    PICTURE_BYTES,
    HeadOptions,
    Prepared,
    TextOptions,
    heads_to_record,
    prepare,
)
from attnviz.transforms.drop import without_keys
from attnviz.transforms.keep import KeepCells, KeepLinks
from attnviz.transforms.merge import Unit, merged
from attnviz.transforms.reduce import How, Over, reduce_maps
from attnviz.transforms.rollout import rollout

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class ShowOptions:
    """What to show of a capture; `queries` and `keys` as on the command line.

    They are applied in this order. `merge` joins the pieces of characters or of words;
    `rollout` multiplies the layers, and shows the last one's or those of `rollout_layers`;
    `drop_sink` takes the first token's column away, `drop_keys` others; `reduce` joins heads.
    Of what is left, `queries`, `keys`, `skip` (distances), `least` and `top` are shown.
    `one_query` asks for exactly one position; without a name, the last word's.
    """

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
        return any((self.merge, self.rollout, self.drop_sink, self.drop_keys, self.reduce))


@dataclass(frozen=True)
class Picked:
    """The part of a capture to be shown, and which heads these are.

    `capture` holds what was kept whole of them; `title` names them; `why` says why just
    these, where nobody chose them.
    """

    capture: Capture
    heads: tuple[Head, ...]
    title: str
    why: str = ""

    @property
    def about(self) -> str:
        """The sentence above every view."""
        return f"{self.title} ({self.why}; others: --head all)" if self.why else self.title


def pick_heads(captured: Capture, options: HeadOptions) -> Picked:
    """Pick the heads to show, from a fresh or a saved capture.

    Raises:
        UsageError: a head that the model does not have, or that the capture lacks.
    """
    if options.chosen:
        heads = choose_heads(captured.model.heads_per_layer, options.layers, options.heads)
        missing = [str(head) for head in heads if head not in captured.heads]
        if missing:
            raise UsageError(
                f"the capture does not hold {', '.join(missing[:8])}",
                f"it holds {listed(captured.heads)}; capture the text again with --head all",
            )
        return Picked(captured.only(heads), heads, listed(heads))
    if options.everything:
        return Picked(captured, captured.heads, listed(captured.heads))
    if sum(captured.model.heads_per_layer) == 1:
        title = captured.named_heads[0].title if captured.named_heads else "L0H0"
        return Picked(captured, captured.heads, title)
    return _picked(captured, default_head(captured))


def _picked(captured: Capture, choice: Choice) -> Picked:
    """The one head that a rule chose."""
    of_it = captured.only((choice.head,))
    return Picked(of_it, (choice.head,), f"{choice.head}: {choice.title}", choice.why)


def listed(heads: Sequence[Head]) -> str:
    """`L0H1, L2H3`, or `L0H0 to L3H3 (16 heads)` where there are many."""
    names = [str(head) for head in heads]
    return (
        ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]} ({len(names)} heads)"
    )


def exhibit(picked: Picked, options: ShowOptions) -> Exhibit:
    """Put heads on show: reduced if asked for, filtered by query, key and weight.

    Raises:
        UsageError: a query or key that is not in the text, or an ambiguous one where
            one position is needed.
    """
    captured = merged(picked.capture, options.merge) if options.merge else picked.capture
    queries = _queries(captured.query_tokens, options)
    keys = _positions(captured.key_tokens, options.keys, "--key")
    maps = tuple(HeadMap(h.layer, h.head, weights=captured.weights(h)) for h in captured.heads)
    done: list[str] = []
    if options.rollout:
        maps = _rolled_out(captured, maps, options.rollout_layers)
        done.append(ROLLOUT)
    dropped = _dropped_keys(captured.key_tokens, options)
    if dropped and maps:
        without = without_keys(maps, dropped, queries)
        maps, keys = without.maps, tuple(key for key in keys if key not in dropped)
        queries = tuple(query for query in queries if query not in without.empty)
        names = " and ".join(captured.key_tokens[key].label for key in dropped)
        done.append(f"{without.share:.0%} of the weight was on {names}, which is left out")
    if options.reduce is not None:
        maps = reduce_maps(maps, options.reduce, options.over)
        done.append(f"{options.reduce} over {_OVER[options.over]}")
    return Exhibit(
        capture=replace(captured, transforms=(*captured.transforms, *done)),
        maps=maps,
        queries=queries,
        keys=keys,
        top=options.top,
        least=options.least,
        skip=_skip(captured, options.skip),
        dropped=dropped,
        about=picked.about,
    )


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
    if captured.kind == "cross":
        raise UsageError("attention to another text cannot be rolled out", "leave --rollout out")
    if maps and captured.heads != every:
        raise UsageError(
            "--rollout needs all heads of all layers", "capture the text again with --head all"
        )
    through = list(rollout(maps))
    named = choose_heads([1] * len(through), layers, None) if layers else ()
    return tuple(through[head.layer] for head in named) or tuple(through[-1:])


def _dropped_keys(tokens: Sequence[Token], options: ShowOptions) -> tuple[int, ...]:
    """The positions of the keys that are left out."""
    others = find_positions(tokens, options.drop_keys, "--drop-key")
    return tuple(sorted({*([0] if options.drop_sink else []), *others}))


@dataclass(frozen=True)
class Needs:
    """What is needed of maps that are too large to keep: without either, all of them.

    `links`: so many of the strongest of each row. `cells`: blocks, as many a side as this
    says for these heads and so many (queries, keys).
    """

    links: int | None = None
    cells: Callable[[Sequence[Head], tuple[int, int]], int] | None = None


def see(
    model: "LoadedModel",
    text: str,
    options: TextOptions,
    heads: HeadOptions,
    show: ShowOptions,
    needs: Needs,
) -> tuple[Picked, Exhibit]:
    """Run a text, and put the heads asked for on show: whole, or as much as is needed of them.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: heads, queries or keys that are not there.
    """
    prepared = prepare(model, text, options)
    wanted = heads_to_record(model, heads)
    picked = _pick_before(prepared, wanted, heads)
    if picked is None:
        picked = pick_heads(prepared.record(wanted), heads)
        return picked, exhibit(picked, show)
    reducing = _reducing(prepared, picked.heads, show, needs)
    # merged tokens have other positions, and a saved capture has every row
    some = show.one_query or (show.queries and not show.merge)
    rows = exhibit(picked, show).queries if some else None
    if reducing is None:
        picked = replace(picked, capture=prepared.record(picked.heads, rows))
        return picked, exhibit(picked, show)
    links = prepared.shape[0] * (needs.links or 0) * LINK_BYTES
    prepared.check_memory(picked.heads, len(picked.heads) * (links or PICTURE_BYTES))
    prepared.run(picked.heads, reducing, rows)
    return picked, replace(exhibit(picked, show), maps=reducing.maps())


def _pick_before(
    prepared: Prepared, heads: tuple[Head, ...], options: HeadOptions
) -> Picked | None:
    """The heads to show, where they are known before anything is kept.

    None: one of `heads` is picked by their patterns. Where these are too large to keep, it
    is picked by its score, in a run of its own.
    """
    if options.chosen or options.everything:
        return Picked(prepared.frame, heads, listed(heads))
    if prepared.model.card.heads or prepared.fits_whole(heads):
        return None
    scores = GenericScores(causal=prepared.frame.causal)
    prepared.check_memory(heads, 0)
    prepared.run(heads, scores)
    return _picked(prepared.frame, generic_choice(scores.highest()))


def _reducing(
    prepared: Prepared, heads: Sequence[Head], show: ShowOptions, needs: Needs
) -> KeepLinks | KeepCells | None:
    """The consumer that keeps just what is needed; None where everything is kept."""
    if show.transforming or prepared.fits_whole(heads):
        return None
    frame = prepared.frame
    keys = _positions(frame.key_tokens, show.keys, "--key")
    if needs.links is not None:
        skip = _skip(frame, show.skip)
        return KeepLinks(prepared.shape[0], keys, frame.causal, needs.links, show.least, skip)
    if needs.cells is not None and show.top is None and show.least <= 0 and not show.skip:
        queries = _queries(frame.query_tokens, show)
        most = needs.cells(heads, (len(queries), len(keys)))
        if max(len(queries), len(keys)) > most:
            return KeepCells(queries, keys, frame.causal, most)
    return None


_OVER: dict[Over, str] = {"heads": "heads", "layers": "layers", "all": "all of these"}


def _skip(captured: Capture, distances: tuple[int, ...]) -> tuple[int, ...]:
    if distances and captured.kind == "cross":
        raise UsageError(
            "between two texts no token is itself or the one before",
            "leave --no-self and --no-previous out",
        )
    return distances


def _queries(tokens: Sequence[Token], options: ShowOptions) -> tuple[int, ...]:
    if not options.one_query:
        return _positions(tokens, options.queries, "--query")
    if not options.queries:
        return (last_word(tokens),)
    if len(options.queries) > 1:
        raise UsageError("this view shows one query", "give --query once")
    return (one_position(tokens, options.queries[0], "--query"),)


def _positions(tokens: Sequence[Token], names: Sequence[str], option: str) -> tuple[int, ...]:
    return find_positions(tokens, names, option) if names else tuple(range(len(tokens)))
