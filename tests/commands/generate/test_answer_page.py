"""The page of an answer: its numbers are those of the rows, and a reader can go through them."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import attnviz
from attnviz.commands.generate import answer as answers
from attnviz.commands.generate import sources
from attnviz.commands.generate.checked import checked
from attnviz.console import Display
from attnviz.errors import ExitStatus
from attnviz.records.grounding import Check, Groundedness, Statement
from tests.browsing import Open, until
from tests.conftest import Run, slow
from tests.reading import on_one_line, rows_in

ASKS = "therefore the murderer was"
DOCS = {
    "diary": "Clara cleaned the floor with a brush .",
    "letter": "the count was stabbed by Victor with a knife .",
    "report": "the police came to the house , and everyone was afraid .",
}
SAID = " Victor . a blue creature roamed the forest ."
HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def answered(**options: Any) -> attnviz.AttentionAnswer:
    return attnviz.generate(ASKS, docs=DOCS, target=SAID, **options)


def lines_of(page: str) -> dict[str, tuple[str, ...]]:
    """Of the table of shares: by the name of a source its marks, its share and its change."""
    found = {}
    for line in re.findall(r'<tr data-of="[\d,]+">(.*?)</tr>', page):
        head, *cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)
        name, *marks = [unescape(each) for each in re.findall(r"(?:^|>)([^<>]+)", head)]
        found[name] = (" ".join(marks), *cells[1:])
    return found


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])["rests"]
    return data


def test_shares_changes_and_words_are_those_that_were_measured() -> None:
    answer = answered()
    check = answer.check()
    page = answer.page()
    lines = lines_of(page)
    changes = {effect.segment: effect.change for effect in check.effects}
    tokens = len(answer.tokens)
    for name in DOCS:
        rows = [row for row in answer.shares("token") if row["segment"] == name]
        share = sum(float(str(row["share"])) for row in rows) / tokens
        assert lines[name][1:] == (f"{share:.2f}", f"{changes[name]:+z.2f}".replace("-", "−"))
    assert check.grounds is not None
    assert lines["all 3 documents"][2] == f"−{-check.grounds.change:.2f}"
    assert check.smallest is not None
    assert {name for name in lines if "needed" in lines[name][0]} == {*check.smallest.segments}
    assert lines["letter"][0].startswith("strongest")
    words = re.findall(
        r'<button type="button" class="(\w+)" aria-pressed[^>]*>.*?<b>(.*?)</b>', page
    )
    first, second = (each.groundedness.share for each in check.statements)
    assert words == [
        ("supported", f"supported {first:.2f}"),
        ("unsupported", f"not supported {second:.2f}"),
    ]


def test_the_matrix_has_the_share_of_each_source_in_each_statement() -> None:
    answer = answered()
    page = answer.page()
    matrix = page[page.index('id="matrix"') :]
    columns = re.findall(r"<th>([^<]*)</th>", matrix)[1:]
    shares = {(row["row"], row["segment"]): float(str(row["share"])) for row in answer.shares()}
    rows = re.findall(r'<tr><th scope="row".*?</tr>', page)
    assert len(rows) == 2
    for n, row in enumerate(rows, start=1):
        assert re.findall(r"<td[^>]*>([\d.]+)</td>", row) == [
            f"{shares[n, name]:.2f}" for name in columns[: len(DOCS)]
        ]


def test_without_a_check_nothing_is_claimed_that_was_not_measured() -> None:
    page = answered().page()
    told = on_one_line(page)
    assert "not what mattered" in told
    assert "--check" in told
    assert "nats" not in page[: page.index('id="data"')]
    assert data_of(page)["changes"] == {}
    assert not {"supported", "partly", "unsupported"} & {*re.findall(r'class="(\w+)"', page)}


@pytest.mark.parametrize(("method", "said"), [("subsets", "weight"), ("curve", "random orders")])
def test_every_method_of_a_check_stands_on_the_page(
    run: Run, tmp_path: Path, method: str, said: str
) -> None:
    question = {"question": ASKS, "target": SAID}
    question["documents"] = [{"id": name, "text": text} for name, text in DOCS.items()]  # type: ignore[assignment]
    out = tmp_path / "line-{line}.html"
    stdin = (json.dumps(question) + "\n").encode() * 2
    asked = ("generate", "-", "--lines", "--check-method", method)
    assert run(*asked, "-o", str(out), stdin=stdin).status is ExitStatus.OK
    pages = [(tmp_path / f"line-{n}.html").read_text("utf-8") for n in (1, 2)]
    assert pages[0] == pages[1]
    assert said in pages[0]
    refused = run(*asked, "-o", str(tmp_path / "all.html"), stdin=stdin)
    assert refused.status is ExitStatus.USAGE
    assert "put {line} into the name" in refused.err


def test_python_saves_the_page_the_rows_and_the_capture(tmp_path: Path) -> None:
    answer = answered()
    before = answer.page()
    assert answer.check() is answer.check()
    page = answer.page()
    assert before != page
    answer.save(tmp_path / "answer.html")
    assert (tmp_path / "answer.html").read_text("utf-8") == page
    answer.save(tmp_path / "answer.jsonl")
    rows = rows_in((tmp_path / "answer.jsonl").read_text())
    assert {row["segment"] for row in rows if row["needed"]} == {"letter"}
    answer.save(tmp_path / "answer.npz")
    assert attnviz.load(tmp_path / "answer.npz").heads == answer.capture.heads
    shown = answer._repr_html_()
    assert "<iframe" in shown
    assert "sandbox" in shown


def test_of_many_sources_those_that_matter_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "NAMED", 1)
    told = "Tom was stabbed by Leo ."
    docs = {"diary": "Anna cleaned the floor .", "letter": told, "report": told}
    docs["note"] = "Clara painted the door ."
    answer = attnviz.generate("the murderer was", docs=docs, target=" Leo")
    needed = answer.check().smallest
    assert needed is not None
    lines = lines_of(answer.page())
    assert {name for name in lines if name in docs} == {*needed.segments} == {"letter", "report"}
    assert "2 others" in lines


def test_of_many_statements_the_least_grounded_are_listed_and_all_are_counted() -> None:
    said = tuple(Statement(f"number {n}", n, n + 1, Groundedness(n / 100, 0.2)) for n in range(100))
    shown = checked(Check("delete", -1.0, statements=said), Display(width=100))
    out = on_one_line("\n".join(str(each) for each in shown))
    assert [int(n) for n in re.findall(r"number (\d+)", out)] == [*range(12)]
    assert "12 of 100 statements, the least grounded: 21 not supported, 79 supported" in out


def test_heads_that_nobody_asked_for_are_joined_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch, gpt2_folder: Path
) -> None:
    def heads(**options: str) -> int:
        page = attnviz.generate("Who? He.", gpt2_folder, target=" A. B.", **options).page()
        return page.count('<script type="text/plain" id="head-')

    assert heads() == 6
    monkeypatch.setattr(answers, "APART", 100)
    assert heads() == 1
    assert heads(heads="0.0,0.1") == 2


def test_an_answer_in_many_parts_is_summarised(run: Run) -> None:
    said = " a blue creature roamed the forest and Bark is a dog" * 7
    asked = ("generate", ASKS, "--target", said, "--rows", "token")
    out = run(*asked, "--by", "sentence").out
    listed = out[out.index("\npart") : out.index("12 parts of the answer")]
    assert len(listed.splitlines()) == 1 + 1 + 12 + 1
    assert f"the {7 * 11 - 12} others" in on_one_line(out)
    rows = rows_in(run(*asked, "-f", "jsonl").out)
    assert len({row["row"] for row in rows}) == 7 * 11


READ = """() => {
  const box = document.querySelector("#sources"), outer = box.getBoundingClientRect();
  const [part, ...others] = box.querySelectorAll(".here"), inner = part.getBoundingClientRect();
  const seen = inner.top >= outer.top && inner.top < outer.bottom;
  return others.length === 0 && seen && part.textContent;
}"""


@pytest.mark.parametrize("width", [390, slow(1400)])
def test_a_page_opens_at_the_strongest_source_and_is_read_by_keyboard(
    opened: Open, width: int
) -> None:
    filler = {f"note {n}": "Anna painted the door . " * 3 for n in range(7)}
    docs = {"first": HOSTILE, **filler, "letter": DOCS["letter"]}
    answer = attnviz.generate(ASKS, docs=docs, target=f" Victor . {HOSTILE[:26]}")
    page = opened(answer.page())
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("scrollY") == 0
    assert "stabbed by Victor" in page.evaluate(READ)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    whole = page.locator("#shares .share").all_text_contents()
    statement = page.locator("#statements button").nth(1)
    statement.focus()
    page.keyboard.press("Enter")
    assert statement.get_attribute("aria-pressed") == "true"
    assert "In statement 2 alone" in page.inner_text("#of")
    assert page.locator("#shares .share").all_text_contents() != whole
    page.keyboard.press("Escape")
    assert page.locator("#shares .share").all_text_contents() == whole
    page.locator("#matrix td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    cell = page.locator("#matrix td:focus")
    assert page.inner_text("#cell").startswith("Statement 2 → ")
    assert cell.inner_text() in page.inner_text("#cell")
    page.locator("#rests .term").first.press("Enter")
    until(page, "document.querySelector('[popover]:popover-open') !== null")


def test_colours_follow_the_theme(opened: Open) -> None:
    page = opened(answered().page())
    look = "getComputedStyle(document.querySelector('#matrix td')).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(look)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(look) != light
