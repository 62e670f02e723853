"""The time and memory of a scan, estimated: a few windows from all over its corpus are run.

shards that are left ─► survey: lengths, pieces of text ─► a trial of the pieces ─► estimate
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import islice
from math import ceil, log
from time import perf_counter

import numpy as np

from attnviz.commands.scan.executors import Executor, HowRun, workers_of
from attnviz.commands.scan.plan import Done, ScanPlan, Trial, Tried, text_bytes
from attnviz.corpus.documents import LONGEST, READ, documents_of
from attnviz.corpus.folder import Request, is_of_this_scan, lost_files, read_manifest
from attnviz.corpus.places import (
    ContentForm,
    CorpusText,
    FilePart,
    Shard,
    Split,
    files_of,
    is_url,
    named_form,
)
from attnviz.errors import InputError
from attnviz.models.placement import SHARE, free_bytes

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
LEAST_APART, AWAY = 64, 64
"""Bytes between two pieces, at least; shards behind URLs that are read, about, at most twice."""


ONE_TRIAL = (Trial(()),)
"""The trials to report to a watcher while an estimate is made."""


@dataclass(frozen=True)
class Estimated:
    """About what is left of a scan, and what it will take: seconds, bytes of memory and of disk.

    `documents`, `windows`, `tokens`: that are not counted yet; `shards`: those that they are in, of
    `all_shards`; `length`: the most tokens of a window. `workers`: their future number.
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
    with workers_of(replace(plan.job, scan=""), how) as workers:  # which needs no folder
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
    run = tokens * tried.seconds_of_token + len(shards) * tried.beyond
    kept = share_kept(windows / processes, tried.kept) * tokens / max(1, tried.tokens)
    run += kept * tried.links
    if not tried.kept:  # the windows of examples are run again
        run += min(tokens, tried.heads * examples) * tried.seconds_of_token
    disk = tried.heads * (len(shards) * RECORD_BYTES + examples * TOKEN_BYTES)
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
        disk=round(disk + kept * tried.link_bytes),
        more=TEXT_MEMORY * LONGEST if found.share < 1 else 0,
    )


def share_kept(windows: float, most: int) -> float:
    """The share of a worker's windows of which a head's links are kept when it counts them.

    They are `most` in the end, and the n-th window is among them with the chance most / n. With W
    workers, `windows` are 1 / W of all: each worker compares with its own alone, and together they
    keep more than one would.
    """
    return 1.0 if windows <= most else most * (1 + log(windows / max(1, most))) / windows


@dataclass(frozen=True, eq=False)
class Survey:
    """An estimate of the whole corpus from a part of it.

    `lengths`: the bytes of each text that was read; `share`: their share of the corpus;
    `pieces`: of texts, each a window long, at even distances; `longest`: bytes of the longest
    texts, as many as there may be workers.
    """

    lengths: Sequence[int]
    share: float
    pieces: Sequence[str]
    longest: Sequence[int]

    def windows_and_tokens(self, tried: Tried) -> tuple[float, float]:
        """The number of windows of the corpus, and of tokens."""
        inner = np.array(self.lengths) * tried.inner / max(1, tried.size)
        windows = float(np.maximum(1, np.ceil(inner / tried.step)).sum())
        return windows / self.share, (float(inner.sum()) + windows * tried.ends) / self.share


def survey(plan: ScanPlan, shards: Sequence[Shard]) -> Survey:
    """Read shards at even distances, about `READ` bytes of text in all, and fewer behind URLs.

    Only the beginning of a longer compressed file is read.
    """
    request = plan.job.request
    sizes = [sum(_text_size(piece, request.split) for piece in shard.pieces) for shard in shards]
    distant = any(is_url(piece.path) for piece in shards[0].pieces)
    every = max(1, ceil(sum(sizes) / READ), len(shards) // AWAY if distant else 1)
    apart = sum(sizes) // every // (WINDOWS if distant else PIECES)
    taken, reached = Spread(CHARACTERS * request.length, apart), 0.0
    others = list[int]()
    for place in range(every // 2, len(shards), every):
        before = taken.size
        if not _read(shards[place], request, taken, others):
            reached += min(sizes[place], taken.size - before)
            break
        reached += sizes[place]
    whole = (file for file in files_of(plan.shards) if _is_one_text(file.path, request.split))
    known = (file.size for file in whole if file.size <= LONGEST)  # which needs no reading
    share = reached / max(1, sum(sizes))
    return Survey(taken.lengths, share or 1.0, taken.pieces, nlargest(1024, [*known, *others]))


def _read(shard: Shard, request: Request, taken: "Spread", others: list[int]) -> bool:
    """Take the texts of a shard, and say whether that came to its end.

    `others`: gets the bytes of those without a file of their own.
    """
    left = sys.maxsize if shard.most is None else shard.most
    for piece in shard.pieces:
        size, is_file = _text_size(piece, request.split), _is_one_text(piece.path, request.split)
        if is_file and not taken.wants(size):
            taken.skip(size)
            left -= 1
            continue
        for document in islice(documents_of(piece, request.split, request.key), max(0, left)):
            left -= 1
            if isinstance(document, CorpusText):
                taken.add(document.text)
                others += [] if is_file else [taken.lengths[-1]]
            if taken.size > READ:
                return False
    return True


def _text_size(piece: FilePart, split: Split) -> int:
    """About how many bytes of text a piece of a file holds that can be read."""
    if piece.end - piece.start > LONGEST and _is_one_text(piece.path, split):
        return 0
    return text_bytes(piece)


def _is_one_text(path: str, split: Split) -> bool:
    return split == "file" and named_form(path) == ContentForm("text")


class Spread:
    """Pieces of texts at even distances; when there are many, every other one is dropped.

    `length`: characters of a piece; `apart`: bytes between two, at first.
    """

    def __init__(self, length: int, apart: int = 0) -> None:
        self._length, self._apart, self._next = length, max(LEAST_APART, apart), 0
        self.size = self._filled = 0
        self.lengths, self.pieces = list[int](), list[str]()

    def wants(self, size: int) -> bool:
        """Whether a piece would be taken of the next text, if it has `size` bytes."""
        return self._next < self.size + size

    def skip(self, size: int) -> None:
        """The next text, of which no piece is wanted; no bytes: there is none."""
        self.size += size
        self.lengths += [size] if size else []

    def add(self, text: str) -> None:
        """Count a text, and sample pieces of it where due."""
        size = len(text.encode())
        while self.wants(size):
            at = max(0, self._next - self.size) * len(text) // size
            at -= at % self._length  # where a window begins
            self.pieces.append(_between_spaces(text, at, at + self._length))
            self._filled += len(self.pieces[-1])
            self._next += self._apart
            if len(self.pieces) > PIECES or self._filled > WINDOWS * self._length:
                del self.pieces[1::2]
                self._filled = sum(map(len, self.pieces))
                self._apart *= 2
                self._next = ceil(self._next / self._apart) * self._apart
        self.skip(size)


def _between_spaces(text: str, start: int, end: int) -> str:
    """A piece of a text that cuts no word, where it has spaces: a cut word has more tokens."""
    piece = text[start:end]
    first, last = piece.find(" ") if start else 0, piece.rfind(" ")
    return piece[max(0, first) : last if end < len(text) and last > first else None]
