"""What is shown while something runs, and that a newer key stops what is no longer wanted."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from textual.worker import WorkerCancelled

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.explore.scene import Opened, Runs, SoFar, scene_of
from attnviz.errors import ModelError
from attnviz.kit.intervene import GaveWay
from attnviz.kit.prepare import TextOptions
from attnviz.models.loaded import LoadedModel
from attnviz.records.apply import Between, exhibit_of, go_on, whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from attnviz.records.transforms import PLAIN, Transforms
from tests.commands.explore.app import TEXT, Visit, explore, gave_way, until
from tests.factories import make_capture


def with_layers(whole: Capture, there: int) -> Capture:
    """The capture with its first layers alone; NaN in the others."""
    layers = [
        each if each.layer < there else replace(each, weights=np.full_like(each.weights, np.nan))
        for each in whole.layers
    ]
    return replace(whole, layers=tuple(layers))


class Steps:
    """Stands in for a model of two layers; each text waits before each layer until it may go on."""

    def __init__(self, free: Sequence[str] = ()) -> None:
        self.free = free
        self.may = threading.Semaphore(0)
        self.began: list[str] = []
        self.told: list[str] = []
        self.stopped: list[str] = []
        self.fails = False

    def capture(self, text: str, between: Between, so_far: SoFar) -> Capture:
        self.began.append(text)
        whole = make_capture(text)
        for layers in range(3):
            if text not in self.free:
                so_far(with_layers(whole, layers), layers)
                self.told.append(text)
                until(lambda: gave_way(between) or self.may.acquire(blocking=False))
            if gave_way(between):
                self.stopped.append(text)
                raise GaveWay
            if self.fails:
                raise ModelError("the attention of layer 1 is not a number", "mend it")
        return whole


async def reach(there: Visit, happens: Callable[[], bool]) -> None:
    """Wait for what happens while a thread still runs."""
    for _ in range(250):
        await there.pilot.pause(0.02)
        if happens():
            return
    raise AssertionError(there.subtitle("words"))


def during(steps: Steps, does: Callable[[Visit], object], text: str = TEXT) -> None:
    """Open the app, and do something before the first run has ended."""

    async def visit(there: Visit) -> None:
        await reach(there, lambda: bool(steps.began))
        await does(there)  # type: ignore[misc]
        for _ in range(9):
            steps.may.release()
        await there.settle()

    explore(Opened(text, steps), visit, wait=False)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def every_step_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnviz.commands.explore.app.STEP", 0)


def test_the_text_and_its_tokens_are_there_before_any_pattern() -> None:
    async def does(there: Visit) -> None:
        await reach(there, lambda: there.app.scene is not None)
        assert "creature roamed" in there.seen("words")[0]
        assert "8 tokens" in there.title("words")
        assert there.subtitle("words") == "running: layer 0 of 2 …"
        assert there.subtitle("pattern") == "not computed yet"
        assert there.seen("links")[0] == "not computed yet"
        assert any("forest" in line for line in there.seen("pattern"))
        assert [line.count("…") for line in there.seen("heads")[1:3]] == [2, 2]

    during(Steps(), does)


def test_layers_are_shown_as_they_come_and_then_the_head_that_tells_most() -> None:
    steps = Steps()

    async def does(there: Visit) -> None:
        steps.may.release()
        await reach(there, lambda: "layer 1 of 2" in there.subtitle("words"))
        scene, whole = there.app.scene, make_capture(TEXT)
        assert scene
        assert scene.head == Head(0, 0)
        np.testing.assert_array_equal(scene.map.weights, whole.weights(Head(0, 0)))
        assert [line.count("…") for line in there.seen("heads")[1:3]] == [0, 2]
        for _ in "12":
            steps.may.release()
        await there.settle()
        expected = scene_of(whole, PLAIN)
        assert there.app.scene
        assert (there.app.scene.head, there.app.scene.query, there.app.scene.key) == (
            expected.head,
            expected.query,
            expected.key,
        )
        assert there.subtitle("words") == ""

    during(steps, does)


def test_who_has_gone_somewhere_meanwhile_stays_there() -> None:
    steps = Steps()

    async def does(there: Visit) -> None:
        await reach(there, lambda: there.app.scene is not None)
        await there.pilot.press("down", "slash", *"blue", "enter")
        for _ in "123":
            steps.may.release()
        await there.settle()
        assert there.app.scene
        assert (there.app.scene.head, there.app.scene.query) == (Head(1, 0), 2)

    during(steps, does)


def test_what_needs_all_heads_says_so_and_a_transform_waits_for_the_run() -> None:
    steps = Steps()

    async def does(there: Visit) -> None:
        await reach(there, lambda: there.app.scene is not None)
        await there.pilot.press("p", "o", "s")
        await there.pilot.pause()
        assert there.told == [
            "L0H0 is not computed yet; wait a moment",
            "the page shows all heads, and some are not computed yet; wait a moment",
        ]
        assert there.subtitle("words").endswith(" · then no sink")
        for _ in "123":
            steps.may.release()
        await there.settle()
        assert there.subtitle("words") == "no sink"
        assert there.app.scene
        assert there.app.scene.capture.transforms

    during(steps, does)


def test_an_error_in_a_later_layer_leaves_what_was_shown() -> None:
    steps = Steps()

    async def does(there: Visit) -> None:
        await reach(there, lambda: there.app.scene is not None)
        steps.fails = True
        steps.may.release()
        await there.settle()
        assert there.subtitle("words").startswith("the attention of layer 1 is not a number")
        assert "creature roamed" in there.seen("words")[0]

    during(steps, does)


def test_an_older_text_stays_in_sight_until_the_first_step_of_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attnviz.commands.explore.app.STEP", 60)
    steps = Steps(free=["a blue cat"])

    async def does(there: Visit) -> None:
        await there.settle()
        await there.pilot.press("e", *" ran", "escape")
        await reach(there, lambda: bool(steps.told))
        await there.pilot.pause()
        assert there.subtitle("words") == "running …"
        assert there.app.scene
        assert there.app.scene.capture.text == "a blue cat"
        assert not there.app.scene.waits

    during(steps, does, "a blue cat")


def test_quitting_stops_what_runs() -> None:
    steps = Steps()

    async def does(there: Visit) -> None:
        await there.pilot.press("q")

    during(steps, does)
    until(lambda: bool(steps.stopped))
    assert steps.stopped == [TEXT]


@pytest.mark.parametrize(
    "toggles", [Transforms(words=True), Transforms(drop_sink=True), Transforms(rollout=True)]
)
def test_a_transform_stops_between_its_layers(toggles: Transforms) -> None:
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise GaveWay

    capture = make_capture(TEXT, heads_per_layer=(1,) * 9)
    with pytest.raises(GaveWay):
        scene_of(capture, toggles, choose=False, between=stop)
    assert len(asked) == 2


def test_a_transform_is_the_same_whether_it_may_be_stopped_or_not() -> None:
    capture = make_capture(TEXT, bos=True)
    every = Transforms(words=True, drop_sink=True, rollout=True, rollout_layers="all")
    choice = scene_of(capture, PLAIN).exhibit.choice
    assert choice
    plain = exhibit_of(capture, choice, every)
    asked = exhibit_of(capture, choice, every, between=lambda: None)
    for one, other in zip(plain.maps, asked.maps, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)  # type: ignore[union-attr]


def test_a_newer_key_stops_a_transform_and_the_older_picture_stays_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, ended = threading.Event(), list[str]()

    def slowly(capture: Capture, toggles: Transforms, **options: object) -> object:
        if toggles == Transforms(words=True):
            made.set()
            try:
                until(lambda: options["between"]())  # type: ignore[operator]
            except GaveWay:
                ended.append("words")
                raise
        return scene_of(capture, toggles, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("attnviz.commands.explore.app.scene_of", slowly)

    async def does(there: Visit) -> None:
        await there.pilot.press("w")
        await reach(there, made.is_set)
        assert there.subtitle("words") == "words …"
        await there.pilot.press("h", "k")
        assert there.app.scene
        assert there.app.scene.head == Head(0, 0)  # no key waits
        await there.pilot.press("w")
        await reach(there, lambda: ended == ["words"])
        await there.settle()
        assert there.subtitle("words") == ""
        assert there.app.toggles == PLAIN

    explore(Opened(capture=make_capture(TEXT)), does)


def test_a_refused_toggle_keeps_the_ones_that_were_wanted_before() -> None:
    async def does(there: Visit) -> None:
        await there.pilot.press("s", "r")  # the sink's transform is stopped by the rollout
        with suppress(WorkerCancelled):
            await there.settle()
        await there.settle()
        assert "needs all heads" in there.told[0]
        assert there.app.toggles == Transforms(drop_sink=True)

    explore(Opened(capture=make_capture(TEXT).only((Head(0, 0),))), does)


def test_queued_ablations_are_never_begun(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go = list[str](), threading.Event()
    from attnviz.commands.ablate.run import ablate_together

    def slowly(*given: object) -> BeforeAfter:
        began.append(str(given[3].heads.heads))  # type: ignore[attr-defined]
        until(go.is_set)
        return ablate_together(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("attnviz.commands.explore.scene.ablate_together", slowly)

    async def does(there: Visit) -> None:
        there.app._show_ablation = lambda effect: None  # type: ignore[method-assign]
        await there.pilot.press("h", "a")
        await reach(there, lambda: bool(began))
        await there.pilot.press("h", "a", "l", "a")
        assert there.subtitle("words") == f"without {began[0]} …"
        go.set()
        with suppress(WorkerCancelled):
            await there.settle()
        await there.settle()
        assert len(began) == 2  # the first, and the last

    explore(Opened(TEXT, Runs(model, TextOptions())), does)


def test_an_ablation_stops_between_its_runs(model: LoadedModel) -> None:
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        if len(asked) == 2:  # after the run with the head
            raise GaveWay

    runs = Runs(model, TextOptions())
    with pytest.raises(GaveWay):
        runs.without(TEXT, Head(0, 0), stop)
    assert runs.without(TEXT, Head(0, 0), go_on).after.candidates


@pytest.mark.parametrize("text", [TEXT, "the " * 200])  # the second comes in several blocks
def test_a_run_tells_of_its_layers_one_by_one_and_keeps_what_it_told(
    model: LoadedModel, text: str
) -> None:
    told: list[tuple[Capture, int]] = []
    whole = Runs(model, TextOptions()).capture(
        text, go_on, lambda capture, layers: told.append((capture, layers))
    )
    assert [layers for _, layers in told] == list(range(len(whole.layers) + 1))
    for capture, layers in told:
        assert capture.heads == whole.heads
        assert capture.query_tokens == whole.query_tokens
        for mine, all_of_it in zip(
            whole_exhibit(capture).maps, whole_exhibit(whole).maps, strict=True
        ):
            there = mine.layer is not None and mine.layer < layers
            expected = all_of_it.weights if there else np.nan  # type: ignore[union-attr]
            np.testing.assert_array_equal(mine.weights, expected)  # type: ignore[union-attr]
