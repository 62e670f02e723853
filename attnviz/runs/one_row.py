"""One head and one query of a text: those that a user names, or those that `show` would tell of."""

from collections.abc import Sequence

from attnviz.errors import UsageError, option
from attnviz.records.apply import whole_exhibit
from attnviz.records.exhibit import Choice, Exhibit
from attnviz.records.positions import last_word, one_position
from attnviz.records.tokens import Token
from attnviz.runs.choose import found, plan_heads, told_query
from attnviz.runs.options import HeadOptions
from attnviz.runs.prepare import Prepared


def one_row(
    prepared: Prepared, head: str | None, query: str | None
) -> tuple[Choice, int, Exhibit | None]:
    """The head with why it is this one, the query, and the head's pattern where a rule picked it.

    Without `query` it is the first one that is told of the head, or the last word.

    Raises:
        UsageError: more than one head or position, or one that is not there.
    """
    choice, shown = _head(prepared, head)
    told = told_query(shown.finding) if shown and query is None else None
    tokens = prepared.empty.query_tokens
    return choice, position_of(tokens, query) if told is None else told, shown


def position_of(tokens: Sequence[Token], query: str | None) -> int:
    """The position of the query that was named, or of the last word."""
    return last_word(tokens) if query is None else one_position(tokens, query, "query")


def _head(prepared: Prepared, named: str | None) -> tuple[Choice, Exhibit | None]:
    """The head, why this one, and its pattern; nothing is captured where the user named it."""
    model = prepared.model
    plan = plan_heads(model.identity, model.card.heads, HeadOptions(heads=named))
    if named is not None and len(plan.recorded) != 1:
        raise UsageError(
            f"{option('head', named)} names {len(plan.recorded)} heads",
            f"name one, as in {option('head', 'L1H2')}",
        )
    if plan.choice and not plan.choice.picked:
        return plan.choice, None
    captured = prepared.record(plan.recorded)
    choice = plan.pick(captured)
    (head,) = choice.heads
    return choice, found(whole_exhibit(captured.only(choice.heads), choice), head)
