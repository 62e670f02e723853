"""One view of a result in each medium: what was done, what is measured, maps and a table."""

from dataclasses import replace

import numpy as np
from rich.console import Group

from attnviz.console import Display
from attnviz.draw.page.maps import map_rows
from attnviz.draw.picture.panes import draw_view
from attnviz.draw.terminal.cells import words
from attnviz.draw.terminal.grid import show_view
from attnviz.draw.view import Pane, ResultView, Table
from tests.factories import make_capture, printed

LARGE = np.array([[0.5, -0.25], [0.125, np.nan]], np.float32)
VIEW = ResultView(
    "heads removed",
    make_capture("a blue whale"),
    None,
    "text",
    about=("what is measured", "what a number means"),
    found="it matters",
    maps=[Pane("one", LARGE), Pane("other", LARGE[:1])],
    most=0.5,
    least=1.0,
    bar="change",
    empty="nothing stands here",
    table=Table(["x"], [words("part", str)], words("more", str), "more: the same"),
    notes=["a note"],
)


def shown(view: ResultView, width: int) -> list[str]:
    display = Display(width=width)
    return printed(Group(*show_view(view, display)), display)


def test_a_terminal_says_what_was_done_and_found_before_maps_and_table() -> None:
    lines = shown(VIEW, 60)
    assert lines[0] == "tiny, 3 tokens without BOS; heads removed"
    order = ["what is measured", "it matters", "one", "other", "part  more", "more: the same"]
    at = [lines.index(each) for each in [*order, "a note"]]
    assert at == sorted(at)


def test_spare_columns_and_their_legend_need_room() -> None:
    table = Table(["x" * 30], [words("part", str)], words("more", str), "more: the same")
    lines = shown(replace(VIEW, table=table), 40)
    assert "part" in lines
    assert "more: the same" not in lines


def test_a_terminal_leaves_out_layers_without_a_number() -> None:
    values = np.full((3, 2), np.nan, np.float32)
    values[1, 1] = 0.5
    lines = shown(replace(VIEW, maps=[Pane("", values)]), 60)
    assert [line.split() for line in lines if line[:1] == "L"] == [["L1", "0.50"]]
    lines = shown(replace(VIEW, maps=[Pane("", np.full_like(values, np.nan))]), 60)
    assert [line for line in lines if line[:1] == "L"] == ["L0", "L1", "L2"]


def test_maps_of_a_picture_have_as_many_layers_one_scale_and_one_bar() -> None:
    figure = draw_view(VIEW).figure
    panes = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [len(axes.get_yticks()) for axes in panes] == [2, 2]
    assert [axes.images[0].get_clim() for axes in panes] == [(-1, 1), (-1, 1)]
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == ["change"]
    written = " ".join(" ".join(text.get_text() for text in axes.texts) for axes in figure.axes)
    assert "Heads removed" in written
    assert "grey: nothing stands here" in written


def test_a_row_of_a_page_without_a_number_is_left_out_and_an_order_is_kept() -> None:
    pane = Pane("", LARGE, order=[1, 0], told=lambda row, column: f"{row} < {column}")
    rows = list(map_rows(pane, 1.0, 2))
    assert [row[:11] for row in rows] == ["<thead><tr>", "<tr><th>L1<", "<tr><th>L0<"]
    assert 'title="0 &lt; 1">-0.25' in rows[2]
    assert "<td></td>" in rows[1]
    empty = replace(pane, values=np.full_like(LARGE, np.nan))
    assert len(list(map_rows(empty, 1.0, 2))) == 1
