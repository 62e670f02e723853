"""About what a scan will take: a few windows that lie all over its corpus are run.

shards that are left ─► survey: lengths, pieces of text ─► a trial of the pieces ─► estimate
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import ceil
from time import perf_counter

import numpy as np

from attnviz.commands.atlas.folder import is_of_this_scan, lost_files, read_manifest
from attnviz.commands.atlas.record import CorpusText, FilePart, Shard, Split, files_of
from attnviz.commands.scan.corpus import LONGEST, READ, documents_of_shard
from attnviz.commands.scan.executors import Executor, HowRun, workers_of
from attnviz.commands.scan.plan import Done, ScanPlan, Trial, Tried
from attnviz.errors import InputError
from attnviz.inputs.places import ContentForm, named_form, shown
from attnviz.models.placement import SHARE, free_bytes

GROWN = 3
"""How many bytes of text a byte of a compressed file or a table becomes, roughly."""
CHARACTERS = 4
"""Characters of a token, roughly."""
PIECES, WINDOWS = 2048, 64
"""Pieces that are cut into tokens, at most, and how many windows they would fill."""
RECORD_BYTES, TOKEN_BYTES = 1000, 28
"""About how much a head takes in a record, and a token of an example in the result."""
TEXT_MEMORY = 180
"""Bytes of memory that a tokenizer takes for each byte of a text, roughly."""
EXAMPLES = 30
"""Examples of a head, roughly."""


@dataclass(frozen=True)
class Estimated:
    """About what is left of a scan, and what it will take: seconds, bytes of memory and of disk.

    `documents`, `windows`, `tokens`: that are not counted yet; `shards`: those that they are in, of
    `all_shards`; `length`: the most tokens of a window. `workers`: how many there will be.
    `memory`: of all workers, while they read the longest texts that are known. `more`: what one
    worker takes beyond it for a text that is as long as it may be, where there may be one.
    """

    documents: int = 0
    windows: int = 0
    tokens: int = 0
    shards: int = 0
    all_shards: int = 0
    length: int = 0
    seconds: float = 0.0
    workers: int = 0
    memory: int = 0
    disk: int = 0
    more: int = 0


def estimated_alone(plan: ScanPlan, how: HowRun) -> Estimated:
    """The estimate of a scan that does not run: nothing is written, and no folder is made.

    Raises:
        UsageError: the folder holds another scan.
        InputError: no document can be read.
    """
    store, shards = plan.store, plan.shards
    if is_of_this_scan(store, plan.manifest):
        shards = plan.counting() if lost_files(store, read_manifest(store)) else ()
    if not shards:
        return Estimated(all_shards=len(plan.shards))
    with workers_of(plan.free_job, how) as workers:
        about = estimated(plan, shards, workers, how)
    if not about.documents:
        raise InputError("no document could be read", "give others")
    return about


def estimated(plan: ScanPlan, shards: Sequence[Shard], workers: Executor, how: HowRun) -> Estimated:
    """Estimate what the shards that are left will take; fewer workers are let run for it.

    Memory limits the number of workers where nobody named one.
    """
    found, trials, begun = survey(plan, shards), list[Done](), perf_counter()
    if not found.pieces:
        return Estimated(shards=len(shards), all_shards=len(plan.shards))
    workers.do([Trial(found.pieces)], trials.append)
    (tried,) = trials
    assert isinstance(tried, Tried)
    start = perf_counter() - begun - tried.seconds  # which is that of all workers
    memory = [
        tried.memory * n + TEXT_MEMORY * sum(found.longest[:n])
        for n in range(1, workers.workers + 1)
    ]
    if how.workers is None:  # each holds a model of its own
        free = SHARE * free_bytes()
        workers.limit(max(1, sum(each <= free for each in memory)))
    processes = min(workers.workers, len(shards))
    windows, tokens = found.windows_and_tokens(tried)
    examples = min(EXAMPLES, windows) * tokens / max(1, windows)  # tokens of a head's
    again = min(tokens, tried.heads * examples)
    run = (tokens + again) * tried.seconds_of_token + len(shards) * tried.beyond
    disk = len(shards) * RECORD_BYTES + examples * TOKEN_BYTES
    return Estimated(
        documents=round(len(found.lengths) / found.share),
        windows=round(windows),
        tokens=round(tokens),
        shards=len(shards),
        all_shards=len(plan.shards),
        length=tried.step + tried.ends,
        seconds=start + run / processes,
        workers=processes,
        memory=memory[processes - 1],
        disk=round(tried.heads * disk),
        more=TEXT_MEMORY * LONGEST if found.share < 1 else 0,
    )


@dataclass(frozen=True, eq=False)
class Survey:
    """What reading a part of the corpus tells of all of it.

    `lengths`: the bytes of each text that was read; `share`: which part of the corpus that is;
    `pieces`: of texts, each a window long, at even distances; `longest`: bytes of the longest
    texts, as many as there may be workers.
    """

    lengths: Sequence[int]
    share: float
    pieces: Sequence[str]
    longest: Sequence[int]

    def windows_and_tokens(self, tried: Tried) -> tuple[float, float]:
        """How many windows the corpus has, and how many tokens."""
        inner = np.array(self.lengths) * tried.tokens_of_byte
        windows = float(np.maximum(1, np.ceil(inner / tried.step)).sum())
        return windows / self.share, (float(inner.sum()) + windows * tried.ends) / self.share


def survey(plan: ScanPlan, shards: Sequence[Shard]) -> Survey:
    """Read shards at even distances, about `READ` bytes of text in all.

    Of a compressed file that is longer, only the beginning is read.
    """
    split = plan.job.request.split
    sizes = [sum(_text_size(piece, split) for piece in shard.pieces) for shard in shards]
    every = ceil(sum(sizes) / READ) or 1
    whole = {
        shown(file.path): file.size
        for file in files_of(plan.shards)
        if _is_one_text(file.path, split)
    }  # texts whose size needs no reading
    known = [size for size in whole.values() if size <= LONGEST]
    taken, reached = Spread(CHARACTERS * plan.job.request.length), 0.0
    for place in range(every // 2, len(shards), every):
        before = taken.size
        for document in documents_of_shard(shards[place], plan.job.request):
            if isinstance(document, CorpusText):
                taken.add(document.text)
                if document.path not in whole:
                    known.append(taken.lengths[-1])
            if taken.size > READ:
                break
        else:
            reached += sizes[place]
            continue
        reached += min(sizes[place], taken.size - before)
        break
    share = reached / max(1, sum(sizes))
    return Survey(taken.lengths, share or 1.0, taken.pieces, nlargest(1024, known))


def _text_size(piece: FilePart, split: Split) -> int:
    """About how many bytes of text a piece of a file holds that can be read."""
    form, size = named_form(piece.path), piece.end - piece.start
    if size > LONGEST and _is_one_text(piece.path, split):
        return 0
    return size * (GROWN if form.compression is not None or form.kind == "table" else 1)


def _is_one_text(path: str, split: Split) -> bool:
    return split == "file" and named_form(path) == ContentForm("text")


class Spread:
    """Pieces of texts at even distances; when there are many, every other one is dropped.

    `length`: characters of a piece.
    """

    def __init__(self, length: int) -> None:
        self._length, self._apart, self._next = length, 64, 0
        self.size = self._filled = 0
        self.lengths, self.pieces = list[int](), list[str]()

    def add(self, text: str) -> None:
        """The next text."""
        size = len(text.encode())
        while self._next < self.size + size:
            at = (self._next - self.size) * len(text) // size
            at -= at % self._length  # where a window begins
            self.pieces.append(text[at : at + self._length])
            self._filled += len(self.pieces[-1])
            self._next += self._apart
            if len(self.pieces) > PIECES or self._filled > WINDOWS * self._length:
                del self.pieces[1::2]
                self._filled = sum(map(len, self.pieces))
                self._apart *= 2
                self._next = ceil(self._next / self._apart) * self._apart
        self.size += size
        self.lengths.append(size)
