"""The page's views show the same token, and tell in which heads a link is strongest."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.commands.show.page import page_of
from attnviz.draw.labels import LUMA, MARK
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from tests.browsing import Open, until
from tests.conftest import Run, slow
from tests.factories import make_capture

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "a fluffy blue creature roamed the verdant forest"
PIECES = "Anna unbelievably robbed Anna unbelievably"
LABELS = [PIECES.replace(" ", ""), "a", "Donaudampfschifffahrtsgesellschaftskapitänsmütze", "b"]


@pytest.fixture(scope="module")
def capture() -> Capture:
    return make_capture(TEXT, heads_per_layer=(3, 2, 3))


def page(capture: Capture) -> str:
    return "".join(page_of(whole_exhibit(capture)))


def told(shown: "Page") -> Mapping[str, Any]:
    """What the page shows of a token, view by view."""
    found: Mapping[str, Any] = shown.evaluate(
        """() => {
          const marks = (where, kind) => [...document.querySelectorAll(`${where}.${kind}`)];
          const lines = [...document.querySelectorAll("#columns line")];
          const rows = lines.map(line => line.getAttribute("y1"));
          return {
            heatmap: spot && [spot.token.side, spot.token.index, spot.other],
            columns: marks("#columns text", "on").map(t => t.dataset.side + t.dataset.index),
            pair: marks("#columns text", "other").map(t => t.dataset.side + t.dataset.index),
            rows: [...new Set(rows)],
            text: marks("#read span", "on").map(w => Number(w.dataset.index)),
            other: marks("#read span", "other").map(w => Number(w.dataset.index)),
            list: document.getElementById("here-title").textContent,
          };
        }"""
    )
    return found


def ranked(shown: "Page", name: str = "heads") -> list[tuple[str, str]]:
    """The rows of a list: what each is of, and its weight."""
    shown.wait_for_selector("body[data-compared]")
    rows = shown.query_selector_all(f"#{name} button")
    texts = [row.inner_text().split("\n") for row in rows if row.is_visible()]
    return [(parts[0], parts[-1]) for parts in texts]


CREATURE_TO_BLUE = {
    "heatmap": ["q", 3, 2],
    "columns": ["q3"],
    "pair": ["k2"],
    "rows": ["74"],
    "text": [3],
    "other": [2],
    "list": "“creature” attends to, in L0H0",
}


def test_what_is_pointed_at_in_one_view_is_shown_in_all(opened: Open, capture: Capture) -> None:
    weights = capture.weights(Head(0, 0))
    strongest = int(np.argmax(weights[3]))
    shown = opened(page(capture), "#h=L0H0")
    assert told(shown)["heatmap"] is None
    cell, left = shown.evaluate("[view.cell, view.left]")
    shown.hover("#map", position={"x": left + 2.5 * cell, "y": 3.5 * cell})
    assert told(shown) == CREATURE_TO_BLUE
    expected = CREATURE_TO_BLUE | {
        "heatmap": ["q", 3, strongest],
        "pair": [f"k{strongest}"],
        "other": [strongest],
    }
    for place in ('#columns text[data-side="q"][data-index="3"]', '#read span[data-index="3"]'):
        shown.hover("h1")
        assert told(shown)["heatmap"] is None
        shown.hover(place)
        assert told(shown) == expected
    shown.hover("#map", position={"x": left / 2, "y": 3.5 * cell})  # the label of a row
    assert told(shown) == expected


def test_what_is_pinned_in_one_view_is_shown_in_all_when_the_pointer_is_gone(
    opened: Open, capture: Capture
) -> None:
    shown = opened(page(capture), "#h=L0H0")
    cell, left = shown.evaluate("[view.cell, view.left]")
    shown.click("#map", position={"x": left + 2.5 * cell, "y": 3.5 * cell})
    shown.hover('#read span[data-index="5"]')
    assert told(shown)["text"] == [5]
    shown.hover("h1")
    assert told(shown) == CREATURE_TO_BLUE
    assert shown.url.endswith("pin=q3&to=2")
    again = opened(page(capture), "#h=L0H0&pin=q3&to=2")
    assert told(again) == CREATURE_TO_BLUE
    again.focus("#map")
    again.keyboard.press("Escape")
    assert told(again)["heatmap"] is None


def test_a_key_is_asked_who_attends_to_it_in_all_views(opened: Open, capture: Capture) -> None:
    column = capture.weights(Head(0, 0))[:, 1]
    shown = opened(page(capture), "#h=L0H0")
    shown.click('#columns text[data-side="k"][data-index="1"]')
    found = told(shown)
    query = int(np.argmax(column))
    assert found["heatmap"] == ["k", 1, query]
    assert found["text"] == [1]
    assert found["list"] == "“fluffy” is attended to by, in L0H0"
    assert ranked(shown, "here")[0] == (capture.query_tokens[query].label, f"{column[query]:.2f}")


def test_the_text_comes_first_and_its_most_telling_word_is_pinned(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "p.html"
    run("show", "Bark is very cute and he is a dog", "-o", str(out))
    shown = opened(out)
    assert told(shown)["list"] == "“he” attends to, in L3H2"
    tops = shown.evaluate(
        "['read', 'answer', 'grid', 'map'].map(i => byId(i).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    assert tops[0] < 100
    assert ranked(shown, "here")[0][0] == "Bark"


def test_where_no_rule_finds_a_link_the_strongest_to_another_word_is_pinned(opened: Open) -> None:
    weights = np.tril(np.full((6, 6), 0.1, np.float32))
    weights[:, 0] = 1 - weights[:, 1:].sum(axis=1)
    weights[4] = [0.3, 0.05, 0.6, 0.04, 0.01, 0]
    capture = make_capture(TEXT.split()[:6], heads_per_layer=(1,), patterns={Head(0, 0): weights})
    assert told(opened(page(capture)))["heatmap"] == ["q", 4, 2]


@pytest.mark.parametrize("words", [slow([], id="tokens"), pytest.param(["--words"], id="words")])
@pytest.mark.parametrize("sink", [[], ["--drop-sink"]], ids=["whole", "sink"])
@pytest.mark.parametrize("side", ["q", "k"])
def test_heads_are_ranked_as_the_terminal_would(
    opened: Open, run: Run, tmp_path: Path, words: list[str], sink: list[str], side: str
) -> None:
    """To the last bit of what the page says: two digits of every head."""
    query, key, options, gone = 4, 2, [*words, *sink], len(sink)
    out = tmp_path / "p.html"
    run("show", PIECES, *options, "-o", str(out))
    exact = json.loads(run("show", PIECES, *options, "--head", "all", "-f", "json").out)
    names = [f"L{head['layer']}H{head['head']}" for head in exact["heads"]]
    weights = np.nan_to_num(np.array(exact["patterns"], dtype=float))  # (heads, queries, keys)
    switches = ("&words=1" if words else "") + ("&sink=1" if sink else "")
    pair = f"&pin=q{query}&to={key}" if side == "q" else f"&pin=k{key}&to={query}"
    shown = opened(out, f"#h={names[0]}{switches}{pair}")
    pair_of = weights[:, query - gone, key - gone]  # the first token has no row and no column
    order = np.argsort(-pair_of, kind="stable")
    expected = [(names[i], f"{pair_of[i]:.2f}") for i in order][:5]
    assert [(name.split(". ")[1], weight) for name, weight in ranked(shown)][:5] == expected
    others = weights[:, query - gone] if side == "q" else weights[:, :, key - gone]
    best = int(np.argmax(others.max(axis=0)))
    labels = shown.evaluate("side => labelsOf(side)", "keys" if side == "q" else "queries")
    head = int(np.argmax(others[:, best]))
    expected_best = (f"{labels[best + gone]} · {names[head]}", f"{others[head, best]:.2f}")
    assert ranked(shown, "anywhere")[0] == expected_best


def test_a_head_in_the_list_is_shown_with_the_same_link(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0&pin=q5&to=1")
    name = ranked(shown)[0][0].split(". ")[1]
    shown.click("#heads button >> nth=0")
    shown.wait_for_selector(f'body[data-ready="{name}"]')
    assert shown.url.endswith(f"#h={name}&pin=q5&to=1")
    assert shown.get_attribute("#heads button >> nth=0", "aria-pressed") == "true"
    bars = "all => all.map(bar => parseFloat(bar.style.width))"
    expected = [100 * capture.weights(head)[5, 1] / 1 for head in capture.heads]
    top = max(float(capture.weights(head).max()) for head in capture.heads)
    found = shown.eval_on_selector_all("#grid [data-head] i", bars)
    np.testing.assert_allclose(found, np.array(expected) / top, atol=0.1)


def test_a_link_in_the_list_is_pinned_by_a_click(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0&pin=q7")
    second = int(np.argsort(-capture.weights(Head(0, 0))[7])[1])
    shown.click("#here button >> nth=1")
    until(shown, "state.other !== null")
    assert told(shown)["heatmap"] == ["q", 7, second]


def test_the_name_of_a_layer_overlays_all_of_its_heads(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0&pin=q4")
    shown.click("#grid .name button >> nth=2")
    shown.wait_for_selector('body[data-ready="L2H0,L2H1,L2H2"]')
    strokes = "all => [...new Set(all.map(l => l.getAttribute('stroke')))].length"
    assert shown.eval_on_selector_all("#columns line", strokes) == 3


def test_thumbnails_show_what_the_heatmap_shows(opened: Open, capture: Capture) -> None:
    """Clear is what is masked, hidden, or removed; the same cells in both."""
    clear = """canvas => {
      const { width, height } = canvas;
      const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
      return Array.from({ length: width * height }, (_, i) => pixels[4 * i + 3] === 0);
    }"""
    masked = np.triu(np.ones((8, 8), bool), 1)
    first = masked | (np.arange(8) == 0)
    weak = masked | (capture.weights(Head(1, 0)) < 0.2)
    cases = {"": masked, "&sink=1": first, "&t=0.2": weak, "&turn=1": masked.T}
    for fragment, expected in cases.items():
        shown = opened(page(capture), f"#h=L1H0{fragment}")
        until(shown, "thumbnails && thumbnails.length === data.heads.length")
        found = shown.eval_on_selector('[data-head="3"] canvas', clear)
        assert np.array_equal(np.array(found).reshape(8, 8), expected), fragment
        heatmap = shown.evaluate(f"({clear})(picture)")
        assert np.array_equal(np.array(heatmap).reshape(8, 8), expected), fragment


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_weight_has_the_colour_of_the_ground_and_more_weight_is_farther_from_it(
    opened: Open, capture: Capture, theme: str
) -> None:
    shown = opened(page(capture), f"#h=L1H0&theme={theme}")
    until(shown, "thumbnails && thumbnails.length === data.heads.length")
    pixels = """canvas => [...canvas.getContext("2d")
      .getImageData(0, 0, canvas.width, canvas.height).data]"""
    wanted = capture.weights(Head(1, 0))[np.tril_indices(8)]
    for found in (
        shown.evaluate(f"({pixels})(picture)"),
        shown.eval_on_selector('[data-head="3"] canvas', pixels),
    ):
        colors = np.array(found).reshape(8, 8, 4)[np.tril_indices(8)]
        lightness = colors[:, :3] @ LUMA
        order = np.argsort(wanted) if theme == "dark" else np.argsort(-wanted)
        assert (np.diff(lightness[order]) > -3).all()  # rounded
    ground, zero = shown.evaluate('[css("--ground"), colorOf(0)]')
    assert np.abs(np.array(zero) - list(bytes.fromhex(ground[1:]))).max() <= 8
    # what is masked is grey and striped: nobody takes it for a weak weight
    stripes = shown.evaluate("""() => {
      const [x, size] = [view.left + 7.2 * view.cell, 14].map((at) => at * devicePixelRatio);
      const seen = pen.getImageData(x, 4, size, size).data;
      return [...new Set(new Uint32Array(seen.buffer))].length;
    }""")
    assert stripes > 1


def test_text_from_right_to_left_runs_so_and_numbers_and_arrows_around_it_do_not(
    opened: Open,
) -> None:
    shown = opened(page(make_capture("שלום עולם שלום", heads_per_layer=(2,))), "#pin=q2&to=1")
    places = """all => all.filter((word) => word.textContent !== "BOS")
      .map((word) => word.getBoundingClientRect().x)"""
    found = shown.eval_on_selector_all("#words-of-keys span", places)
    assert found == sorted(found, reverse=True)
    # marks of direction around a name, so that what stands beside it keeps its place
    assert shown.inner_text("#status").startswith(f"{MARK}שלום{MARK}#2 → ")
    assert MARK not in shown.evaluate("csv()")


def test_a_label_that_is_marked_is_not_cut(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#pin=q3")
    cut = """() => {
      pen.font = "bold " + fontOf(SIZES[1]);
      return data.queries.labels.filter((label) => clipped(label, view.left - 2 * GAP) !== label);
    }"""
    assert shown.evaluate(cut) == []


def test_what_removing_the_first_token_took_is_said(opened: Open, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    run("show", TEXT, "-o", str(out))
    exact = json.loads(run("show", TEXT, "--drop-sink", "--head", "L1H1", "-f", "json").out)
    share = next(each["share"] for each in exact["transforms"] if each["kind"] == "keys-dropped")
    shown = opened(out, "#h=L1H1")
    assert not shown.inner_text("#removed")
    shown.check("#sink")
    until(shown, "byId('removed').textContent")
    said = shown.inner_text("#removed")
    assert "Removed: BOS" in said
    assert f"with {round(100 * share)}% of the weight in L1H1" in said
    assert said.endswith("Blank, as they attend to nothing else: BOS.")


def test_as_many_lines_are_drawn_as_cells_are_shown(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H1&t=0.15")
    many = int((capture.weights(Head(0, 1)) >= 0.15).sum())
    assert shown.locator("#columns line").count() == many
    assert shown.inner_text("#drawn") == f"lines: {many} links, of at least 0.15"
    shown.evaluate("aim({ token: { side: 'q', index: 6 }, other: null })")
    of_one = int((capture.weights(Head(0, 1))[6] >= 0.15).sum())
    links = "link" if of_one == 1 else "links"
    assert shown.inner_text("#drawn") == f"lines: {of_one} {links} of “verdant”, of at least 0.15"


def test_of_many_links_the_strongest_are_drawn(opened: Open) -> None:
    capture = make_capture([f"w{i}" for i in range(60)], heads_per_layer=(1,))
    shown = opened(page(capture), "#h=L0H0")
    assert shown.locator("#columns line").count() == 600
    assert shown.inner_text("#drawn") == "lines: the strongest 600 of 1,830 links"
    opacity = "all => Math.min(...all.map(l => Number(l.getAttribute('stroke-opacity'))))"
    least = shown.eval_on_selector_all("#columns line", opacity)
    weights = np.sort(capture.weights(Head(0, 0)).ravel())[::-1]
    assert least == pytest.approx(weights[599] / weights[0], abs=0.002)


def test_long_labels_are_whole_or_end_in_three_dots(opened: Open) -> None:
    shown = opened(page(make_capture(LABELS)), "#h=L0H0")
    for width in (1280, 700, 400):
        shown.set_viewport_size({"width": width, "height": 900})
        shown.wait_for_timeout(50)
        outside = """all => all.filter(text => {
          const box = text.getBBox(), svg = text.ownerSVGElement.width.baseVal.value;
          return box.x < 0 || box.x + box.width > svg;
        }).length"""
        assert shown.eval_on_selector_all("#columns text", outside) == 0
        labels = shown.evaluate(
            "[...document.querySelectorAll('#columns text')].map(t => t.firstChild.data)"
        )
        assert labels[1] == "a"
        assert all(
            whole == label or whole.startswith(label.removesuffix("…"))
            for whole, label in zip(LABELS * 2, labels, strict=True)
        )
        titles = shown.eval_on_selector_all("#columns title", "all => all.map(t => t.textContent)")
        assert titles == LABELS * 2


def test_what_is_pinned_stays_where_tokens_are_merged(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "p.html"
    run("show", PIECES, "-o", str(out))
    names = json.loads(run("show", PIECES, "--head", "L0H0", "-f", "json").out)["tokens"]
    robbed = next(token["index"] for token in names if token["text"].strip() == "robbed")
    shown = opened(out, f"#h=L0H0&pin=q{robbed}&to=1")
    shown.select_option("#unit", "words")
    until(shown, "columns.unit === 'words'")
    assert told(shown)["heatmap"] == ["q", 3, 1]
    assert told(shown)["list"].startswith("“robbed”")
    shown.select_option("#unit", "tokens")
    until(shown, "columns.unit === 'tokens'")
    assert told(shown)["heatmap"] == ["q", robbed, 1]


def test_units_that_merge_nothing_are_not_offered(opened: Open, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    offered = "[...byId('unit').options].filter(o => !o.hidden).map(o => o.value)"
    run("show", TEXT, "-o", str(out))
    assert not opened(out).is_visible("#unit")
    for text, units in (("unbelievably", ["words"]), ("unbelievably 😀", ["chars", "words"])):
        run("show", text, "-o", str(out))
        shown = opened(out)
        assert shown.is_visible("#unit")
        assert shown.evaluate(offered) == ["tokens", *units]


def test_nothing_moves_under_the_pointer(opened: Open, capture: Capture) -> None:
    shown = opened(page(capture), "#h=L0H0")
    shown.set_viewport_size({"width": 1000, "height": 900})
    places = (
        "['read', 'answer', 'grid', 'map', 'columns'].map(i => byId(i).getBoundingClientRect().top)"
    )
    before = shown.evaluate(places)
    for word in range(8):
        shown.hover(f'#read span[data-index="{word}"]')
        shown.wait_for_selector(f"body[data-compared^='q{word},']")
        assert shown.evaluate(places) == before


def test_what_is_pointed_at_comes_into_view_where_the_text_is_long(opened: Open) -> None:
    words = [f"word{i}" for i in range(120)]
    source = [word if i == 0 else " " + word for i, word in enumerate(words)]
    shown = opened(page(make_capture(source, heads_per_layer=(1,))), "#h=L0H0")
    shown.set_viewport_size({"width": 700, "height": 900})
    seen = """([where, name]) => {
      const box = byId(where).getBoundingClientRect();
      const one = document.querySelector(name).getBoundingClientRect();
      return one.top >= box.top && one.bottom <= box.bottom;
    }"""
    beside, within = ["columns", "#columns .on"], ["read", "#read .on"]
    shown.evaluate("zoom(8)")
    for aimed in (110, 3, 60):
        token = f'[data-index="{aimed}"]'
        shown.evaluate("name => document.querySelector(name).scrollIntoView()", f"#read {token}")
        shown.hover(f"#read {token}")
        assert shown.evaluate(seen, beside), aimed
        top, cell, height = shown.evaluate("[view.y, view.cell, inside().height]")
        assert top <= aimed * cell
        assert (aimed + 1) * cell <= top + height + 0.01
    shown.evaluate("aim({ token: { side: 'k', index: 0 }, other: null })")
    shown.hover("h1")
    shown.evaluate("aim({ token: { side: 'q', index: 119 }, other: null })")
    assert shown.evaluate(seen, within)
