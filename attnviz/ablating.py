"""Does a head matter? What the model says without it.

text ─► tokens ─► a run for each ablation ─► log-probabilities ─► effects
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnviz.analyses.effects import KeepLogProbabilities, effect_of
from attnviz.analyses.outlook import KeepOutlooks, log_softmax
from attnviz.data.ablations import (
    Ablated,
    AblatedRun,
    AblationReport,
    BeforeAfter,
    Replacement,
    RunConsumer,
)
from attnviz.data.heads import choose_heads
from attnviz.data.predictions import Candidate, LogitRows, Outlook
from attnviz.errors import InputError, UsageError
from attnviz.models.memory import BATCH_TOKENS
from attnviz.pipeline import HeadOptions, Prepared, TextOptions, encode, prepare

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Progress = Callable[[int, int], None]
"""Is told how many runs are done, of how many."""


@dataclass(frozen=True)
class Cut:
    """How heads are ablated, and what is looked at: all that follows, or one `answer`."""

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
) -> BeforeAfter:
    """Ablate some heads at once; raises what `ablate_each` raises."""
    prepared = prepare(model, text, options)
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    ids = [token.id for token in prepared.source]
    answer = _answer_of(prepared, options, cut)
    last: dict[int, Outlook] = {}
    said: dict[int, float] = {}

    def keep(run: AblatedRun) -> None:
        outlooks = KeepOutlooks(ids, top, model.tokenizer.label)
        outlooks(LogitRows(None, np.array([len(ids) - 1]), run.last[None]))
        last[run.index] = outlooks.outlooks[0]
        if answer is not None:
            said[run.index] = float(np.exp(log_softmax(run.last)[answer]))

    report = _report(prepared, [(), chosen], answer, cut, also=keep)
    told = (said[0], said[1]) if answer is not None else None
    return BeforeAfter(report, before=last[0], after=last[1], told=told)


def _report(
    prepared: Prepared,
    ablations: list[Ablated],
    answer: int | None,
    cut: Cut,
    progress: Progress | None = None,
    also: RunConsumer | None = None,
) -> AblationReport:
    """Run the text once for each ablation, of which the first is none."""
    ids = [token.id for token in prepared.source]
    if len(ids) < 2 and answer is None:
        raise InputError("nothing follows a single token", "give a longer text, or an --answer")
    _check_memory(prepared)
    keep = KeepLogProbabilities(answer)

    def consume(run: AblatedRun) -> None:
        keep(run)
        if also:
            also(run)
        if progress:
            progress(len(keep.kept), len(ablations))

    whole = answer is None
    prepared.model.ablate(ids, ablations, cut.replacement, consume, whole=whole)
    before = keep.kept[0]
    effects = [effect_of(heads, before, keep.kept[i]) for i, heads in enumerate(ablations) if i > 0]
    known = None
    if answer is not None:
        label = prepared.model.tokenizer.label(answer)
        known = Candidate(answer, label, float(np.exp(before[0])))
    baseline = float(before.mean())
    return AblationReport(prepared.frame, cut.replacement, baseline, len(before), effects, known)


def _check_memory(prepared: Prepared) -> None:
    n, _ = prepared.shape
    more = max(0, BATCH_TOKENS // n - 1) * prepared.model.working_bytes(n, n)
    logits = 4 * max(n, BATCH_TOKENS) * prepared.model.tokenizer.vocab_size
    prepared.check_room(more + logits, "shorten the text")


def _answer_of(prepared: Prepared, options: TextOptions, cut: Cut) -> int | None:
    """The token that the answer is, where it follows the text.

    Raises:
        UsageError: it is no token, or several.
    """
    if cut.answer is None:
        return None
    text, tokenizer = prepared.frame.text, prepared.model.tokenizer
    before = [token.id for token in encode(tokenizer, text, options)]
    found = []
    for space in (" ", ""):
        ids = [token.id for token in encode(tokenizer, text + space + cut.answer, options)]
        if ids[: len(before)] == before and len(ids) > len(before):
            found.append(ids[len(before) :])
    shortest = min(found, key=len, default=[])
    if len(shortest) != 1:
        labels = " ".join(tokenizer.label(id_) for id_ in shortest)
        raise UsageError(
            f"--answer {cut.answer!r} is {len(shortest) or 'no'} tokens here"
            + (f" ({labels})" if labels else ""),
            "give one that is a single token (attnviz tokens shows them)",
        )
    return shortest[0]
