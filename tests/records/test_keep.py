"""What is kept of blocks of rows is what the whole patterns would have shown."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnviz.records.capture import FloatArray, PatternBlock
from attnviz.records.exhibit import Exhibit, HeadMap, KeepCells, KeepLinks, links_of, row_totals
from tests.factories import make_capture


def coarse_pattern(n: int, seed: int) -> FloatArray:
    """(n, n), causal: quarters only, so that there are zeros and many equal weights."""
    draw = np.random.default_rng(seed)
    weights = [
        np.bincount(draw.integers(0, row + 1, 4), minlength=n) / 4  # four throws over the past
        for row in range(n)
    ]
    return np.array(weights, np.float32)


@given(
    n=st.integers(1, 12),
    seed=st.integers(0, 1000),
    top=st.integers(1, 6),
    least=st.sampled_from([0.0, 0.25, 0.5]),
    data=st.data(),
)
def test_links_kept_of_blocks_are_those_of_the_whole_pattern(
    n: int, seed: int, top: int, least: float, data: st.DataObject
) -> None:
    pattern = coarse_pattern(n, seed)
    keys = tuple(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    queries = tuple(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    rows = data.draw(st.integers(1, n))
    skip = data.draw(st.sampled_from([(), (0,), (0, 1)]))
    keep = KeepLinks(n, keys, True, top, least, skip)
    for first in range(0, len(queries), rows):
        some = np.array(queries[first : first + rows])
        keep(PatternBlock(1, (0,), some, pattern[None, some, : some[-1] + 1]))
    (kept,) = keep.maps()

    capture = make_capture(["x"] * n)
    whole = HeadMap(1, 0, weights=pattern)
    exhibit = Exhibit(capture, (whole,), queries, keys, top=top, least=least, skip=skip)
    expected = links_of(exhibit, whole)
    for array in ("query", "key", "weight"):
        assert getattr(kept.links, array).tolist() == getattr(expected, array).tolist()
    assert kept.totals[list(queries)].tolist() == row_totals(exhibit, whole)


def test_links_and_cells_of_a_row_that_sees_fewer_keys_than_are_wanted() -> None:
    weights = np.array([[[1.0, 0.0], [0.25, 0.75]]], np.float32)
    links, cells = KeepLinks(2, range(2), True, 5, 0.0), KeepCells(range(2), range(2), True, 1)
    for consumer in (links, cells):
        consumer(PatternBlock(0, (0,), np.array([0, 1]), weights))
    (found,), (drawn,) = links.maps(), cells.maps()
    assert found.links.query.tolist() == [0, 1, 1]
    assert found.links.key.tolist() == [0, 1, 0]
    assert found.totals.tolist() == [1, 1]
    assert drawn.cells.tolist() == [[1.0]]
    assert drawn.sums
