"""Sentences that interventions share: what is measured, over how many texts."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from attnviz.draw.labels import fenced, name_of
from attnviz.draw.terminal.listing import Column
from attnviz.draw.titles import amount, beginning
from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.predict import Candidate, Outcome, Question
from attnviz.records.rows import Field, measured

# Fields that rows of interventions share; a row has the candidates `answer` and `versus`, and
# `own`: by how much the prediction of each changed.


def unit(of: Callable[[Any], str]) -> Field[Any]:
    """The unit of what is measured."""
    about = "nats: a mean log-probability is measured; logits: the difference of two logits."
    return Field("unit", Literal["nats", "logits"], about, of)


def own_change(name: str) -> Field[Any]:
    """By how much a number of `own` changed; null where there is none."""
    about = "In nats." if name.endswith("log_probability") else ""
    return Field(
        f"{name}_change", float | None, about, lambda row: measured(getattr(row.own, name, None))
    )


BEGUN = "The word that was asked for, where this is the first of its several tokens."
TEXT = "The token's own text with its leading space."
MEASURED_TOKENS: tuple[Field[Any], ...] = (
    Field(
        "answer",
        str | None,
        "The token that is measured; null: all tokens, or each text's own answer.",
        lambda row: row.answer and row.answer.label,
    ),
    Field(
        "versus",
        str | None,
        "The token whose logit is subtracted; null: none, or each text's own.",
        lambda row: row.versus and row.versus.label,
    ),
)
OWN_CHANGES: tuple[Field[Any], ...] = tuple(own_change(name) for name in Outcome._fields)
EXACT_TOKENS: tuple[Field[Any], ...] = (
    Field("answer_exact", str | None, TEXT, lambda row: row.answer and row.answer.exact),
    Field("versus_exact", str | None, TEXT, lambda row: row.versus and row.versus.exact),
    Field("answer_begins", str | None, BEGUN, lambda row: getattr(row.answer, "begins", 0) or None),
    Field("versus_begins", str | None, BEGUN, lambda row: getattr(row.versus, "begins", 0) or None),
)


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
