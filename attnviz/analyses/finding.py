"""What a head does on a text, from what is shown of its pattern.

Where the head was picked for a behaviour, its clearest rows; else what its rows have in common;
else its strongest links.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from attnviz.builtin.evidence import acts_of, evidence
from attnviz.records.exhibit import (
    Behaviour,
    Exhibit,
    Finding,
    FoundLink,
    Habit,
    HeadMap,
    Map,
    Tendency,
    links_of,
)
from attnviz.records.heads import NamedHead
from attnviz.records.tokens import Token

MOST_QUERIES, MOST_KEYS = 2, 3
TELLING = 0.095  # a link that reads .10; a weaker one is nothing to tell
LEAST_ROWS = 3  # fewer have nothing "most" of them do


def finding_of(exhibit: Exhibit, head_map: Map, named: NamedHead | None = None) -> Finding | None:
    """What is so of a head in the rows that are shown; None where that is nothing.

    It is so of whole rows, whichever of their links are shown.

    Args:
        exhibit: the head's pattern, as it is shown.
        head_map: the head.
        named: the behaviour to look for first.
    """
    every_key = tuple(range(len(exhibit.capture.key_tokens)))
    partial = exhibit.keys != every_key or exhibit.skip or exhibit.least > 0
    if exhibit.capture.signed or (partial and not isinstance(head_map, HeadMap)):
        return None  # scores are no shares of attention; of the other rows, not all is known
    exhibit = replace(exhibit, keys=every_key, skip=(), least=0.0, top=None)
    behaviour, acts = _behaviour(exhibit, head_map, named)
    if acts:
        return Finding(_rows_of(exhibit, head_map, acts), behaviour)
    strongest = _strongest(exhibit, head_map)
    tendency = _tendency(exhibit, strongest)
    if tendency is not None:
        return Finding(tendency=tendency)
    links = _telling(exhibit, head_map) or [each for each in strongest if each.weight >= TELLING]
    return Finding(_rows_of(exhibit, head_map, links)) if links else None


def telling_query(exhibit: Exhibit, head_map: Map) -> int | None:
    """The query with the strongest link to another word; None where no row has a choice."""
    links = _telling(exhibit, head_map) or _strongest(exhibit, head_map)
    return max(links, key=lambda link: link.weight).query if links else None


def _rows_of(
    exhibit: Exhibit, head_map: Map, telling: Sequence[FoundLink]
) -> tuple[FoundLink, ...]:
    """The strongest links of the rows that the first few telling links are in, by row.

    Nothing that is stronger than a link that is told is left out, whether it is plausible or not.
    """
    queries = tuple(sorted([*dict.fromkeys(link.query for link in telling)][:MOST_QUERIES]))
    asked = replace(exhibit, queries=queries, top=MOST_KEYS, least=TELLING)
    found = [FoundLink(*link) for link in links_of(asked, head_map).rows()]
    rows = ([link for link in found if link.query == query] for query in queries)
    return tuple(link for row in rows for link in row[:MOST_KEYS] if link.weight >= TELLING)


def _behaviour(
    exhibit: Exhibit, head_map: Map, named: NamedHead | None
) -> tuple[Behaviour | None, list[FoundLink]]:
    """The behaviour that the card names, and the links that show it among those on show."""
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
    found: dict[int, FoundLink] = {}
    for query, key, weight in links.rows():
        if weight > 0 and seen[query] > 1 and not tokens[query].special:
            found.setdefault(query, FoundLink(query, key, weight))
    return list(found.values())


def _tendency(exhibit: Exhibit, strongest: Sequence[FoundLink]) -> Tendency | None:
    """What at least half of the rows have in common."""
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
            counts["followers", None] += 0 < key <= query - 1 and _same(tokens, key - 1, query)
    order: tuple[Habit, ...] = ("previous", "followers", "self", "one key")
    (habit, shared), rows = max(
        counts.items(), key=lambda item: (item[1], -order.index(item[0][0]))
    )
    if 2 * rows < len(strongest):
        return None
    seen = capture.allowed_count()
    able = [link for link in strongest if shared is None or shared < seen[link.query]]
    return Tendency(habit, rows, len(able), shared)


def _same(tokens: Sequence[Token], one: int, other: int) -> bool:
    return tokens[one].label.lower() == tokens[other].label.lower() and not tokens[one].special


def _telling(exhibit: Exhibit, head_map: Map) -> list[FoundLink]:
    """The strongest link of each query to another token of the text, the strongest first.

    The first token, a sink in a causal model, is left out where other links are left.
    """
    capture = exhibit.capture
    keys = tuple(key for key in exhibit.keys if not capture.key_tokens[key].special)
    rows = tuple(q for q in exhibit.queries if not capture.query_tokens[q].special)
    skip = (0,) if capture.one_sequence else ()
    best: dict[int, FoundLink] = {}
    for some in (tuple(filter(None, keys)) if capture.causal else keys, keys):
        asked = replace(exhibit, queries=rows, keys=some, skip=skip, top=1)
        for query, key, weight in links_of(asked, head_map).rows() if rows and some else ():
            if key in some and query in rows and query - key not in skip and weight >= TELLING:
                best.setdefault(query, FoundLink(query, key, weight))
        if best:
            break
    return sorted(best.values(), key=lambda link: -link.weight)
