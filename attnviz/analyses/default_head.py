"""The head to show when the user chose none.

A head that the model's card names is shown where its behaviour is on this text: where the words
give evidence of it (`evidence.py`), and the head acts on them (`acting.py`). Of several such
heads the most specific behaviour is shown, as ordered in `ORDER`. Where none acts, and for any
other model, the head with the highest generic score is (`generic_head.py`). All of it is
deterministic, and uses nothing but the capture.
"""

from collections.abc import Sequence

from attnviz.analyses.generic_head import most_telling_head
from attnviz.builtin.evidence import acts_of, evidence
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Behaviour, Choice
from attnviz.records.heads import NamedHead

ORDER: tuple[Behaviour, ...] = ("mystery", "pronouns", "senses", "adjectives", "induction")
"""Behaviours, the most specific first."""


def default_head(capture: Capture) -> Choice:
    """The head that tells most about this text, among the heads of the capture."""
    acting = acting_heads(capture)
    if acting:
        first = min(acting, key=lambda named: _rank(named.behaviour))
        return Choice((first.head,), "acts", first)
    only = only_named(capture.named_heads)
    if only is not None and only.head in capture.heads:
        return Choice((only.head,), "card", only)
    return Choice((most_telling_head(capture),), "generic")


def only_named(heads: Sequence[NamedHead]) -> NamedHead | None:
    """The only head that a card names, for what no evidence is looked for in a text."""
    return heads[0] if len(heads) == 1 and heads[0].behaviour not in ORDER else None


def acting_heads(capture: Capture) -> tuple[NamedHead, ...]:
    """The heads that show on this text what the card names them for."""
    seen = evidence(capture) if capture.named_heads else {}
    return tuple(
        named
        for named in capture.named_heads
        for behaviour, occasions in seen.items()
        if behaviour == named.behaviour
        and named.head in capture.heads
        and acts_of(capture.weights(named.head), occasions)
    )


def _rank(behaviour: str) -> int:
    return next(rank for rank, each in enumerate(ORDER) if each == behaviour)
