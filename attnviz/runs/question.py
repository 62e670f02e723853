"""The tokens that are measured after a text."""

from dataclasses import replace
from math import exp

from attnviz.errors import UsageError, option
from attnviz.records.capture import FloatArray
from attnviz.records.interventions import Candidate, Question
from attnviz.records.predict import log_softmax
from attnviz.runs.fit import encode
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import Prepared


def question_of(
    prepared: Prepared, options: TextOptions, answer: str | None, versus: str | None
) -> Question | None:
    """The answer, and the token that it is told from; None where none is asked for.

    Args:
        prepared: the text.
        options: how it became tokens.
        answer, versus: words, with a space before them or without.

    Raises:
        UsageError: one is not a token here, both are the same, or there is a `versus` alone.
    """
    if answer is None:
        if versus is not None:
            raise UsageError(
                f"{option('versus')} is for an {option('answer')}", f"add {option('answer')}"
            )
        return None
    first = candidate_after(prepared, options, answer, "answer")
    if versus is None:
        return Question(first)
    other = candidate_after(prepared, options, versus, "versus")
    if other.id == first.id:
        raise UsageError(
            f"{option('versus', repr(versus))} begins with the same token as "
            f"{option('answer', repr(answer))}: {first.label}",
            "name another one",
        )
    return Question(first, other)


def candidate_after(
    prepared: Prepared, options: TextOptions, word: str, parameter: str
) -> Candidate:
    """The token that a word is where it follows the text; of several tokens the first.

    Args:
        prepared: the text.
        options: how it became tokens.
        word: with a space before it or without.
        parameter: that holds the word, for messages.

    Raises:
        UsageError: it is no token.
    """
    text, tokenizer = prepared.empty.text, prepared.model.tokenizer
    before = [token.id for token in encode(tokenizer, text, options)]
    continuations = []
    for space in (" ", ""):
        ids = [token.id for token in encode(tokenizer, text + space + word, options)]
        if ids[: len(before)] == before and len(ids) > len(before):
            continuations.append(ids[len(before) :])
    if not continuations:
        raise UsageError(f"{option(parameter, repr(word))} is not a token here", "give a word")
    # without its space a long word is another one
    ids = next((ids for ids in continuations if len(ids) == 1), continuations[0])
    return replace(candidate(prepared, ids[0]), begins="" if len(ids) == 1 else word)


def likely(question: Question, last: FloatArray) -> Question:
    """The question, with the probabilities of its tokens; `last`: the logits (V) after a text."""
    logs = log_softmax(last)
    return question.likely([exp(logs[id_]) for id_ in question.ids])


def candidate(prepared: Prepared, id_: int) -> Candidate:
    """A token of the vocabulary, of which nothing was predicted yet."""
    tokenizer = prepared.model.tokenizer
    return Candidate(id_, tokenizer.label(id_), 0.0, tokenizer.exact(id_))
