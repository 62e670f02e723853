"""The lesson page: what it shows is what explain tells, and all of its views show the same key."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.draw.glossary import definitions
from attnviz.draw.labels import distinct_labels
from attnviz.records.trace import HeadTrace
from tests.architectures import folders_of
from tests.browsing import Open, until
from tests.conftest import slow
from tests.reading import on_one_line

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "a fluffy blue creature roamed the verdant forest"
TYPED = "Bark is very cute and he is a dog"
COLOUR = "a fluffy blue creature roamed the forest . the creature was"
CREATURE, FLUFFY, BLUE = 4, 2, 3
SHOWN = 5.01e-4
"""Half of the last of three decimals."""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lesson") / "lesson.html"
    attnviz.explain(TEXT).save(str(file))
    return file


def trace_of(text: str, head: str, query: int | str) -> HeadTrace:
    found: HeadTrace = attnviz.explain(text, head=head, query=query).record.trace
    return found


def write(page: "Page", text: str) -> None:
    page.fill("#text", text)
    until(page, f"document.body.dataset.ready === {text!r}")


def texts(page: "Page", selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def numbers(page: "Page", selector: str) -> np.ndarray[Any, Any]:
    """The numbers of rows of scores, −∞ as such: (rows, columns)."""
    rows = page.eval_on_selector_all(
        selector, "rows => rows.map(row => [...row.querySelectorAll('span')].map(s => s.innerText))"
    )
    return np.array([[float(cell.replace("−∞", "-inf")) for cell in row] for row in rows])


def headings(text: str, head: str) -> list[str]:
    """The headings of the steps that explain writes."""
    told = str(attnviz.explain(text, head=head))
    return re.findall(r"^\d  (.+)$", told, flags=re.MULTILINE)


def test_the_page_opens_with_the_claim_and_the_row_of_explain(opened: Open, lesson: Path) -> None:
    page, found = opened(lesson), attnviz.explain(TEXT).record
    labels = list(distinct_labels(found.trace.capture.query_tokens))
    assert page.inner_text("#claim") in str(attnviz.explain(TEXT, only="1")).replace("\n", " ")
    assert texts(page, "#written button") == labels
    assert page.inner_text("#written .on") == labels[found.trace.query]
    assert re.match(r"In head L3H2, “creature” attends most to “fluffy” \(\d\d%\)", told(page))
    assert page.input_value("#text") == TEXT
    assert page.inner_text("#steps-title") == str(attnviz.explain(TEXT)).split("\n")[0]


def share(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def told(page: "Page") -> str:
    return page.inner_text("#told")


@pytest.mark.parametrize(("text", "head", "query"), [slow(TEXT, "L3H2", 4), (TYPED, "L0H1", 6)])
def test_the_steps_have_the_headings_and_the_numbers_of_explain(
    opened: Open, lesson: Path, text: str, head: str, query: int
) -> None:
    page, trace = opened(lesson, f"#h={head}&q={query}"), trace_of(text, head, str(query))
    write(page, text)
    page.click(f'#written [data-index="{query}"]')
    assert texts(page, ".step h3 span") == headings(text, head)
    shown = numbers(page, "#step-3 .scored")
    row = [of[query] for of in (trace.products, trace.scaled, trace.scores, trace.pattern)]
    assert len(shown) == len(trace.capture.key_tokens)
    np.testing.assert_allclose(shown, np.array(row, dtype=float).T, atol=2 * SHOWN)
    norms = [float(number) for number in re.findall(r"L\dH\d ([\d.]+)", norms_of(page))]
    np.testing.assert_allclose(norms, np.linalg.norm(trace.head_outputs, axis=1), atol=2 * SHOWN)


def norms_of(page: "Page") -> str:
    return texts(page, "#step-6 .hint")[-1]


def test_a_key_that_is_pointed_at_in_one_view_is_marked_in_all(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    trace = trace_of(TEXT, "L3H2", "creature")
    places = [f"#step-{step} [data-key='{BLUE}']" for step in (2, 3, 4, 5)]
    for place in (*places, f"#row [data-key='{BLUE}']"):
        page.hover("#step-7 h3")
        until(page, f"spot.key === {FLUFFY}")
        page.hover(f"{place} >> nth=0")
        until(page, f"spot.key === {BLUE}")
        marked = page.eval_on_selector_all(
            "main .on[data-key]", "all => all.map(r => r.dataset.key)"
        )
        assert marked == 6 * [str(BLUE)]
        assert page.inner_text("#written .other") == "blue"
        assert page.inner_text("#status").startswith("creature → blue ")
        assert page.inner_text("#product h4") == "“creature” asks “blue”"
    products = trace.q[CREATURE] * trace.k[BLUE]
    chain = re.findall(r"-?\d+\.\d+", page.inner_text("#product .chain"))
    row = (trace.products, trace.scaled, trace.pattern)
    np.testing.assert_allclose(
        [float(number) for number in chain], [of[CREATURE, BLUE] for of in row], atol=2 * SHOWN
    )
    said = re.findall(r"\((-?\d+\.\d+)\)", page.inner_text("#product"))
    assert float(said[0]) == pytest.approx(products[products > 0].sum(), abs=2 * SHOWN)
    assert float(said[1]) == pytest.approx(products[products < 0].sum(), abs=2 * SHOWN)


def test_the_heatmap_is_in_step_with_rows_and_columns(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    cell, left = page.evaluate("[view.cell, view.left]")
    page.hover("#map", position={"x": left + 7.5 * cell, "y": 8.5 * cell})
    assert page.inner_text("#written .on") == "forest"
    assert page.inner_text("#product h4") == "“forest” asks “verdant”"
    page.click("#map", position={"x": left + 7.5 * cell, "y": 8.5 * cell})
    page.hover("h1")
    assert page.inner_text("#steps-title").endswith("what “forest” takes from the tokens")
    assert page.evaluate("location.hash") == "#h=L3H2&by=page&q=8&k=7"


def test_keys_alone_reach_and_work_every_part(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    reached = []
    page.focus("#text")
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "(a => a.id || Object.values(a.dataset).at(-1) || a.className)"
                "(document.activeElement)"
            )
        )
    for part in ("map", "numbers", "digits", "temperature", "write-next", "draw-next", "L3H2"):
        assert part in reached
    assert {"query", "key", "lanes", str(CREATURE), str(FLUFFY)} <= set(reached)
    page.focus("#written .on")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#steps-title").endswith("what “blue” takes from the tokens")
    page.focus("#step-3 .scored.on")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.key") == str(page.evaluate("state.key"))
    page.focus("#product .lanes")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#factor").startswith("number 0: ")
    page.focus('#grid [data-layer="3"][data-head="2"]')
    page.keyboard.press("ArrowDown")
    assert page.evaluate("headName()") == "L4H2"
    page.keyboard.press("Delete")
    until(page, "before !== null")
    assert "L4H2" in page.inner_text("#off")


def test_a_head_that_is_switched_off_moves_the_bars_as_ablate_tells(
    opened: Open, lesson: Path
) -> None:
    page = opened(lesson)
    write(page, COLOUR)
    page.click('[data-switch="L2H0"]')
    until(page, "before !== null")
    report = attnviz.ablate(COLOUR, answer="fluffy", heads="L2H0").record
    labels = page.eval_on_selector_all("#likeliest button", "all => all.map((b) => b.ariaLabel)")
    (bar,) = (label for label in labels if label.startswith("fluffy"))
    was, change = re.findall(r"was ([\d.]+), ([−+][\d.]+) nats", bar)[0]
    (effect,) = report.effects
    assert float(change.replace("−", "-")) == pytest.approx(effect.change.mean, abs=0.0051)
    assert float(was) == pytest.approx(np.exp(report.baseline), abs=SHOWN)
    page.click("#all-on")
    until(page, "before === null")
    assert page.locator("#likeliest.compared").count() == 0


@pytest.mark.parametrize("width", [390, slow(1400)])
def test_a_switch_stays_where_it_is_and_its_effect_is_beside_it(
    opened: Open, lesson: Path, width: int
) -> None:
    page = opened(lesson)
    page.set_viewport_size({"width": width, "height": 850})
    write(page, COLOUR)
    first = page.inner_text("#effect")
    for switch in ("L3H2", "L4H0", "L4H3"):
        page.locator(f'[data-switch="{switch}"]').scroll_into_view_if_needed()
        places = [page.locator(f'[data-switch="{switch}"]').bounding_box()]
        page.click(f'[data-switch="{switch}"]')
        until(page, f"document.querySelector('#off').textContent.includes('{switch}') && before")
        until(page, "document.querySelector('#effect').textContent.includes('→')")
        places.append(page.locator(f'[data-switch="{switch}"]').bounding_box())
        assert places[0] == places[1]
        beside = page.locator("#effect").bounding_box()
        assert beside
        assert 0 < beside["y"] < 850 - beside["height"]
    values = page.evaluate(
        "[...document.querySelectorAll('#likeliest b:not(.word)')].map(b => +b.innerText)"
    )
    assert values == sorted(values, reverse=True)
    page.click("#all-on")
    until(page, "before === null")
    assert page.inner_text("#effect") == first
    best = attnviz.predict(COLOUR, top=1).rows[-1]
    assert best["token"] in first
    assert f"{best['probability']:.3f}" in first


@pytest.mark.slow
def test_temperature_evens_the_odds_and_a_bar_writes_its_token(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    write(page, COLOUR)
    odds = np.array(page.evaluate("Array.from(run.next.probabilities)"))
    page.evaluate(
        "t => { t.value = 2; t.dispatchEvent(new Event('input')); }",
        page.query_selector("#temperature"),
    )
    even = odds**0.5 / (odds**0.5).sum()
    shown = [float(text.split()[-1]) for text in texts(page, "#likeliest button")]
    np.testing.assert_allclose(shown, np.sort(even)[::-1][: len(shown)], atol=SHOWN)
    page.click("#likeliest button >> nth=1")
    until(page, "run.text !== " + repr(COLOUR))
    second = re.sub(r"#\d$", "", texts(page, "#written button")[-1])
    assert page.input_value("#text") == f"{COLOUR} {second}"
    before = page.input_value("#text")
    page.click("#write-next")
    until(page, f"run.text !== {before!r}")
    assert page.input_value("#text").startswith(before)


def test_a_term_shows_its_definition_to_pointer_and_keys(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    page.hover("#pattern dfn >> text=query")
    assert page.inner_text("#definition") == f"query {definitions()['query']}"
    page.keyboard.press("Escape")
    assert page.is_hidden("#definition")
    page.focus("#step-2 dfn >> text=key")
    assert page.inner_text("#definition") == f"key {definitions()['key']}"
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "definition"
    page.focus("#text")
    assert page.is_hidden("#definition")
    unknown = page.evaluate("[...document.querySelectorAll('[data-means]')].length")
    assert unknown == 0
    page.click("#glossary summary")
    assert texts(page, "#terms dt") == list(definitions())


def test_a_text_that_cannot_be_run_is_told_in_one_sentence(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    page.fill("#text", "word " * 400)
    until(page, "document.body.dataset.ready === 'problem'")
    assert re.fullmatch(r"[A-Z][^.]+\.", page.inner_text("#problem"))
    write(page, TYPED)
    assert page.is_hidden("#problem")
    assert page.evaluate("document.body.classList.contains('stale')") is False


@pytest.mark.slow
def test_nothing_is_written_behind_a_text_that_is_not_shown(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    for text in ("word " * 400, ""):
        page.fill("#text", text)
        until(page, "document.body.dataset.ready === 'problem'")
        for button in ("#likeliest button >> nth=0", "#write-next", "#draw-next"):
            page.focus(button)
            assert page.evaluate("document.activeElement.closest('#next')") is None
            page.dispatch_event(button, "click")
            assert page.input_value("#text") == page.evaluate("state.text") == text
        write(page, TYPED)
        page.click("#write-next")
        until(page, f"run.text !== {TYPED!r}")
    page.evaluate("byId('text').value = state.text = 'a text whose run is not there yet'")
    page.click("#write-next")
    assert page.input_value("#text") == "a text whose run is not there yet"


def test_the_address_keeps_the_text_the_place_and_what_is_removed(
    opened: Open, lesson: Path
) -> None:
    page = opened(lesson)
    write(page, TYPED)
    page.click('#written [data-index="6"]')
    page.click('[data-switch="L0H3"]')
    until(page, "before !== null")
    again = opened(lesson, page.evaluate("location.hash"))
    assert again.input_value("#text") == TYPED
    assert again.inner_text("#written .on") == "he"
    assert "L0H3" in again.inner_text("#off")
    assert again.inner_text("#fits") == "Chosen by the page: it fits this text."
    again.click('#grid button[data-layer="4"][data-head="1"]')
    again = opened(lesson, again.evaluate("location.hash"))
    assert again.inner_text("#fits").startswith("You chose this head.")


@pytest.mark.slow
def test_another_text_asks_with_the_word_that_attends_most_to_another(
    opened: Open, lesson: Path
) -> None:
    page, text = opened(lesson, "#h=L3H2"), "the sister of the old man fed her cat"
    weights = attnviz.capture(text, heads="L3H2").pattern(3, 2)[1:, 1:]  # all but BOS are words
    query, _ = np.unravel_index(np.argmax(weights - 2 * np.eye(len(weights))), weights.shape)
    write(page, text)
    assert page.inner_text("#written .on") == text.split()[query]
    write(page, f"{text} , and")
    assert page.inner_text("#written .on") == text.split()[query]


def test_hostile_addresses_open_the_page_all_the_same(opened: Open, lesson: Path) -> None:
    hostile = "#text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&h=L99H0&q=999&k=77&without=L8H8"
    page = opened(lesson, hostile)
    assert page.evaluate("headName()") == "L3H2"
    assert page.input_value("#text").startswith("<img")
    assert page.is_hidden("#all-on")


@pytest.mark.parametrize(
    ("text", "word"),
    [slow("the furry red dog slept", "dog"), ("Anna met Tom , and he smiled", "he")],
)
def test_what_is_read_out_of_a_typed_text_is_what_explain_reads(
    opened: Open, lesson: Path, text: str, word: str
) -> None:
    page = opened(lesson, "#h=L3H2")
    write(page, text)
    page.click(f'#written button >> text="{word}"')
    readings = attnviz.explain(text, head="L3H2", query=word).record.meaning.readings
    expected = [
        [
            f"cannot be told ({right}, chance {share(reading.readout.chance)})"
            if read.found is None
            else f"{read.found[0] if read.found[1] >= 0.5 else 'unsure'} ({right})"
            for read in reading.reads
            for right in [f"right {share(read.accuracy)}"]
        ]
        for reading in readings
    ]
    assert expected
    rows = page.eval_on_selector_all(
        "#step-5 tbody tr",
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.innerText))",
    )
    assert [row[-3:] for row in rows] == expected
    page.click('#grid [data-layer="0"][data-head="0"]')  # a head for which no map was made
    assert page.locator("#step-5 table").count() == 0
    assert "None was trained for what L0H0 adds" in page.inner_text("#step-5")


@pytest.mark.slow
def test_the_read_outs_say_where_they_do_not_apply_or_were_right_before(
    opened: Open, lesson: Path
) -> None:
    page = opened(lesson, "#h=L3H2")
    write(page, "the furry red dog slept")
    page.click('#written button >> text="slept"')
    assert "None applies to “slept” on this text." in page.inner_text("#step-5")
    page.click('#written button >> text="dog"')
    page.click('#grid [data-layer="4"][data-head="0"]')  # behind the head that adds it
    assert "texture: “furry” was already readable before this head." in page.inner_text("#step-5")
    page.click('#grid [data-layer="3"][data-head="2"]')
    page.click('[data-switch="L3H2"]')
    until(page, "before !== null")
    told = page.inner_text("#step-5")
    assert "This head is removed: nothing of it reaches the stream." in told
    assert "L3H2 moves it by +0.00" in told


@pytest.mark.slow
def test_an_addition_that_is_not_taken_up_is_told_as_explain_tells_it(
    opened: Open, lesson: Path
) -> None:
    page, text = opened(lesson, "#h=L3H2"), "The fluffy blue creature slept."
    write(page, text)
    page.click('#written button >> text="creature"')
    explained = on_one_line(str(attnviz.explain(text, head="L3H2", query="creature", only="5")))
    told = "hat L3H2 adds reads as {}; after it, the stream does not."
    assert told.format("blue") in explained
    assert f"colour: w{told.format('“blue”')}" in page.inner_text("#step-5")


@pytest.mark.slow
def test_what_a_head_is_known_for_is_told_with_whether_the_row_shows_it(
    opened: Open, lesson: Path
) -> None:
    page = opened(lesson, "#h=L3H2&q=8")
    assert page.inner_text("#claim").endswith("known for: nouns attend to their adjectives")
    page.click('#written button >> text="roamed"')
    assert page.inner_text("#claim").endswith("(not on this row)")
    write(page, "Anna met Tom , and he smiled")
    page.click('#written button >> text="he"')
    assert page.inner_text("#claim").endswith("known for: pronouns attend to what they stand for")


@pytest.mark.slow
def test_a_word_that_falls_into_pieces_is_told_with_them(opened: Open, lesson: Path) -> None:
    page, text = opened(lesson), "the flurblewug can't sleep"
    write(page, text)
    tokens = attnviz.explain(text).record.trace.capture.query_tokens
    pieces = ", ".join(t.label for t in tokens if 4 <= t.start < 14 and not t.special)
    told = f"Not in the vocabulary, so read in pieces: “flurblewug” ({pieces})."
    assert page.inner_text("#count") == f"{len(tokens)} tokens. {told}"


@pytest.mark.slow
def test_all_numbers_are_shown_to_the_digits_that_are_asked_for(opened: Open, lesson: Path) -> None:
    page, trace = opened(lesson), trace_of(TEXT, "L3H2", "creature")
    assert page.locator("#step-2 code").count() == 0
    page.check("#numbers")
    page.fill("#digits", "6")
    shown = page.inner_text("#step-2 code >> nth=0").split()
    assert all(re.fullmatch(r"-?\d+\.\d{6}", number) for number in shown)
    np.testing.assert_allclose([float(number) for number in shown], trace.q[CREATURE], atol=2e-5)


def test_nothing_is_wider_than_the_window_and_dark_is_dark(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    page.check("#numbers")
    for width in (390, 800, 1400):
        page.set_viewport_size({"width": width, "height": 850})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


@pytest.mark.slow
def test_of_a_translator_one_text_asks_and_another_answers(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "translator.html"
    found = attnviz.explain("a blue creature roamed the forest", "translator", query="créature")
    found.save(str(file))
    page, trace = opened(file), found.record.trace
    assert texts(page, "#written button") == list(distinct_labels(trace.capture.query_tokens))
    assert texts(page, "#read button") == list(distinct_labels(trace.capture.key_tokens))
    page.hover("#read button >> text=blue")
    assert page.inner_text("#product h4") == "“créature” asks “blue”"
    assert page.inner_text("#steps-title").endswith("takes from the text that is read")
    assert texts(page, ".step h3 span") == re.findall(r"^\d  (.+)$", str(found), re.MULTILINE)
    assert page.is_hidden("#writing")
    said = (
        "The model was not trained on these words and cannot translate them: “platypus”, “oiseau”."
    )
    assert said not in page.inner_text("#count")
    write(page, "the platypus saw an oiseau")
    assert page.inner_text("#count").startswith(f"{said} Not in the vocabulary")


def test_a_page_that_cannot_be_typed_in_shows_its_text_and_says_why(
    opened: Open, tmp_path: Path
) -> None:
    sizes = {"vocab_size": 257, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 4}
    model = folders_of({"gpt2": ("GPT2Config", "GPT2LMHeadModel", sizes)}, tmp_path)("gpt2")
    file = tmp_path / "gpt2.html"
    found = attnviz.explain("a cat", attnviz.load_model(str(model), engine="transformers"))
    found.save(str(file))
    page = opened(file)
    assert page.input_value("#text") == "a cat"
    assert page.get_attribute("#text", "readonly") is not None
    assert page.inner_text("#fixed").startswith("This page shows the text that it was made with.")
    assert page.locator("#grid input").count() == 0
    assert page.is_hidden("#writing")
    assert texts(page, ".step h3 span") == re.findall(r"^\d  (.+)$", str(found), re.MULTILINE)
