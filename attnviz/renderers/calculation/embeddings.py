"""Token embeddings compared with each other, number by number."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from attnviz.draw.labels import distinct_labels
from attnviz.records.trace import EmbeddingTrace
from attnviz.renderers.calculation.sheet import Sheet, shape, strongest_keys

EMBEDDING_STEPS = range(1, 4)


def render_embeddings(
    trace: EmbeddingTrace, sheet: Sheet, *, only: Sequence[int] = EMBEDDING_STEPS
) -> Iterator[Text]:
    """The lines of the calculation: a heading, then the steps that are asked for."""
    labels = distinct_labels(trace.tokens)
    yield from sheet.title(
        f"What “{labels[trace.query]}” takes from the tokens, without queries, keys and values",
        f"the built-in model's token embeddings, {len(labels)} tokens, no positions",
    )
    steps = {1: _embedded, 2: _embedding_weights, 3: _new_vector}
    for number in only:
        yield from steps[number](trace, sheet, labels)


def _embedded(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    yield from sheet.heading(1, "Token embeddings: what each token is, without its position")
    yield from sheet.formula(
        f"x {shape(t.x)}: (n, d_model)", f"E = xᵀ {shape(t.x.T)}: one column for each token"
    )
    yield from sheet.vectors(
        [(f"x({labels[i]})", t.x[i]) for i in strongest_keys(t.products[t.query])]
    )


def _embedding_weights(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    n, d = t.x.shape
    yield from sheet.heading(2, "Dot products with each other, and their softmax")
    sizes = f"({n}, {d})·({d}, {n}) = ({n}, {n})"
    yield from sheet.formula(
        f"W = softmax(x·xᵀ)   {sizes}", f"Wᵀ = softmax of each column of Eᵀ·E   {sizes}"
    )
    mask = "later keys are masked" if t.causal else "no mask: every token attends to all"
    yield from sheet.say(f"The row of “{labels[t.query]}”; {mask}.")
    row = t.query + 1
    yield from sheet.table(
        ["key", "x·x", "softmax"],
        [
            (labels[i], [float(t.products[t.query, i]), float(t.pattern[t.query, i])])
            for i in strongest_keys(t.products[t.query])
        ],
    )
    lowest, highest = _embedding_range(t)
    yield from sheet.say(
        f"W{row},1 … W{row},{n}: the weights lie between {sheet.number(lowest)} and "
        f"{sheet.number(highest)}. Such rows are nearly flat, because embeddings were not trained "
        "to be compared with each other: the model's own W_Q and W_K read them and pick out "
        "what matters. Heatmaps therefore give each row its own colour scale."
    )


def _embedding_range(t: EmbeddingTrace) -> tuple[float, float]:
    row = t.pattern[t.query][np.isfinite(t.products[t.query])]
    return float(row.min()), float(row.max())


def _new_vector(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    yield from sheet.heading(3, "The new vector: the weighted sum of all embeddings")
    yield from sheet.formula(f"y = W·x   {shape(t.output)}", f"yᵀ = E·Wᵀ   {shape(t.output.T)}")
    terms = [
        (float(t.pattern[t.query, i]), f"x({labels[i]})")
        for i in strongest_keys(t.products[t.query])
    ]
    yield from sheet.line(f"y({labels[t.query]}) = {sheet.sum(terms)}")
    yield from sheet.vectors(
        [
            (f"x({labels[t.query]})", t.x[t.query]),
            (f"y({labels[t.query]})", t.output[t.query]),
        ]
    )
