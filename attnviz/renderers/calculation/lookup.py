"""One row of attention told as a look-up: a soft one, beside the exact one of a dictionary."""

from collections.abc import Iterator

import numpy as np
from rich.text import Text

from attnviz.draw.labels import distinct_labels
from attnviz.records.trace import HeadTrace
from attnviz.renderers.calculation.sheet import Sheet, shape, strongest_keys


def render(trace: HeadTrace, sheet: Sheet, *, about: str) -> Iterator[Text]:
    """The query, every key with similarity, weight and value, and what comes out."""
    labels, key_labels = distinct_labels(trace.query_tokens), distinct_labels(trace.key_tokens)
    query, row = trace.query, trace.pattern[trace.query]
    keys = np.flatnonzero(np.isfinite(trace.scores[query]))
    shown = strongest_keys(trace.scores[query])
    title = f"L{trace.layer}H{trace.head} as a look-up: “{labels[query]}” asks"
    yield from sheet.title(title, about)
    yield from sheet.heading(1, "The query")
    yield from sheet.vectors([(f"q({labels[query]})", trace.q[query])])
    yield from sheet.heading(2, "The keys: each is compared with the query and gets a weight")
    yield from sheet.table(
        ["key", "similarity", "weight"],
        [(key_labels[i], [float(trace.scores[query, i]), float(row[i])]) for i in shown],
    )
    if len(keys) > len(shown):
        yield from sheet.say(f"… and {len(keys) - len(shown)} weaker keys.")
    yield from sheet.heading(3, "The values behind the keys")
    yield from sheet.vectors([(f"v({key_labels[i]})", trace.v[i]) for i in shown])
    yield from _exact(trace, sheet, key_labels, keys.tolist())
    yield from _soft(trace, sheet, labels[query], [key_labels[i] for i in shown], shown)


def _exact(
    trace: HeadTrace, sheet: Sheet, labels: tuple[str, ...], keys: list[int]
) -> Iterator[Text]:
    """What a dictionary would have returned."""
    query = trace.query
    equal = [i for i in keys if np.array_equal(trace.q[query], trace.k[i])]
    best = max(keys, key=lambda i: float(trace.pattern[query, i]))
    yield from sheet.heading(4, "An exact look-up, as in a dictionary")
    if equal:
        yield from sheet.line(f"The key of “{labels[equal[0]]}” equals the query:")
        yield from sheet.vectors([(f"v({labels[equal[0]]})", trace.v[equal[0]])])
        return
    yield from sheet.line("No key equals the query: a dictionary returns nothing.")
    yield from sheet.line(f"The nearest key alone, “{labels[best]}”, would return:")
    yield from sheet.vectors([(f"v({labels[best]})", trace.v[best])])


def _soft(
    trace: HeadTrace, sheet: Sheet, query: str, keys: list[str], shown: list[int]
) -> Iterator[Text]:
    """What attention returns instead."""
    row = trace.pattern[trace.query]
    yield from sheet.heading(5, "The soft look-up: the weighted sum of all values")
    terms = [(float(row[i]), f"v({key})") for key, i in zip(keys, shown, strict=True)]
    yield from sheet.line(f"z({query}) = {sheet.sum(terms)}   {shape(trace.z[0])}")
    yield from sheet.vectors([(f"z({query})", trace.z[trace.query])])
