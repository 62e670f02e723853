"""Values that rows of interventions share: what is measured, and what it is made of."""

from typing import Annotated, Literal, TypeAlias, TypedDict

from attnviz.records.interventions import Candidate, Outcome
from attnviz.records.rows import measured

AnswerName: TypeAlias = Annotated[
    str | None, "The token that is measured; null: all tokens, or each text's own answer."
]
VersusName: TypeAlias = Annotated[
    str | None, "The token whose logit is subtracted; null: none, or each text's own."
]
WordBegun: TypeAlias = Annotated[
    str | None, "The word that was asked for, where this is the first of its several tokens."
]
TokenText: TypeAlias = Annotated[str | None, "The token's own text with its leading space."]


Unit: TypeAlias = Annotated[
    Literal["nats", "logits"],
    "nats: a mean log-probability is measured; logits: the difference of two logits.",
]


class OwnChanges(TypedDict):
    """By how much the prediction of the answer changed, and that of the other token."""

    answer_logit_change: float | None
    answer_log_probability_change: Annotated[float | None, "In nats."]
    versus_logit_change: float | None
    versus_log_probability_change: Annotated[float | None, "In nats."]


class Exact(TypedDict):
    """The tokens that are measured, and the words that were asked for."""

    answer_exact: TokenText
    versus_exact: TokenText
    answer_begins: WordBegun
    versus_begins: WordBegun


def exact(answer: Candidate | None, versus: Candidate | None) -> Exact:
    """Those of both tokens, null where there is none."""
    return {
        "answer_exact": answer.exact if answer else None,
        "versus_exact": versus.exact if versus else None,
        "answer_begins": (answer.begins or None) if answer else None,
        "versus_begins": (versus.begins or None) if versus else None,
    }


def own_changes(own: Outcome | None) -> OwnChanges:
    """The changes of both tokens, null where there is none."""
    values = [None] * 4 if own is None else [measured(value) for value in own]
    return {
        "answer_logit_change": values[0],
        "answer_log_probability_change": values[1],
        "versus_logit_change": values[2],
        "versus_log_probability_change": values[3],
    }
