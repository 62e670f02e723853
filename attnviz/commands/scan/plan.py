"""A scan as tasks: its shards, and then the parts of tables from the windows that they chose.

FOLDER/manifest.json      what was asked, over which files, with which model and versions
FOLDER/shards/…           the record of each finished shard
FOLDER/links/…            the links that were kept of it, until the result is written
FOLDER/examples/…         the windows that were chosen of all shards, until then, too
FOLDER/sampled/…          the same of tokens
FOLDER/heads.parquet      the result, written last; beside it histograms.parquet,
                          tokens.parquet, examples.parquet and skipped.jsonl
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from attnviz.corpus.documents import documents_of_shard
from attnviz.corpus.folder import AGAIN, EXAMPLES, SAMPLED, Request, Store, digest_of, manifest_of
from attnviz.corpus.places import FilePart, Shard, Skipped, named_form
from attnviz.corpus.record import NONE, Record, record_of_bytes, skipped_of_bytes, total_of
from attnviz.corpus.shards import SHARD, corpus_files, shards_of
from attnviz.corpus.tables import part_of
from attnviz.errors import InputError
from attnviz.kit.prepare import load_model
from attnviz.kit.sets import with_names
from attnviz.models.catalog import Source, files_of_model, state_of_memory

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


# The tasks. All but a trial leave one file, by which they are known to be done.


@dataclass(frozen=True)
class Trial:
    """Run a few windows, to see what a scan will take; `pieces`: texts, each about a window."""

    pieces: Sequence[str]

    @property
    def size(self) -> int:
        """Bytes of the pieces."""
        return sum(len(piece.encode()) for piece in self.pieces)


@dataclass(frozen=True)
class ExamplePlace:
    """An example's place: its head by number in a record, and its rank among the head's own."""

    head: int
    rank: int
    kind: Literal["top", "bin"]


@dataclass(frozen=True)
class TablePart:
    """Take the links of chosen windows of some shards, for a part of a table of the result.

    `chosen`: the ordinals of the windows, by shard.
    """

    number: int
    chosen: Sequence[tuple[Shard, Collection[int]]]
    table: ClassVar[str]
    folder: ClassVar[str]

    @property
    def name(self) -> str:
        """The file that it leaves."""
        return f"{self.folder}/{self.number:06}.parquet"

    @property
    def size(self) -> int:
        """The number of windows to run."""
        return sum(len(windows) for _, windows in self.chosen)


@dataclass(frozen=True)
class TakeExamples(TablePart):
    """Keep the strongest links of the heads that want a window."""

    chosen: Sequence[tuple[Shard, Mapping[int, Sequence[ExamplePlace]]]]
    table, folder = "examples", EXAMPLES


@dataclass(frozen=True)
class SampleTokens(TablePart):
    """Count the tokens of some heads, named by their places."""

    heads: range
    table, folder = "tokens", SAMPLED


PARTS: Sequence[type[TablePart]] = (TakeExamples, SampleTokens)
Task: TypeAlias = Shard | TakeExamples | SampleTokens | Trial
"""A shard is counted."""


def record_file(shard: Shard) -> str:
    """The file that counting a shard leaves: its record."""
    return f"shards/{shard.number:06}.npz"


def part_name(scan: str, part: TablePart) -> str:
    """The label of a part of a table: its scan and its file."""
    return f"{scan} {part.name}"


@dataclass(frozen=True)
class Done:
    """The outcome of a task: how many documents, tokens and skipped documents; its own size."""

    documents: int = 0
    tokens: int = 0
    skipped: int = 0
    size: int = 0


@dataclass(frozen=True)
class Tried(Done):
    """The outcome of a trial, of some windows.

    `inner`: tokens of all pieces, without those at the ends of windows, of which there are `ends`
    in each; `step`: the most inner tokens of a window; `heads`: that are counted. `run`: seconds
    that the windows took, of `tokens`; `links`, `link_bytes`: what all their links take beyond it,
    in seconds and on disk; `kept`: of how many windows those of a head are kept in the end, 0 where
    a second pass takes them. `beyond`: the seconds that a shard takes beyond its tokens; `seconds`:
    all. `memory`: bytes of the process, at most, and of the links that it may keep.
    """

    inner: int = 0
    ends: int = 0
    step: int = 1
    heads: int = 0
    run: float = 0.0
    links: float = 0.0
    link_bytes: int = 0
    kept: int = 0
    beyond: float = 0.0
    seconds: float = 0.0
    memory: int = 0

    @property
    def seconds_of_token(self) -> float:
        return self.run / max(1, self.tokens)


@dataclass(frozen=True)
class Job:
    """All that a worker has to know before its first task; it can be sent to another machine.

    `model`: one that is in memory already, whose worker stays in this process.
    """

    store: Store
    request: Request
    source: Source
    scan: str
    """The digest of the manifest, which a worker must find in the folder; "": it only tries."""
    shards: int = 1
    """The number of shards of the corpus."""
    text: float = inf
    """About how many bytes of text the largest of them has."""
    model: "LoadedModel | None" = None


# The plan of a scan.

R = TypeVar("R")
WHOLE = (1, 1)
"""A scan in one part."""
GROWN = 3
"""The number of bytes of text for a byte of a compressed file or a table, roughly."""
MOST_SHARDS = 1 << 16
"""Shards of a corpus, at most, but for files that are never cut."""


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """A scan: the job of its workers, and the shards of its corpus."""

    job: Job
    manifest: Mapping[str, Any]
    shards: Sequence[Shard]
    size: int
    """Bytes of its corpus, about, where it is compressed."""

    @property
    def store(self) -> Store:
        return self.job.store

    def of_part(self, part: tuple[int, int] = WHOLE) -> list[Shard]:
        """The shards of the I-th of N parts, for (I, N)."""
        number, parts = part
        return [shard for shard in self.shards if shard.number % parts == number - 1]

    def counting(self, part: tuple[int, int] = WHOLE) -> list[Shard]:
        """The shards of a part that are not counted yet, or whose records are not theirs."""
        shards, files = self.of_part(part), self.store.names("shards")
        return [
            shard
            for shard in shards
            if record_file(shard) not in files or not self._is_counted(shard)
        ]

    def again(self, total: Record, lost: Collection[str]) -> list[TakeExamples | SampleTokens]:
        """The parts that are missing of the tables that were lost, when every shard is counted."""
        parts = [part for part in parts_of(total, self.shards) if f"{part.table}.parquet" in lost]
        files = {
            name for folder in {part.folder for part in parts} for name in self.store.names(folder)
        }
        return [
            part
            for part in parts
            if part.name not in files
            or part_of(self.store, part.name) != part_name(self.job.scan, part)
        ]

    def total(self) -> Record:
        """The records of all shards as one.

        Raises:
            InputError: one is missing, damaged, or of another scan.
        """
        total = total_of(map(self._record, self.shards), self.store.where)
        assert total is not None  # a corpus has a shard
        return total

    def skipped(self, shards: Sequence[Shard]) -> Iterator[Skipped]:
        """The documents of counted shards that could not be read."""
        for shard in shards:
            yield from self._read(shard, skipped_of_bytes)

    def _record(self, shard: Shard) -> Record:
        record = self._read(shard, partial(record_of_bytes, shard=shard.number))
        if record.origin.scan != self.job.scan:
            raise self._damaged(shard)
        return record

    def _is_counted(self, shard: Shard) -> bool:
        try:
            self._record(shard)
        except InputError:
            return False
        return True

    def _read(self, shard: Shard, parse: Callable[[bytes], R]) -> R:
        data = self.store.read(record_file(shard))
        if data is None:
            raise InputError(
                f"the shard {shard.number} of {self.store.where!r} is not counted yet",
                "scan again, or run the part that it belongs to",
            )
        try:
            return parse(data)
        except ValueError:
            raise self._damaged(shard) from None

    def _damaged(self, shard: Shard) -> InputError:
        name = self.store.url(record_file(shard))
        return InputError(f"the record {name!r} is damaged, or of another shard", AGAIN)


def make_plan(
    store: Store, request: Request, source: Source, model: "LoadedModel | None" = None
) -> ScanPlan:
    """Plan a scan, perhaps with a model that is in memory; nothing is written."""
    if request.heads.of_sets:  # measured here, once, and not by each worker
        whole, memory = model or load_model(source), source.placement.max_memory
        request = replace(request, heads=with_names(whole, request.heads, memory))
    files = corpus_files(request.paths, avoid=store.where)
    size = sum(file.size for file in files)
    shards = list(shards_of(files, request.split, request.shard or shard_size(size)))
    if request.documents is not None:
        shards = list(_limited(shards, request, request.documents))
    states = [(file.path, file.size, file.mark) for file in files]
    weights = files_of_model(source) if model is None else state_of_memory(model)
    manifest = manifest_of(request, source, weights, states, len(shards))
    largest = max((sum(map(text_bytes, shard.pieces)) for shard in shards), default=0)
    job = Job(store, request, source, digest_of(manifest), len(shards), largest, model)
    return ScanPlan(job, manifest, shards, size)


def text_bytes(piece: FilePart) -> int:
    """About how many bytes of text a piece of a file holds."""
    form, size = named_form(piece.path), piece.end - piece.start
    return size * (GROWN if form.compression is not None or form.kind == "table" else 1)


def shard_size(corpus: int) -> int:
    """Bytes of a shard: at least SHARD, and twice as many until there are at most MOST_SHARDS."""
    size = SHARD
    while corpus > size * MOST_SHARDS:
        size *= 2
    return size


def _limited(shards: Sequence[Shard], request: Request, most: int) -> Iterator[Shard]:
    """The first shards, which hold `most` documents together, readable or not."""
    for shard in shards:
        if most <= 0:
            return
        wanted = sum(1 for _ in islice(documents_of_shard(shard, request), most))
        yield replace(shard, most=wanted)
        most -= wanted


# The windows that the records of all shards chose, as tasks.

EXAMPLE_WINDOWS, SAMPLE_HEADS = 128, 256
"""The number of windows in a part of the examples, and of heads in a part of the tokens."""


def parts_of(total: Record, shards: Sequence[Shard]) -> list[TakeExamples | SampleTokens]:
    """The parts of the tables that are made of windows, when all shards are counted."""
    return [*_examples(total, shards), *_tokens(total, shards)]


def _examples(total: Record, shards: Sequence[Shard]) -> Iterator[TakeExamples]:
    wanted: dict[tuple[int, int], list[ExamplePlace]] = {}
    for head in range(len(total.heads)):
        for rank, (window, kind) in enumerate(_windows_of(total, head).items()):
            wanted.setdefault(window, []).append(ExamplePlace(head, rank, kind))
    windows = sorted(wanted)
    for number, first in enumerate(range(0, len(windows), EXAMPLE_WINDOWS)):
        by_shard = groupby(windows[first : first + EXAMPLE_WINDOWS], key=itemgetter(0))
        chosen = [
            (shards[shard], {window[1]: wanted[window] for window in own})
            for shard, own in by_shard
        ]
        yield TakeExamples(number, chosen)


def _windows_of(total: Record, head: int) -> dict[tuple[int, int], Literal["top", "bin"]]:
    """The windows of a head's examples, each once: the largest weights, then by falling bin."""
    kinds: dict[tuple[int, int], Literal["top", "bin"]] = {}
    for value, shard, ordinal in total.best[head].tolist():
        if value != NONE:
            kinds[shard, ordinal] = "top"
    for value, shard, ordinal in total.drawn[head, ::-1].reshape(-1, 3).tolist():
        if value != NONE:
            kinds.setdefault((shard, ordinal), "bin")
    return kinds


def _tokens(total: Record, shards: Sequence[Shard]) -> Iterator[SampleTokens]:
    windows = sorted(place for chance, *place in total.sample.tolist() if chance != NONE)
    by_shard = groupby(windows, key=itemgetter(0))
    chosen = [(shards[shard], [ordinal for _, ordinal in own]) for shard, own in by_shard]
    heads = range(len(total.heads))
    for number, first in enumerate(heads[::SAMPLE_HEADS]):
        yield SampleTokens(number, chosen, heads[first : first + SAMPLE_HEADS])
