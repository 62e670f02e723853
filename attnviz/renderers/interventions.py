"""Sentences that interventions share: what is measured, over how many texts."""

from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.interventions import Candidate, Question
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import name_of
from attnviz.renderers.titles import amount, beginning


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
