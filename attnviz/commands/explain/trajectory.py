"""A token's way from its embedding to where its meaning is read, in the plane of two read-outs."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from attnviz.kit.prepare import Prepared
from attnviz.models.folder.readouts import read_maps
from attnviz.records.capture import FloatArray
from attnviz.records.heads import NONE, Head, ReadHead, ReadOut
from attnviz.records.meaning import MOMENTS, Axis, Trajectory, Waypoint, likeliest
from attnviz.records.trace import HeadTrace


def trajectory_of(prepared: Prepared, query: int, readouts: Sequence[ReadOut]) -> Trajectory | None:
    """The way of a query, on axes of one or two read-outs.

    The maps are those of the stream before the last layer that has one for each read-out, which
    have seen what all layers below add. None where that is no sum, or nothing can be read there.
    """
    at = _last(readouts)
    if at is None or not at[0].head.layer:
        return None
    layer, model = at[0].head.layer, prepared.model
    traces = [prepared.trace(Head(i, 0), query) for i in range(layer)]
    if any(trace.kinds.residual != "plain" for trace in traces):
        return None
    x = traces[-1].x_after
    maps, before = read_maps(model.tokenizer.folder, readouts, len(x)), MOMENTS.index("before")
    found = [
        both
        for own, each in zip(readouts, at, strict=True)
        if (own.name, each.head) in maps
        for both in _axes(own, each, maps[own.name, each.head][before], x, 3 - len(readouts))
    ]
    if len(found) < 2:
        return None
    (first, _), (second, _) = found
    directions = np.stack([direction for _, direction in found])  # (2, d + 1)
    parts = [*_additions(traces, query)]
    moves = np.stack([added for _, added in parts]) @ directions[:, :-1].T  # (waypoints, 2)
    places = (directions[:, -1] + moves.cumsum(axis=0)).tolist()
    waypoints = (Waypoint(part, (a, b)) for (part, _), (a, b) in zip(parts, places, strict=True))
    label = prepared.empty.query_tokens[query].label
    return Trajectory(label, layer, (first, second), tuple(waypoints))


def _last(readouts: Sequence[ReadOut]) -> Sequence[ReadHead] | None:
    """A head of each read-out in the last layer in which each has one and reads something."""
    by_layer = [
        {each.head.layer: each for each in own.heads if not own.nothing(each.before)}
        for own in readouts
    ]
    shared = set.intersection(*(set(own) for own in by_layer)) if by_layer else ()
    return [own[max(shared)] for own in by_layer] if shared else None


def _axes(
    readout: ReadOut, at: ReadHead, weight: FloatArray, x: FloatArray, count: int
) -> Iterator[tuple[Axis, FloatArray]]:
    """The axes of the `count` classes that are likeliest at x (d), and their directions (d + 1);
    each against the class of nothing, or else the mean."""
    weight, classes = weight.astype(np.float64), readout.classes
    logits = x @ weight[:-1] + weight[-1]
    read = likeliest(classes, logits)
    against = weight[:, classes.index(NONE)] if NONE in classes else weight.mean(axis=1)
    order = (i for i in np.argsort(-logits, kind="stable").tolist() if classes[i] != NONE)
    for i in islice(order, count):
        yield Axis(readout, classes[i], at.before, read), weight[:, i] - against


def _additions(traces: Sequence[HeadTrace], query: int) -> Iterator[tuple[Head | str, FloatArray]]:
    """What is added to the query's vector, in order: b_O counts with the MLP behind it."""
    first = traces[0]
    if first.embedding is not None and first.position is not None:
        yield "embedding", first.embedding[query]
        yield "position", first.position[query]
    else:
        yield "embedding", first.x[query]
    for trace in traces:
        for head, added in enumerate(trace.head_outputs):
            yield Head(trace.layer, head), added
        heads = trace.head_outputs.sum(axis=0, dtype=np.float64)
        yield f"L{trace.layer} MLP", trace.x_after - trace.x[query] - heads
