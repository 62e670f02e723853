"""A worker: the model in memory, and the tasks that it does with it, one after the other."""

import resource
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.atlas.folder import read_manifest
from attnviz.commands.atlas.record import (
    DRAWN,
    SCALE,
    CorpusText,
    HeadExample,
    Origin,
    Record,
    Shard,
    Skipped,
    TokenMass,
    files_of,
    in_fixed_point,
    record_to_bytes,
)
from attnviz.commands.atlas.tables import table_bytes
from attnviz.commands.scan.corpus import documents_of_shard
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
from attnviz.commands.scan.shards import check_unchanged
from attnviz.commands.scan.windows import Counter, Window, WindowCutter, batch_tokens, run_batches
from attnviz.errors import AttnvizError, InputError, OutputError, UsageError, option
from attnviz.kit.prepare import load_model
from attnviz.records.capture import IntArray
from attnviz.records.heads import Head, choose_heads
from attnviz.records.metrics import HeadLinks
from attnviz.records.tokens import SPECIAL_LABEL

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer


WINDOWS = 10
"""How many windows are tried before a scan; of shorter ones, as many as have their tokens."""


class Worker:
    """Does the tasks of a job, on one thread, so that no result depends on how many there are."""

    def __init__(self, job: Job) -> None:
        from attnviz.models.reducing import device_name, use_threads

        use_threads(1)
        self._store, self._request = job.store, job.request
        if job.scan:
            self._check_folder(job.scan)
        self._model = job.model or load_model(job.source)
        if self._model.kind not in ("self", "encoder"):
            raise UsageError(
                f"a scan is of texts, and this attention of {self._model.identity.name} is of two",
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
        counter = self._counter(shard.number)
        for document in documents_of_shard(shard, self._request):
            counter.add(document)
        record = counter.finish()
        check_unchanged(files_of([shard]), here=False)
        self._store.write(
            record_file(shard), record_to_bytes(record, counter.skipped, shard.number)
        )
        return Done(record.documents, record.tokens, record.bad)

    def _take_examples(self, part: TakeExamples) -> Done:
        rows, tokens = list[dict[str, Any]](), 0
        for shard, wanted in part.chosen:
            windows = list(self._windows(shard, wanted))
            tokens += sum(len(window.ids) for _, window in windows)
            rows += example_rows(self._model, self._heads, windows, wanted)
        rows.sort(key=lambda row: (row["layer"], row["head"], row["rank"]))
        self._leave(part, rows)
        return Done(0, tokens)

    def _sample_tokens(self, part: SampleTokens) -> Done:
        found = [w for shard, ordinals in part.chosen for _, w in self._windows(shard, ordinals)]
        # those of several shards may have one number
        windows = [replace(window, ordinal=number) for number, window in enumerate(found)]
        heads = [self._heads[place] for place in part.heads]
        self._leave(part, list(token_rows(self._model, heads, windows)))
        return Done(0, sum(len(window.ids) for window in windows))

    def _leave(self, part: TablePart, rows: Sequence[dict[str, Any]]) -> None:
        """Write a part of a table, if the files that were read are still those that were listed."""
        check_unchanged(files_of(shard for shard, _ in part.chosen), here=False)
        said = part_name(self._origin.scan, part)
        self._store.write(part.name, table_bytes(part.table, rows, said))

    def _try(self, trial: Trial) -> Tried:
        begun, tokenizer = perf_counter(), self._model.tokenizer
        ends = sum(map(len, tokenizer.ends(tokenizer.bos)))
        step, inner, windows = max(1, self._length - ends), 0, list[str]()
        for piece in trial.pieces:
            with suppress(AttnvizError):  # one that the model cannot read is none of its windows
                own = len(tokenizer.ids(piece))
                windows.append(piece[: int(len(piece) * min(1.0, 0.97 * step / max(1, own)))])
                inner += own
        windows = windows[:: max(1, inner // (WINDOWS * self._length))]
        self._counted(windows[:1])  # it has what the first run alone takes
        at = perf_counter()
        record = self._counted(windows)
        run = perf_counter() - at
        record_to_bytes(record)
        ended = perf_counter()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Tried(
            record.documents,
            record.tokens,
            inner=inner,
            ends=ends,
            step=step,
            heads=len(self._heads),
            run=run,
            beyond=ended - at - run,
            seconds=ended - begun,
            memory=memory if sys.platform == "darwin" else memory * 1024,
        )

    def _counted(self, texts: Sequence[str]) -> Record:
        """The record of texts that are no documents of the corpus."""
        counter = self._counter(0)
        for text in texts:
            counter.add(CorpusText("", 0, text))
        return counter.finish()

    def _counter(self, shard: int) -> Counter:
        seed = self._request.seed
        return Counter(
            self._model, self._heads, self._length, shard=shard, seed=seed, origin=self._origin
        )

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


# Chosen windows run again: the strongest links of some heads, and the tokens that they join.


TOKENS = 50
"""Query tokens, key tokens and pairs that are kept of a head."""


def run_again(
    model: "LoadedModel",
    windows: Sequence[Window],
    wanted: Mapping[int, Sequence[Head]],
    give: Callable[[Window, HeadLinks], None],
) -> None:
    """Run windows, and give the links of the heads that are wanted, by ordinal of the window.

    A window that cannot be run any more, as memory is short, gives none.
    """
    from attnviz.models.reducing import link_windows

    def links_of(batch: Sequence[Window]) -> list[HeadLinks]:
        links: list[HeadLinks] = []
        heads = [wanted[window.ordinal] for window in batch]
        link_windows(model, [window.ids for window in batch], heads, links.append)
        return links

    for batch, links in run_batches(
        windows, links_of, lambda window, why: None, batch_tokens(model)
    ):
        for each in links:
            give(batch[each.window], each)
        links.clear()  # so that they are not held while the next batch runs


def example_rows(
    model: "LoadedModel",
    heads: Sequence[Head],
    windows: Sequence[tuple[CorpusText, Window]],
    wanted: Mapping[int, Sequence[ExamplePlace]],
) -> Iterator[dict[str, Any]]:
    """The rows of `examples.parquet` for some windows of a shard.

    `heads`: those of the scan, in order; `wanted`: by ordinal, the heads whose example it is.
    """
    by_place: dict[tuple[int, Head], HeadLinks] = {}

    def give(window: Window, links: HeadLinks) -> None:
        by_place[window.ordinal, Head(links.layer, links.head)] = links

    by_window = {ordinal: [heads[place.head] for place in own] for ordinal, own in wanted.items()}
    run_again(model, [window for _, window in windows], by_window, give)
    spelled = _speller(model.tokenizer)
    for document, window in windows:
        tokens = tuple(spelled(id_) for id_ in window.ids)
        for place in wanted[window.ordinal]:
            links = by_place.get((window.ordinal, heads[place.head]))
            if links is None:
                continue
            example = HeadExample(
                kind=place.kind,
                bin=min(DRAWN - 1, int(links.largest * DRAWN)),
                largest=links.largest,
                apart=float(links.weights[_between_two(links)].max(initial=0.0)),
                path=document.path,
                start=document.start,
                window=window.number,
                tokens=tokens,
                queries=links.queries,
                keys=links.keys,
                weights=links.weights,
            )
            yield {**heads[place.head]._asdict(), "rank": place.rank, **vars(example)}


def _between_two(links: HeadLinks) -> NDArray[np.bool_]:
    """Which links are between two tokens, neither of which is the first of the window."""
    return np.asarray((links.queries > 0) & (links.keys > 0) & (links.queries != links.keys))


@dataclass
class PairMass:
    """The mass of pairs of tokens over windows, in fixed point; each pair as one number."""

    vocabulary: int
    _pairs: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _mass: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, ids: IntArray, links: HeadLinks) -> None:
        """Add the links of a window (n) between two tokens."""
        inner = _between_two(links)
        pairs = ids[links.queries[inner]] * self.vocabulary + ids[links.keys[inner]]
        mass = in_fixed_point(links.weights[inner].astype(np.float64))
        self._pairs, self._mass = summed(
            np.concatenate([self._pairs, pairs]), np.concatenate([self._mass, mass])
        )

    def rows(self, spelled: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        """The rows of `tokens.parquet`, without head and number of windows."""
        query, key = np.divmod(self._pairs, self.vocabulary)
        for side, numbers in (("query", query), ("key", key), ("pair", self._pairs)):
            names, mass = summed(numbers, self._mass)
            for rank, at in enumerate(np.lexsort((names, -mass))[:TOKENS].tolist()):
                first, second = divmod(int(names[at]), self.vocabulary)
                token = TokenMass(
                    query=None if side == "key" else spelled(first if side == "pair" else second),
                    key=None if side == "query" else spelled(second),
                    mass=int(mass[at]) / SCALE,
                )
                yield {"side": side, "rank": rank, **vars(token)}


def summed(names: IntArray, mass: IntArray) -> tuple[IntArray, IntArray]:
    """Each name once, with its mass."""
    once, which = np.unique(names, return_inverse=True)
    total = np.zeros(len(once), np.int64)
    np.add.at(total, which, mass)
    return once, total


def token_rows(
    model: "LoadedModel", heads: Sequence[Head], windows: Sequence[Window]
) -> Iterator[dict[str, Any]]:
    """The rows of `tokens.parquet` for some heads over the sampled windows."""
    masses = {head: PairMass(model.tokenizer.vocab_size) for head in heads}

    def give(window: Window, links: HeadLinks) -> None:
        masses[Head(links.layer, links.head)].add(np.array(window.ids), links)

    run_again(model, windows, {window.ordinal: heads for window in windows}, give)
    spelled = _speller(model.tokenizer)
    for head, mass in masses.items():
        for row in mass.rows(spelled):
            yield {**head._asdict(), **row, "windows": len(windows)}


def _speller(tokenizer: "TextTokenizer") -> Callable[[int], str]:
    """The text of a token with its leading space; the name of a special one."""

    @cache
    def spelled(id_: int) -> str:
        if id_ == tokenizer.bos_id:
            return SPECIAL_LABEL
        return tokenizer.exact(id_) or tokenizer.label(id_)

    return spelled
