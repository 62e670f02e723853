"""Pages with images: words light them, and a place in one marks the words that attended to it."""

import base64
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnviz
from tests.browsing import Open, until
from tests.conftest import Run, slow
from tests.vision.encoders import encoder

pytestmark = pytest.mark.slow  # models of images in a browser; test_images.py has their numbers

TEXT, ANSWER = "what is red?", "a dog. it ran."
CAPTION = "document.querySelector('#images figcaption').textContent"


@pytest.fixture(scope="module")
def folder(llava_folder: Path) -> Path:
    return llava_folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / 'a"<b>.png'
    pixels = np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8)
    Image.fromarray(pixels).resize((2000, 1500)).save(path)
    return path


@pytest.fixture(scope="module")
def written(folder: Path, image: Path) -> str:
    return attnviz.capture(TEXT, str(folder), image=image).page()


@pytest.fixture(scope="module")
def answer(folder: Path, image: Path) -> attnviz.AttentionAnswer:
    return attnviz.generate(TEXT, str(folder), image=image, target=ANSWER)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def unpacked(content: str, top: float) -> np.ndarray[Any, Any]:
    levels = zlib.decompress(base64.b64decode(content), -zlib.MAX_WBITS)
    return (np.frombuffer(levels, np.uint8) / 255.0) ** 2 * top


def test_an_image_is_one_column_and_its_weights_lie_over_it(
    folder: Path, image: Path, written: str
) -> None:
    capture = attnviz.capture(TEXT, str(folder), image=image).record
    data, seen = data_of(written), data_of(written)["seen"]
    assert data["keys"]["labels"].count("image") == data["queries"]["labels"].count("image") == 1
    patches = [i for i, token in enumerate(capture.key_tokens) if token.patch]
    assert len(seen["patches"]) == len(patches) == 64
    texts = [i for i, token in enumerate(capture.query_tokens) if token.image is None]
    rows = [i for i, label in enumerate(data["queries"]["labels"]) if label != "image"]
    for number, head in enumerate(capture.heads):
        found = re.search(rf'id="heat-{number}">([^<]*)</script>', written)
        assert found
        heat = unpacked(found[1], seen["top"]).reshape(len(data["queries"]["labels"]), 64)
        expected = capture.weights(head)[np.ix_(texts, patches)]
        assert np.abs(heat[rows] - expected).max() < 0.01
    assert '<b>.png"' not in written


def test_an_image_is_reduced_and_stands_in_the_page(written: str) -> None:
    kind, content = data_of(written)["seen"]["images"][0]["uri"].split(";base64,")
    assert kind in ("data:image/png", "data:image/jpeg")
    assert max(Image.open(io.BytesIO(base64.b64decode(content))).size) == 1024
    assert written.count("base64,") == 1


@pytest.mark.parametrize(("width", "scheme"), [slow(1200, "light"), (390, "dark")])
def test_a_word_lights_the_image_and_a_place_marks_words(
    opened: Open, written: str, width: int, scheme: Any
) -> None:
    page = opened(written)
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.locator("#read span").last.hover()
    until(
        page, "document.querySelector('#images figcaption').textContent.includes('on this image')"
    )
    lit = "document.querySelector('#images canvas').toDataURL()"
    before = page.evaluate(lit)
    page.locator("#images canvas").hover(position={"x": 120, "y": 120})
    until(page, f"{CAPTION}.includes('this place ←')")
    assert page.evaluate(lit) != before
    assert page.locator("#read span[style*='background']").count() > 1
    page.mouse.move(0, 0)
    until(page, f"!{CAPTION}.includes('place')")
    page.locator("#images canvas").focus()
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#status').textContent.includes('this place ←')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_shows_raw_weights_and_hatches_what_was_not_seen(
    opened: Open, folder: Path, image: Path, written: str
) -> None:
    """In cells of one colour each; the left and the right eighth of the image were cropped away."""
    page = opened(written)
    page.locator("#read span").last.hover()
    until(page, f"{CAPTION}.includes('on this image (hatched: not seen by the model)')")
    drawn = page.evaluate("document.querySelector('#images canvas').toDataURL()")
    drawn = base64.b64decode(drawn.removeprefix("data:image/png;base64,"))
    pixels = np.asarray(Image.open(io.BytesIO(drawn)))
    width = pixels.shape[1]
    side, middle = pixels[:, : width // 8 - 6], pixels[:, width // 8 + 6 : -width // 8 - 6]
    assert len(np.unique(side.reshape(-1, 4), axis=0)) == 2
    assert (side[..., 0] == side[..., 2]).all()
    assert (middle[..., 2] == 0).all()
    assert len(np.unique(middle.reshape(-1, 4), axis=0)) <= 64
    shown = page.evaluate(
        """['img', 'canvas'].map((name) => {
            const box = document.querySelector('#images ' + name);
            return [box.getBoundingClientRect().height, getComputedStyle(box).imageRendering];
        })"""
    )
    assert shown[0][0] == shown[1][0]
    assert shown[1][1] == "pixelated"


def test_the_map_marks_the_column_of_the_image_and_units_may_be_words(
    opened: Open, written: str
) -> None:
    page = opened(written)
    page.select_option("#unit", "words")
    page.locator("#images canvas").hover(position={"x": 120, "y": 120})
    until(page, "document.querySelector('#here-title').textContent.includes('image')")
    until(page, "document.querySelector('#status').textContent.includes('this place ←')")


def test_each_statement_of_an_answer_has_a_picture_and_lights_the_source(
    opened: Open, answer: attnviz.AttentionAnswer
) -> None:
    page = opened(answer.page())
    until(page, "document.querySelectorAll('#statements canvas').length === 2")
    assert page.locator("#sources .stage").count() == 1
    lit = "document.querySelector('#sources canvas').toDataURL()"
    until(page, "document.querySelector('#sources canvas').width > 100")
    whole = page.evaluate(lit)
    page.locator("#statements button").first.hover()
    one = page.evaluate(lit)
    page.locator("#statements button").nth(1).click()
    page.mouse.move(0, 0)
    assert len({whole, one, page.evaluate(lit)}) == 3
    page.locator("#sources canvas").scroll_into_view_if_needed()
    page.locator("#sources canvas").hover(position={"x": 150, "y": 100})
    until(page, "document.querySelectorAll('#statements .lit').length > 0")
    page.locator("#words-of-queries span").last.hover()
    until(
        page, "document.querySelector('#images figcaption').textContent.includes('on this image')"
    )


def test_pictures_of_words_are_those_of_their_tokens(
    run: Run, folder: Path, image: Path, answer: attnviz.AttentionAnswer, tmp_path: Path
) -> None:
    page, file = answer.page("word"), tmp_path / "answer.html"
    rests = data_of(page)["rests"]
    rows = answer.shares("word")
    words = len({row["row"] for row in rows})
    heat = unpacked(rests["heat"], rests["heatTop"]).reshape(words + 1, 64)
    shares = [row["share"] for row in rows if row["segment"] == "image"]
    assert heat[:-1].sum(axis=1) == pytest.approx(shares, abs=0.02)
    assert "A statement is a word" in page
    asked = (TEXT, "-m", str(folder), "--image", str(image), "--target", ANSWER)
    run("generate", *asked, "--rows", "word", "-o", str(file))
    assert data_of(file.read_text("utf-8"))["rests"]["heat"] == rests["heat"]
    refused = run("generate", *asked, "--rows", "token", "-o", str(file))
    assert "does nothing for html" in refused.err


def test_a_page_without_images_has_none_of_it(run: Run, tmp_path: Path) -> None:
    run("show", TEXT, "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text("utf-8")
    assert 'id="images"' not in page
    assert "showImages" not in page


def test_a_patch_of_an_image_alone_is_a_query_and_a_key(
    opened: Open, image: Path, tmp_path: Path
) -> None:
    capture = attnviz.capture(str(image), str(encoder("vit").make(tmp_path / "vit")), heads="L1H2")
    weights, page = capture.pattern(1, 2), opened(capture.page())
    pinned = "location.hash.match(/pin=(\\w+)/)?.[1]"
    until(page, f"{CAPTION} === '[class] → {weights[0, 1:].sum():.2f} on this image'")
    canvas = page.locator("#images canvas")
    size = canvas.bounding_box()
    assert size
    canvas.click(position={"x": 0.4 * size["width"], "y": 0.6 * size["height"]})
    page.mouse.move(0, 0)
    until(page, f"{pinned} === 'q10'")  # row 2 and column 1 of 4 × 4, behind [class]
    assert page.evaluate(CAPTION) == f"@r2c1 → {weights[10, 1:].sum():.2f} on this image"
    assert page.evaluate(BRIGHT) == int(weights[10, 1:].argmax())
    page.locator("input[value=from]").check()
    until(page, f"{pinned} === 'k10' && {CAPTION}.startsWith('@r2c1 ← ')")
    assert page.evaluate(BRIGHT) == int(weights[1:, 10].argmax())


def test_without_a_class_token_a_page_opens_with_the_mean_over_the_patches(
    image: Path, tmp_path: Path
) -> None:
    model = str(encoder("siglip_vision_model").make(tmp_path / "siglip"))
    pinned = data_of(attnviz.capture(str(image), model).page())["initial"]["pin"]
    assert pinned == {"side": "q", "index": 0, "after": 16}


BRIGHT = """(() => {
    const [copy, shown] = [new OffscreenCanvas(4, 4), document.querySelector('#images canvas')];
    const pen = copy.getContext('2d');
    pen.imageSmoothingEnabled = false; // each pixel is that in the middle of a patch
    pen.drawImage(shown, 0, 0, 4, 4);
    const red = pen.getImageData(0, 0, 4, 4).data.filter((_, i) => i % 4 === 0);
    return red.indexOf(Math.max(...red));
})()"""
"""The number of the brightest of 4 × 4 patches."""
