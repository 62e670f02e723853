"""The terminal heatmap: cells, numbers, the mask, and what does not fit."""

import re
from functools import partial

import numpy as np
import pytest
from rich.cells import cell_len

from attnviz.console import Display
from attnviz.draw.terminal.heatmap import column_labels, render
from attnviz.records.exhibit import Exhibit, Orient
from attnviz.records.heads import Head
from tests.factories import make_capture, make_exhibit, view_lines

PATTERN = np.array([[1, 0, 0], [0, 1, 0], [0.3, 0.1, 0.6]], np.float32)


@pytest.mark.parametrize(
    ("labels", "cell", "line"),
    [
        (["0.0–0.2s", "0.2–0.4s", "0.4–0.6s", "[padding]"], 6, "0.0s  0.2s  0.4s  [padd…"),
        (["0.0–0.2s", "0.2–0.4s", "0.4–0.6s", "[padding]"], 4, "0.0s        [pa…"),
        ([f"{n / 50:.2f}s" for n in range(15)], 1, "0.00s 0.12s"),  # no room for 0.24s
        (["[padding]", "1.0–1.5s", "1.5–2.0s"], 6, "[pad… 1.0s  1.5s"),
    ],
)
def test_times_stand_as_on_a_ruler_where_every_nth_column_begins(
    labels: list[str], cell: int, line: str
) -> None:
    assert column_labels(labels, range(len(labels)), cell, Display()) == [line]


def three(**options: object) -> Exhibit:
    capture = make_capture("cat saw dog", patterns={Head(0, 0): PATTERN})
    return make_exhibit(capture, **options)  # type: ignore[arg-type]


def lines(
    exhibit: Exhibit, width: int = 80, orient: Orient = "query-rows", **display: bool
) -> list[str]:
    return view_lines(partial(render, orient=orient), exhibit, width, **display)


def row_of(label: str, text: list[str]) -> str:
    """The cells right of a label (the last such line: the first may be a column label)."""
    return [line for line in text if line.strip().startswith(label)][-1].strip()


def test_without_the_mask_nothing_is_called_masked() -> None:
    capture = make_capture("cat saw dog", causal=False)
    assert "masked" not in " ".join(lines(make_exhibit(capture)))


def test_what_the_filters_left_out_is_blank_and_said() -> None:
    text = lines(three(top=1))
    assert row_of("dog", text).split() == ["dog", "0.60"]
    assert "not among the 1 strongest" in " ".join(text)


def test_columns_that_are_not_whole_are_not_said_to_sum_to_1() -> None:
    assert "sums to 1" not in " ".join(lines(three(keys=[0, 1]), orient="key-rows"))


def test_the_strongest_weight_takes_the_end_of_the_scale() -> None:
    even = np.full((3, 3), 1 / 3, np.float32)
    capture = make_capture("cat saw dog", patterns={Head(0, 0): even}, causal=False)
    text = lines(make_exhibit(capture), color=True)
    assert sum("253;231;37" in line for line in text) == 3 + 1  # each row, and the legend
    assert any("0.33" in line for line in text[-2:])


@pytest.mark.parametrize("width", [40, 80])
def test_what_does_not_fit_is_cropped_and_named(width: int) -> None:
    exhibit = make_exhibit(make_capture(" ".join("abcdefghij"[n % 10] for n in range(100))))
    text = " ".join(lines(exhibit, width))
    found = re.search(r"keys (\d+) to 99 are left out: use --key, a wider terminal, or -o", text)
    assert found
    assert width - 12 <= int(found[1]) <= width


def test_a_turned_crop_names_queries() -> None:
    exhibit = make_exhibit(make_capture("a " * 60))
    assert "--query" in " ".join(lines(exhibit, 40, "key-rows"))


def test_narrow_cells_are_shades_without_colour() -> None:
    text = lines(make_exhibit(make_capture("cat saw dog " * 4)), 40)
    assert any("█" in line for line in text)
    assert not re.search(r"\d\.\d\d", " ".join(text[1:-3]))


def test_wide_letters_keep_columns_aligned() -> None:
    exhibit = make_exhibit(make_capture("楚 留 香 é 😀 x", causal=False))
    text = [line for line in lines(exhibit, 200, color=False) if re.search(r"\d\.\d\d", line)]
    ends = {cell_len(line.rstrip()) for line in text if line.rstrip()[-1].isdigit()}
    assert len(ends) == 1


def test_wide_letters_in_columns_of_one_cell_become_indices() -> None:
    exhibit = make_exhibit(make_capture("楚 " * 30))
    header = lines(exhibit, 40)[3:6]
    assert not any("楚" in line for line in header[:2])
    assert any("9" in line for line in header)


def test_several_heads_share_one_scale() -> None:
    weak = np.array([[0.5, 0, 0], [0, 0.5, 0], [0.1, 0.1, 0.1]], np.float32)
    capture = make_capture("cat saw dog", patterns={Head(0, 0): PATTERN, Head(0, 1): weak})
    text = lines(make_exhibit(capture, heads=capture.heads[:2]), color=True)
    assert "253;231;37" in "".join(text[:8])  # the strongest colour, in the first head
    assert "253;231;37" not in "".join(text[9:14])  # ... only, for the second is weaker
