"""What a scan will take, seen on a few windows before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.commands.atlas.record import files_of
from attnviz.inputs.corpus.documents import READ, longest_texts
from attnviz.inputs.corpus.units import LONGEST
from attnviz.models.placement import SHARE, free_bytes
from attnviz.scanning.executors import Executor, HowRun
from attnviz.scanning.plan import Plan
from attnviz.scanning.tasks import CountShard, Done, Task, Trial

RECORD_BYTES, EXAMPLE_BYTES = 1000, 12_000
"""About how much a head takes in a record, and an example in the result."""
TEXT_MEMORY = 180
"""About so many bytes of memory a tokenizer takes for each byte of a text."""
EXAMPLES = 24
"""About so many examples there are of a head."""


@dataclass(frozen=True)
class Estimated:
    """About what is left of a scan: tokens, seconds, bytes of memory and of disk.

    `memory`: of all workers, while they read the longest texts that are known. `more`: what one
    worker takes beyond it for a text that is as long as it may be, where there may be one.
    """

    tokens: int
    seconds: float
    memory: int
    disk: int
    more: int = 0


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
    asked = plan.job.request
    longest = longest_texts(files_of(plan.shards), asked.split, asked.key, workers.workers)
    memory = [
        trial.memory * n + TEXT_MEMORY * sum(longest[:n]) for n in range(1, workers.workers + 1)
    ]
    share = len(tasks) / len(plan.shards)
    tokens = plan.size * share * trial.tokens / max(1, trial.size)
    if asked.documents is not None:
        tokens = min(tokens, asked.documents * trial.tokens / max(1, trial.documents))
    again = min(tokens, trial.heads * EXAMPLES * asked.length)
    if how.workers is None:  # each holds a model of its own
        free = SHARE * free_bytes()
        workers.limit(max(1, sum(each <= free for each in memory)))
    processes = min(workers.workers, len(tasks))
    more = TEXT_MEMORY * LONGEST if plan.size > READ else 0
    disk = trial.heads * (len(tasks) * RECORD_BYTES + EXAMPLES * EXAMPLE_BYTES)
    seconds = (tokens + again) * trial.seconds / trial.tokens / processes
    return Estimated(int(tokens), seconds, memory[processes - 1], disk, more)
