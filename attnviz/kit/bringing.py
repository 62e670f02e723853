"""The links of a text's last position that bring the next token.

    last position ─► direct effects on the likeliest next tokens ─► the key that stands out

The rule is in docs/selection.md, with its results on texts that it was not made for.
"""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import ModelError, UsageError, option
from attnviz.kit.choose import (
    Finder,
    HeadPlan,
    acting_choice,
    bringing_choice,
    finder_for,
    first_query,
    idle_of,
    moves_are_found,
    plan_heads,
    position_of,
    with_finding,
)
from attnviz.kit.intervene import keep_next_tokens
from attnviz.kit.prepare import HeadOptions, Prepared
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import RESTS, VALUE_NORMS, Capture
from attnviz.records.exhibit import Choice, Exhibit
from attnviz.records.heads import Bringing, Head, every_head, grouped
from attnviz.records.merging import word_groups
from attnviz.records.predict import LogitRows
from attnviz.records.rests import FindMovingHead, FindRests, find_rests, with_rests

if TYPE_CHECKING:
    from attnviz.models.frozen.last import LastRead

NEARLY, MOST = 0.5, 5
"""The least share of the likeliest token's probability, and the most tokens, to follow."""
FAR_OUT = 1e6
"""The value of an effect that no random token comes near to."""
LONGEST = 60
"""The most letters of a token in the output."""
TOLD = 8
"""Heads whose effects are kept, the strongest first."""
SAMPLED = 512
"""The queries of a long text whose rows are read to pick a head."""
DRAWN, OFTEN = 100, 0.95
"""The number of random tokens, and of those below an effect that stands out."""


def with_links(prepared: Prepared, captured: Capture, read: "LastRead | None" = None) -> Capture:
    """A capture with the facts for the choice of a head: rests, and the next token.

    It takes a run of models whose values can be read, unless its last position is `read` already.
    If not all heads are held, or they are chosen otherwise, only the lengths by which rests are
    found are added.
    """
    if captured.signed:
        return captured
    every = captured.heads == every_head(captured.model.heads_per_layer)
    if not every or acting_choice(captured) or not moves_are_found(captured):
        return with_rests(prepared.with_lengths(captured))
    read = read_last(prepared) if read is None else read
    lengths = prepared.value_lengths() if read is None else read.lengths
    if lengths is not None:
        captured = replace(captured, extras={**captured.extras, VALUE_NORMS: lengths})
    rests = find_rests(captured)
    return replace(
        captured,
        extras={**captured.extras, RESTS: rests.array(captured.model.heads_per_layer)},
        brings=None if read is None else bringing(prepared, read, rests),
    )


def pick_before(prepared: Prepared, plan: HeadPlan) -> tuple[Prepared, HeadPlan]:
    """Pick the head if patterns are too large to be kept, in runs that keep none.

    Its rests and its effects are found from `SAMPLED` queries, evenly spaced.
    """
    heads = plan.recorded
    if plan.choice or prepared.budget.holds_whole(heads):
        return prepared, plan
    prepared.budget.check_patterns(heads, 0)
    empty = prepared.empty
    find: Finder | None = None if moves_are_found(empty) else finder_for(empty)
    if find is None:
        prepared, rests = with_bringing(prepared)
        if (choice := bringing_choice(prepared.empty, heads)) is not None:
            return prepared, HeadPlan(heads, choice)
        find = FindMovingHead(prepared.empty, rests)
    prepared.run(heads, find, _sampled(prepared) if isinstance(find, FindMovingHead) else None)
    return prepared, HeadPlan(heads, find.choice())


def with_bringing(prepared: Prepared) -> tuple[Prepared, FindRests]:
    """The text with the next token, the links that bring it, and the rests of all heads."""
    read, rests = read_with_rests(prepared)
    found = {RESTS: rests.array(prepared.model.identity.heads_per_layer)}
    if rests.lengths is not None:  # later runs need not read them again
        found[VALUE_NORMS] = rests.lengths
    brings = None if read is None else bringing(prepared, read, rests)
    empty = replace(prepared.empty, brings=brings, extras={**prepared.empty.extras, **found})
    return replace(prepared, empty=empty), rests


def read_with_rests(
    prepared: Prepared, *, follow: bool = True
) -> "tuple[LastRead | None, FindRests]":
    """Read the last position, and find the rests of all heads, in one run if that can be followed.

    In a long text, rests are found from `SAMPLED` queries.
    """
    empty, per_layer = prepared.empty, prepared.model.identity.heads_per_layer
    unread = np.full((len(per_layer), max(per_layer), prepared.shape[1]), np.nan, np.float32)
    queries, named = _sampled(prepared), empty.named_heads
    rests = FindRests(prepared.shape, unread, empty.causal, empty.one_sequence, queries, named)
    read = read_last(prepared, rests) if follow else None
    if read is None:
        rests = replace(rests, lengths=prepared.value_lengths(), _sums={})
        prepared.run(every_head(per_layer), rests, rests.queries)
    return read, rests


def _sampled(prepared: Prepared) -> tuple[int, ...]:
    """The queries of a text that are read: all, or `SAMPLED` evenly spaced ones."""
    spaced = np.linspace(0, prepared.shape[0] - 1, min(SAMPLED, prepared.shape[0]), dtype=int)
    return tuple(spaced.tolist())


def read_last(prepared: Prepared, rests: FindRests | None = None) -> "LastRead | None":
    """Read the last position of the run; None if its prediction cannot be followed.

    `rests`: takes its rows in the same run, which may not reach its end.
    """
    if prepared.model.can("last"):
        with suppress(ModelError):
            return prepared.model.last(prepared.ids, rests)
    return None


def bringing(prepared: Prepared, read: "LastRead", rests: FindRests) -> Bringing | None:
    """Find the links to the key that most brings a next token; None without such a key.

    The position itself with the pieces of its word, the first token, special tokens, and the rests
    of each head are left out. Among several tokens, the one with the largest effect times the root
    of its probability is followed.
    """
    keep = keep_next_tokens(prepared, MOST)
    keep(LogitRows(None, np.array([len(prepared.ids) - 1]), read.logit_row))
    likeliest = keep.next_tokens[0].candidates
    several = [c for c in likeliest if c.probability >= NEARLY * likeliest[0].probability]
    drawn = np.random.default_rng(0).integers(len(read.logits), size=DRAWN).tolist()
    kept = _kept(prepared, rests)
    squares = read.brought([*(c.id for c in several), *drawn], kept)
    scale = np.sqrt([c.probability for c in several])
    best = int((squares[: len(several)].max(axis=1) * scale).argmax())
    key = int(squares[best].argmax())
    if not squares[best, key] > 0:
        return None
    bar = float(np.quantile(squares[len(several) :].max(axis=1), OFTEN))
    by_head = {
        Head(layer, head): float(effect) * kept[layer][head, key]
        for layer, effects in read.at_key(several[best].id, key).items()
        for head, effect in enumerate(effects)
    }
    return Bringing(
        likeliest=tuple((c.quoted[:LONGEST], c.probability) for c in likeliest[:2]),
        token=several[best].quoted[:LONGEST],
        start=prepared.empty.key_tokens[key].start,
        effects=tuple(sorted(by_head.items(), key=lambda each: -each[1])[:TOLD]),
        times=min(float(squares[best, key]) / max(bar, 1e-30), FAR_OUT),
    )


def _kept(prepared: Prepared, rests: FindRests) -> dict[int, NDArray[np.bool_]]:
    """The links that may bring a token, for each layer (h, n)."""
    tokens = prepared.empty.key_tokens
    keys = np.array([not token.special and not token.inset for token in tokens])
    keys[0], keys[list(word_groups(tokens)[-1])] = False, False
    heads = every_head(prepared.model.identity.heads_per_layer)
    kept = grouped((head.layer, keys & ~rests.of(head)) for head in heads)
    return {layer: np.stack(rows) for layer, rows in kept.items()}


# One head and one query of a text: those that a user names, or those that `show` would pick.


def one_row(
    prepared: Prepared, head: str | None, query: str | None
) -> tuple[Choice, int, Exhibit | None]:
    """The head with the reason for its choice, the query, and the pattern if a rule picked it.

    Without `query` it is that of the finding's first link, or the last word.
    """
    choice, shown = _head(prepared, head)
    position = first_query(shown.finding) if shown and query is None else None
    tokens = prepared.empty.query_tokens
    return choice, position_of(tokens, query) if position is None else position, shown


def _head(prepared: Prepared, named: str | None) -> tuple[Choice, Exhibit | None]:
    """The head, the reason for its choice, and its pattern, or None if the user named the head."""
    model = prepared.model
    heads = HeadOptions(heads=named)
    if heads.of_sets:
        from attnviz.kit.sets import with_names

        heads = with_names(model, heads, prepared.options.max_memory)
    plan = plan_heads(model.identity, model.card.heads, heads)
    if named is not None and len(plan.recorded) != 1:
        raise UsageError(
            f"{option('head', named)} names {len(plan.recorded)} heads",
            f"name one, as in {option('head', 'L1H2')}",
        )
    if plan.choice and not plan.choice.picked:
        (head,) = plan.choice.heads
        if not prepared.empty.named(*head) or prepared.empty.signed:
            return plan.choice, None
        weights = prepared.record((head,)).weights(head)
        return replace(plan.choice, idle=idle_of(prepared.empty, head, weights)), None
    captured = with_links(prepared, prepared.record(plan.recorded))
    shown = picked_head(captured, plan)
    assert shown.choice is not None
    return shown.choice, shown


def picked_head(captured: Capture, plan: HeadPlan) -> Exhibit:
    """The pattern of the head that a rule picks in a capture `with_links`, and its finding."""
    choice = plan.pick(captured)
    (head,) = choice.heads
    return with_finding(whole_exhibit(captured.only(choice.heads), choice), head)
