"""The choice of heads to record and to show, and its reasons: for every command and the API."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.builtin.evidence import acts_of, evidence
from attnviz.errors import UsageError, option
from attnviz.kit.prepare import HeadOptions
from attnviz.records.capture import Capture, FloatArray, ModelIdentity
from attnviz.records.exhibit import Choice, Exhibit, HeadMap, Map, links_of
from attnviz.records.heads import (
    Behaviour,
    Finding,
    FoundLink,
    Habit,
    Head,
    NamedHead,
    Tendency,
    choose_heads,
    every_head,
    listed,
)
from attnviz.records.positions import last_word, one_position
from attnviz.records.rests import FindMovingHead, find_rests, rests_in, rows_of
from attnviz.records.tokens import Token
from attnviz.records.transforms import UNBOUNDED, ErrorsOverTexts, MeanOverTexts, Relative

if TYPE_CHECKING:
    from attnviz.records.images import FindSeeingHead
    from attnviz.records.speech import FindAligningHead


@dataclass(frozen=True)
class HeadPlan:
    """The heads that are recorded, and the choice among them.

    `choice` is None where one of `recorded` is to be picked by its pattern.
    """

    recorded: tuple[Head, ...]
    choice: Choice | None = None

    def pick(self, captured: Capture) -> Choice:
        """The choice, made by the patterns if it is still open."""
        if self.choice is not None:
            return self.choice
        choice = default_head(captured)
        return replace(choice, why="held") if len(captured.heads) == 1 else choice


def plan_heads(
    identity: ModelIdentity,
    named: Sequence[NamedHead],
    options: HeadOptions,
    held: Sequence[Head] | None = None,
) -> HeadPlan:
    """Plan which heads are recorded and shown.

    `named`: the heads of the model's card; `held`: those of a saved capture, None before a run.
    """
    every = every_head(identity.heads_per_layer) if held is None else tuple(held)
    if options.named:
        heads = choose_heads(identity.heads_per_layer, options.layers, options.heads)
        missing = [head for head in heads if head not in every]
        if len(missing) < len(heads) and (options.heads or "all").strip() == "all":
            heads, missing = tuple(head for head in heads if head in every), []  # those it holds
        if missing:
            raise UsageError(
                f"the capture does not hold {listed(missing)}",
                f"it holds {listed(every)}; choose among these, or capture the text again with "
                f"{option('heads', 'all')}",
            )
        return HeadPlan(heads, Choice(heads))
    if options.everything:
        return HeadPlan(every, Choice(every))
    if sum(identity.heads_per_layer) == 1:
        return HeadPlan(every, Choice(every, "only", named[0] if named else None))
    only = only_named(named)
    if only is not None and only.head in every:
        return HeadPlan((only.head,), Choice((only.head,), "card", only))
    return HeadPlan(every)


def plan_capture(captured: Capture, options: HeadOptions) -> HeadPlan:
    """Plan which heads of a saved capture are shown."""
    if captured.signed and not options.named:  # no rule picks a head by its scores
        options = replace(options, everything=True)
    return plan_heads(captured.model, captured.named_heads, options, captured.heads)


def start_choice(captured: Capture) -> Choice | None:
    """The first head of a view of every head; None if not all are held."""
    if captured.heads != every_head(captured.model.heads_per_layer):
        return None
    return default_head(captured)


UNJUDGED = MeanOverTexts | ErrorsOverTexts | UNBOUNDED
"""Values of several texts, and others than shares, show no behaviour."""


def with_finding(exhibit: Exhibit, head: Head) -> Exhibit:
    """The exhibit with a finding about its picked head in the shown rows, or with what a head that
    a user chose does not do here."""
    maps = [each for each in exhibit.maps if (each.layer, each.head) == head]
    picked = exhibit.choice is not None and exhibit.choice.picked
    changed = exhibit.capture.signed or exhibit.capture.transformed_by(UNJUDGED)
    if maps and exhibit.choice and not (picked or changed):
        weights = maps[0].weights if isinstance(maps[0], HeadMap) else None
        idle = () if weights is None else idle_of(exhibit.capture, head, weights)
        return replace(exhibit, choice=replace(exhibit.choice, idle=idle))
    if not maps or not picked or exhibit.capture.transformed_by(Relative):
        return exhibit
    named = exhibit.choice.named if exhibit.choice else None
    return replace(exhibit, finding=finding_of(exhibit, maps[0], named))


def idle_of(capture: Capture, head: Head, weights: FloatArray) -> tuple[NamedHead, ...]:
    """What the card names a head for, and no row of its pattern (n, n) shows."""
    named = capture.named(*head)
    seen = evidence(capture) if named else {}
    acting = {behaviour for behaviour, found in seen.items() if acts_of(weights, found)}
    return tuple(each for each in named if each.behaviour in {*ORDER} - acting)


def first_query(finding: Finding | None) -> int | None:
    """The query of the first link in a finding; None without one."""
    return finding.links[0].query if finding is not None and finding.links else None


# The head to show when the user chose none: a head that the model's card names, if the words give
# evidence of its behaviour and the head acts on them, the most specific first (`ORDER`). Else the
# head that brings the next token, if its link stands out; else the one that moves most.

ORDER: tuple[Behaviour, ...] = ("mystery", "pronouns", "senses", "adjectives", "induction")
"""Behaviours, the most specific first."""


def default_head(capture: Capture) -> Choice:
    """The head with the clearest pattern on this text, among the heads of the capture."""
    choice = acting_choice(capture) or bringing_choice(capture, capture.heads)
    return choice or most_telling_head(capture)


def acting_choice(capture: Capture) -> Choice | None:
    """A head that the card names, if it acts on this text, or is the only one."""
    seen = evidence(capture) if capture.named_heads else {}
    acting = [
        named
        for named in capture.named_heads
        for behaviour, occasions in seen.items()
        if behaviour == named.behaviour
        and named.head in capture.heads
        and acts_of(capture.weights(named.head), occasions)
    ]
    if acting:
        first = min(acting, key=lambda named: ORDER.index(named.behaviour))
        return Choice((first.head,), "acts", first)
    only = only_named(capture.named_heads)
    if only is not None and only.head in capture.heads:
        return Choice((only.head,), "card", only)
    return None


def bringing_choice(capture: Capture, heads: Sequence[Head]) -> Choice | None:
    """The head among these whose link brings most of the next token, if it stands out."""
    brings = capture.brings
    stands_out = brings is not None and brings.times >= 1 and brings.head in heads
    if not (brings and stands_out):
        return None
    return Choice((brings.head,), "brings", start=capture.query_tokens[-1].start)


def only_named(heads: Sequence[NamedHead]) -> NamedHead | None:
    """The only head that a card names, for a behaviour without evidence in texts."""
    return heads[0] if len(heads) == 1 and heads[0].behaviour not in ORDER else None


def most_telling_head(capture: Capture) -> Choice:
    """The head with the highest measure; ties go to the earliest head."""
    if capture.kind == "answer" and capture.model.engine != "array":
        keys, new = (
            np.array([token.id for token in tokens])
            for tokens in (capture.key_tokens, capture.query_tokens)
        )
        written = {h: float(capture.weights(h)[keys == new[:, None]].sum()) for h in capture.heads}
        return Choice((max(sorted(written), key=lambda head: written[head]),), "writes")
    find = finder_for(capture)
    for head in capture.heads:
        find(rows_of(capture, head))
    return find.choice()


# The finding about a head on a text: the clearest rows of the behaviour for which it was picked;
# else what its rows have in common; else its strongest links.

MOST_QUERIES, MOST_KEYS = 2, 3
MOST_PAIRS = 3  # rows that show a behaviour
TELLING = 0.095  # a link that reads .10; weaker ones are not reported
LEAST_ROWS = 3  # with fewer, "most" has no meaning


def finding_of(exhibit: Exhibit, head_map: Map, named: NamedHead | None = None) -> Finding | None:
    """The finding about a head in the shown rows; None without one.

    It holds for whole rows, whichever of their links are shown.

    `named`: the behaviour to look for first.
    """
    every_key = tuple(range(len(exhibit.capture.key_tokens)))
    partial = exhibit.keys != every_key or exhibit.skip or exhibit.least > 0
    if exhibit.capture.signed or (partial and not isinstance(head_map, HeadMap)):
        return None  # scores are not shares of attention; the other rows are not fully known
    exhibit = replace(exhibit, keys=every_key, skip=(), least=0.0, top=None)
    behaviour, acts = _behaviour(exhibit, head_map, named)
    if acts:
        told = sorted(acts[:MOST_PAIRS])  # by query
        strong = (link for row in told for link in row[:MOST_KEYS] if link.weight >= TELLING)
        return Finding(tuple(strong), behaviour)
    if exhibit.choice is not None and exhibit.choice.off_rests:
        return _of_what_moves(exhibit, head_map)
    strongest = _strongest(exhibit, head_map)
    tendency = _tendency(exhibit, strongest)
    if tendency is not None:
        return Finding(tendency=tendency)
    links = _telling(exhibit, head_map) or [each for each in strongest if each.weight >= TELLING]
    return Finding(_rows_of(exhibit, head_map, links)) if links else None


def _of_what_moves(exhibit: Exhibit, head_map: Map) -> Finding | None:
    """The row for which the head was picked, and one more, by their strongest links off rests."""
    choice, tokens = exhibit.choice, exhibit.capture.query_tokens
    assert choice is not None  # the caller has seen why
    start = choice.start  # None on lines other than the one on which it was picked
    first = next((i for i, t in enumerate(tokens) if start is not None and t.end > start), None)
    exhibit = replace(exhibit, keys=keys_off_rests(exhibit.capture, choice.heads[0], exhibit.keys))
    telling = _telling(exhibit, head_map)
    telling.sort(key=lambda link: link.query != first)
    links = _rows_of(exhibit, head_map, telling)
    return Finding(tuple(sorted(links, key=lambda link: link.query != first))) if links else None


def keys_off_rests(capture: Capture, head: Head, keys: Sequence[int]) -> tuple[int, ...]:
    """The keys without a head's rests and the first token of a causal model."""
    rests = rests_in(capture, head)
    return tuple(key for key in keys if not rests[key] and (key or not capture.causal))


def strongest_query(exhibit: Exhibit, head_map: Map) -> int | None:
    """The query with the strongest link to another word; None if no row has a choice."""
    links = _telling(exhibit, head_map) or _strongest(exhibit, head_map)
    return max(links, key=lambda link: link.weight).query if links else None


def _rows_of(
    exhibit: Exhibit, head_map: Map, telling: Sequence[FoundLink]
) -> tuple[FoundLink, ...]:
    """The strongest links of the rows that the first few telling links are in, by row.

    The quoted links are the strongest of those rows, even when a filter hides them below.
    """
    queries = tuple(sorted([*dict.fromkeys(link.query for link in telling)][:MOST_QUERIES]))
    strong = replace(exhibit, queries=queries, top=MOST_KEYS, least=TELLING)
    links = list(links_of(strong, head_map).rows())
    rows = ([link for link in links if link.query == query] for query in queries)
    return tuple(link for row in rows for link in row[:MOST_KEYS] if link.weight >= TELLING)


def _behaviour(
    exhibit: Exhibit, head_map: Map, named: NamedHead | None
) -> tuple[Behaviour | None, list[tuple[FoundLink, ...]]]:
    """The behaviour that the card names, and the rows that show it among those on show."""
    if named is None or not isinstance(head_map, HeadMap):
        return None, []
    seen = evidence(exhibit.capture)
    behaviour = next((each for each in seen if each == named.behaviour), None)
    if behaviour is None:
        return None, []
    occasions = [c for c in seen[behaviour] if c.query in exhibit.queries]
    return behaviour, acts_of(head_map.weights, occasions)


def _strongest(exhibit: Exhibit, head_map: Map) -> list[FoundLink]:
    """The strongest link of each row that has a choice; special tokens have no rows here."""
    links = links_of(replace(exhibit, top=1), head_map)
    seen, tokens = exhibit.capture.allowed_count(), exhibit.capture.query_tokens
    strongest: dict[int, FoundLink] = {}
    for query, key, weight in links.rows():
        if weight > 0 and seen[query] > 1 and not tokens[query].special:
            strongest.setdefault(query, FoundLink(query, key, weight))
    return list(strongest.values())


def _tendency(exhibit: Exhibit, strongest: Sequence[FoundLink]) -> Tendency | None:
    """The habit that at least half of the rows share."""
    if len(strongest) < LEAST_ROWS:
        return None
    capture = exhibit.capture
    counts = Counter[tuple[Habit, int | None]]()
    for query, key, _ in strongest:
        counts["one key", key] += 1
        if capture.one_sequence:
            tokens = capture.query_tokens
            counts["previous", None] += key == query - 1
            counts["self", None] += key == query
            before, word = tokens[key - 1], tokens[query]
            alike = not before.special and before.label.lower() == word.label.lower()
            counts["followers", None] += 0 < key < query and alike
    order: tuple[Habit, ...] = ("previous", "followers", "self", "one key")
    (habit, shared), rows = max(
        counts.items(), key=lambda item: (item[1], -order.index(item[0][0]))
    )
    if 2 * rows < len(strongest):
        return None
    seen = capture.allowed_count()
    able = [link for link in strongest if shared is None or shared < seen[link.query]]
    return Tendency(habit, rows, len(able), shared)


def _telling(exhibit: Exhibit, head_map: Map) -> list[FoundLink]:
    """The strongest link of each query to another token of the text, the strongest first.

    The first token, a sink in a causal model, is left out if there are other links.
    """
    capture = exhibit.capture
    keys = tuple(key for key in exhibit.keys if not capture.key_tokens[key].special)
    rows = tuple(q for q in exhibit.queries if not capture.query_tokens[q].special)
    skip = (0,) if capture.one_sequence else ()
    best: dict[int, FoundLink] = {}
    for some in (tuple(filter(None, keys)) if capture.causal else keys, keys):
        filtered = replace(exhibit, queries=rows, keys=some, skip=skip, top=1)
        for query, key, weight in links_of(filtered, head_map).rows() if rows and some else ():
            if key in some and query in rows and query - key not in skip and weight >= TELLING:
                best.setdefault(query, FoundLink(query, key, weight))
        if best:
            break
    return sorted(best.values(), key=lambda link: -link.weight)


def position_of(tokens: Sequence[Token], query: str | None) -> int:
    """The position of the query that was named, or of the last word."""
    return last_word(tokens) if query is None else one_position(tokens, query, "query")


Finder: TypeAlias = "FindMovingHead | FindSeeingHead | FindAligningHead"


def finder_for(empty: Capture) -> Finder:
    """The finder of the head to show, by the medium of the keys."""
    if moves_are_found(empty):
        return FindMovingHead(empty, find_rests(empty))
    if empty.kind == "cross" and empty.timed:
        from attnviz.records.speech import FindAligningHead

        return FindAligningHead(empty)
    from attnviz.records.images import FindSeeingHead

    return FindSeeingHead(empty)


def moves_are_found(empty: Capture) -> bool:
    """Whether the head to show is the one that moves most: where text attends to text alone."""
    if empty.kind == "cross" and empty.timed:
        return False
    if not (empty.images and empty.one_sequence) or empty.beside:
        return True
    from attnviz.records.images import FindSeeingHead

    return not FindSeeingHead(empty).rows.any()
