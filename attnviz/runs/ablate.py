"""Does a head matter? What the model says without it.

text ─► tokens ─► a run for each ablation ─► log-probabilities ─► effects
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from attnviz.analyses.ablate import KeepLogProbabilities, effect_of
from attnviz.analyses.predict import KeepNextTokens, log_softmax
from attnviz.data.ablate import (
    Ablated,
    AblatedRun,
    AblationReport,
    BeforeAfter,
    Replacement,
    RunConsumer,
)
from attnviz.data.blocks import FloatArray
from attnviz.data.head import choose_heads
from attnviz.data.predict import Candidate, LogitRows, NextTokens
from attnviz.errors import InputError, option
from attnviz.models.loaded import predicting
from attnviz.models.memory import BATCH_TOKENS
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import Prepared, prepare
from attnviz.runs.token_after import token_after

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Progress = Callable[[int, int], None]
"""Is told how many runs are done, of how many."""


@dataclass(frozen=True)
class Cut:
    """How heads are ablated, and what is measured: all that follows, or one `answer`."""

    replacement: Replacement = "zero"
    answer: str | None = None


def ablate_each(
    model: "LoadedModel",
    text: str,
    options: TextOptions,
    heads: HeadOptions,
    cut: Cut,
    progress: Progress | None = None,
) -> AblationReport:
    """Ablate one head at a time.

    Raises:
        InputError: the text is too short to be followed by anything, or longer than the context.
        UsageError: a head that the model does not have, an answer that is not one token, or a
            model that predicts no next token.
    """
    predicting(model)
    prepared = prepare(model, text, options)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    ablations: list[Ablated] = [(), *((head,) for head in chosen)]
    return _report(prepared, ablations, _answer_of(prepared, options, cut), cut, progress)


def ablate_together(
    model: "LoadedModel",
    text: str,
    options: TextOptions,
    heads: HeadOptions,
    cut: Cut,
    top: int,
    progress: Progress | None = None,
) -> BeforeAfter:
    """Ablate some heads at once; raises what `ablate_each` raises."""
    predicting(model)
    prepared = prepare(model, text, options)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    answer = _answer_of(prepared, options, cut)
    next_tokens = _KeepLast(prepared, top)
    report = _report(prepared, [(), chosen], answer, cut, progress, also=next_tokens)
    probabilities = None
    if answer is not None:
        before, after = (float(np.exp(log_softmax(next_tokens.last[i])[answer])) for i in (0, 1))
        probabilities = before, after
    return BeforeAfter(report, next_tokens.of(0), next_tokens.of(1), probabilities)


@dataclass
class _KeepLast:
    """Consumes runs, and keeps the logits after the last position."""

    prepared: Prepared
    top: int
    last: dict[int, FloatArray] = field(default_factory=dict)

    def __call__(self, run: AblatedRun) -> None:
        self.last[run.index] = run.last

    def of(self, index: int) -> NextTokens:
        """What comes next in one of the runs."""
        ids = self.prepared.ids
        tokenizer = self.prepared.model.tokenizer
        keep = KeepNextTokens(ids, self.top, tokenizer.label, tokenizer.exact)
        keep(LogitRows(None, np.array([len(ids) - 1]), self.last[index][None]))
        return keep.next_tokens[0]


def _report(
    prepared: Prepared,
    ablations: list[Ablated],
    answer: int | None,
    cut: Cut,
    progress: Progress | None = None,
    also: RunConsumer | None = None,
) -> AblationReport:
    """Run the text once for each ablation, of which the first is none."""
    ids = prepared.ids
    if len(ids) < 2 and answer is None:
        raise InputError(
            "nothing follows a single token", f"give a longer text, or an {option('answer')}"
        )
    _check_memory(prepared)
    keep, plain = KeepLogProbabilities(answer), _KeepLast(prepared, 1)

    def consume(run: AblatedRun) -> None:
        keep(run)
        if run.index == 0:
            plain(run)
        if also:
            also(run)
        if progress:
            progress(len(keep.kept), len(ablations))

    whole = answer is None
    predicting(prepared.model).ablate(ids, ablations, cut.replacement, consume, whole=whole)
    before = keep.kept[0]
    effects = [effect_of(heads, before, keep.kept[i]) for i, heads in enumerate(ablations) if i > 0]
    measured = float(before.mean()), len(before), effects
    if answer is None:
        return AblationReport(prepared.empty, cut.replacement, *measured)
    tokenizer = prepared.model.tokenizer
    likely = float(np.exp(before[0]))
    known = Candidate(answer, tokenizer.label(answer), likely, tokenizer.exact(answer))
    rank = int((plain.last[0] > plain.last[0][answer]).sum()) + 1
    first = plain.of(0).candidates[0]
    return AblationReport(prepared.empty, cut.replacement, *measured, known, rank, first)


def _check_memory(prepared: Prepared) -> None:
    n, _ = prepared.shape
    more = max(0, BATCH_TOKENS // n - 1) * prepared.model.working_bytes(n, n)
    logits = 4 * max(n, BATCH_TOKENS) * prepared.model.tokenizer.vocab_size
    prepared.budget.check(more + logits, "shorten the text")


def _answer_of(prepared: Prepared, options: TextOptions, cut: Cut) -> int | None:
    return None if cut.answer is None else token_after(prepared, options, cut.answer, "answer")
