"""What a worker is given to do. Each task leaves one file, by which it is known to be done.

shards/000007.npz          the record of a shard
examples/000003.parquet    examples of all heads in some of the chosen windows
sampled/000001.parquet     the tokens of some heads over the sampled windows
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.commands.atlas.record import NONE, Record, Shard

EXAMPLE_WINDOWS, SAMPLE_HEADS = 128, 256
"""How many windows make a task of examples; how many heads one of tokens."""


@dataclass(frozen=True)
class ExamplePlace:
    """An example's place: its head by number in a record, and its rank among the head's own."""

    head: int
    rank: int
    kind: Literal["top", "bin"]


@dataclass(frozen=True)
class CountShard:
    """Count every head over a shard."""

    shard: Shard

    @property
    def name(self) -> str:
        """The file that it leaves."""
        return f"shards/{self.shard.number:06}.npz"


@dataclass(frozen=True)
class TakeExamples:
    """Run chosen windows of some shards again, and keep the strongest links of some heads.

    `chosen`: of each shard, ordinals of windows to the heads that want them.
    """

    number: int
    chosen: Sequence[tuple[Shard, Mapping[int, Sequence[ExamplePlace]]]]

    @property
    def name(self) -> str:
        """The file that it leaves."""
        return f"examples/{self.number:06}.parquet"


@dataclass(frozen=True)
class SampleTokens:
    """Run the sampled windows again, and count the tokens of some heads, named by place."""

    number: int
    heads: range
    chosen: Sequence[tuple[Shard, Sequence[int]]]

    @property
    def name(self) -> str:
        """The file that it leaves."""
        return f"sampled/{self.number:06}.parquet"


@dataclass(frozen=True)
class Trial:
    """Run a few windows, to see what a scan will take; leaves no file."""

    shard: Shard


Lasting: TypeAlias = CountShard | TakeExamples | SampleTokens
"""A task that leaves a file."""
Task: TypeAlias = Lasting | Trial


def part_name(scan: str, task: Lasting) -> str:
    """What a part of a table says of itself: its scan and its task."""
    return f"{scan} {task.name}"


@dataclass(frozen=True)
class Done:
    """What a task did: how many documents, tokens and skipped documents; what a trial took.

    `seconds`: for these tokens; `size`: bytes of text that they were; `heads`: of the model;
    `memory`: bytes of the process at most.
    """

    documents: int = 0
    tokens: int = 0
    skipped: int = 0
    seconds: float = 0.0
    size: int = 0
    heads: int = 0
    memory: int = 0


def tasks_of_windows(record: Record, shards: Sequence[Shard]) -> list[Lasting]:
    """What is to be run again when all shards are counted."""
    return [*_examples(record, shards), *_tokens(record, shards)]


def _examples(record: Record, shards: Sequence[Shard]) -> list[TakeExamples]:
    wanted: dict[tuple[int, int], list[ExamplePlace]] = {}
    for head in range(len(record.heads)):
        for rank, (window, kind) in enumerate(_of_head(record, head).items()):
            wanted.setdefault(window, []).append(ExamplePlace(head, rank, kind))
    windows = sorted(wanted)
    tasks = []
    for number, first in enumerate(range(0, len(windows), EXAMPLE_WINDOWS)):
        of: dict[int, dict[int, Sequence[ExamplePlace]]] = {}
        for shard, ordinal in windows[first : first + EXAMPLE_WINDOWS]:
            of.setdefault(shard, {})[ordinal] = wanted[shard, ordinal]
        tasks.append(TakeExamples(number, [(shards[shard], own) for shard, own in of.items()]))
    return tasks


def _of_head(record: Record, head: int) -> dict[tuple[int, int], Literal["top", "bin"]]:
    """The windows of a head's examples, each once: the largest weights, then by falling bin."""
    of: dict[tuple[int, int], Literal["top", "bin"]] = {}
    for value, shard, ordinal in record.best[head].tolist():
        if value != NONE:
            of[shard, ordinal] = "top"
    for value, shard, ordinal in record.drawn[head, ::-1].reshape(-1, 3).tolist():
        if value != NONE:
            of.setdefault((shard, ordinal), "bin")
    return of


def _tokens(record: Record, shards: Sequence[Shard]) -> list[SampleTokens]:
    of: dict[int, list[int]] = {}
    for chance, shard, ordinal in sorted(record.sample.tolist(), key=lambda w: w[1:]):
        if chance != NONE:
            of.setdefault(shard, []).append(ordinal)
    chosen = [(shards[shard], ordinals) for shard, ordinals in of.items()]
    heads = range(len(record.heads))
    parts = [heads[first : first + SAMPLE_HEADS] for first in heads[::SAMPLE_HEADS]]
    return [SampleTokens(number, part, chosen) for number, part in enumerate(parts)]
