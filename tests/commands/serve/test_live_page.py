"""The live page in a browser: it follows what is typed, and shows what the functions give."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import attnviz
from tests.browsing import until
from tests.commands.serve.conftest import TOKEN, Here
from tests.reading import on_one_line

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TYPED = "Bark is very cute and he is a dog"


@pytest.fixture(scope="module")
def page(browser: "Browser", here: Here) -> Iterator["Page"]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    page.goto(f"http://127.0.0.1:{here.port}/?token={TOKEN}")
    until(page, "document.body.dataset.ready")
    yield page
    context.close()
    assert not wrong


def write(page: "Page", text: str) -> None:
    page.fill("#text", text)
    until(page, f"document.body.dataset.ready === {text!r} && headlines[0].text === {text!r}")
    until(page, "isWhole()")


def opened(page: "Page", model: str) -> None:
    page.goto(f"{page.url.split('?')[0].split('#')[0]}?model={model}")
    until(page, "document.body.dataset.ready")


def test_it_follows_what_is_typed_with_the_head_that_show_picks(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    claim = page.inner_text("#claim")
    assert on_one_line(str(attnviz.show(TYPED))).startswith(claim)
    assert page.inner_text("#command") == f"attnviz show --head L3H2 --query 6 '{TYPED}'"
    assert page.locator("#columns line").count() == 7  # of `he`, on what stands before it
    assert TOKEN not in page.url


def test_every_step_of_the_calculation_is_there(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    steps = str(attnviz.explain(TYPED, head="L3H2", query=6, digits=3))
    found = page.eval_on_selector_all(
        "#step-3 .scored:not(.masked)", "rows => rows.map(row => row.children[1].innerText)"
    )
    assert found
    assert all(score in steps for score in found)


def test_a_chosen_head_stays_and_a_better_one_is_offered(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    page.click('[data-layer="1"][data-head="2"]')
    write(page, "the king slept . the queen said she")
    assert page.inner_text("#claim").startswith("L1H2")
    assert "L3H2: she → queen" in page.inner_text("#fits")
    page.click("#fits button")
    assert page.inner_text("#claim").startswith("L3H2: she → queen")


def test_heads_off_show_the_prediction_of_a_run_without_them(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    page.click('[data-switch="L4H0"]')
    until(page, "before !== null")
    told = on_one_line(page.inner_text("#effect"))
    off = attnviz.ablate(TYPED, heads="L4H0", together=True).record
    for then, now in zip(off.before.candidates[:1], off.after.candidates[:1], strict=True):
        assert then.id == now.id
        assert f"{then.probability:.3f} → {now.probability:.3f}" in told
    page.click("#all-on")


def test_why_is_answered_in_one_click(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    page.click("#ask-why")
    until(page, "byId('why').textContent.length > 5")
    assert page.inner_text("#why").startswith("L3H2: “he” attends to “Bark”")


def test_a_picture_and_a_capture_are_downloaded(page: "Page") -> None:
    opened(page, "builtin")
    write(page, TYPED)
    for suffix, begins in {"png": b"\x89PNG", "svg": b"<?xml", "npz": b"PK"}.items():
        with page.expect_download() as waiting:
            page.click(f'[data-save="{suffix}"]')
        assert waiting.value.path().read_bytes().startswith(begins)


def test_a_second_model_stands_beside_the_first_on_the_same_text(page: "Page") -> None:
    opened(page, "builtin")
    write(page, "a blue creature roamed the forest")
    page.click("#beside")
    until(page, "byId('second').contentDocument.body?.dataset.ready")
    second = page.frames[1]
    assert second.input_value("#text") == "a blue creature roamed the forest"
    assert "une créature bleue" in on_one_line(second.inner_text("#written")).replace("asks: ", "")
    page.click("#beside")
    assert page.locator("#second").count() == 0


def test_an_image_is_read_and_lit_where_the_query_attends(page: "Page") -> None:
    opened(page, "shapes")
    page.set_input_files("#file-image", "docs/images/shapes-1.png")
    write(page, "what is left of the circle?")
    until(page, "run.boxes.length === 64")
    until(page, "isWhole() && !byId('seen').hidden")
    assert page.inner_text("#claim").startswith(
        "L3H0: 6 of 7 tokens from @r6c1 on attend most to it"
    )


def test_a_text_that_does_not_fit_is_told_as_the_terminal_tells_it(page: "Page") -> None:
    opened(page, "builtin")
    page.fill("#text", "word " * 300)
    until(page, "!byId('problem').hidden")
    with pytest.raises(attnviz.AttnvizError) as refused:
        attnviz.show("word " * 300)
    assert page.inner_text("#problem") == str(refused.value)
    write(page, TYPED)


def test_a_long_text_shows_miniatures_and_each_pattern_when_it_is_chosen(page: "Page") -> None:
    opened(page, "builtin")
    page.evaluate("() => { state.auto = false }")
    write(page, "the cat sat on the mat and " * 36 + "the dog")
    assert page.evaluate("run.layers[1].pattern[2] === undefined")
    page.click('[data-layer="1"][data-head="2"]')
    until(page, "byId('claim').textContent.startsWith('L1H2') && isWhole()")
    write(page, TYPED)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(page: "Page", width: int, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    opened(page, "builtin")
    write(page, TYPED)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 24, 28)" if theme == "dark" else "rgb(255, 255, 255)")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
