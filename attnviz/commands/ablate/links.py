"""The links that names stand for: of tokens, of every token, of segments."""

from collections import Counter

from attnviz.commands.ablate.record import EVERY, SEGMENT, LinkNames
from attnviz.errors import UsageError, option
from attnviz.kit.roles import roles_of
from attnviz.records.capture import Capture
from attnviz.records.positions import find_positions
from attnviz.records.tokens import OTHER, Token

MOST_LINKS = 500_000
"""The most links to cut in all runs together."""


def find_links(empty: Capture, cut: LinkNames, heads: int) -> list[tuple[int, int]]:
    """The (query, key) pairs that names of links stand for, as far as the model has them.

    A row that `*` or a segment names keeps its links where, renormalised, it would have none left.
    `heads`: how many heads lose them, in all runs.

    Raises:
        UsageError: a name stands for no link, nothing is left of a row, or there are too many.
    """
    roles, seen = roles_of(empty, None, cut.segments), empty.allowed_count()
    links = dict[tuple[int, int], bool]()  # whether they are named token by token
    for query, key in cut.names:
        own = [(q, k) for q, k in _pairs(empty, query, key, roles) if k < seen[q]]
        if not own:
            raise UsageError(
                f"{query!r} never attends to {key!r}, which stands after it",
                "name a key that is not after the query",
            )
        plain = query != EVERY and not (roles and query.startswith(SEGMENT))
        links |= {link: plain or links.get(link, False) for link in own}
    if cut.renormalise:
        of_query = Counter(query for query, _ in links)
        alone = {query for query, cuts in of_query.items() if cuts >= seen[query]}
        left = {link: plain for link, plain in links.items() if link[0] not in alone}
        if not left or any(plain for link, plain in links.items() if link[0] in alone):
            label = empty.query_tokens[min(alone)].label
            raise UsageError(
                f"nothing is left of the row of {label!r} to renormalise",
                f"leave {option('renormalise')} out",
            )
        links = left
    if len(links) * heads > MOST_LINKS:
        raise UsageError(
            f"{len(links):,} links of {heads:,} heads are too many to cut",
            f"name fewer tokens, or some heads with {option('heads')}",
        )
    return sorted(links)


def _pairs(empty: Capture, query: str, key: str, roles: tuple[str, ...]) -> list[tuple[int, int]]:
    if roles and SEGMENT in (query, key):
        if query != key:
            raise UsageError(
                f"{option('cut', f'{query}:{key}')} has {SEGMENT} on one side alone",
                f"{SEGMENT}:{SEGMENT} is each link within a segment, {SEGMENT}NAME one segment",
            )
        of = [[i for i, own in enumerate(roles) if own == name] for name in {*roles} - {OTHER}]
        return [(q, k) for own in of for q in own for k in own]
    queries = _positions(empty.query_tokens, query, roles)
    keys = _positions(empty.key_tokens, key, roles)
    return [(q, k) for q in queries for k in keys]


def _positions(tokens: tuple[Token, ...], name: str, roles: tuple[str, ...]) -> tuple[int, ...]:
    """The positions of every token, of a segment, or of what a name of tokens matches."""
    if name == EVERY:
        return tuple(range(len(tokens)))
    told = roles or any(token.label.startswith(SEGMENT) for token in tokens)
    if not told and name.startswith(SEGMENT):
        given = option("segments", f"{name[1:] or 'NAME'}=/…/")
        raise UsageError(f"{option('cut', repr(name))} names a segment", f"add {given}")
    if not (roles and name.startswith(SEGMENT)):
        return find_positions(tokens, [name], "cut")
    found = tuple(i for i, own in enumerate(roles) if own == name.removeprefix(SEGMENT))
    if not found:
        names = ", ".join(f"{SEGMENT}{each}" for each in dict.fromkeys(roles))
        raise UsageError(f"{option('cut', repr(name))} is no segment", f"there are: {names}")
    return found
