"""What a scan will take, seen on a few windows before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.models.memory import SHARE, free_bytes
from attnviz.scanning.executors import Executor, HowRun
from attnviz.scanning.plan import Plan
from attnviz.scanning.tasks import CountShard, Done, Task, Trial

RECORD_BYTES, EXAMPLE_BYTES = 1000, 12_000
"""About how much a head takes in a record, and an example in the result."""
EXAMPLES = 24
"""About so many examples there are of a head."""


@dataclass(frozen=True)
class Estimated:
    """About what is left of a scan: tokens, seconds, bytes of memory and of disk."""

    tokens: int
    seconds: float
    memory: int
    disk: int


def estimated(plan: Plan, tasks: Sequence[Task], workers: Executor, how: HowRun) -> Estimated:
    """Run a few windows of the first shard that is left, and tell what all of them will take.

    Raises:
        AttnvizError: the model cannot be loaded.
    """
    first, tried = tasks[0], list[Done]()
    assert isinstance(first, CountShard)
    workers.do([Trial(first.shard)], tried.append)
    trial = tried[0]
    if not trial.tokens:
        return Estimated(0, 0.0, trial.memory, 0)
    share = len(tasks) / len(plan.shards)
    tokens = plan.size * share * trial.tokens / max(1, trial.size)
    if plan.job.request.documents is not None:
        tokens = min(tokens, plan.job.request.documents * trial.tokens / max(1, trial.documents))
    again = min(tokens, trial.heads * EXAMPLES * plan.job.request.length)
    if how.workers is None:  # each holds a model of its own
        workers.limit(max(1, int(SHARE * free_bytes()) // max(1, trial.memory)))
    processes = min(workers.workers, len(tasks))
    disk = trial.heads * (len(tasks) * RECORD_BYTES + EXAMPLES * EXAMPLE_BYTES)
    seconds = (tokens + again) * trial.seconds / trial.tokens / processes
    return Estimated(int(tokens), seconds, trial.memory * processes, disk)
