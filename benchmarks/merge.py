"""What the records of a large scan take: size, time to write, to read and to merge.

    python -m benchmarks.merge --heads 5120 --records 640

Records are made of random windows, as shards of that many heads leave them; a file of each is
written and read, and all are merged as `scan` does.
"""

import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from attnviz.commands.scan.counting import (
    ROWS,
    DocumentSums,
    record_of_documents,
    record_of_rows,
    record_of_windows,
)
from attnviz.corpus.documents import Window
from attnviz.corpus.record import (
    AT_ONCE,
    Origin,
    Record,
    empty_record,
    merged,
    record_of_bytes,
    record_to_bytes,
)
from attnviz.records.metrics import BINS, SUMS

WINDOWS, LENGTH = 64, 512


def record_of(shard: int, heads: int) -> Record:
    """The record of a shard of random windows."""
    draw = np.random.default_rng(shard)
    names = [f"L{i // 64}H{i % 64}" for i in range(heads)]
    chances = draw.integers(0, 1 << 62, WINDOWS).tolist()
    windows = [Window(i, i, 0, (1,) * LENGTH, chance) for i, chance in enumerate(chances)]
    values = draw.random((WINDOWS, heads, len(SUMS) + 2 * BINS))
    sums = DocumentSums(np.arange(WINDOWS), values, np.full((WINDOWS, len(ROWS)), LENGTH))
    like = empty_record(names, Origin(length=LENGTH))
    largest = draw.random((2, WINDOWS, heads))
    of_windows = record_of_windows(like, windows, largest, shard)
    of_rows = record_of_rows(like, sums, largest[0])
    return merged([of_windows, of_rows, record_of_documents(like, sums)])


def main(
    heads: Annotated[int, typer.Option(help="Heads of the model.")] = 5120,
    records: Annotated[int, typer.Option(help="Records that are merged.")] = 640,
    shards: Annotated[int, typer.Option(help="Shards that the times are told for.")] = 100_000,
) -> None:
    """Write, read and merge records of that size."""
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.npz" for i in range(min(records, AT_ONCE))]
        made = [record_of(i, heads) for i in range(len(files))]
        begun = time.perf_counter()
        for file, record in zip(files, made, strict=True):
            file.write_bytes(record_to_bytes(record))
        writing = (time.perf_counter() - begun) / len(files)
        size = sum(file.stat().st_size for file in files) / len(files)
        del made
        begun = time.perf_counter()
        total = whole(replaced(files, records))
        merging = (time.perf_counter() - begun) / records
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{heads:,} heads: a record has {size / 1e6:.2f} MB and is written in {writing:.3f} s")
    print(
        f"{records:,} records are read and merged in {merging * records:.1f} s, at {most:,.0f} MB"
    )
    print(
        f"{shards:,} shards: {size * shards / 1e9:,.0f} GB of records, merged in "
        f"{merging * shards / 3600:.1f} h by one process; {total.windows:,} windows were counted"
    )


def replaced(files: list[Path], records: int) -> Iterator[Record]:
    """So many records, read from these files one after the other, each of another shard."""
    for i in range(records):
        record = record_of_bytes(files[i % len(files)].read_bytes())
        best = record.best.copy()
        best[..., 1] += i
        yield replace(record, best=best)


def whole(records: Iterator[Record]) -> Record:
    """All records as one, merged as `scan` does."""
    total: Record | None = None
    while some := list(islice(records, AT_ONCE)):
        total = merged(some if total is None else [total, *some])
    assert total is not None
    return total


if __name__ == "__main__":
    typer.run(main)
