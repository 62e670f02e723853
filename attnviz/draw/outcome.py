"""Sentences that interventions share: what is measured, over how many texts."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, TypedDict

from attnviz.draw.labels import fenced, name_of
from attnviz.draw.terminal.listing import Column
from attnviz.draw.titles import amount, beginning
from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.interventions import Candidate, Outcome, Question
from attnviz.records.rows import measured

# Values that rows of interventions share.

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


def mean_of(first: Capture, number: int, of: str) -> str:
    """`builtin, mean of 3 texts`."""
    return f"{readable(first.model.name)}, mean of {amount(number, of)}"


def named(token: Candidate) -> str:
    """A token in a sentence; of a word of several tokens it says that it is the first."""
    said = fenced(name_of(token.label))
    return f"{said}, the first token of {fenced(beginning(token.begins))}" if token.begins else said


def difference(answer: Candidate | None, versus: Candidate | None) -> str:
    """`logit(blue) - logit(red)`; without names where each text has an answer of its own."""
    if answer is None or versus is None:
        return "logit(answer) - logit(versus)"
    return f"logit({named(answer)}) - logit({named(versus)})"


def what_is_measured(question: Question) -> str:
    """`logit(blue) - logit(red)`, or `log-probability of blue`."""
    if question.versus is None:
        return f"log-probability of {named(question.answer)}"
    return difference(question.answer, question.versus)


# The changes of both tokens of a question, as columns of a table.

LEGEND = "log p: change in each token's own log-probability (nats)"


def own_columns(answer: Candidate | None, versus: Candidate | None) -> Sequence[Column]:
    """A column for each token; texts with answers of their own have other tokens."""
    first, other = "answer", "versus"
    if answer is not None and versus is not None:
        first, other = (fenced(name_of(each.label)) for each in (answer, versus))
    return [Column(f"log p {name}", right=True) for name in (first, other)]


def own_cells(own: Outcome | None) -> Sequence[str]:
    """The changes of both log-probabilities."""
    if own is None:
        return "", ""
    return f"{own.answer_log_probability:+.3f}", f"{own.versus_log_probability:+.3f}"
