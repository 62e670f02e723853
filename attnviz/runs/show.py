"""Capture to exhibit: which heads, rows and columns are shown, and no more kept than they need.

    capture ─► pick heads ─► merge, reduce ─► exhibit

A text too long to keep its patterns whole is run once the heads are picked, straight into
what its view needs of them. Nothing here prints.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from attnviz.analyses.default_head import Choice, default_head, generic_choice
from attnviz.analyses.generic_head import FindTellingHead
from attnviz.data.capture import Capture
from attnviz.data.exhibit import Exhibit
from attnviz.data.head import Head, choose_heads
from attnviz.errors import UsageError
from attnviz.runs.budget import LINK_BYTES, PICTURE_BYTES
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import Prepared, heads_to_record, prepare
from attnviz.transforms.apply import ShowOptions, positions_of, queries_of, transformed
from attnviz.transforms.keep import KeepCells, KeepLinks

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


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
    if options.named:
        heads = choose_heads(captured.model.heads_per_layer, options.layers, options.heads)
        missing = [str(head) for head in heads if head not in captured.heads]
        if missing:
            raise UsageError(
                f"the capture does not hold {', '.join(missing[:8])}",
                f"it holds {listed(captured.heads)}; capture the text again with --head all",
            )
        return Picked(captured.only(heads), heads, listed(heads))
    if options.everything or captured.signed:  # no rule picks a head by its scores
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
    made = transformed(picked.capture, options)
    keys = positions_of(made.capture.key_tokens, options.keys, "keys")
    return Exhibit(
        capture=made.capture,
        maps=made.maps,
        queries=made.queries,
        keys=tuple(key for key in keys if key not in made.dropped),
        top=options.top,
        least=-inf if made.capture.signed else options.least,
        skip=_skip(made.capture, options.skip),
        dropped=made.dropped,
        about=picked.about,
    )


@dataclass(frozen=True)
class Needs:
    """What is needed of maps that are too large to keep: without links or cells, all of them.

    `links`: so many of the strongest of each row. `cells`: blocks, as many a side as this
    says for these heads and so many (queries, keys). `norms`: those of the values, too.
    """

    links: int | None = None
    norms: bool = False
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
        captured = prepared.record(picked.heads, scores=True) if show.scores else picked.capture
        picked = replace(picked, capture=captured)
        return _shown(prepared, picked, show, needs)
    reducing = _reducing(prepared, picked.heads, show, needs)
    # merged tokens have other positions, and a layer's rollout takes every row of the one before
    some = (show.one_query or show.queries) and not (show.merge or show.rollout)
    rows = queries_of(prepared.empty.query_tokens, show) if some else None
    if reducing is None:
        captured = prepared.record(picked.heads, rows, scores=show.scores)
        return _shown(prepared, replace(picked, capture=captured), show, needs)
    links = prepared.shape[0] * (needs.links or 0) * LINK_BYTES
    prepared.budget.check_patterns(picked.heads, len(picked.heads) * (links or PICTURE_BYTES))
    prepared.run(picked.heads, reducing, rows)
    return picked, replace(exhibit(picked, show), maps=reducing.maps())


def _shown(
    prepared: Prepared, picked: Picked, show: ShowOptions, needs: Needs
) -> tuple[Picked, Exhibit]:
    if show.weighted or needs.norms:
        picked = replace(picked, capture=prepared.with_norms(picked.capture))
    return picked, exhibit(picked, show)


def _pick_before(
    prepared: Prepared, heads: tuple[Head, ...], options: HeadOptions
) -> Picked | None:
    """The heads to show, where they are known before anything is kept.

    None: one of `heads` is picked by their patterns. Where these are too large to keep, it
    is picked by its score, in a run of its own.
    """
    if options.named or options.everything:
        return Picked(prepared.empty, heads, listed(heads))
    if prepared.model.card.heads or prepared.budget.holds_whole(heads):
        return None
    scores = FindTellingHead(causal=prepared.empty.causal)
    prepared.budget.check_patterns(heads, 0)
    prepared.run(heads, scores)
    return _picked(prepared.empty, generic_choice(scores.highest()))


def _reducing(
    prepared: Prepared, heads: Sequence[Head], show: ShowOptions, needs: Needs
) -> KeepLinks | KeepCells | None:
    """The consumer that keeps just what is needed; None where everything is kept."""
    if show.transforming or prepared.budget.holds_whole(heads):
        return None
    captured = prepared.empty
    keys = positions_of(captured.key_tokens, show.keys, "keys")
    if needs.links is not None:
        skip = _skip(captured, show.skip)
        return KeepLinks(prepared.shape[0], keys, captured.causal, needs.links, show.least, skip)
    if needs.cells is not None and show.top is None and show.least <= 0 and not show.skip:
        queries = queries_of(captured.query_tokens, show)
        most = needs.cells(heads, (len(queries), len(keys)))
        if max(len(queries), len(keys)) > most:
            return KeepCells(queries, keys, captured.causal, most)
    return None


def _skip(captured: Capture, distances: tuple[int, ...]) -> tuple[int, ...]:
    if distances and captured.kind == "cross":
        raise UsageError(
            "between two texts no token is itself or the one before",
            "leave --no-self and --no-previous out",
        )
    return distances
