"""The result of a scan: tables of all heads, as Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attnviz.data.atlas import SCORES
from attnviz.data.heads import Estimate
from attnviz.data.scan import DISTANCES, SCALE, WEIGHTS, Record
from attnviz.data.serial import to_json
from attnviz.scan.tables import write_table
from attnviz.writers.atomic import write_bytes


def write_result(folder: Path, total: Record) -> None:
    """Write `heads.parquet`, `histograms.parquet` and `skipped.jsonl`.

    Raises:
        UsageError: pyarrow is not installed.
        OutputError: a file cannot be written.
    """
    write_table(folder, "heads", list(_heads(total)))
    write_table(folder, "histograms", list(_histograms(total)))
    skipped = "".join(f"{to_json(vars(each))}\n" for each in total.skipped)
    write_bytes(folder / "skipped.jsonl", skipped.encode())


def _heads(total: Record) -> Iterator[Mapping[str, object]]:
    for head, counts in total.heads.items():
        layer, number = head[1:].split("H")
        row: dict[str, object] = {"head": head, "layer": int(layer), "number": int(number)}
        for name in SCORES:
            found = counts.metrics.get(name)
            estimate = found.estimate() if found else Estimate(float("nan"), None)
            row[name] = estimate.mean if found and found.n else None
            row[f"{name}_error"] = estimate.error
            row[f"{name}_documents"] = found.n if found else 0
        yield row | {
            "documents": total.documents,
            "windows": total.windows,
            "tokens": total.tokens,
        }


def _histograms(total: Record) -> Iterator[Mapping[str, object]]:
    """`distance`: mean mass per query by distance; `largest`: windows by their largest weight."""
    for head, counts in total.heads.items():
        starts = (0, *DISTANCES)
        ends: Sequence[int | None] = (*DISTANCES, None)
        for start, end, mass in zip(starts, ends, counts.distances, strict=True):
            share = mass / SCALE / max(1, total.documents)
            yield _bin(head, "distance", float(start), None if end is None else float(end), share)
        for i, windows in enumerate(counts.largest):
            start_of = i / WEIGHTS
            yield _bin(head, "largest", start_of, (i + 1) / WEIGHTS, float(windows))


def _bin(
    head: str, histogram: str, start: float, end: float | None, value: float
) -> Mapping[str, object]:
    return {"head": head, "histogram": histogram, "start": start, "end": end, "value": value}
