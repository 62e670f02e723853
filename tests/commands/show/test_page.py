"""The page: one file that holds all of it, and in a real browser does what it is for."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.commands.show.page import Start, page_of
from attnviz.draw import page as document
from attnviz.draw.labels import distinct_labels
from attnviz.errors import ExitStatus
from attnviz.records.apply import exhibit_of
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Choice, Exhibit, HeadMap
from attnviz.records.heads import Head
from attnviz.records.transforms import Transforms
from tests.browsing import Open, until
from tests.builtin import HEADS, NAMED
from tests.conftest import Run
from tests.factories import make_capture, make_tokens
from tests.reading import rows_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXT = "a fluffy blue creature roamed the verdant forest"
NASTY = ["<script>alert(1)</script>", '"', "&amp;", "\u2028", "\u202eabc", "</script>", "{{data}}"]


def page(capture: Capture) -> str:
    maps = tuple(HeadMap(*head, weights=capture.weights(head)) for head in capture.heads)
    everything = tuple(range(len(capture.query_tokens)))
    return "".join(page_of(Exhibit(capture, maps, everything, everything)))


def facts(written: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', written, re.DOTALL
    )
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


def levels(written: str, head: int) -> np.ndarray:
    """A head's weights as shares of the highest level."""
    found = re.search(rf'id="head-{head}">([^<]*)</script>', written)
    assert found
    content = zlib.decompress(base64.b64decode(found[1]), -zlib.MAX_WBITS)
    bytes_ = np.frombuffer(content, np.uint8).astype(int)
    if facts(written)["bytes"] == 1:
        return bytes_ / 255
    high, low = bytes_.reshape(2, -1)
    return (256 * high + low) / 65535


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        ({"heads": "L3H2"}, "L3H2"),
        ({"heads": "all"}, "all heads"),
        ({"heads": "L3H2,L1H0"}, "L1H0, L3H2"),
        ({"layers": "0-2", "heads": "all"}, "12 of 20 heads"),
        ({"heads": "all", "reduce": "mean"}, "mean"),
        ({"heads": "all", "reduce": "mean:heads"}, "L0 mean to L4 mean"),
    ],
)
def test_a_page_is_headed_by_what_it_holds(
    tmp_path: Path, options: dict[str, Any], heading: str
) -> None:
    attnviz.show(TEXT, **options).save(tmp_path / "a.html")
    written = (tmp_path / "a.html").read_text()
    assert f"<h2>{heading}</h2>" in written
    assert f'aria-label="{heading}: layers down, heads across"' in written


def test_a_small_page_has_two_bytes_for_a_weight_and_a_large_one_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capture = make_capture(TEXT)
    weights = sum(capture.weights(head)[np.tril_indices(8)].size for head in capture.heads)
    for most, size, error in ((weights, 2, 2e-5), (weights - 1, 1, 5e-3)):
        monkeypatch.setattr(document, "FINE", most)
        told = facts(page(capture))
        assert told["bytes"] == size
        assert told["error"] < error


@pytest.mark.parametrize("size", [1, 2])
def test_the_page_holds_every_weight_to_within_the_error_that_it_states(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "FINE", size - 1 and 1_000_000)
    capture = make_capture(TEXT)
    written = page(capture)
    told = facts(written)
    worst = 0.0
    for number, head in enumerate(capture.heads):
        weights = capture.weights(head)[np.tril_indices(8)]
        shown = levels(written, number) ** 2 * told["top"]
        assert len(shown) == 8 * 9 // 2  # the lower triangle alone
        worst = max(worst, float(np.abs(shown - weights).max()))
    assert told["error"] == pytest.approx(worst, rel=1e-3)
    assert 0 < worst < (0.005 if size == 1 else 2e-5)


@pytest.mark.parametrize("options", [[], ["--chars"]], ids=["tokens", "chars"])
def test_words_on_the_page_are_called_as_words_are(
    run: Run, tmp_path: Path, options: list[str]
) -> None:
    text, out = "他 likes 楚国 and likes unbelievably 楚", tmp_path / "p.html"
    assert run("show", text, *options, "-o", str(out)).status is ExitStatus.OK
    words = json.loads(run("show", text, "--words", "--head", "L0H0", "-f", "json").out)
    labels = distinct_labels(make_tokens([token["text"] for token in words["tokens"][1:]])[1])
    told = facts(out.read_text(encoding="utf-8"))
    assert told["keys"]["units"]["words"]["labels"] == ["BOS", *labels]


def test_where_a_query_sees_everything_the_page_has_everything() -> None:
    capture = make_capture(TEXT, causal=False)
    written = page(capture)
    assert len(levels(written, 0)) == 64
    assert facts(written)["causal"] is False


def test_tokens_are_data_whatever_they_hold() -> None:
    written = page(make_capture(NASTY))
    told = facts(written)
    assert "alert(1)" in told["keys"]["text"]
    body = written.split('id="data">')[1]
    data = body.split("</script>")[0]
    for character in "<>&\u2028\u202e":
        assert character not in data
    assert written.count("<script") == 4 + 3  # four heads; facts, thumbnails, behaviour
    title = re.search("<title>(.*?)</title>", written)
    assert title
    assert title[1].startswith("&lt;script&gt;alert(1)&lt;/script&gt;")
    assert "{{data}}" in title[1]  # a token, and no place to fill


def test_nothing_may_be_fetched_from_anywhere() -> None:
    written = page(make_capture(TEXT))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', written)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", written)


def test_show_writes_the_page_of_all_heads(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    assert run("show", TEXT, "-o", str(out)).status is ExitStatus.OK
    told = facts(out.read_text(encoding="utf-8"))
    assert len(told["heads"]) == len(HEADS)
    assert told["heads"][told["initial"]["heads"][0]]["label"] == NAMED["adjectives"]
    assert told["title"] == TEXT
    assert told["heads"][6]["scores"].startswith("entropy")
    some = run("show", TEXT, "--layer", "2", "-f", "html").out
    assert len(facts(some)["heads"]) == 4


@pytest.mark.parametrize(
    "option", [["--key", "a"], ["--top", "2"], ["--scores"], ["--cmap", "magma"]]
)
def test_a_page_refuses_what_it_does_by_itself(run: Run, option: list[str]) -> None:
    ended = run("show", TEXT, "-f", "html", *option)
    assert ended.status is ExitStatus.USAGE
    assert "does nothing for html" in ended.err


# ---- in a real browser ----


@pytest.fixture(scope="module")
def capture() -> Capture:
    return make_capture(TEXT)


@pytest.mark.parametrize("size", [1, 2])
def test_the_browser_reads_weights_of_one_byte_and_of_two(
    opened: Open, capture: Capture, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "FINE", size - 1 and 1_000_000)
    shown = opened(page(capture), "#h=L1H0")
    found = shown.evaluate("Array.from(patterns[0].values, v => Number.isNaN(v) ? 0 : v)")
    np.testing.assert_allclose(
        np.array(found).reshape(8, 8), capture.weights(Head(1, 0)), atol=5e-3 if size == 1 else 2e-5
    )


def test_the_page_says_what_the_terminal_says(opened: Open, run: Run, tmp_path: Path) -> None:
    """A byte for each weight would make 0.70 and 0.31 of 0.69 and 0.30."""
    out = tmp_path / "p.html"
    run("show", TEXT, "-o", str(out))
    rows = run("show", TEXT, "--head", "L2H3", "--query", "creature", "-f", "jsonl").out
    strongest = rows_in(rows)[:3]  # so many the page names
    expected = {row["key_token"]: f"{row['weight']:.2f}" for row in strongest}
    assert len(expected) == 3
    shown = opened(out.read_text(encoding="utf-8"), "#h=L2H3&pin=q4")
    said = shown.inner_text("#status")
    for key, weight in expected.items():
        assert f"{key} {weight}" in said


def test_the_pointer_is_told_the_weight_under_it(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L1H0")
    cell, left = shown.evaluate("[view.cell, view.left]")
    shown.hover("#map", position={"x": left + 2.5 * cell, "y": 5.5 * cell})
    weight = capture.weights(Head(1, 0))[5, 2]
    said = shown.inner_text("#status")
    assert said.startswith("the → blue ")
    assert float(said.split()[-1]) == pytest.approx(float(weight), abs=0.005)
    shown.hover("#map", position={"x": left + 6.5 * cell, "y": 2.5 * cell})
    assert "masked" in shown.inner_text("#status")


def test_clicks_and_keys_choose_heads(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.click('[data-head="3"]')
    shown.wait_for_selector('body[data-ready="L1H1"]')
    shown.keyboard.press("ArrowLeft")
    shown.wait_for_selector('body[data-ready="L1H0"]')
    shown.keyboard.press("ArrowUp")
    shown.wait_for_selector('body[data-ready="L0H0"]')
    assert shown.get_attribute('[data-head="0"]', "aria-selected") == "true"
    shown.click('[data-head="3"]', modifiers=["Shift"])
    shown.wait_for_selector('body[data-ready="L0H0,L1H1"]')
    assert shown.url.endswith("#h=L0H0,L1H1")
    assert shown.inner_text("#legend").split() == ["L0H0", "L1H1", "heatmap:", "L0H0"]


def test_keys_move_over_the_heatmap(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.focus("#map")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        shown.keyboard.press(key)
    assert shown.inner_text("#status").startswith("blue → fluffy ")


def test_a_token_pinned_shows_its_links_alone_and_the_fragment_keeps_it(
    opened: Open, capture: Capture
) -> None:
    shown = opened(page(capture), "#h=L0H1")
    shown.click('#columns text[data-side="q"][data-index="4"]')
    rows = set(
        shown.eval_on_selector_all("#columns line", "all => all.map(l => l.getAttribute('y1'))")
    )
    assert rows == {"94"}
    assert "pin=q4" in shown.url
    again = opened(page(capture), "#h=L0H1&pin=q4&t=0.2&sink=1")
    assert again.text_content("#columns text.on title") == capture.query_tokens[4].label
    assert again.input_value("#threshold") == "0.2"
    assert again.is_checked("#sink")


def test_rests_can_be_dropped_and_rows_that_keep_something_sum_to_1_again(opened: Open) -> None:
    pattern = np.eye(8, dtype=np.float32)
    pattern[3:] = [0.05, 0.05, 0.6, 0.3, 0, 0, 0, 0]  # it rests on its third key
    pattern[6:] = [0.05, 0.05, 0.85, 0.05, 0, 0, 0, 0]
    capture = make_capture(TEXT, patterns={Head(1, 1): pattern})
    dropped = exhibit_of(capture, Choice(capture.heads), Transforms(drop_sink=True))
    (exact,) = (m for m in dropped.maps if m.label == "L1H1" and isinstance(m, HeadMap))
    assert exact.dropped == (0, 2)
    shown = opened(page(capture), "#h=L1H1")
    shown.check("#sink")
    values = shown.evaluate("Array.from(patterns[0].values, value => value || 0)")
    np.testing.assert_allclose(values, exact.weights.ravel(), atol=1e-3)
    assert (exact.weights.sum(axis=1) > 0.999).any()
    assert shown.evaluate("Number.isNaN(weight(patterns[0], 4, 0))")


def test_words_are_sums_over_their_tokens(opened: Open, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "w.html"
    run("show", "unbelievably robbed Anna", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"), "#h=L1H2&words=1")
    words = json.loads(
        run("show", "unbelievably robbed Anna", "--words", "--head", "L1H2", "-f", "json").out
    )
    found = shown.evaluate(
        "Array.from(patterns[0].values, value => Number.isNaN(value) ? 0 : value)"
    )
    expected = np.nan_to_num(np.array(words["patterns"][0], dtype=float))
    np.testing.assert_allclose(np.array(found).reshape(expected.shape), expected, atol=0.01)


def test_hovering_a_word_colours_what_it_attends_to(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    colours = "all => all.map(w => Number((w.style.background.match(/([0-9.]+)\\)/) || [0, 0])[1]))"
    shown.hover('#text span[data-index="5"]')
    found = shown.eval_on_selector_all("#words-of-keys span", colours)
    expected = capture.weights(Head(0, 0))[5] / facts(page(capture))["top"]
    np.testing.assert_allclose(found[:6], expected[:6], atol=0.01)
    assert found[6:] == [0, 0]
    shown.check('input[value="from"]')
    shown.hover('#text span[data-index="1"]')
    back = shown.eval_on_selector_all("#words-of-keys span", colours)
    column = capture.weights(Head(0, 0))[:, 1] / facts(page(capture))["top"]
    np.testing.assert_allclose(back[1:], column[1:], atol=0.01)


def test_nasty_tokens_neither_run_nor_break_the_page(opened: Open) -> None:
    shown = opened(page(make_capture(NASTY)), "#h=L1H1")
    assert "alert(1)" in shown.inner_text("#words-of-keys")
    assert shown.eval_on_selector_all("#columns text", "all => all.length") == 2 * len(NASTY)


def test_the_text_is_the_text_whatever_it_is_written_in(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    text = 'he said "q" 😀 中文 👩‍👩‍👧 and ab\u202ecd cat'
    out = tmp_path / "w.html"
    run("show", text, "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"), "#h=L1H2")
    said = shown.text_content("#words-of-keys") or ""
    assert said.removeprefix("BOS ") == text.replace("\u202e", "\\u202e")
    assert "😀" in shown.eval_on_selector_all("#text span", "all => all.map(w => w.textContent)")


def test_a_tap_stays(browser: "Browser", capture: Capture, tmp_path: Path) -> None:
    file = tmp_path / "touch.html"
    file.write_text(page(capture), encoding="utf-8")
    context = browser.new_context(has_touch=True, viewport={"width": 400, "height": 800})
    shown = context.new_page()
    shown.goto(f"file://{file}#h=L0H0")
    shown.wait_for_selector("body[data-ready]")
    shown.tap('#text span[data-index="5"]')
    assert shown.text_content("#columns text.on title") == capture.query_tokens[5].label
    assert shown.locator("#text span.on").count() == 1
    shown.check("#over")
    shown.tap('[data-head="3"]')
    shown.wait_for_selector('body[data-ready="L0H0,L1H1"]')
    context.close()


def test_what_stands_in_the_fragment_is_not_believed(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0,L0H0&pin=q999&t=7")
    assert shown.get_attribute("body", "data-ready") == "L0H0"
    assert shown.evaluate("state.pin") is None
    assert shown.input_value("#threshold") == "1"


def test_the_dark_comes_while_the_page_is_open(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture))
    light = shown.evaluate("map.toDataURL()")
    shown.emulate_media(color_scheme="dark")
    for _ in range(100):
        if shown.evaluate("map.toDataURL()") != light:
            return
        shown.wait_for_timeout(20)
    raise AssertionError("the heatmap is drawn in the colours of before")


def test_a_page_of_one_map_names_it(opened: Open, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    run("show", TEXT, "--reduce", "mean", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"))
    assert shown.inner_text("#grid .name") == "mean"


def test_two_texts_are_two_lines(opened: Open, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "t.html"
    run("show", "a blue creature", "-m", "translator", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"))
    assert shown.is_visible("#words-of-queries")
    assert not shown.is_visible("#directions")
    shown.hover("#words-of-queries span >> nth=0")
    assert "→" in shown.inner_text("#status")


def test_an_answer_lights_its_sources_in_the_segments_of_its_prompt(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out, prompt = tmp_path / "a.html", "Tom was stabbed by Leo . Anna sat . the murderer was"
    run("generate", prompt, "--max-new-tokens", "2", "--head", "L4H0", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"))
    segments = shown.eval_on_selector_all(
        "#words-of-keys .segment", "all => all.map(e => e.innerText)"
    )
    assert [text.split() for text in segments] == [
        ["1", "Tom", "was", "stabbed", "by", "Leo", "."],
        ["2", "Anna", "sat", "."],
        ["3", "the", "murderer", "was"],
    ]
    assert shown.inner_text("#words-of-queries").split()[:2] == ["answer", "Leo"]
    assert shown.inner_text("#words-of-keys").split()[-1] == "Leo"  # the last new token is no key
    shown.hover("#words-of-queries span >> nth=0")
    assert shown.inner_text("#status").startswith("Leo → Leo#1 0.9")
    shade = "e => e.style.background"
    assert shown.eval_on_selector(".segment span >> text=Leo", shade)
    shown.hover(".segment span >> text=Leo")
    assert shown.eval_on_selector("#words-of-queries span", shade)


def test_a_sentence_of_an_answer_lights_its_sources_and_a_segment_what_used_it(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out, prompt = tmp_path / "a.html", "Tom was stabbed by Leo . Anna sat . the murderer was"
    answer = ("--target", "Leo . Anna sat .", "--head", "L4H0")
    run("generate", prompt, *answer, "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"))
    names = shown.eval_on_selector_all(
        "#words-of-queries small", "all => all.map(e => e.innerText)"
    )
    assert names == ["answer 1", "answer 2"]
    shades = "all => all.filter(e => e.style.background).map(e => e.textContent.trim())"
    lit = lambda side: shown.eval_on_selector_all(f"#words-of-{side} span", shades)  # noqa: E731
    shown.hover("#words-of-queries small >> nth=0")
    assert shown.inner_text("#status").startswith("answer 1 → Leo#1 0.")
    assert "Leo" in lit("keys")
    assert not lit("queries")
    shown.hover(".segment small >> text=1")
    assert "Leo" in lit("queries")
    shown.click("#words-of-queries small >> nth=1")
    assert shown.evaluate("location.hash").endswith("pin=q2-5")
    assert shown.eval_on_selector_all("#columns .on", "all => all.length") == 3


def test_the_page_fits_a_narrow_screen_and_changes_its_light(
    opened: Open, capture: Capture
) -> None:
    shown = opened(page(capture))
    shown.set_viewport_size({"width": 400, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 400
    before = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.click("#theme")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_what_is_shown_can_be_taken_along(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H1&t=0.1")
    lines = shown.evaluate("csv()").splitlines()
    assert lines[0] == "head,query,query_token,key,key_token,weight"
    weights = capture.weights(Head(0, 1))
    assert len(lines) - 1 == pytest.approx(int((weights >= 0.1).sum()), abs=2)
    with shown.expect_download() as saved:
        shown.click("#svg")
    drawn = Path(saved.value.path()).read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    with shown.expect_download() as saved:
        shown.click("#png")
    assert Path(saved.value.path()).read_bytes()[:4] == b"\x89PNG"


def test_the_text_is_read_by_keys_alone(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.focus("#text span[tabindex='0']")
    assert shown.locator("#text span[tabindex='0']").count() == 1
    for _ in range(5):
        shown.keyboard.press("ArrowRight")
    weights = capture.weights(Head(0, 0))[5, :6]
    key = int(np.argmax(weights))
    said = shown.inner_text("#status")
    assert said.startswith(f"the → {capture.key_tokens[key].label} {weights[key]:.2f}")
    shown.keyboard.press("Enter")
    assert shown.text_content("#columns text.on title") == "the"
    shown.keyboard.press("Escape")
    assert shown.locator("#columns text.on").count() == 0
    shown.keyboard.press("ArrowLeft")
    assert shown.inner_text("#status").startswith("roamed → ")


def test_the_columns_are_read_by_keys_alone(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.focus("#columns")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        shown.keyboard.press(key)
    assert shown.text_content("#columns text.on title") == "blue"
    queries = "all => [...new Set(all.map(l => l.getAttribute('y1')))]"
    assert shown.eval_on_selector_all("#columns line", queries) == ["54"]
    shown.keyboard.press("ArrowRight")
    assert shown.get_attribute("#columns text.on", "data-side") == "k"
    shown.keyboard.press("Enter")
    assert "pin=k2" in shown.url


def test_names_stay_while_heads_change_and_follow_words(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "w.html"
    run("show", "unbelievably robbed Anna", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"), "#h=L1H2")
    pieces = shown.locator("#columns text").count()
    shown.click('[data-head="3"]')
    shown.wait_for_selector('body[data-ready="L0H3"]')
    assert shown.locator("#columns text").count() == pieces
    shown.select_option("#unit", "words")
    until(shown, "columns.unit === 'words'")
    labels = shown.eval_on_selector_all("#columns title", "all => all.map(t => t.textContent)")
    assert labels == ["BOS", "unbelievably", "robbed", "Anna"] * 2


def test_two_fingers_zoom_the_heatmap(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    before = shown.evaluate("view.cell")
    shown.evaluate(
        """() => {
          const put = (type, id, x) => {
            const options = { pointerId: id, pointerType: "touch", bubbles: true };
            const event = new PointerEvent(type, options);
            Object.defineProperties(event, { offsetX: { value: x }, offsetY: { value: 50 } });
            map.dispatchEvent(event);
          };
          put("pointerdown", 1, 150); put("pointerdown", 2, 200); put("pointermove", 2, 250);
          put("pointerup", 1, 150); put("pointerup", 2, 250);
        }"""
    )
    assert shown.evaluate("view.cell") == pytest.approx(min(60, 2 * before))


def test_a_word_that_is_clicked_is_a_query_unless_it_is_asked_who_looks_at_it(
    opened: Open, capture: Capture
) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.click('#text span[data-index="3"]')
    assert shown.url.endswith("pin=q3")
    rows = "all => [...new Set(all.map(l => l.getAttribute('y1')))]"
    assert shown.eval_on_selector_all("#columns line", rows) == ["74"]
    shown.check('input[value="from"]')
    assert "pin=k3" in shown.url
    assert shown.get_attribute("#columns text.on", "data-side") == "k"
    shown.click('#columns text[data-side="q"][data-index="2"]')
    assert shown.is_checked('input[value="to"]')
    assert shown.inner_text("#status").startswith("blue → ")


def test_a_page_opens_as_it_was_asked_to_and_a_link_says_all_of_it(
    opened: Open, capture: Capture
) -> None:
    maps = tuple(HeadMap(*head, weights=capture.weights(head)) for head in capture.heads)
    everything = tuple(range(len(capture.query_tokens)))
    start = Start(Head(1, 1), sink=True, query=4)
    written = "".join(page_of(Exhibit(capture, maps, everything, everything), start))
    shown = opened(written)
    assert shown.get_attribute("body", "data-ready") == "L1H1"
    assert shown.is_checked("#sink")
    assert shown.text_content("#columns text.on title") == capture.query_tokens[4].label
    again = opened(written, "#h=L0H0")
    assert not again.is_checked("#sink")
    assert again.locator("#columns text.on").count() == 0


def test_what_was_aimed_at_is_forgotten_where_words_come(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "w.html"
    run("show", "unbelievably robbed Anna", "-o", str(out))
    shown = opened(out.read_text(encoding="utf-8"), "#h=L1H2")
    shown.focus("#columns")
    for _ in range(6):
        shown.keyboard.press("ArrowDown")
    shown.select_option("#unit", "words")
    until(shown, "columns.unit === 'words'")
    shown.focus("#columns")
    shown.keyboard.press("Enter")
    assert shown.evaluate("state.pin") is None
