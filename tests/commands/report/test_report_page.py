"""The page of a report: every question opens in place, without a script."""

import re
from pathlib import Path

import pytest

import attnviz
from tests.browsing import Open
from tests.commands.report.results import answer, failed, written

DOCUMENTS = {f"document {n}": (-0.5 * n, n > 3) for n in range(5)}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    answers = [
        answer(
            2,
            [0.9, 0.3, 0.05, None],
            documents=DOCUMENTS,
            contradicted={2: ("Leo", "Ann", "document 1")},
            page="pages/2 &.html",
        ),
        answer(1, [0.9]),
        failed(3, "the prompt is <too> long"),
    ]
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "2 &.html").write_text("<body data-ready>the page of 2")
    attnviz.report(written(tmp_path / "r.jsonl", *answers)).save(tmp_path / "report.html")
    return tmp_path / "report.html"


def test_a_question_opens_to_its_statements_and_sources(opened: Open, report: Path) -> None:
    page = opened(report)
    assert page.locator("h1").inner_text() == "groundedness .66 ± .24 over 2 questions; 1 failed"
    questions = page.locator("main details")
    names = [each.locator("summary span").first.inner_text() for each in questions.all()]
    assert names == ["q3", "q2", "q1"]
    assert "the prompt is <too> long" in questions.nth(0).locator("summary").inner_text()
    second = questions.nth(1)
    assert not second.locator("ul").is_visible()
    second.locator("summary").click()
    said = [each.inner_text() for each in second.locator("li").all()]
    assert said == [
        "statement 1 . supported 0.90",
        "statement 2 . contradicted: “Leo”: document 1 says “Ann”",
        "statement 3 . not supported 0.05",
        "statement 4 . known",
    ]
    tones = second.locator("li").evaluate_all(
        "all => all.map(e => getComputedStyle(e).borderColor)"
    )
    assert len(set(tones)) == 4
    rows = [each.inner_text().split("\t") for each in second.locator("tr").all()]
    assert rows[1:3] == [
        ["document 0", ".12", "+.00", "not used"],
        ["document 1", ".12", "−2.00", "used"],  # over four statements
    ]
    assert rows[5] == ["document 4", ".12", "−8.00", "needed"]
    assert not second.get_by_text("needed together").count()


def test_a_newcomer_learns_what_margins_and_words_mean(opened: Open, report: Path) -> None:
    page = opened(report)
    colors = "all => all.map(e => getComputedStyle(e).borderLeftColor)"
    key = page.locator(".key span").evaluate_all(colors)
    first, second, third = page.locator("main details").evaluate_all(colors)
    assert len(set(key)) == 4
    assert (first, second, third) == (key[1], key[2], key[0])
    words = page.locator("header details")
    assert not words.locator("dl").is_visible()
    words.locator("summary").click()
    terms = words.locator("dt").all_inner_texts()
    assert {"groundedness", "supported", "smallest set", "used document"} <= set(terms)


def test_a_document_that_is_needed_and_costs_nothing_alone_is_explained(
    opened: Open, tmp_path: Path
) -> None:
    twice = {"letter": (0.02, True), "copy": (-0.05, True)}
    attnviz.report(written(tmp_path / "r.jsonl", answer(1, documents=twice))).save(
        tmp_path / "report.html"
    )
    page = opened(tmp_path / "report.html")
    page.locator("main summary").click()
    assert page.get_by_text("needed together with others").is_visible()


@pytest.mark.parametrize("width", [700, 1100])
def test_no_name_of_a_column_is_cut(opened: Open, report: Path, width: int) -> None:
    page = opened(report)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.locator(".head span").evaluate_all(
        "all => all.every(e => e.scrollWidth <= e.clientWidth)"
    )


def test_a_question_leads_to_its_own_page(opened: Open, report: Path) -> None:
    page = opened(report)
    page.locator("main summary").nth(1).click()
    page.locator("a").click()
    assert page.locator("body").inner_text() == "the page of 2"


def test_five_hundred_questions_make_one_small_page(opened: Open, tmp_path: Path) -> None:
    answers = [answer(n, [0.8, 0.2, 0.5], documents=DOCUMENTS) for n in range(1, 501)]
    attnviz.report(written(tmp_path / "r.jsonl", *answers)).save(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000
    page = opened(tmp_path / "report.html")
    assert page.locator("main details").count() == 500


def test_a_page_has_no_script_and_refers_to_no_server(report: Path) -> None:
    content = report.read_text()
    assert "<script" not in content
    assert not re.search(r"(?:src|href)=.?(?:https?:|//)", content)
