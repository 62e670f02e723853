"""What was counted as the rows of tables: that of a whole corpus, or of its part so far."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from attnviz.commands.atlas.folder import AGAIN, Store, is_locked, made_of
from attnviz.commands.atlas.record import (
    SCORES,
    WEIGHTS,
    Atlas,
    Bin,
    MeanOver,
    Record,
    estimate,
    means_over_tokens,
    merged,
    record_of_bytes,
    row_of_means,
)
from attnviz.draw.titles import percent
from attnviz.errors import InputError
from attnviz.records.heads import Head, head_named
from attnviz.records.metrics import BINS, EDGES


def heads_of(total: Record) -> list[Head]:
    """The heads of a record, in order."""
    return [head for head in map(head_named, total.heads) if head is not None]


def score_rows(total: Record) -> Iterator[Mapping[str, object]]:
    """The rows of `heads.parquet`: the scores of each head."""
    counted = {name: getattr(total, name) for name in ("documents", "windows", "tokens")}
    for place, head in enumerate(heads_of(total)):
        scores: dict[str, object] = {}
        for metric, name in enumerate(SCORES):
            score, n = estimate(total, place, metric), total.counts[place, metric]
            scores[name] = score.mean if n else None
            scores[f"{name}_error"] = score.error
            scores[f"{name}_documents"] = int(n)
        over_tokens = means_over_tokens(total, place)
        scores["largest_over_windows"], _ = over_tokens["largest"]
        for name in (*SCORES, "strong_induction"):
            scores[f"{name}_over_tokens"], scores[f"{name}_queries"] = over_tokens[name]
        yield head._asdict() | scores | counted


def bin_rows(total: Record) -> Iterator[Mapping[str, object]]:
    """The rows of `histograms.parquet`.

    `distance`, `position`: the mean mass per query; `largest`: how many windows.
    """
    doubling = list(zip(map(float, (0, *EDGES)), (*map(float, EDGES), None), strict=True))
    equal = [(i / WEIGHTS, (i + 1) / WEIGHTS) for i in range(WEIGHTS)]
    assert len(doubling) == BINS
    documents = max(1, total.documents)
    for place, head in enumerate(heads_of(total)):
        for histogram, bounds, values in (
            ("distance", doubling, total.distances[place] / documents),
            ("position", doubling, total.positions[place] / documents),
            ("largest", equal, total.largest[place].astype(float)),
        ):
            for (start, end), value in zip(bounds, values.tolist(), strict=True):
                yield {**head._asdict(), "histogram": histogram, **vars(Bin(start, end, value))}


# Records of many shards as one, and what is counted of a scan that is not finished.

AT_ONCE = 32
"""Records that are in memory at a time."""


def total_of(records: Iterable[Record], where: str) -> Record | None:
    """Records as one, added in their order; None: there is none.

    `where`: the folder that they are in.

    Raises:
        InputError: they are of several models or devices.
    """
    waiting, total = iter(records), list[Record]()
    try:
        while some := list(islice(waiting, AT_ONCE)):
            total = [merged([*total, *some])]
    except ValueError as error:
        raise InputError(
            f"the records of {where!r} do not belong together: {error}",
            "scan again into another folder",
        ) from None
    return total[0] if total else None


def atlas_so_far(store: Store, manifest: Mapping[str, Any], mean: MeanOver) -> Atlas:
    """The atlas of the shards that are counted of a scan that is not finished.

    Nothing is written and nothing is locked, as the scan may run: a record is there in full or not
    at all. One that is damaged or of another scan is not counted.

    Raises:
        InputError: no shard is counted, or the manifest is damaged.
    """
    counted = 0

    def records() -> Iterator[Record]:
        nonlocal counted
        named = (re.fullmatch(r"shards/(\d{6,})\.npz", name) for name in store.names("shards"))
        files = {int(name[1]): name[0] for name in named if name}
        for shard, name in sorted(files.items()):
            with suppress(ValueError):
                record = record_of_bytes(store.read(name) or b"", shard)
                if record.origin.scan == manifest["scan"]:
                    counted += 1
                    yield record

    total = total_of(records(), store.where)
    if total is None:
        wait = "a scan runs there: wait until it has counted one"
        hint = wait if is_locked(store) else AGAIN
        raise InputError(f"no shard of {store.where!r} is counted yet", hint)
    try:
        made, shards, model = made_of(manifest, total.origin), manifest["shards"], manifest["model"]
        share = "all counted" if counted == shards else percent(counted, shards)
        said = f"{counted:,} of {shards:,} shards, {share}"
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise InputError(f"the manifest in {store.where!r} is damaged", AGAIN) from None
    rows = [{**row_of_means(row, mean), "partial": said} for row in score_rows(total)]
    made = {**made, "options": {**made["options"], "partial": said}}
    return Atlas(str(model), rows, manifest, total.origin.model, store.where, made, total)
