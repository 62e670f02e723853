"""A worker: the model in memory, and the tasks that it does with it, one after the other."""

import resource
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.scan.counting import Counter
from attnviz.commands.scan.links import (
    Keeping,
    Linked,
    LinkKeeper,
    SeenWindow,
    Shortlist,
    WantedLinks,
    links_file,
    links_of_bytes,
    links_to_bytes,
    run_again,
)
from attnviz.commands.scan.plan import (
    Done,
    ExamplePlace,
    Job,
    SampleTokens,
    TablePart,
    TakeExamples,
    Task,
    Trial,
    Tried,
    part_name,
    record_file,
)
from attnviz.corpus.documents import Window, WindowCutter, documents_of_shard
from attnviz.corpus.folder import read_manifest
from attnviz.corpus.places import CorpusText, Shard, Skipped, files_of
from attnviz.corpus.record import FloatArray64, Origin, Record, drawn_bin, record_to_bytes
from attnviz.corpus.shards import check_unchanged
from attnviz.corpus.tables import HeadExample, TokenMass, table_bytes
from attnviz.errors import AttnvizError, InputError, OutputError, UsageError, option
from attnviz.kit.prepare import load_model
from attnviz.records.capture import FloatArray, IntArray
from attnviz.records.heads import Head, choose_heads
from attnviz.records.metrics import HeadLinks
from attnviz.records.tokens import SPECIAL_LABEL

if TYPE_CHECKING:
    from attnviz.models.tokenizer import TextTokenizer


WINDOWS = 10
"""The number of windows to try before a scan; more if they are shorter."""


class Worker:
    """Does the tasks of a job, on one thread, so that no result depends on how many there are."""

    def __init__(self, job: Job) -> None:
        from attnviz.models.reducing import device_name, use_threads

        use_threads(1)
        self._store, self._request, self._text = job.store, job.request, job.text
        if job.scan:
            self._check_folder(job.scan)
        self._model = job.model or load_model(job.source)
        if self._model.kind not in ("self", "encoder"):
            raise UsageError(
                f"a scan is of texts, but this attention of {self._model.identity.name} is of two",
                f"give {option('kind', 'encoder')}, or another model",
            )
        identity, chosen = self._model.identity, job.request.heads
        self._length = min(job.request.length, self._model.tokenizer.context)
        self._origin = Origin(
            scan=job.scan,
            device=device_name(self._model),
            model=identity,
            bos=self._model.tokenizer.bos,
        )
        self._heads = sorted(choose_heads(identity.heads_per_layer, chosen.layers, chosen.heads))
        # on a graphics processor, to choose links in each layer is to wait for it
        on_processor = self._origin.device == "cpu"
        keeping = Keeping.of(job.shards, len(self._heads), self._length, job.text)
        self._keeping = keeping if on_processor else Keeping()
        self._spelled = _speller(self._model.tokenizer)
        self._shortlist = self._empty_shortlist() if self._keeping.examples else None

    def _empty_shortlist(self) -> Shortlist:
        return Shortlist(tuple(map(str, self._heads)), self._keeping)

    def _check_folder(self, scan: str) -> None:
        """See that this worker has the folder of the scan, and can write it."""
        scan_there = None
        with suppress(InputError):
            scan_there = read_manifest(self._store)["scan"]
        if scan_there != scan:
            raise OutputError(
                f"a worker does not find the scan in {self._store.where!r}",
                "give a folder that all workers share, or its URL",
            )
        self._store.try_writing()

    def do(self, task: Task) -> Done:
        """Do a task, and write its file."""
        match task:
            case Shard():
                done = self._count(task)
            case TakeExamples():
                done = self._take_examples(task)
            case SampleTokens():
                done = self._sample_tokens(task)
            case Trial():
                done = self._try(task)
        return replace(done, size=task.size)

    def _count(self, shard: Shard) -> Done:
        keeper = self._shortlist
        if keeper is not None:
            keeper.begin(shard.number)
        record, skipped = self._record_of(shard, keeper)
        if keeper is not None and keeper.links:
            kept = links_to_bytes(keeper, self._origin.scan, shard.number)
            self._store.write(links_file(shard), kept)
        self._store.write(record_file(shard), record_to_bytes(record, skipped, shard.number))
        return Done(record.documents, record.tokens, record.bad)

    def _record_of(
        self, shard: Shard, keeper: LinkKeeper | None
    ) -> tuple[Record, Sequence[Skipped]]:
        """Count a shard, whose files are still as they were listed."""
        found = self._counted(documents_of_shard(shard, self._request), keeper, shard.number)
        check_unchanged(files_of([shard]), here=False)
        return found

    def _take_examples(self, part: TakeExamples) -> Done:
        rows = list[dict[str, Any]]()
        for shard, wanted in part.chosen:
            heads = {ordinal: [p.head for p in own] for ordinal, own in wanted.items()}
            places = {(ordinal, p.head): p for ordinal, own in wanted.items() for p in own}
            for pair, window, links in self._linked(shard, heads, kept=self._keeping.examples):
                rows.append(self._example_row(places[pair], window, links))
        rows.sort(key=lambda row: (row["layer"], row["head"], row["rank"]))
        self._leave(part, rows)
        sizes = {(r["path"], r["start"], r["window"]): len(r["tokens"]) for r in rows}
        return Done(0, sum(sizes.values()))

    def _sample_tokens(self, part: SampleTokens) -> Done:
        masses = {place: PairMass(self._model.tokenizer.vocab_size) for place in part.heads}
        windows, tokens = 0, 0
        for shard, ordinals in part.chosen:
            ids = dict[int, IntArray]()
            wanted = dict.fromkeys(ordinals, part.heads)
            for pair, window, links in self._linked(shard, wanted, kept=self._keeping.sample):
                own = ids.setdefault(pair[0], np.array(window.ids))
                masses[pair[1]].add(own, links)
            windows, tokens = windows + len(ids), tokens + sum(map(len, ids.values()))
        rows = [
            {**self._heads[place]._asdict(), **row, "windows": windows}
            for place, mass in masses.items()
            for row in mass.rows(self._spelled)
        ]
        self._leave(part, rows)
        return Done(0, tokens)

    def _linked(self, shard: Shard, wanted: Mapping[int, Collection[int]], *, kept: bool) -> Linked:
        """The links of windows of a shard and heads, by ordinal and place, in any order.

        `kept`: they are those of the run that counted the shard, whose last bits another batch
        would change. Where they are lost, the shard is counted again.
        """
        if not kept:
            yield from self._run_again(shard, wanted)
            return
        linked = None
        with suppress(ValueError, InputError):
            if data := self._store.read(links_file(shard)):
                scan, heads = self._origin.scan, self._heads
                linked = links_of_bytes(data, scan, shard.number, heads, wanted)
        if linked is None:
            keeper = WantedLinks(wanted)
            self._record_of(shard, keeper)
            linked = keeper.of_shard()
        yield from linked

    def _run_again(self, shard: Shard, wanted: Mapping[int, Collection[int]]) -> Linked:
        seen, windows = dict[int, SeenWindow](), list[Window]()
        for document, window in self._windows(shard, wanted):
            seen[window.ordinal] = SeenWindow.of(document, window)
            windows.append(window)
        heads = {ordinal: [self._heads[p] for p in places] for ordinal, places in wanted.items()}
        places = {head: place for place, head in enumerate(self._heads)}
        for window, links in run_again(self._model, windows, heads):
            pair = window.ordinal, places[Head(links.layer, links.head)]
            yield pair, seen[window.ordinal], links

    def _example_row(
        self, place: ExamplePlace, window: SeenWindow, links: HeadLinks
    ) -> dict[str, Any]:
        """A row of `examples.parquet`."""
        example = HeadExample(
            kind=place.kind,
            bin=int(drawn_bin(np.array(links.largest))),
            largest=links.largest,
            apart=float(links.weights[_between_two(links)].max(initial=0.0)),
            path=window.path,
            start=window.start,
            window=window.number,
            tokens=tuple(map(self._spelled, window.ids)),
            queries=links.queries,
            keys=links.keys,
            weights=links.weights,
        )
        return {**self._heads[place.head]._asdict(), "rank": place.rank, **vars(example)}

    def _leave(self, part: TablePart, rows: Sequence[dict[str, Any]]) -> None:
        """Write a part of a table, if the files that were read are still those that were listed."""
        check_unchanged(files_of(shard for shard, _ in part.chosen), here=False)
        said = part_name(self._origin.scan, part)
        self._store.write(part.name, table_bytes(part.table, rows, said))

    def _try(self, trial: Trial) -> Tried:
        begun, tokenizer = perf_counter(), self._model.tokenizer
        ends = sum(map(len, tokenizer.ends(tokenizer.bos)))
        step, inner, windows = max(1, self._length - ends), 0, list[CorpusText]()
        for piece in trial.pieces:
            with suppress(AttnvizError):  # one that the model cannot read is none of its windows
                own = len(tokenizer.ids(piece))
                kept = piece[: int(len(piece) * min(1.0, 0.97 * step / max(1, own)))]
                windows.append(CorpusText("", 0, kept))
                inner += own
        windows = windows[:: max(1, inner // (WINDOWS * self._length))]
        self._counted(windows[:1])  # it has what only the first run takes
        at = perf_counter()
        record, _ = self._counted(windows)
        run = perf_counter() - at
        record_to_bytes(record)
        beyond = perf_counter() - at - run
        shortlist = self._empty_shortlist()
        if self._keeping.examples:
            self._counted(windows, shortlist)
        ended = perf_counter()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        memory = memory if sys.platform == "darwin" else memory * 1024
        return Tried(
            record.documents,
            record.tokens,
            inner=inner,
            ends=ends,
            step=step,
            heads=len(self._heads),
            run=run,
            kept=self._keeping.windows,
            links=max(0.0, ended - at - beyond - 2 * run),
            link_bytes=shortlist.bytes,
            beyond=beyond,
            seconds=ended - begun,
            memory=memory + self._keeping.most_bytes(len(self._heads), self._length, self._text),
        )

    def _counted(
        self,
        documents: Iterable[CorpusText | Skipped],
        keeper: LinkKeeper | None = None,
        shard: int = 0,
    ) -> tuple[Record, Sequence[Skipped]]:
        """The record of documents, and those that could not be read."""
        model, heads, length = self._model, self._heads, self._length
        seed, origin = self._request.seed, self._origin
        counter = Counter(
            model, heads, length, shard=shard, seed=seed, origin=origin, keeper=keeper
        )
        for document in documents:
            counter.add(document)
        return counter.finish(), counter.skipped

    def _windows(
        self, shard: Shard, ordinals: Collection[int]
    ) -> Iterator[tuple[CorpusText, Window]]:
        cutter = WindowCutter(self._model.tokenizer, self._length, self._request.seed)
        left = set(ordinals)
        for document in documents_of_shard(shard, self._request):
            if not left:
                return
            if isinstance(document, Skipped):
                continue
            try:
                windows = cutter.of(document)
            except AttnvizError:
                continue
            for window in windows:
                if window.ordinal in left:
                    left.discard(window.ordinal)
                    yield document, window


# The statistics of the links of chosen windows.


TOKENS = 50
"""Query tokens, key tokens and pairs that are kept of a head."""
AT_ONCE = 1 << 16
"""Links that are added up at a time, at least."""


def _between_two(links: HeadLinks) -> NDArray[np.bool_]:
    """The links between two tokens, neither of which is the first of the window."""
    return np.asarray((links.queries > 0) & (links.keys > 0) & (links.queries != links.keys))


@dataclass
class PairMass:
    """The mass of pairs of tokens over windows; each pair as one number.

    It is exact: weights have 24 bits, and are 0.005 or more.
    """

    vocabulary: int
    _pairs: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _mass: FloatArray64 = field(default_factory=lambda: np.empty(0))
    _new: list[tuple[IntArray, FloatArray]] = field(default_factory=list)
    _waiting: int = 0

    def add(self, ids: IntArray, links: HeadLinks) -> None:
        """Add the links of a window (n) between two tokens."""
        inner = _between_two(links)
        pairs = ids[links.queries[inner]] * self.vocabulary + ids[links.keys[inner]]
        self._new.append((pairs, links.weights[inner]))
        self._waiting += len(pairs)
        if self._waiting > max(AT_ONCE, len(self._pairs)):
            self._add_up()

    def _add_up(self) -> None:
        if self._new:
            names, weights = (np.concatenate(each) for each in zip(*self._new, strict=True))
            names = np.concatenate([self._pairs, names])
            self._pairs, self._mass = summed(names, np.concatenate([self._mass, weights]))
        self._new, self._waiting = [], 0

    def rows(self, spelled: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        """The rows of `tokens.parquet`, without head and number of windows."""
        self._add_up()
        query, key = np.divmod(self._pairs, self.vocabulary)
        for side, numbers in (("query", query), ("key", key), ("pair", self._pairs)):
            names, mass = summed(numbers, self._mass)
            for rank, at in enumerate(_most(names, mass).tolist()):
                first, second = divmod(int(names[at]), self.vocabulary)
                token = TokenMass(
                    query=None if side == "key" else spelled(first if side == "pair" else second),
                    key=None if side == "query" else spelled(second),
                    mass=float(mass[at]),
                )
                yield {"side": side, "rank": rank, **vars(token)}


def _most(names: IntArray, mass: FloatArray64) -> IntArray:
    """The places of the largest masses, the largest first; of equal ones, by their names."""
    bar = np.partition(mass, -TOKENS)[-TOKENS] if len(mass) > TOKENS else 0
    high = np.flatnonzero(mass >= bar)
    return high[np.lexsort((names[high], -mass[high]))][:TOKENS]


def summed(names: IntArray, mass: FloatArray64) -> tuple[IntArray, FloatArray64]:
    """Each name once, in order, with its mass."""
    names, places = np.unique(names, return_inverse=True)
    return names, np.asarray(np.bincount(places, mass, len(names)), np.float64)


def _speller(tokenizer: "TextTokenizer") -> Callable[[int], str]:
    """The text of a token with its leading space; the name of a special one."""

    @cache
    def spelled(id_: int) -> str:
        if id_ == tokenizer.bos_id:
            return SPECIAL_LABEL
        return tokenizer.exact(id_) or tokenizer.label(id_)

    return spelled
