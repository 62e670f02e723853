"""What runs of interventions share: their memory, and how far they have come."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attnviz.models.loaded import predicting
from attnviz.models.placement import BATCH_TOKENS
from attnviz.records.interventions import ChangedRun, Intervention, RunConsumer, SourceRun
from attnviz.runs.prepare import Prepared

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many runs are done, of how many."""


def intervene(
    prepared: Prepared,
    interventions: Sequence[Intervention],
    consumers: Sequence[RunConsumer],
    progress: Progress | None = None,
    *,
    whole: bool = False,
    source: SourceRun | None = None,
) -> None:
    """Run a text once for each intervention, and hand each run to all consumers.

    `whole` and `source` as for `Predicts.intervene`.

    Raises:
        ModelError: there is too little memory, or what is to be changed cannot be found.
        UsageError: the model predicts no next token.
    """
    check_memory(prepared)
    done = 0

    def consume(run: ChangedRun) -> None:
        nonlocal done
        for take in consumers:
            take(run)
        done += 1
        if progress:
            progress(done, len(interventions))

    able = predicting(prepared.model)
    able.intervene(prepared.ids, interventions, consume, whole=whole, source=source)


def check_memory(prepared: Prepared, kept: int = 0) -> None:
    """See that batches of runs fit.

    `kept`: of how many sites the vectors of all positions are kept.

    Raises:
        ModelError: they do not.
    """
    n, _ = prepared.shape
    own = prepared.model.working_bytes(n, n)  # more than twelve vectors of each position
    more = max(0, BATCH_TOKENS // n - 1) * own + kept * own // 12
    logits = 4 * max(n, BATCH_TOKENS) * prepared.model.tokenizer.vocab_size
    prepared.budget.check(more + logits, "shorten the text")
