"""Effects along paths to one part of a model, and effects to first order, by one gradient."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from attnviz.commands.patch.record import PatchEffect, effect_of
from attnviz.errors import UsageError, option
from attnviz.kit.intervene import patch_paths
from attnviz.kit.prepare import Prepared
from attnviz.records.capture import FloatArray
from attnviz.records.interventions import Edit, SourceRun
from attnviz.records.paths import LOGITS, FirstOrder, MlpsOnPaths, Paths, Receiver, SlopeOf
from attnviz.records.predict import Outcome, Question, outcome_of

UNKNOWN = Outcome(np.nan, np.nan)
GRAPH = 16
"""Bytes of a weight that stay until a gradient is known."""


def path_effects(
    prepared: Prepared,
    paths: Paths,
    question: Question,
    before: Outcome,
    ends: Outcome,
) -> list[PatchEffect]:
    """The effect of each sender on each receiver that stands behind it."""
    after = patch_paths(prepared, paths, lambda last: outcome_of(last, question.ids))
    return [
        replace(effect_of([edit], before, ends, after[i, to]), position=None, receiver=to)
        for i, edit in enumerate(paths.senders)
        for to in paths.receivers
        if (i, to) in after
    ]


def check_senders(edits: Sequence[Edit], receivers: Sequence[Receiver], n: int) -> None:
    """See that something stands before every receiver, in a text of n tokens.

    Raises:
        UsageError: nothing does.
    """
    if LOGITS in receivers and n - 1 not in (edits[0].positions or ()):
        raise UsageError(
            "the last token is not patched, and the logits after it read no other one directly",
            f"patch it as well, as with {option('queries', '-1')}, or leave {option('to', LOGITS)} "
            "out",
        )
    for to in receivers:
        if not any(to.follows(edit.site) for edit in edits):
            raise UsageError(
                f"nothing that is patched stands before {to}",
                f"name a later part with {option('to')}",
            )


def first_order(
    prepared: Prepared,
    edits: Sequence[Edit],
    source: SourceRun,
    measure: Callable[[FloatArray, FloatArray], Sequence[int]],
    direct: MlpsOnPaths | None,
) -> FirstOrder:
    """Two runs and a gradient; `measure` and `direct` as in `SlopeOf`."""
    n, _ = prepared.shape
    model = prepared.model
    native = model.identity.engine == "native"  # another engine's matrices are in its estimate
    kept = GRAPH * n * n * sum(model.identity.heads_per_layer) if native else 0
    layers = len(model.identity.heads_per_layer) * model.working_bytes(n, n)
    prepared.budget.check(kept + layers, "shorten the text")
    kinds = list(dict.fromkeys(edit.site[:2] for edit in edits))
    return model.first_order(prepared.ids, SlopeOf(kinds, source, measure, direct))


def estimate_of(edit: Edit, found: FirstOrder, before: Outcome, ends: Outcome) -> PatchEffect:
    """The effect of a patch to first order; the changes of its two tokens are not told apart."""
    change = found.of(edit)
    after = before._replace(
        answer_logit=before.answer_logit + change,
        answer_log_probability=before.answer_log_probability + change,
    )
    return replace(effect_of([edit], before, ends, after), own=UNKNOWN)
