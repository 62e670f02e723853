"""A notebook shows the page in a frame, which is as tall as the page and reaches nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from attnviz.commands.show.page import framed
from attnviz.draw.page import FRAME
from attnviz.records.capture import Capture
from attnviz.records.transforms import Scores
from tests.conftest import slow
from tests.factories import make_capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page

NASTY = ["<script>alert(1)</script>", '"', "&amp;", "\u2028", "\u202eabc", "</script>", "{{data}}"]
LONG = ["a", "fluffy", "blue", "creature", "roamed"] * 14


@pytest.fixture
def outside(browser: "Browser") -> Iterator["Page"]:
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 700})
    yield context.new_page()
    context.close()


def opened(outside: "Page", content: str) -> "FrameLocator":
    outside.set_content(content)
    frame = outside.frame_locator("iframe")
    frame.locator("body[data-compared]").wait_for(timeout=10_000)
    outside.wait_for_timeout(200)
    return frame


def heights(outside: "Page") -> tuple[float, float]:
    """Of the frame, and of what is in it."""
    content = outside.frames[1].evaluate("document.body.getBoundingClientRect().height")
    return float(outside.evaluate("document.querySelector('iframe').clientHeight")), content


def test_a_capture_shows_itself_in_a_frame_that_reaches_nothing() -> None:
    script, frame = framed(make_capture(NASTY)).split("</script>")
    assert script == FRAME.split("</script>")[0]
    assert ' sandbox="allow-scripts allow-downloads" srcdoc="' in frame
    assert frame.count("<") == 2  # all else is escaped


def test_a_frame_works_without_an_address_of_its_own(outside: "Page") -> None:
    frame = opened(outside, framed(make_capture("a fluffy blue creature")))
    frame.locator('[data-head="2"]').click()
    frame.locator('body[data-ready="L1H0"]').wait_for()


@pytest.mark.parametrize("text", [slow(LONG[:5], id="short"), pytest.param(LONG, id="long")])
def test_a_frame_is_as_tall_as_its_page_at_every_width(outside: "Page", text: list[str]) -> None:
    opened(outside, f"<p>before</p>{framed(make_capture(text))}<p>after</p>")
    for width in (1000, 500, 1400):
        outside.set_viewport_size({"width": width, "height": 700})
        outside.wait_for_timeout(300)
        frame, content = heights(outside)
        assert content <= frame < content + 1.01
    assert 600 < frame < 1700  # long lists have a height of their own


def test_two_frames_have_each_its_own_height(outside: "Page") -> None:
    short, long = make_capture(LONG[:3], heads_per_layer=(1,)), make_capture(LONG)
    opened(outside, framed(short))
    outside.set_content(framed(short) + framed(long))
    for number in (1, 2):
        outside.frames[number].wait_for_selector("body[data-compared]")
    outside.wait_for_timeout(300)
    tall = "[...document.querySelectorAll('iframe')].map(f => f.clientHeight)"
    contents = [
        frame.evaluate("Math.ceil(document.body.getBoundingClientRect().height)")
        for frame in outside.frames[1:]
    ]
    assert outside.evaluate(tall) == contents
    assert contents[0] < contents[1]


@pytest.mark.parametrize("height", [slow(-5), slow("x"), "1e9", slow(None)])
def test_a_frame_takes_no_height_but_a_sensible_one_of_its_own_page(
    outside: "Page", height: object
) -> None:
    opened(outside, framed(make_capture(LONG[:5])))
    before, _ = heights(outside)
    outside.evaluate("height => postMessage({ attnvizHeight: 100 }, '*')")  # from elsewhere
    outside.frames[1].evaluate("h => parent.postMessage({ attnvizHeight: h }, '*')", height)
    outside.wait_for_timeout(100)
    after, _ = heights(outside)
    assert after == (4000 if height == "1e9" else before)


def test_where_no_script_of_the_notebook_runs_the_page_can_be_scrolled(outside: "Page") -> None:
    frame = opened(outside, framed(make_capture(LONG)).removeprefix(FRAME))
    tall, content = heights(outside)
    assert tall == 768
    assert content > tall
    frame.locator("#error").scroll_into_view_if_needed()
    assert outside.frames[1].evaluate("scrollY") > 0


def test_a_capture_of_scores_says_that_it_has_no_page() -> None:
    capture: Capture = make_capture("a fluffy blue creature", transforms=(Scores(),))
    assert framed(capture).startswith("<p>This capture holds scores.")
