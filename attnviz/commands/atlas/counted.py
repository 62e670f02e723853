"""What was counted as the rows of tables: that of a whole corpus, or of its part so far."""

from collections.abc import Iterator, Mapping

from attnviz.commands.atlas.record import (
    SCALE,
    SCORES,
    WEIGHTS,
    Bin,
    Record,
    estimate,
    means_over_tokens,
    units,
)
from attnviz.records.heads import Head, head_named
from attnviz.records.metrics import BINS, EDGES


def heads_of(total: Record) -> list[Head]:
    """The heads of a record, in order."""
    return [head for head in map(head_named, total.heads) if head is not None]


def score_rows(total: Record) -> Iterator[Mapping[str, object]]:
    """The rows of `heads.parquet`: the scores of each head."""
    unit = units(total.origin.length).tolist()
    counted = {name: getattr(total, name) for name in ("documents", "windows", "tokens")}
    for place, head in enumerate(heads_of(total)):
        scores: dict[str, object] = {}
        for metric, name in enumerate(SCORES):
            score, n = estimate(total, place, metric, unit[metric]), total.counts[place, metric]
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
            ("distance", doubling, total.distances[place] / SCALE / documents),
            ("position", doubling, total.positions[place] / SCALE / documents),
            ("largest", equal, total.largest[place].astype(float)),
        ):
            for (start, end), value in zip(bounds, values.tolist(), strict=True):
                yield {**head._asdict(), "histogram": histogram, **vars(Bin(start, end, value))}
