"""The grid of miniatures: every head, at every width."""

import re

import numpy as np
import pytest
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.matrix import block_maximum
from attnviz.draw.terminal.grid import render
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Head
from tests.factories import make_capture, make_exhibit, view_lines


def model(layers: int, heads: int, tokens: int = 9) -> Exhibit:
    capture = make_capture("a " * tokens, heads_per_layer=(heads,) * layers)
    return make_exhibit(capture, heads=capture.heads)


def lines(exhibit: Exhibit, width: int = 80, **display: bool) -> list[str]:
    return view_lines(render, exhibit, width, **display)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (4, 4), (12, 12), (2, 25)])
def test_every_head_is_there_at_every_width(width: int, layers: int, heads: int) -> None:
    text = "\n".join(lines(model(layers, heads), width))
    found = re.findall(r"\bH(\d+)", re.sub(r"L\d+H\d+", "", text))
    assert found == [str(head) for head in range(heads)]
    bands = len(re.findall(r"^ +H", text, re.M))
    for layer in range(layers):
        assert len(re.findall(rf"^L{layer} ", text, re.M)) == bands


def test_miniatures_may_fill_the_width_to_the_last_cell() -> None:
    display = Display(41, color=True)  # 3 for the label, three of 12, and two gaps of one
    whole = render(model(1, 3, 12), display)
    cells = [part.cell_len for part in whole if isinstance(part, Text) and part.no_wrap]
    assert max(cells) == 41


def test_gpt2_stands_in_one_band_at_80() -> None:
    text = lines(model(12, 12, 60))
    assert sum(1 for line in text if "H11" in line and "H0" in line) == 1


def test_a_strong_link_survives_the_reduction() -> None:
    values = np.zeros((1000, 1000), np.float32)
    values[777, 123] = 1.0
    small = block_maximum(values, 16, 16)
    assert small.shape == (16, 16)
    assert small.max() == 1.0


def test_a_block_is_empty_only_where_all_of_it_is() -> None:
    values = np.full((4, 4), np.nan, np.float32)
    values[0, 0] = 0.25
    small = block_maximum(values, 2, 2)
    assert small[0, 0] == 0.25
    assert np.isnan(small[0, 1])
    assert np.isnan(small[1]).all()


def test_short_texts_are_drawn_larger() -> None:
    pattern = np.ones((2, 2), np.float32)
    capture = make_capture("a b", patterns={Head(0, 0): pattern}, heads_per_layer=(1,))
    assert any("█" * 16 in line for line in lines(make_exhibit(capture)))


def test_the_reduction_is_said() -> None:
    assert "strongest of" in " ".join(lines(model(2, 2, 60)))
    assert "strongest of" not in " ".join(lines(model(2, 2, 5)))


def test_heads_that_were_not_chosen_leave_their_place_empty() -> None:
    capture = make_capture("a b c")
    exhibit = make_exhibit(capture, heads=[Head(0, 0), Head(1, 1)])
    text = lines(exhibit)
    below = text[text.index(next(line for line in text if line.startswith("L1"))) :]
    assert below[0].startswith("L1" + " " * 5)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("display", [{"color": False}, {"color": True}])
@pytest.mark.parametrize("tokens", [2, 3, 5, 8])
def test_few_queries_get_whole_lines_each_and_all_as_many(
    tokens: int, display: dict[str, bool], width: int
) -> None:
    pattern = np.eye(tokens, dtype=np.float32)
    capture = make_capture("a " * tokens, patterns={Head(0, 0): pattern}, heads_per_layer=(1,))
    text = lines(make_exhibit(capture), width, **display)
    start = next(i for i, line in enumerate(text) if re.match(r"(\x1b\[1m)?L0 ", line))
    drawn = text[start : text.index("", start)]
    assert len(drawn) % tokens == 0
    each = len(drawn) // tokens
    plain = [re.sub(r"\x1b\[[0-9;]*m|L0", "", line).strip() for line in drawn]
    for first in range(0, len(plain), each):
        assert len(set(plain[first : first + each])) == 1


def test_without_colour_a_line_is_one_query() -> None:
    pattern = np.eye(12, dtype=np.float32)
    capture = make_capture("a " * 12, patterns={Head(0, 0): pattern}, heads_per_layer=(1,))
    drawn = [line[3:] for line in lines(make_exhibit(capture)) if "█" in line][:12]
    assert drawn == ["·" * query + "█" for query in range(12)]


def test_merged_cells_are_said_in_a_narrow_terminal_too() -> None:
    said = " ".join(" ".join(lines(model(2, 4, 9), 40)).split())
    assert "each point shows the strongest of 2 x 2 weights" in said
