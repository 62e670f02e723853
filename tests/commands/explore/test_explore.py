"""The terminal app: every key does what it says, and nothing makes it stop."""

import io
import json
import re
import threading
import time
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from textual.binding import Binding
from textual.events import Key
from textual.widgets import TextArea
from textual.worker import WorkerCancelled

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.run import Ablating, ablate_together
from attnviz.commands.explore.app import HELP, ExploreApp, Overlay
from attnviz.commands.explore.pane import Go
from attnviz.commands.explore.scene import Opened, Runs, SoFar, scene_of
from attnviz.console import Display
from attnviz.errors import InputError
from attnviz.kit.intervene import GaveWay
from attnviz.kit.prepare import HeadOptions, TextOptions, load_model
from attnviz.models.catalog import Source
from attnviz.models.loaded import LoadedModel
from attnviz.records.apply import Between, go_on
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from attnviz.records.places import RawImage
from tests.builtin import HEADS, NAMED
from tests.commands.explore.app import TEXT, Visit, explore, gave_way, until
from tests.conftest import slow
from tests.factories import make_capture

PANES = ["heads", "links", "pattern", "words"]


@pytest.fixture
def opened(model: LoadedModel) -> Opened:
    return Opened(TEXT, Runs(model, TextOptions()))


def saved(text: str | list[str] = TEXT, **how: object) -> Opened:
    return Opened(capture=make_capture(text, **how))  # type: ignore[arg-type]


def head_of(there: Visit) -> Head | None:
    assert there.app.scene
    return there.app.scene.head


def test_it_opens_with_the_head_that_fits_the_text_best(opened: Opened) -> None:
    async def does(there: Visit) -> None:
        # there is no room for both titles
        assert there.title("pattern") == f"{NAMED['adjectives']} · known for: adjectives, pronouns"
        assert there.subtitle("pattern").startswith("forest → verdant ")
        assert "verdant" in there.seen("words")[0]
        assert there.title("heads") == "heads: top keys of “forest”"
        assert there.seen("links")[0].startswith("verdant ")
        assert there.focus == "heads"

    explore(opened, does)


def test_arrows_and_hjkl_move_through_layers_and_heads() -> None:
    moves = [
        ("up", Head(0, 1)),
        ("down", Head(1, 1)),
        ("left", Head(1, 0)),
        ("right", Head(1, 1)),
        ("k", Head(0, 1)),
        ("j", Head(1, 1)),
        ("h", Head(1, 0)),
        ("l", Head(1, 1)),
        ("l", Head(1, 1)),  # at the edge
    ]

    async def does(there: Visit) -> None:
        await there.press("j", "l")
        for key, head in moves:
            await there.press(key)
            assert head_of(there) == head
            assert there.title("pattern") == str(head)

    explore(saved(), does)


def test_the_panes_show_the_weights_of_the_head_that_was_moved_to() -> None:
    async def does(there: Visit) -> None:
        await there.press("h", "k")
        scene = there.app.scene
        assert scene
        weights = scene.capture.weights(Head(0, 0))
        key = int(np.argmax(weights[scene.query]))
        query = scene.capture.query_tokens[scene.query].label
        label = scene.capture.key_tokens[key].label
        link = f"{query} → {label} {weights[scene.query, key]:.2f}"
        assert there.subtitle("pattern") == link
        assert there.seen("links")[0].startswith(label)

    explore(saved(), does)


@pytest.mark.slow
def test_keys_that_come_faster_than_frames_are_all_taken() -> None:
    async def does(there: Visit) -> None:
        for keys in ("kkkhh", "jjll", "jl"):
            for key in keys:  # without a pause between them
                there.app.post_message(Key(key, key))
            await there.settle()
        assert head_of(there) == Head(3, 3)
        await there.press("tab", "tab", "slash", *"the", "enter", "tab", "tab", "tab")
        assert there.focus == "pattern"
        before = there.app.scene
        for key in "kkkll":
            there.app.post_message(Key(key, key))
        await there.settle()
        assert before
        assert there.app.scene
        assert (there.app.scene.query, there.app.scene.key) == (before.query - 3, before.key + 2)

    explore(saved(heads_per_layer=(4,) * 4), does)


def test_tab_goes_through_all_panes_and_back() -> None:
    async def does(there: Visit) -> None:
        seen = []
        for _ in PANES:
            seen.append(there.focus)
            await there.press("tab")
        assert sorted(map(str, seen)) == PANES
        assert there.focus == "heads"
        await there.press("shift+tab")
        assert there.focus == "words"

    explore(saved(), does)


def test_in_the_text_arrows_move_from_token_to_token_and_from_line_to_line() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", *"39", "enter", "left", "left")
        assert there.app.scene
        assert there.app.scene.query == 37
        await there.press("up")
        assert there.app.scene.query < 37
        before = there.app.scene.query
        await there.press("down", "right")
        assert there.app.scene.query in (37, 38, 39)
        assert before < 30

    explore(saved(" ".join(TEXT.split() * 5)), does)


def test_in_the_pattern_arrows_move_to_the_next_query_and_key() -> None:
    async def does(there: Visit) -> None:
        await there.press("tab", "tab")
        assert there.focus == "pattern"
        start = there.app.scene
        assert start
        await there.press("up")
        above = start.query - 1
        assert (there.app.scene.query, there.app.scene.key) == (above, min(start.key, above + 1))
        await there.press("left")
        assert there.app.scene.key == start.key - 1
        await there.press("down", "right", "down")
        assert there.app.scene.query == start.query + 1
        assert there.app.scene.key == start.key

    explore(saved(seed=3), does)


def test_in_the_links_arrows_move_to_the_next_and_enter_follows() -> None:
    async def does(there: Visit) -> None:
        await there.press("tab")
        scene = there.app.scene
        assert scene
        second = scene.looks_at()[1][0]
        await there.press("down")
        assert there.app.scene.key == second
        await there.press("enter")
        assert there.app.scene.query == second

    explore(saved(seed=0), does)


def test_a_slash_finds_a_token_while_it_is_typed_and_n_the_next() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", *"cat")
        assert there.subtitle("find") == "2 found; n: next"
        await there.press("enter")
        assert there.app.scene
        assert there.app.scene.query == 1
        await there.press("n")
        assert there.app.scene.query == 5
        await there.press("n")
        assert there.app.scene.query == 1
        assert there.focus == "words"

    explore(saved("the cat saw a blue cat run"), does)


def test_matches_are_kept_where_the_tokens_stay_the_same() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", *"cat", "enter", "s", "n")
        assert there.app.scene
        assert there.app.scene.query == 5

    explore(saved("the cat saw a blue cat run"), does)


def test_a_token_that_is_not_there_is_said_and_escape_leaves() -> None:
    async def does(there: Visit) -> None:
        before = there.app.scene
        await there.press("slash", *"zebra")
        assert there.subtitle("find") == "not in this text"
        await there.press("escape")
        assert not there.app.query_one("#find").display
        assert there.focus in PANES
        assert there.app.scene is before

    explore(saved(), does)


def test_w_merges_the_pieces_of_words_and_takes_them_apart_again() -> None:
    async def does(there: Visit) -> None:
        await there.press("w")
        assert any("fluffy" in line for line in there.seen("pattern"))
        assert there.subtitle("words") == "words"
        await there.press("w")
        assert not any("fluffy" in line for line in there.seen("pattern"))
        assert there.subtitle("words") == ""

    explore(saved(["a", " flu", "ffy", " blue", " cat"]), does)


def test_s_leaves_the_sink_out_and_brings_it_back() -> None:
    async def does(there: Visit) -> None:
        assert any("BOS" in line for line in there.seen("pattern"))
        await there.press("s")
        assert not any("BOS" in line for line in there.seen("pattern"))
        assert "which are left out" in there.title("words")
        assert there.subtitle("words") == "no sink"
        await there.press("s")
        assert any("BOS" in line for line in there.seen("pattern"))

    explore(saved(bos=True), does, size=(120, 30))


def test_r_shows_the_rollout_of_each_layer() -> None:
    async def does(there: Visit) -> None:
        await there.press("up", "up", "right", "r")
        assert there.title("pattern") == "L0 rollout"
        await there.press("down")
        assert there.title("pattern") == "L1 rollout"
        await there.press("r")
        assert there.title("pattern") == "L1H1"  # the head of that layer that one came from

    explore(saved(), does)


def test_toggles_add_up_however_quickly_they_are_pressed() -> None:
    async def does(there: Visit) -> None:
        await there.pilot.press("w", "s", "r")
        await there.settle()
        assert there.subtitle("words") == "words · no sink · rollout"

    explore(saved(), does)


def test_who_moves_while_a_transform_is_made_stays_where_they_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, go = threading.Event(), threading.Event()

    def slowly(*given: object, **options: object) -> object:
        if made.is_set():
            until(go.is_set)
        made.set()
        return scene_of(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("attnviz.commands.explore.app.scene_of", slowly)

    async def does(there: Visit) -> None:
        await there.pilot.press("s", "j", "l")
        go.set()
        await there.settle()
        assert head_of(there) == Head(1, 1)
        assert there.subtitle("words") == "no sink"

    explore(saved(), does)


def test_a_toggle_that_cannot_be_is_said_and_stays_off() -> None:
    async def does(there: Visit) -> None:
        await there.press("r")
        assert "--rollout needs all heads" in there.told[0]
        assert there.title("pattern") == "L0H0"
        await there.press("s")
        assert there.subtitle("words") == "no sink"

    explore(Opened(capture=make_capture(TEXT).only((Head(0, 0),))), does)


def test_an_image_is_one_token_and_is_there_when_a_head_is_ablated() -> None:
    """The bundled model's template writes the text, and its head finds the shape."""
    pixels = np.asarray(Image.open("docs/images/shapes-1.png").convert("RGB"))
    options = TextOptions(given=(RawImage("shapes-1.png", pixels),))
    asked = Opened("what is left of the red circle?", Runs(load_model(Source("shapes")), options))

    async def does(there: Visit) -> None:
        assert there.app.scene
        assert there.app.scene.keys.count("image") == 1
        assert len(there.app.scene.keys) == 10
        assert sum("image" in line for line in there.seen("heads")) >= 3
        there.app.on_go(Go(lambda scene: scene.at(8).in_slot((1, 0))))
        await there.settle()
        assert there.subtitle("pattern") == "circle → image 1.00"
        await there.press("a")
        screen = there.app.screen
        assert isinstance(screen, Overlay)
        content = screen.query_one("#content")
        shown = "\n".join(s.text for s in content.render_lines(content.size.region))
        assert "without L1H0" in shown

    explore(asked, does)


def test_a_shows_what_the_model_says_without_the_head(opened: Opened, model: LoadedModel) -> None:
    chosen = HeadOptions(heads=NAMED["adjectives"])
    expected = ablate_together(model, TEXT, TextOptions(), Ablating(chosen), 8)

    async def does(there: Visit) -> None:
        await there.press("a")
        screen = there.app.screen
        assert isinstance(screen, Overlay)
        shown = "\n".join(
            strip.text
            for strip in screen.query_one("#content").render_lines(
                screen.query_one("#content").size.region
            )
        )
        assert f"without {NAMED['adjectives']}" in shown
        for candidate in (expected.before.candidates[0], expected.after.candidates[0]):
            assert f"{candidate.quoted} " in shown
            assert f"{candidate.probability:.3f}" in shown
        await there.press("escape")
        assert there.app.screen is not screen

    explore(opened, does, size=(100, 40))


def test_p_saves_a_picture_under_a_name_of_its_own(tmp_path: Path) -> None:
    async def does(there: Visit) -> None:
        await there.press("j", "h", "p", "p")
        assert there.told == [
            f"saved {tmp_path / 'attnviz-L1H0.png'}",
            f"saved {tmp_path / 'attnviz-L1H0-2.png'}",
        ]

    explore(saved(seed=2), does, folder=tmp_path)
    pictures = [io.BytesIO(path.read_bytes()) for path in tmp_path.iterdir()]
    assert len({Image.open(picture).size for picture in pictures}) == 1


def test_o_saves_the_page_of_all_heads_that_begins_with_this_one(tmp_path: Path) -> None:
    async def does(there: Visit) -> None:
        await there.press("k", "h", "s", "slash", *"blue", "enter", "o")
        assert there.told == [
            f"saved {tmp_path / 'attnviz.html'}; it opens in any browser, offline"
        ]

    explore(saved(), does, folder=tmp_path)
    page = (tmp_path / "attnviz.html").read_text()
    assert len(re.findall(r'id="head-\d+"', page)) == 4
    begins = json.loads(re.search(r'"initial": ?({.*?}})', page)[1])  # type: ignore[index]
    pin = {"side": "q", "index": 2}
    assert begins == {"heads": [0], "sink": True, "unit": "tokens", "threshold": 0.0, "pin": pin}


def test_saves_in_quick_succession_are_a_file_each(tmp_path: Path) -> None:
    async def does(there: Visit) -> None:
        await there.pilot.press("p", "p", "o", "o")
        await there.settle()

    explore(saved(), does, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_where_everything_is_left_out_there_is_no_picture(tmp_path: Path) -> None:
    async def does(there: Visit) -> None:
        await there.press("s", "p")
        assert there.told == ["nothing is left to draw; leave fewer tokens out."]

    explore(saved("a"), does, folder=tmp_path)


def test_what_cannot_be_saved_is_said_in_a_sentence(tmp_path: Path) -> None:
    async def does(there: Visit) -> None:
        await there.press("p", "o")
        assert [told.split(";")[0] for told in there.told] == [
            f"the folder '{tmp_path / 'none'}' does not exist"
        ] * 2

    explore(saved(), does, folder=tmp_path / "none")


def test_a_question_mark_lists_every_key() -> None:
    async def does(there: Visit) -> None:
        await there.press("question_mark")
        assert isinstance(there.app.screen, Overlay)
        await there.press("question_mark")
        assert not isinstance(there.app.screen, Overlay)

    explore(saved(), does)
    named = {key for line in HELP.splitlines() for key in re.split(r",? +", line[2:18].strip())}
    bindings = [each for each in ExploreApp.BINDINGS if isinstance(each, Binding)]
    keys = {key for each in bindings for key in each.key.split(",")}
    # esc stands with what it leaves, ? is how one came here
    assert {{"slash": "/"}.get(key, key) for key in keys - {"escape", "question_mark"}} <= named
    assert {"tab", "shift+tab", "arrows", "hjkl", "enter", "mouse"} <= named


def test_q_and_ctrl_c_leave() -> None:
    for key in ("q", "ctrl+c"):

        async def does(there: Visit, key: str = key) -> None:
            await there.pilot.press(key)
            await there.pilot.pause()
            assert there.app.return_code == 0
            assert there.app.failure is None

        explore(saved(), does)


def test_the_mouse_chooses_words_heads_weights_and_links() -> None:
    async def does(there: Visit) -> None:
        await there.pilot.click("#words", offset=(4, 1))  # fluffy
        await there.settle()
        assert there.app.scene
        assert there.app.scene.query == 1
        await there.pilot.click("#heads", offset=(6, 2))  # L0H0
        await there.settle()
        assert head_of(there) == Head(0, 0)
        await there.pilot.click("#words", offset=(50, 1))  # behind the text: nothing
        pattern = there.pane("pattern")
        line = next(y for y, line in enumerate(there.seen("pattern")) if "creature" in line)
        await there.pilot.click(pattern, offset=(2 + pattern.covered[3], 1 + line))
        await there.settle()
        assert (there.app.scene.query, there.app.scene.key) == (3, 0)
        await there.pilot.click("#links", offset=(3, 2))
        await there.settle()
        assert there.app.scene.key == there.app.scene.looks_at()[1][0]

    explore(saved(seed=1), does)


def test_a_token_whose_links_are_all_too_weak_to_list_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """“Nothing” would deny what the rows hold."""
    monkeypatch.setattr("attnviz.commands.explore.pane.FAINT", 1.01)

    async def does(there: Visit) -> None:
        shown = [line.strip() for line in there.seen("links")]
        assert sum("all under 1.01" in line for line in shown) == 2
        assert not any("nothing" in line for line in shown)

    explore(saved(seed=1), does)


def test_a_click_on_what_looks_at_the_query_goes_there() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", *"blue", "enter")
        assert there.app.scene
        by = there.app.scene.looked_at_by()[0][0]
        line = next(y for y, line in enumerate(there.seen("links")) if "is attended to by" in line)
        await there.pilot.click("#links", offset=(3, line + 2))
        await there.settle()
        assert there.app.scene.query == by

    explore(saved(seed=1), does, size=(100, 40))


# ---- editing ----


def test_the_patterns_follow_the_text_while_it_is_typed(opened: Opened) -> None:
    async def does(there: Visit) -> None:
        await there.press("e")
        assert there.focus == "editor"
        await there.pilot.press("space", *"and q")  # q is a letter here
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.app.scene
        assert there.app.scene.capture.text == f"{TEXT} and q"
        assert any("q" in line.split() for line in there.seen("pattern"))
        await there.press("escape")
        assert there.focus == "words"
        assert "forest and" in there.seen("words")[0]

    explore(opened, does)


def test_a_text_is_run_only_once_the_keys_rest() -> None:
    runs = _Runs()

    async def does(there: Visit) -> None:
        await there.press("e")
        await there.pilot.press(*"xyz")
        await there.pilot.pause(0.4)
        await there.settle()

    explore(Opened("a", runs), does)  # type: ignore[arg-type]
    assert runs.began == ["a", "axyz"]


def test_the_next_key_stops_the_run_of_an_older_text(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _Runs(slow=["ab"])

    async def does(there: Visit) -> None:
        await there.press("e")
        await there.pilot.press("b")
        while not runs.running.is_set():
            await there.pilot.pause(0.02)
        monkeypatch.setattr(
            "attnviz.commands.explore.app.PAUSE", 60
        )  # and not only the run that follows
        await there.press("c")
        for _ in range(250):  # the older run sees that it is stopped in a thread of its own
            if not runs.stopped:
                await there.pilot.pause(0.02)
        assert runs.stopped == ["ab"]

    explore(Opened("a", runs), does)  # type: ignore[arg-type]


def test_a_newer_text_takes_the_place_of_an_older_one() -> None:
    runs = _Runs(slow=["ab"])

    async def does(there: Visit) -> None:
        await there.press("e")
        await there.pilot.press("b")
        while not runs.running.is_set():
            await there.pilot.pause(0.02)
        await there.pilot.press("c")  # every key is taken while it runs
        assert there.app.query_one("#editor", TextArea).text == "abc"
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.app.scene
        assert there.app.scene.capture.text == "abc"

    explore(Opened("a", runs), does)  # type: ignore[arg-type]
    assert runs.stopped == ["ab"]


def test_a_run_stops_between_blocks_of_rows_when_it_is_cancelled(model: LoadedModel) -> None:
    asked = list[int]()

    def stop() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise GaveWay

    with pytest.raises(GaveWay):
        Runs(model, TextOptions()).capture(TEXT, stop, ignore)
    again = Runs(model, TextOptions()).capture(TEXT, go_on, ignore)  # hooks are off again
    assert again.heads == HEADS


def test_runs_of_one_model_wait_for_each_other(model: LoadedModel) -> None:
    """Hooks stand in the model while it runs."""
    runs, asked = Runs(model, TextOptions()), list[int]()

    def ask() -> None:
        asked.append(threading.get_ident())
        time.sleep(0.01)

    threads = [threading.Thread(target=runs.capture, args=(TEXT, ask, ignore)) for _ in "123"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    turns = [thread for thread, _ in groupby(asked)]
    assert len(turns) == len(set(turns)) == 3  # none is asked again once another was


def ignore(*_: object) -> None:
    """Take no notice of what there is so far."""


class _Runs:
    """Stands in for a model: remembers what it was asked for; slow texts run until cancelled."""

    def __init__(self, slow: list[str] | None = None) -> None:
        self.slow = slow or []
        self.began: list[str] = []
        self.stopped: list[str] = []
        self.running = threading.Event()

    def capture(self, text: str, between: Between, so_far: SoFar) -> Capture:
        self.began.append(text)
        if text in self.slow:
            self.running.set()
            until(lambda: gave_way(between))
            if gave_way(between):
                self.stopped.append(text)
            raise GaveWay
        return make_capture(list(text))


@pytest.mark.parametrize(
    ("words", "color", "height"),
    [
        (5, True, 1),
        (30, True, 2),  # 119 letters in 74 columns
        (5, False, 2),  # a line of numbers below
        (900, True, 4),  # of 24 lines no more than these, and the rest scrolls
    ],
)
def test_the_pane_of_the_text_is_as_high_as_the_text(words: int, color: bool, height: int) -> None:
    async def does(there: Visit) -> None:
        assert there.pane("words").size.height == height

    text = " ".join(["the"] * words)
    capture = make_capture(text, heads_per_layer=(1,))
    explore(Opened(capture=capture), does, display=Display(80, color=color))


def test_the_editor_grows_with_the_text() -> None:
    async def does(there: Visit) -> None:
        await there.press("e")
        editor = there.app.query_one("#editor", TextArea)
        heights = [editor.size.height]
        for _ in range(2):
            await there.press("enter")
            heights.append(editor.size.height)
        assert heights == [1, 2, 3]

    explore(Opened("a", _Runs()), does)  # type: ignore[arg-type]


# ---- unusual texts and places ----


def test_without_a_text_it_waits_for_one_to_be_typed(model: LoadedModel) -> None:
    async def does(there: Visit) -> None:
        assert there.focus == "editor"
        assert there.app.scene is None
        await there.pilot.press(*"blue cat".replace(" ", "")[:4], "space", *"cat")
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.title("heads") == "heads: top keys of “cat”"

    explore(Opened("", Runs(model, TextOptions())), does)


def test_where_all_of_a_text_is_deleted_the_panes_are_empty(model: LoadedModel) -> None:
    async def does(there: Visit) -> None:
        await there.press("e", "backspace", "backspace", "backspace")
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.app.scene is None
        assert there.seen("pattern") == [""] * there.pane("pattern").size.height
        assert there.subtitle("editor") == "type a text"
        await there.press("escape", "w", "s", "r", "a", "p", "o", "n", "slash", "up", "tab")
        assert there.told == []

    explore(Opened("cat", Runs(model, TextOptions())), does)


def test_a_text_too_long_for_the_model_is_said_and_can_be_mended(model: LoadedModel) -> None:
    async def does(there: Visit) -> None:
        assert "the text has 301 tokens" in there.told[0]
        await there.press("e")
        there.app.query_one("#editor", TextArea).text = "a cat"
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.title("heads") == "heads: top keys of “cat”"

    explore(Opened("the " * 300, Runs(model, TextOptions())), does)


@pytest.mark.slow
def test_a_very_long_text_scrolls_to_where_the_user_goes() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", *"599", "enter")
        assert any("w599" in line for line in there.seen("words"))
        assert any("w599" in line for line in there.seen("pattern"))
        await there.press("slash", *"300", "enter")
        assert any("w300" in line for line in there.seen("pattern"))
        assert any("w300" in line for line in there.seen("words"))
        assert not any("w599" in line for line in there.seen("pattern"))

    explore(saved([f"w{n}" if n == 0 else f" w{n}" for n in range(600)]), does)


@pytest.mark.parametrize("size", [(160, 50), slow((40, 12)), slow((20, 6)), (3, 2), slow((80, 24))])
def test_it_can_be_resized_to_anything(size: tuple[int, int]) -> None:
    async def does(there: Visit) -> None:
        await there.press("h", "k")
        await there.pilot.resize_terminal(*size)
        await there.settle()
        assert head_of(there) == Head(0, 0)
        await there.press("j", "tab", "tab", "up", "tab", "left", "question_mark", "q")
        assert head_of(there) == Head(1, 0)
        await there.pilot.resize_terminal(80, 24)
        await there.settle()
        assert any("forest" in line for line in there.seen("pattern"))
        assert any("L1" in line for line in there.seen("heads"))

    explore(saved(), does)


def test_tokens_are_data_here_too() -> None:
    nasty = ["[red]a", " [/]", " \x1b[31mb", " \u202ec", " [@click=app.quit]d"]

    async def does(there: Visit) -> None:
        shown = "\n".join(there.seen("words") + there.seen("pattern") + there.seen("links"))
        assert "[red]a" in there.seen("words")[0]
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        await there.press("shift+tab", "left", "left", "left", "left")
        assert there.title("heads") == "heads: top keys of “[red]a”"

    explore(saved(nasty), does, size=(120, 30))


def test_what_was_written_stands_above_what_was_read() -> None:
    model = load_model(Source("translator"))

    async def does(there: Visit) -> None:
        assert there.seen("words")[:2] == [
            "une créature bleue et duveteuse",
            "BOS a fluffy blue creature",
        ]
        await there.press("slash", *"duveteuse", "enter")
        assert there.subtitle("pattern") == "duveteuse → fluffy 0.99"
        await there.press("left", "left")
        assert there.subtitle("pattern").startswith("bleue → blue")
        await there.press("a")
        assert "does not predict" in there.told[0]

    explore(Opened("a fluffy blue creature", Runs(model, TextOptions())), does)


def test_a_saved_capture_says_what_it_cannot_do() -> None:
    async def does(there: Visit) -> None:
        await there.press("a", "e")
        assert [told.split(";")[0] for told in there.told] == [
            "a saved capture cannot be run again",
            "the text of a saved capture cannot be edited",
        ]

    explore(saved(), does)


def test_a_text_that_is_deleted_meanwhile_stays_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    made, go = threading.Event(), threading.Event()

    def slowly(*given: object, **options: object) -> object:
        made.set()
        until(go.is_set)
        return scene_of(*given, **options)  # type: ignore[arg-type]

    async def does(there: Visit) -> None:
        monkeypatch.setattr("attnviz.commands.explore.app.scene_of", slowly)
        await there.press("e")
        await there.pilot.press("b")
        while not made.is_set():
            await there.pilot.pause(0.02)
        there.app.query_one("#editor", TextArea).text = ""
        await there.pilot.pause(0.4)
        go.set()
        await there.settle()
        assert there.app.scene is None
        assert there.subtitle("editor") == "type a text"

    explore(Opened("a", _Runs()), does)  # type: ignore[arg-type]


def test_what_was_found_in_an_older_text_is_not_gone_to() -> None:
    async def does(there: Visit) -> None:
        await there.press("slash", "b", "enter", "e", "x")
        await there.pilot.pause(0.4)
        await there.settle()
        await there.press("escape")
        before = there.app.scene
        await there.press("n")
        assert there.app.scene is before

    explore(Opened("abab", _Runs()), does)  # type: ignore[arg-type]


def test_a_search_leads_back_to_where_the_text_was_edited() -> None:
    async def does(there: Visit) -> None:
        await there.press("e", "tab", "slash", "b", "enter")
        assert there.focus == "editor"

    explore(Opened("ab", _Runs()), does)  # type: ignore[arg-type]


@pytest.mark.parametrize(("keys", "screens"), [("aaa", 2), ("aae", 1)])
def test_one_ablation_is_shown_and_none_over_what_is_typed(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, keys: str, screens: int
) -> None:
    go, without = threading.Event(), Runs.without

    def slowly(runs: Runs, text: str, head: Head, between: Between) -> BeforeAfter:
        until(go.is_set)
        return without(runs, text, head, between)

    monkeypatch.setattr(Runs, "without", slowly)

    async def does(there: Visit) -> None:
        await there.pilot.press(*keys)
        go.set()
        with suppress(WorkerCancelled):  # the older ones
            await there.settle()
        await there.settle()
        assert len(there.app.screen_stack) == screens

    explore(opened, does)


def test_tokens_that_share_a_letter_are_stepped_through_in_place(model: LoadedModel) -> None:
    text = "a blue cat " * 12 + "😀 cat"

    async def does(there: Visit) -> None:
        await there.press("slash", *"cat#13", "enter", "left", "left", "left")
        assert there.app.scene
        assert there.app.scene.capture.query_tokens[there.app.scene.query].part
        assert any("😀" in line for line in there.seen("words"))
        here = there.app.scene.query
        await there.press("up")
        assert 0 < there.app.scene.query < here

    explore(Opened(text, Runs(model, TextOptions())), does)


def test_an_error_of_a_run_is_a_sentence_and_the_app_goes_on() -> None:
    class Failing(_Runs):
        def capture(self, text: str, between: Between, so_far: SoFar) -> Capture:
            if "x" in text:
                raise InputError("there is an x", "leave it out")
            return super().capture(text, between, so_far)

    async def does(there: Visit) -> None:
        await there.press("e", "x")
        await there.pilot.pause(0.4)
        await there.settle()
        assert there.told == ["there is an x; leave it out."]
        assert there.subtitle("editor") == "there is an x; leave it out."  # until another is run
        assert there.app.scene
        assert there.app.scene.capture.text == "a"

    explore(Opened("a", Failing()), does)  # type: ignore[arg-type]


def test_without_colour_weights_are_numbers_and_shades() -> None:
    async def does(there: Visit) -> None:
        assert re.search(r"\.\d\d", there.seen("words")[1])
        assert any(re.search("[░▒▓█]", line) for line in there.seen("pattern"))

    explore(saved(), does, display=Display(80, color=False))
