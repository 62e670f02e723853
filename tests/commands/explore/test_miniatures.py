"""Heads as miniatures, in the room that there is."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from attnviz.commands.explore.pattern import Miniatures, miniatures_of, shape_of
from attnviz.commands.explore.scene import Opened, Scene, scene_of
from attnviz.console import Display
from attnviz.draw.terminal.cells import color_of
from attnviz.records.heads import Head
from attnviz.records.transforms import PLAIN
from tests.commands.explore.app import TEXT, Visit, explore, until
from tests.commands.explore.test_running import reach
from tests.conftest import slow
from tests.factories import make_capture

COLOR, SHADES = Display(80, color=True), Display(80, color=False)


def opened(text: str = TEXT, heads: int = 2, layers: int = 2) -> Opened:
    return Opened(capture=make_capture(text, heads_per_layer=(heads,) * layers))


def test_g_shows_miniatures_and_the_list_again_and_the_focus_stays_on_the_heads() -> None:
    async def does(there: Visit) -> None:
        listed = there.seen("heads")
        await there.press("g")
        assert there.focus == "miniatures"
        assert not there.app.query_one("#heads").display
        assert there.seen("miniatures")[0].split() == ["L0", "H0", "H1"]
        await there.press("g")
        assert there.focus == "heads"
        assert there.seen("heads") == listed

    explore(opened(), does)


def test_the_focus_stays_elsewhere_when_the_heads_are_switched() -> None:
    async def does(there: Visit) -> None:
        await there.press("tab", "g")
        assert there.focus == "links"

    explore(opened(), does)


def test_each_point_has_the_colour_of_its_weight() -> None:
    async def does(there: Visit) -> None:
        await there.press("g", "up", "left")
        scene = there.app.scene
        assert scene
        most = max(float(each.weights.max()) for each in scene.slots.values())
        strip = there.pane("miniatures").render_line(2)  # queries 2 and 3 of L0H0 and L0H1
        cells = [segment for segment in strip for _ in segment.text]
        for head in (0, 1):
            weights = scene.capture.weights(Head(0, head)) / most
            start = next(n for n, cell in enumerate(cells) if cell.text in ("▀", "▄"))
            start += head * 9  # eight points and the edge
            for key in range(3):
                style = cells[start + key].style
                assert style
                assert style.color == color_of(weights[2, key], COLOR)
                assert style.bgcolor == color_of(weights[3, key], COLOR)

    explore(opened(), does)


@pytest.mark.parametrize(("height", "lines"), [(24, 4), (60, 8)])
def test_miniatures_are_larger_where_all_of_them_stay_in_sight(height: int, lines: int) -> None:
    async def does(there: Visit) -> None:
        await there.press("g")
        seen = there.seen("miniatures")
        assert next(n for n, line in enumerate(seen) if "L1" in line) == lines + 1
        assert "▀" in seen[2 * lines + 1]

    explore(opened(), does, size=(120, height))


def test_arrows_and_clicks_choose_heads_and_edges_mark_the_chosen_one() -> None:
    async def does(there: Visit) -> None:
        await there.press("g", "up", "left")
        assert there.app.scene
        assert there.app.scene.head == Head(0, 0)
        lines = there.seen("miniatures")
        assert all("[" in line and "]" in line for line in lines[1:5])
        assert not any("[" in line for line in lines[5:])
        await there.press("down", "right")
        assert there.app.scene.head == Head(1, 1)
        await there.pilot.click("#miniatures", offset=(6, 3))
        await there.settle()
        assert there.app.scene.head == Head(0, 0)

    explore(opened(), does, size=(80, 50))


def test_without_colour_a_point_is_a_shade() -> None:
    async def does(there: Visit) -> None:
        await there.press("g")
        assert set("".join(there.seen("miniatures")[1:4])) <= set(" []·░▒▓█")

    explore(opened(), does, display=SHADES)


@pytest.mark.parametrize(("width", "room"), [(80, False), (110, True)])
def test_without_room_it_says_how_much_it_needs(width: int, room: bool) -> None:
    """12 heads, 4 points and an edge each, the last edge, and `L0`: 63."""

    async def does(there: Visit) -> None:
        await there.press("g")
        said = " ".join(line.strip() for line in there.seen("miniatures"))
        assert ("▀" in said) == room
        if not room:
            inside = there.pane("miniatures").room.width
            assert f"12 miniatures side by side need 63 columns, and this pane has {inside}" in said
            before = there.app.scene
            await there.pilot.click("#miniatures", offset=(3, 1))
            await there.settle()
            assert there.app.scene is before

    explore(opened(heads=12), does, size=(width, 30))


@pytest.mark.slow
def test_a_pane_of_just_the_width_that_it_asks_for_is_wide_enough() -> None:
    seen: dict[int, bool] = {}
    for width in range(108, 112):

        async def does(there: Visit, width: int = width) -> None:
            await there.press("g")
            inside = there.pane("miniatures").room.width
            seen[inside] = any("▀" in line for line in there.seen("miniatures"))

        explore(opened(heads=12), does, size=(width, 30))
    assert min(seen) < 63 <= max(seen)
    assert all(shown == (inside >= 63) for inside, shown in seen.items())


def test_the_pane_is_widened_only_for_heads_that_need_it() -> None:
    widths = []
    for heads in (2, 12):

        async def does(there: Visit) -> None:
            before = there.pane("heads").size.width
            await there.press("g")
            widths.append(there.pane("miniatures").size.width - before)

        explore(opened(heads=heads), does, size=(120, 40))
    assert widths[0] == 0 < widths[1]


@pytest.mark.parametrize("size", [slow((20, 6)), (3, 2), slow((40, 12)), (200, 60)])
def test_miniatures_stand_any_size(size: tuple[int, int]) -> None:
    async def does(there: Visit) -> None:
        await there.press("g", "up")
        await there.pilot.resize_terminal(*size)
        await there.settle()
        await there.press("w", "down", "r", "s", "g", "g")
        assert there.app.scene

    explore(opened(), does)


def test_many_weights_are_reduced_in_a_thread_and_a_newer_scene_stops_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attnviz.commands.explore.pattern.AT_ONCE", 0)
    began, stopped, go = list[Scene](), list[Scene](), threading.Event()

    def slowly(scene: Scene, side: int, display: Display, between: object) -> Miniatures:
        began.append(scene)
        try:
            until(lambda: go.is_set() or between())  # type: ignore[operator]
        except Exception:
            stopped.append(scene)
            raise
        return miniatures_of(scene, side, display)

    monkeypatch.setattr("attnviz.commands.explore.pattern.miniatures_of", slowly)

    async def does(there: Visit) -> None:
        await there.pilot.press("g")
        await reach(there, lambda: bool(began))
        assert "…" in there.seen("miniatures")[1]
        first = began[-1]
        await there.pilot.press("up")  # another place in the same patterns
        await there.pilot.press("s")
        await reach(there, lambda: any(each.exhibit is first.exhibit for each in stopped))
        go.set()
        await there.settle()
        assert there.app.scene
        assert began[-1].exhibit is there.app.scene.exhibit
        assert "▀" in "".join(there.seen("miniatures"))

    explore(opened(), does)


def test_layers_that_are_still_to_come_are_left_open() -> None:
    to_come = {Head(1, head): np.full((8, 8), np.nan, np.float32) for head in (0, 1)}
    capture = make_capture(TEXT, patterns=to_come)

    async def does(there: Visit) -> None:
        await there.press("g")
        lines = there.seen("miniatures")
        assert "▀" in lines[2]
        assert lines[6].replace("[", " ").replace("]", " ").split() == ["…", "…"]

    explore(Opened(capture=capture), does, size=(80, 50))


@pytest.mark.parametrize(
    ("shape", "side", "expected"),
    [
        ((8, 8), 8, (8, 8)),  # a point each
        ((8, 8), 16, (16, 16)),  # four points each
        ((8, 8), 7, (4, 4)),  # two queries and two keys share a point
        ((1000, 1000), 16, (16, 16)),
        ((1, 1), 16, (16, 16)),
        ((3, 12), 16, (3, 12)),  # a target and its source
    ],
)
def test_weights_get_as_many_points_as_there_are(
    shape: tuple[int, int], side: int, expected: tuple[int, int]
) -> None:
    assert shape_of(shape, side) == expected


def test_a_point_is_the_strongest_of_its_weights_and_masked_ones_are_none() -> None:
    scene = scene_of(make_capture(TEXT, heads_per_layer=(1,)), PLAIN)
    points = miniatures_of(scene, 4, COLOR).points[0, 0]
    weights = scene.pattern / np.nanmax(scene.pattern)
    expected = np.fmax.reduceat(np.fmax.reduceat(weights, [0, 2, 4, 6], 0), [0, 2, 4, 6], 1)
    np.testing.assert_array_equal(points, expected)
    assert np.isnan(points[0, 1:]).all()
    plain = miniatures_of(scene, 4, SHADES).points[0, 0]  # one point a line
    np.testing.assert_array_equal(plain, np.fmax(expected[::2], expected[1::2]))


def test_all_heads_are_on_one_scale() -> None:
    weak = np.full((8, 8), 0.1, np.float32)
    capture = make_capture(TEXT, causal=False, patterns={Head(0, 0): weak})
    scene = scene_of(capture, PLAIN)
    small = miniatures_of(scene, 8, COLOR)
    most = max(float(each.weights.max()) for each in scene.slots.values())
    assert most < 0.999
    assert np.nanmax(small.points[0, 0]) == pytest.approx(0.1 / most)
    assert max(float(np.nanmax(points)) for points in small.points.values()) == 1


def test_two_texts_of_different_lengths_are_not_square() -> None:
    capture = make_capture("a blue cat ran", causal=False, heads_per_layer=(1,))
    layer = capture.layers[0]
    cross = replace(
        capture,
        kind="cross",
        target="x y",
        query_tokens=capture.query_tokens[:2],
        layers=(replace(layer, weights=layer.weights[:, :2]),),
    )
    assert miniatures_of(scene_of(cross, PLAIN), 8, COLOR).points[0, 0].shape == (4, 8)
