"""Runs with interventions, and the tokens that are measured after a text."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeAlias, TypeVar

from attnviz.errors import UsageError, option
from attnviz.kit.prepare import Prepared, encode
from attnviz.models.placement import BATCH_TOKENS
from attnviz.records.predict import (
    Candidate,
    ChangedRun,
    Intervention,
    Interventions,
    KeepNextTokens,
    Question,
    SourceRun,
)


def question_of(prepared: Prepared, answer: str | None, versus: str | None) -> Question | None:
    """The answer, and the token that it is told from; None where none is asked for.

    `answer`, `versus`: words, with a space before them or without.
    """
    if answer is None:
        if versus is not None:
            raise UsageError(
                f"{option('versus')} is for an {option('answer')}", f"add {option('answer')}"
            )
        return None
    first = candidate_after(prepared, answer, "answer")
    if versus is None:
        return Question(first)
    other = candidate_after(prepared, versus, "versus")
    if other.id == first.id:
        raise UsageError(
            f"{option('versus', repr(versus))} begins with the same token as "
            f"{option('answer', repr(answer))}: {first.label}",
            "name another one",
        )
    return Question(first, other)


def candidate_after(prepared: Prepared, word: str, parameter: str) -> Candidate:
    """The token that a word is where it follows the text; of several tokens the first.

    `parameter`: the one that holds the word, for messages.
    """
    text, tokenizer = prepared.empty.text, prepared.model.tokenizer
    before = [token.id for token in encode(tokenizer, text, prepared.options)]
    continuations = []
    for space in (" ", ""):
        ids = [token.id for token in encode(tokenizer, text + space + word, prepared.options)]
        if ids[: len(before)] == before and len(ids) > len(before):
            continuations.append(ids[len(before) :])
    if not continuations:
        raise UsageError(f"{option(parameter, repr(word))} is not a token here", "give a word")
    # without its space a long word is another one
    ids = next((ids for ids in continuations if len(ids) == 1), continuations[0])
    return replace(candidate(prepared, ids[0]), begins="" if len(ids) == 1 else word)


def candidate(prepared: Prepared, id_: int) -> Candidate:
    """A token of the vocabulary, of which nothing was predicted yet."""
    tokenizer = prepared.model.tokenizer
    return Candidate(id_, tokenizer.label(id_), 0.0, tokenizer.exact(id_))


def keep_next_tokens(prepared: Prepared, top: int, *, follow: bool = True) -> KeepNextTokens:
    """A consumer of logits; `follow`: it also keeps what really follows each position."""
    tokenizer = prepared.model.tokenizer
    ids = prepared.ids if follow else ()
    return KeepNextTokens(ids, top, tokenizer.label, tokenizer.exact)


K = TypeVar("K")
Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many runs are done, of how many."""
_WATCHING: ContextVar[Progress | None] = ContextVar("watching", default=None)


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Tell this of all runs until the end: a bar, or somebody who may raise to stop them."""
    before = _WATCHING.set(progress)
    try:
        yield
    finally:
        _WATCHING.reset(before)


def intervene(
    prepared: Prepared,
    interventions: Sequence[Intervention],
    keep: Callable[[ChangedRun], K],
    *,
    whole: bool = False,
    source: SourceRun | None = None,
) -> list[K]:
    """The part that `keep` takes from the run of each intervention.

    `whole` and `source` as in `Interventions`.
    """
    check_memory(prepared)
    kept, progress = dict[int, K](), _WATCHING.get()

    def consume(run: ChangedRun) -> None:
        kept[run.index] = keep(run)
        if progress and len(interventions) > 1:
            progress(len(kept), len(interventions))

    prepared.model.intervene(prepared.ids, Interventions(interventions, whole, source), consume)
    return [kept[i] for i in range(len(interventions))]


def check_memory(prepared: Prepared, kept: int = 0) -> None:
    """See that batches of runs fit.

    `kept`: of how many sites the vectors of all positions are kept.
    """
    n, _ = prepared.shape
    own = prepared.model.working_bytes(n, n)  # more than twelve vectors of each position
    more = max(0, BATCH_TOKENS // n - 1) * own + kept * own // 12
    logits = 4 * max(n, BATCH_TOKENS) * prepared.model.tokenizer.vocab_size
    prepared.budget.check(more + logits, "shorten the text")
