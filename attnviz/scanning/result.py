"""The result of a scan: its records and its parts as tables."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from attnviz.commands.atlas.folder import Store, finish, made_of
from attnviz.commands.atlas.record import SCALE, SCORES, WEIGHTS, Record, estimate, units
from attnviz.commands.atlas.tables import table_bytes
from attnviz.records.heads import Head, head_named
from attnviz.records.metrics import BINS, EDGES
from attnviz.records.rows import to_json
from attnviz.scanning.joining import joined
from attnviz.scanning.plan import PARTS, Plan
from attnviz.scanning.tasks import CountShard, tasks_of_windows


def write_result(plan: Plan, total: Record, lost: Collection[str]) -> None:
    """Write the tables that are lost of a scan whose tasks are all done, and what is in them.

    Raises:
        InputError: a part is damaged.
        OutputError: a file cannot be written.
    """
    store, length = plan.store, total.origin.length
    names = [task.name for task in tasks_of_windows(total, plan.shards)]
    made = made_of(plan.manifest, total.origin)
    said = to_json(made)
    for table, folder in PARTS.items():
        parts = [name for name in names if name.startswith(folder)]
        if f"{table}.parquet" in lost:
            store.write(f"{table}.parquet", joined(store, table, parts, _named(total), said))
    store.write("histograms.parquet", table_bytes("histograms", list(_histograms(total)), said))
    store.write("heads.parquet", table_bytes("heads", list(_heads(total, length)), said))
    counted = {"documents": total.documents, "tokens": total.tokens, "skipped": total.bad}
    finish(store, plan.manifest, made, **counted)


def remove_parts(store: Store) -> None:
    """Remove what the tables were made from.

    Raises:
        OutputError: it cannot be removed.
    """
    for folder in PARTS.values():
        store.remove(folder)


def write_skipped(plan: Plan, shards: Sequence[CountShard]) -> None:
    """Write the documents of counted shards that could not be read, one a line.

    Raises:
        InputError: a record is damaged.
        OutputError: the file cannot be written.
    """
    lines = (f"{to_json(vars(each))}\n".encode() for each in plan.skipped(shards))
    plan.store.write("skipped.jsonl", lines)


def _named(total: Record) -> Sequence[Head]:
    """The heads of a record, in order."""
    return [found for found in map(head_named, total.heads) if found is not None]


def _heads(total: Record, length: int) -> Iterator[Mapping[str, object]]:
    unit = units(length).tolist()
    for place, head in enumerate(_named(total)):
        row: dict[str, object] = {"layer": head.layer, "head": head.head}
        for metric, name in enumerate(SCORES):
            found, n = estimate(total, place, metric, unit[metric]), total.counts[place, metric]
            row[name] = found.mean if n else None
            row[f"{name}_error"] = found.error
            row[f"{name}_documents"] = int(n)
        counted = {name: getattr(total, name) for name in ("documents", "windows", "tokens")}
        yield row | counted


def _histograms(total: Record) -> Iterator[Mapping[str, object]]:
    """`distance`, `position`: the mean mass per query; `largest`: how many windows."""
    doubling = list(zip((0, *EDGES), (*EDGES, None), strict=True))
    equal = [(i / WEIGHTS, (i + 1) / WEIGHTS) for i in range(WEIGHTS)]
    assert len(doubling) == BINS
    for place, head in enumerate(_named(total)):
        for histogram, counts in (("distance", total.distances), ("position", total.positions)):
            shares = counts[place] / SCALE / max(1, total.documents)
            yield from _bins(head, histogram, doubling, shares.tolist())
        yield from _bins(head, "largest", equal, total.largest[place].tolist())


def _bins(
    head: Head,
    histogram: str,
    bins: Sequence[tuple[float, float | None]],
    values: Sequence[float],
) -> Iterator[Mapping[str, object]]:
    for (start, end), value in zip(bins, values, strict=True):
        row = {"layer": head.layer, "head": head.head, "histogram": histogram}
        bounds = {"start": float(start), "end": None if end is None else float(end)}
        yield {**row, **bounds, "value": float(value)}
