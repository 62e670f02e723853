"""The shown part of a map: made once, whatever is asked of it."""

from collections.abc import Callable

import numpy as np
import pytest

from attnviz.draw import matrix
from attnviz.draw.picture import heatmap as picture_heatmap
from attnviz.draw.terminal import grid as terminal_grid
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, HeadMap
from tests.factories import make_capture, make_exhibit


@pytest.mark.parametrize(
    "view", [terminal_heatmap.render, terminal_grid.render, picture_heatmap.draw]
)
@pytest.mark.parametrize("heads", [1, 4])
def test_each_map_is_filtered_once_per_view(
    view: Callable[[Exhibit], object], heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def counted(exhibit: Exhibit, head_map: HeadMap) -> FloatArray:
        seen.append(head_map.label)
        return shown(exhibit, head_map)

    shown = matrix.shown
    monkeypatch.setattr(matrix, "shown", counted)
    capture = make_capture()
    view(make_exhibit(capture, heads=capture.heads[:heads], top=3))
    assert seen == ["L0H0", "L0H1", "L1H0", "L1H1"][:heads]


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ([[1.0, np.nan], [0.4, 0.6]], True),
        ([[1.0, np.nan], [0.4, 0.59]], False),
        ([[np.nan, np.nan], [0.4, 0.6]], False),  # nothing is shown of the first
    ],
)
def test_only_what_is_shown_is_summed(rows: list[list[float]], whole: bool) -> None:
    assert matrix.rows_sum_to_one(np.array(rows, np.float32)) == whole
