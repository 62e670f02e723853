"""A metric: the row, which `attnviz heads` measures, and its sum, which a scan takes."""

from attnviz.records.metrics import FastSum, Metric

SECOND = (
    Metric(
        "second",
        "2nd",
        "weight on the second token",
        mark=lambda rows: rows.keys == 1,
        role="second token",
        least=0.01,
        rank=-1,
        telling=True,
    ),
    FastSum(
        lambda layer: layer.by_position[..., 1],
        lambda before, causal: len(before) - causal,
    ),
)
