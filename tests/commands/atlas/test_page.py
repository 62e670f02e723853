"""The page of a scan: nothing of a corpus runs in it, and its parts are linked."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.commands.atlas import page as atlas_page
from attnviz.commands.atlas.page import (
    AtlasStart,
    Search,
    head_json,
    page_chunks,
    page_of,
    scan_id,
    start_of,
    write_page,
)
from attnviz.corpus.record import SCORES
from attnviz.corpus.tables import Atlas, Bin, HeadAtlas, HeadExample, TokenMass
from attnviz.draw.labels import BLUES
from attnviz.errors import ExitStatus, OutputError, UsageError
from tests.browsing import Open
from tests.commands.atlas.atlases import made_scan
from tests.conftest import Run

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "</script><img src=x onerror=alert(1)>"
NASTY = [HOSTILE, " \u202eabc", "\u2028", "{{data}}", "\x1b[2J", "<!--", '"', "&amp;"]
WORDS = ["", " a", " fluffy", " blue", " creature", " ran", "."]
LINKS = [(1, 0, 1.0), (2, 1, 0.25), (4, 0, 0.05), (4, 2, 0.93), (4, 3, 0.0213), (5, 2, 0.4)]
LAYERS, ACROSS = 3, 5


def rows(**fixed: float | None) -> list[dict[str, Any]]:
    """Fifteen heads, each with values of its own; `fixed`: those of L1H2."""
    drawn, made = np.random.default_rng(0), []
    for layer in range(LAYERS):
        for number in range(ACROSS):
            row: dict[str, Any] = {"layer": layer, "head": number}
            row |= {"documents": 7, "windows": 11, "tokens": 1234, "mean_over": "documents"}
            for name in SCORES:
                own = fixed.get(name) if (layer, number) == (1, 2) else None
                row[name] = float(drawn.uniform(0, 0.3)) if own is None else own
                row |= {f"{name}_error": 0.01, f"{name}_documents": 7}
            made.append(row)
    return made


def example(
    words: Sequence[str] = WORDS, path: str = "texts/a.txt", largest: float = 0.93, **more: Any
) -> HeadExample:
    queries, keys, weights = (np.array(each) for each in zip(*LINKS, strict=True))
    named = {"kind": "top", "bin": 18, "start": 0, "window": 2, **more}
    return HeadExample(
        **named,
        path=path,
        largest=largest,
        apart=largest,
        tokens=tuple(words),
        queries=queries,
        keys=keys,
        weights=weights.astype(np.float32),
    )


def head_of(row: dict[str, Any], words: Sequence[str] = WORDS, path: str = "a.txt") -> HeadAtlas:
    """Each head attends more to fluffy the further back it stands; L0H0 has no creature."""
    place = ACROSS * row["layer"] + row["head"]
    query = [TokenMass(words[4], None, 3.5)] if place else []
    return HeadAtlas(
        row,
        {
            "distance": [Bin(0, 1, 0.25), Bin(1, 2, 0.5), Bin(2, None, 0.0)],
            "largest": [Bin(i / 50, (i + 1) / 50, float(i == 46)) for i in range(50)],
        },
        {
            "query": query,
            "key": [TokenMass(None, words[2], 10.0 + place), TokenMass(None, " Fluffy", 1.0)],
            "pair": [TokenMass(words[4], words[2], 2.25)],
        },
        [
            example(words, "low.txt", 0.3, kind="bin", bin=6),
            example(words, "second.txt", 0.8),
            example(words, path),
        ],
        sampled=5,
    )


def atlas_of(model: str = "org/tiny", **fixed: float | None) -> Atlas:
    return Atlas(model, rows(**fixed), made={"options": {"length": 32}})


def heads_of(atlas: Atlas, words: Sequence[str] = WORDS, path: str = "a.txt") -> list[HeadAtlas]:
    return [head_of(dict(row), words, path) for row in atlas.rows]


def one_file(atlas: Atlas | None = None, words: Sequence[str] = WORDS, path: str = "a.txt") -> str:
    atlas = atlas or atlas_of(induction=0.7)
    return page_of(atlas, heads_of(atlas, words, path)).decode()


def several_files(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "atlas.html") -> Path:
    """The page and its folder, as they are written where one file would be too large."""
    monkeypatch.setattr(atlas_page, "LARGEST", 3000)
    atlas = atlas_of(induction=0.7)
    assert write_page(atlas, iter(heads_of(atlas)), folder / name) is not None
    return folder / name


def block(written: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', written)
    assert found
    return json.loads(found[1])


# ---- what stands in the files ----


def test_a_small_page_is_one_file_with_every_head(tmp_path: Path) -> None:
    atlas = atlas_of()
    assert write_page(atlas, iter(heads_of(atlas)), tmp_path / "atlas.html") is None
    assert [each.name for each in tmp_path.iterdir()] == ["atlas.html"]
    written = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert block(written, "data")["folder"] is None
    for head in atlas.heads:
        assert block(written, f"head-{head}")["head"] == str(head)


def test_a_large_page_has_a_script_for_each_head_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = several_files(tmp_path, monkeypatch)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["atlas.html", "atlas_heads"]
    scripts = sorted(each.name for each in (tmp_path / "atlas_heads").iterdir())
    assert scripts == sorted(f"L{i}H{j}.js" for i in range(LAYERS) for j in range(ACROSS))
    script = (tmp_path / "atlas_heads" / "L2H4.js").read_text(encoding="ascii")
    content = json.loads(script.removeprefix("attnvizHead(").removesuffix(");\n"))
    told = block(page.read_text(encoding="utf-8"), "data")
    assert (content["head"], content["scan"]) == ("L2H4", told["scan"])
    assert told["folder"] == "atlas_heads"
    assert "head-L0H0" not in page.read_text(encoding="utf-8")


def test_the_limit_is_that_of_the_whole_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, atlas = len(one_file(atlas_of()).encode()), atlas_of()
    monkeypatch.setattr(atlas_page, "LARGEST", size)
    assert write_page(atlas, heads_of(atlas), tmp_path / "p.html") is None
    monkeypatch.setattr(atlas_page, "LARGEST", size - 1)
    assert write_page(atlas, heads_of(atlas), tmp_path / "p.html") == tmp_path / "p_heads"
    assert len(list((tmp_path / "p_heads").iterdir())) == LAYERS * ACROSS
    with pytest.raises(UsageError, match="would be several files"):
        page_of(atlas, heads_of(atlas))


def test_heads_of_a_page_with_a_folder_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a head is asked for, the one before the last is on the disk already."""
    monkeypatch.setattr(atlas_page, "LARGEST", 1)
    atlas, written = atlas_of(), []

    def come() -> Any:
        for head in heads_of(atlas):
            written.append(len(list(tmp_path.glob(".attnviz*/L*.js"))))
            yield head

    write_page(atlas, come(), tmp_path / "p.html")
    assert written == [0, *range(1, LAYERS * ACROSS)]


def test_a_page_that_fails_leaves_the_old_one_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = several_files(tmp_path, monkeypatch)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    atlas = atlas_of("another")

    def come() -> Any:
        yield from heads_of(atlas)[:7]
        raise OutputError("broken", "mend it")

    with pytest.raises(OutputError, match="broken"):
        write_page(atlas, come(), page)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_a_folder_with_files_of_a_user_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several_files(tmp_path, monkeypatch)
    (tmp_path / "atlas_heads" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds other files"):
        several_files(tmp_path, monkeypatch)
    assert (tmp_path / "atlas_heads" / "notes.txt").read_text() == "mine"


def test_what_a_corpus_holds_is_data_and_never_markup() -> None:
    words = ["", *NASTY[:-1]]
    atlas = atlas_of(HOSTILE)
    head = head_of(dict(atlas.rows[1]), words, HOSTILE)
    search = Search()
    search.add(1, head)
    content = head_json(head, scan_id(atlas))
    written = "".join(page_chunks(atlas, AtlasStart(), search, [content] * len(atlas.rows)))
    assert "alert(1)" in content
    for text in (content, *re.findall(r'json" id="[^"]*">(.*?)</script>', written)):
        for character in "<>&\u2028\u202e\x1b":
            assert character not in text
    assert written.count("<script") == 3 + len(atlas.rows)  # facts, tokens, behaviour; heads
    assert "<img" not in written
    shown = json.loads(content)["examples"][0]
    assert shown["tokens"][1:6] == [HOSTILE, " \\u202eabc", "\\u2028", "{{data}}", "\\x1b[2J"]
    assert "{{data}}" not in re.sub(r"<script.*?</script>", "", written, flags=re.DOTALL)


def test_nothing_comes_from_anywhere_but_beside_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = one_file()
    page = several_files(tmp_path, monkeypatch).read_text(encoding="utf-8")
    for written in (alone, page):
        policies = re.findall(r'Content-Security-Policy" content="([^"]*)"', written)
        assert policies[0].startswith("default-src 'none'; script-src 'sha256-")
        assert "connect-src 'none'" in policies[0]
        assert "unsafe" not in str(policies)
        assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", written)
        apart = written is page
        assert ("'strict-dynamic'" in policies[0]) == apart
        # without the second policy, the first one would let the script load from anywhere
        beside = re.fullmatch(r"script-src 'sha256-[\w+/=]+' 'self' file:", policies[1])
        assert bool(beside) == apart


def test_nothing_is_made_of_markup() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
    assert not re.search(ways, one_file())


def test_values_that_are_no_numbers_are_none() -> None:
    atlas = atlas_of(induction=float("nan"), previous=float("inf"))
    values = block(one_file(atlas), "data")["values"]
    place = ACROSS * 1 + 2
    assert values["induction"][place][0] is None
    assert values["previous"][place][0] is None
    assert values["self"][place][0] == pytest.approx(atlas.rows[place]["self"], rel=1e-4)


@pytest.mark.parametrize(
    ("fixed", "score"),
    [
        ({"induction": 0.45, "self": 0.9}, "induction"),  # the first role that some head reaches
        ({"self": 0.5, "induction": 0.39}, "self"),
        ({"previous": 0.35}, "previous"),  # no head has a role: the largest value
    ],
)
def test_the_page_opens_on_a_telling_head(fixed: dict[str, float], score: str) -> None:
    assert start_of(atlas_of(**fixed)) == AtlasStart(ACROSS * 1 + 2, score, telling=True)


def test_the_page_opens_on_the_first_head_where_nothing_tells_of_any() -> None:
    atlas = atlas_of()
    bare = [{**row, **dict.fromkeys(atlas_page.TELLING)} for row in atlas.rows]
    assert start_of(Atlas("m", bare)) == AtlasStart(0, "entropy")


# ---- the command ----


def test_atlas_writes_the_page(run: Run, tmp_path: Path) -> None:
    folder, out = made_scan(tmp_path / "scan"), tmp_path / "atlas.html"
    assert run("atlas", str(folder), "-o", str(out)).status is ExitStatus.OK
    written = out.read_text(encoding="utf-8")
    assert block(written, "head-L3H2")["tokens"]["pair"] == [[" creature", " fluffy", 2.25]]
    assert block(written, "data")["start"]["x"] == "distance"
    streamed = run("atlas", str(folder), "-f", "html", "--sort", "previous").out
    start = block(streamed, "data")["start"]
    assert start["score"] == "previous"
    assert start["head"] != 0
    run("atlas", str(folder), "-o", str(out), "--plot", "self,previous")
    start = block(out.read_text(encoding="utf-8"), "data")["start"]
    assert (start["x"], start["y"]) == ("self", "previous")


def test_atlas_says_what_belongs_to_the_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas_page, "LARGEST", 1000)
    folder, out = made_scan(tmp_path / "scan"), tmp_path / "atlas.html"
    ended = run("atlas", str(folder), "-o", str(out))
    assert ended.status is ExitStatus.OK
    assert "has to stay beside the page" in ended.err
    attnviz.atlas(folder).save(tmp_path / "python.html")
    assert len(list((tmp_path / "python_heads").iterdir())) == 6
    assert len(list((tmp_path / "atlas_heads").iterdir())) == 6
    streamed = run("atlas", str(folder), "-f", "html")
    assert streamed.status is ExitStatus.USAGE
    assert "-o atlas.html" in streamed.err


@pytest.mark.parametrize("options", [["--top", "3"], ["--dpi", "90"], ["--head", "L2H1"]])
def test_a_page_refuses_what_it_does_by_itself(
    run: Run, tmp_path: Path, options: list[str]
) -> None:
    folder = made_scan(tmp_path / "scan")
    ended = run("atlas", str(folder), "-o", str(tmp_path / "a.html"), *options)
    assert ended.status is ExitStatus.USAGE


# ---- in a real browser ----

FIRST = "#windows ol:first-of-type li:first-child"
CHOSEN = "all => all.map(e => e.getAttribute('aria-label').split(',')[0])"


def chosen(shown: "Page") -> tuple[list[str], str]:
    """The heads that are selected in the grid, and the name beside the ring in the scatter."""
    cells = shown.eval_on_selector_all('#grid [aria-selected="true"]', CHOSEN)
    return cells, shown.text_content("#marks text.on") or ""


def ready(shown: "Page", head: str) -> None:
    shown.wait_for_selector(f'body[data-ready="{head}"]')


def middle_of(shown: "Page", head: str) -> tuple[float, float]:
    """Where the dot of a head is, on the screen."""
    box = shown.locator(f'circle[data-dot="{place_of(head)}"]').bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def place_of(head: str) -> int:
    return ACROSS * int(head[1]) + int(head[3])


def test_it_opens_on_the_telling_head_and_says_why(opened: Open) -> None:
    shown = opened(one_file())
    assert chosen(shown) == (["L1H2"], "L1H2")
    assert "highest induction" in shown.inner_text("#head-title")
    assert "highest induction score" in shown.inner_text("#why")
    shown.click('[data-head="0"]')
    ready(shown, "L0H0")
    assert shown.inner_text("#why") == ""


def test_a_click_in_either_picture_selects_the_head_in_both(opened: Open) -> None:
    shown = opened(one_file())
    shown.click('[data-head="13"]')
    ready(shown, "L2H3")
    assert chosen(shown) == (["L2H3"], "L2H3")
    assert shown.url.endswith("#h=L2H3")
    shown.mouse.click(*middle_of(shown, "L0H1"))
    ready(shown, "L0H1")
    assert chosen(shown) == (["L0H1"], "L0H1")
    assert shown.inner_text("#head-title").startswith("L0H1")


def test_the_head_that_is_pointed_at_in_one_picture_is_marked_in_the_other(opened: Open) -> None:
    shown = opened(one_file())
    shown.hover('[data-head="8"]')
    assert shown.text_content("#marks text.near") == "L1H3"
    assert shown.inner_text("#status").startswith("L1H3, distance 0.")
    shown.mouse.move(*middle_of(shown, "L2H0"))
    assert shown.eval_on_selector_all("#grid .near", CHOSEN) == ["L2H0"]
    shown.mouse.move(2, 2)
    assert shown.locator("#marks .near").count() == 0


def test_arrow_keys_move_through_heads_in_both_pictures(opened: Open) -> None:
    shown = opened(one_file(), "#h=L1H2")
    shown.focus('#grid [tabindex="0"]')
    for key, head in (("ArrowRight", "L1H3"), ("ArrowDown", "L2H3"), ("ArrowLeft", "L2H2")):
        shown.keyboard.press(key)
        ready(shown, head)
    assert shown.evaluate("document.activeElement.dataset.head") == str(place_of("L2H2"))
    assert shown.locator('#grid [tabindex="0"]').count() == 1
    shown.focus("#scatter")
    passed = [chosen(shown)[1]]
    while len(passed) < 2 or passed[-1] != passed[-2]:
        shown.keyboard.press("ArrowRight")
        passed.append(chosen(shown)[1])
    places = [middle_of(shown, head)[0] for head in passed]
    assert places == sorted(places)  # to the right, one after the other, up to the last one
    assert len(passed) > 4
    assert places[-1] == max(middle_of(shown, f"L{i}H{j}")[0] for i in range(3) for j in range(5))


def test_scores_for_both_axes_and_for_the_colour_are_chosen_and_linked_to(opened: Open) -> None:
    atlas = atlas_of(induction=0.7)
    shown = opened(one_file(atlas))
    for box in ("x", "y", "color"):
        names = shown.eval_on_selector_all(f"#{box} option", "all => all.map(o => o.value)")
        assert names == list(SCORES)
    assert (shown.input_value("#x"), shown.input_value("#y")) == ("distance", "entropy")
    shown.select_option("#x", "previous")
    shown.select_option("#color", "self")
    assert shown.url.endswith("#h=L1H2&x=previous&color=self")
    order = sorted(range(len(atlas.rows)), key=lambda i: atlas.rows[i]["previous"])
    places = shown.evaluate("dots.map((place) => place.x)")
    assert sorted(range(len(places)), key=lambda i: places[i]) == order
    strongest = max(range(len(atlas.rows)), key=lambda i: atlas.rows[i]["self"])
    colour = f"document.querySelector('[data-head=\"{strongest}\"]').style.background"
    assert shown.evaluate(colour) == f"rgb{BLUES[-1]}"
    again = opened(one_file(), "#h=L0H4&x=self&color=first")
    assert (again.input_value("#x"), again.input_value("#color")) == ("self", "first")
    assert chosen(again)[0] == ["L0H4"]


def test_what_stands_in_the_fragment_is_not_believed(opened: Open) -> None:
    shown = opened(one_file(), "#h=L9H9&x=__proto__&color=<b>&find=<img src=x>")
    assert chosen(shown)[0] == ["L1H2"]
    assert shown.input_value("#x") == "distance"
    assert "No head has it" in shown.inner_text("#found-hint")


def test_a_page_of_means_over_tokens_says_so_and_has_no_errors(
    opened: Open, run: Run, tmp_path: Path
) -> None:
    scan, page = made_scan(tmp_path / "scan"), tmp_path / "atlas.html"
    assert run("atlas", str(scan), "--mean", "tokens", "-o", str(page)).status is ExitStatus.OK
    shown = opened(page.read_text(encoding="utf-8"), "#h=L2H1")
    assert "Scores: means over tokens" in shown.inner_text("#panel h3 >> nth=0")
    assert "Scores are means over tokens." in shown.inner_text("body")
    assert "±" not in shown.inner_text("#scores")
    row = attnviz.atlas(scan).head("L2H1").row
    assert f"{row['first_over_tokens']:.3f}" in shown.inner_text('#scores [data-score="first"]')


def test_the_panel_has_scores_histograms_tokens_and_windows(opened: Open) -> None:
    atlas = atlas_of(induction=0.7)
    shown = opened(one_file(atlas), "#h=L1H2")
    row = shown.inner_text('#scores [data-score="induction"]').split()
    assert row[:5] == ["induction", "0.700", "±", "0.010", "1st"]
    bars = shown.eval_on_selector_all(
        '[data-histogram="distance"] title', "all => all.map(t => t.textContent)"
    )
    unit = "mean weight of a query, over documents"
    assert bars == [f"0: 0.250 {unit}", f"1: 0.500 {unit}"]
    assert "nothing to show" in shown.inner_text('[data-histogram="position"]')
    assert "5 sampled windows" in shown.inner_text("#sampled")
    assert shown.inner_text('#tokens [data-side="pair"] .mass').split() == [
        *("␣creature", "→", "␣fluffy", "2.25")
    ]
    paths = shown.eval_on_selector_all("#windows .path", "all => all.map(p => p.textContent)")
    assert paths == ["a.txt", "second.txt", "low.txt"]
    titles = shown.eval_on_selector_all("#windows h4", "all => all.map(t => t.textContent)")
    assert titles[0].startswith("Windows with the strongest links")
    assert titles[1].endswith("largest weight is 0.30 to 0.35")
    assert "0.930 strongest link · a.txt, window 2" in shown.inner_text("#windows .where")


def shades(shown: "Page") -> dict[str, float]:
    """The words of the first window that have a colour, and how deep it is."""
    shown.wait_for_selector(f"{FIRST} .said")
    found = shown.eval_on_selector_all(
        f"{FIRST} .word",
        "all => all.map(w => [w.textContent, w.style.background.match(/rgba.* (.*)\\)/)?.[1] ?? 1,"
        " w.style.background])",
    )
    return {word: float(depth) for word, depth, colour in found if colour}


def test_words_are_shaded_by_what_attends_to_them_and_a_word_shows_its_links(opened: Open) -> None:
    shown = opened(one_file(), "#h=L1H2")
    first = FIRST
    assert shown.inner_text(f"{first} .said") == "strongest link: ␣creature → ␣fluffy 0.93"
    expected = {"a": 0.25 / 0.93, "fluffy": 1.0, "blue": 0.0213 / 0.93}
    assert shades(shown) == pytest.approx(expected, abs=2e-3)
    shown.hover(f'{first} [data-token="4"]')
    expected = {"BOS": 0.05 / 0.93, "fluffy": 1.0, "blue": 0.0213 / 0.93}
    assert shades(shown) == pytest.approx(expected, abs=2e-3)
    said = "␣creature → ␣fluffy 0.93, BOS 0.05, ␣blue 0.02"
    assert shown.inner_text(f"{first} .said") == said
    shown.check('input[value="from"]')
    shown.hover(f'{first} [data-token="2"]')
    assert shades(shown) == pytest.approx({"creature": 1.0, "ran": 0.4 / 0.93}, abs=2e-3)
    shown.click(f'{first} [data-token="2"]')
    shown.mouse.move(2, 2)
    said = "␣fluffy ← ␣creature 0.93, ␣ran 0.40"
    assert shown.inner_text(f"{first} .said") == said
    shown.click(f'{first} [data-token="2"]')
    shown.mouse.move(2, 2)
    assert shown.inner_text(f"{first} .said").startswith("strongest link")


def test_a_window_is_read_by_keys_alone(opened: Open) -> None:
    shown = opened(one_file(), "#h=L1H2")
    first = FIRST
    shown.wait_for_selector(f"{first} .said")
    assert shown.locator(f'{first} .word[tabindex="0"]').count() == 1
    shown.focus('input[name="direction"]:checked')
    shown.keyboard.press("Tab")
    assert shown.inner_text(f"{first} .said").startswith("␣creature →")
    shown.keyboard.press("ArrowRight")
    assert shown.inner_text(f"{first} .said") == "␣ran → ␣fluffy 0.40"
    shown.keyboard.press("Enter")
    shown.keyboard.press("Tab")
    assert shown.inner_text(f"{first} .said") == "␣ran → ␣fluffy 0.40"


def test_of_a_long_window_the_words_around_its_strongest_link_are_shown(opened: Open) -> None:
    words = ["", *(f" w{i}" for i in range(1, 400))]
    shown = opened(one_file(words=words), "#h=L1H2")
    first = FIRST
    shown.wait_for_selector(f"{first} .said")
    assert shown.locator(f"{first} .word").count() == 4 + 14 + 1
    shown.click(f"{first} .more")
    assert shown.locator(f"{first} .word").count() == 400
    shown.hover(f'{first} [data-token="4"]')
    assert "␣w4 → ␣w2 0.93" in shown.inner_text(f"{first} .said")


def test_windows_far_below_are_drawn_when_they_come_near(opened: Open) -> None:
    atlas = atlas_of(induction=0.7)
    many = [example(largest=0.9, path=f"{i}.txt") for i in range(40)]
    heads = [HeadAtlas(dict(row), {}, {}, many) for row in atlas.rows]
    shown = opened(page_of(atlas, heads).decode())
    shown.wait_for_selector(f"{FIRST} .said")
    last = "#windows li:last-child"
    assert shown.locator("#windows .where").count() == 40
    assert shown.locator(f"{last} .word").count() == 0
    shown.locator(last).scroll_into_view_if_needed()
    assert "␣creature → ␣fluffy" in shown.inner_text(f"{last} .said")


def test_search_finds_heads_by_their_mass_on_a_token(opened: Open) -> None:
    shown = opened(one_file())
    assert not shown.is_visible("#found")
    shown.fill("#find", "fluffy")
    names = "all => all.map(e => e.textContent)"
    keys = shown.eval_on_selector_all('[data-found="key"] .what', names)
    assert keys == [f"L{i}H{j}" for i in (2, 1, 0) for j in (4, 3, 2, 1, 0)]
    assert shown.inner_text('[data-found="key"] .number >> nth=0') == "25"  # 24 and 1 of Fluffy
    assert "␣Fluffy, ␣fluffy" in shown.inner_text("#found-hint")
    assert "5 sampled windows" in shown.inner_text("#found-hint")
    assert shown.locator("#grid .found").count() == LAYERS * ACROSS
    shown.fill("#find", "Fluffy")
    assert shown.inner_text('[data-found="key"] .number >> nth=0') == "1"
    shown.fill("#find", "creature")
    assert "None." in shown.inner_text('[data-found="key"]')
    queries = shown.eval_on_selector_all('[data-found="query"] .what', names)
    assert "L0H0" not in queries
    assert len(queries) == LAYERS * ACROSS - 1
    shown.click('[data-found="query"] .mass >> text=L2H1')
    ready(shown, "L2H1")
    assert chosen(shown) == (["L2H1"], "L2H1")
    shown.fill("#find", "fl")
    assert "No head has it" in shown.inner_text("#found-hint")
    shown.click('#others button >> text="fluffy"')
    assert shown.input_value("#find") == "fluffy"
    shown.fill("#find", "")
    assert not shown.is_visible("#found")
    assert shown.locator("#grid .found").count() == 0


def test_a_token_of_a_head_is_searched_by_a_click(opened: Open) -> None:
    shown = opened(one_file(), "#h=L0H3")
    shown.click('#tokens [data-side="key"] .mass >> nth=0')
    assert shown.input_value("#find") == "fluffy"
    assert shown.is_visible('[data-found="key"]')
    assert "find=fluffy" in shown.url


def test_heads_beside_the_page_come_from_disk_when_they_are_chosen(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium has to let the page load them under its policy, from file: and with odd names."""
    page = several_files(tmp_path, monkeypatch, "an atlas:100%#1?é.html")
    odd = str(page).replace("%", "%25").replace("#", "%23").replace("?", "%3F")
    shown = opened(Path(odd))
    assert chosen(shown)[0] == ["L1H2"]
    shown.click('[data-head="14"]')
    ready(shown, "L2H4")
    assert shown.inner_text("#windows .path >> nth=0") == "a.txt"
    assert shown.locator("#problem").is_hidden()
    assert shown.locator("script[src]").count() == 0


def test_a_script_from_elsewhere_is_not_run(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it is the page's own script that asks for it."""
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(f"file://{several_files(tmp_path, monkeypatch)}")
    shown.evaluate("document.body.dataset.refused = ''")
    shown.evaluate(
        "addEventListener('securitypolicyviolation', "
        "(event) => { document.body.dataset.refused += event.blockedURI + ' '; })"
    )
    for address in ("https://example.org/x.js", "data:text/javascript,alert(1)"):
        shown.evaluate(
            "(address) => { const s = document.createElement('script'); s.src = address;"
            " document.head.append(s); }",
            address,
        )
    shown.wait_for_selector("body[data-refused*='example.org'][data-refused*='data ']")
    context.close()


def test_a_head_that_is_missing_or_of_another_scan_is_explained(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = several_files(tmp_path, monkeypatch)
    (tmp_path / "atlas_heads" / "L0H0.js").unlink()
    other = tmp_path / "atlas_heads" / "L0H1.js"
    other.write_text(re.sub(r'"scan":"\w+"', '"scan":"0"', other.read_text()))
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(f"file://{page}#h=L0H0")
    ready(shown, "L0H0")
    assert "has to stay beside it" in shown.inner_text("#problem")
    assert not shown.is_visible("#panel")
    shown.click('[data-head="1"]')
    ready(shown, "L0H1")
    assert "belongs to another scan" in shown.inner_text("#problem")
    shown.click('[data-head="2"]')
    ready(shown, "L0H2")
    assert not shown.is_visible("#problem")
    assert shown.is_visible("#panel")
    context.close()


def test_hostile_words_neither_run_nor_turn_what_stands_beside_them(opened: Open) -> None:
    words = ["", *NASTY[:-1]]
    shown = opened(one_file(atlas_of(HOSTILE, induction=0.7), words, HOSTILE), "#h=L1H2")
    assert HOSTILE in shown.inner_text("#title")
    assert shown.inner_text("#windows .path >> nth=0") == HOSTILE
    shown.wait_for_selector(f"{FIRST} .said")
    said = shown.eval_on_selector_all(f"{FIRST} .word", "all => all.map(w => w.textContent)")
    assert said[:4] == ["BOS", HOSTILE, "\\u202eabc", "\\u2028"]
    assert shown.locator("img").count() == 0
    shown.fill("#find", "{{")
    assert shown.inner_text("#others .token >> nth=0") == "{{data}}"
    turned = shown.eval_on_selector_all(
        ".token, .word, .path", "all => all.map(e => getComputedStyle(e).unicodeBidi)"
    )
    assert set(turned) == {"isolate"}


def test_a_scan_with_nothing_but_scores_explains_what_is_missing(opened: Open) -> None:
    bare = [{**row, "induction": None, "induction_error": None} for row in rows()]
    atlas = Atlas("m", bare)
    shown = opened(page_of(atlas, (HeadAtlas(row, {}, {}, ()) for row in bare)).decode())
    assert "counted no tokens" in shown.inner_text("#sampled")
    assert "kept no windows" in shown.inner_text("#examples-hint")
    assert not shown.is_visible("#directions")
    assert shown.locator('#x option[value="induction"]').count() == 0
    shown.fill("#find", "a")
    assert "nothing to search" in shown.inner_text("#found-hint")


def test_heads_without_a_score_are_not_drawn_and_are_counted(opened: Open) -> None:
    some = rows(induction=0.7)
    for row in some[:2]:
        row["distance"] = row["distance_error"] = None
    atlas = Atlas("m", some)
    shown = opened(page_of(atlas, heads_of(atlas)).decode())
    assert shown.locator("circle[data-dot]").count() == LAYERS * ACROSS - 2
    assert shown.inner_text("#missing") == "2 heads without one of these scores are not drawn."
    shown.select_option("#color", "distance")
    assert shown.locator("#grid .nothing").count() == 2
    shown.click('[data-head="0"]')
    ready(shown, "L0H0")
    assert "not measured" in shown.inner_text('#scores [data-score="distance"]')


def test_the_page_fits_narrow_and_wide_screens_and_both_lights(opened: Open) -> None:
    shown = opened(one_file())
    for width in (360, 400, 700, 1000, 1800):
        shown.set_viewport_size({"width": width, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.set_viewport_size({"width": 400, "height": 800})
    shown.evaluate("scrollTo(0, 0)")
    shown.click("#jump")
    shown.wait_for_selector("#jump", state="hidden")
    assert shown.evaluate("document.activeElement.id") == "head"
    light = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.click("#theme")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert "theme=dark" in shown.url
