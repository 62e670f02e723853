"""The head that a lesson page picks for a text, beside the one that the command line picks."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.builtin.evidence import acts_of, evidence
from attnviz.kit.choose import acting_choice
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from making.sentences import DEVELOPMENT, SENTENCES, read_sentences
from tests.browsing import Open, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIRST = "a fluffy blue creature roamed the verdant forest"
FILES = "adjectives", "pronouns", "senses", "none", "plain", "everyday"
JUDGED = "adjectives", "pronouns", "senses", "mystery", "induction"
FOUND = """async (texts) => {
  const found = [];
  for (const text of texts) {
    run = await engine.run(text);
    const queries = run.queries.map((_, query) => query), shown = {};
    for (const each of data.named) {
      const name = `${each.behaviour} ${nameOf([each.layer, each.head])}`;
      shown[name] = queries.filter((query) => isShown(each, query));
    }
    found.push([fitting(), shown]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fits") / "lesson.html"
    attnviz.explain(FIRST).save(str(file))
    return file


def write(page: "Page", text: str) -> None:
    page.fill("#text", text)
    until(page, f"document.body.dataset.ready === {text!r}")


def sentences() -> Iterator[str]:
    """300 sentences of ordinary English, a few of each kind."""
    for name in FILES:
        yield from [each.text for each in read_sentences(SENTENCES / DEVELOPMENT, name)][:50]


def test_over_300_texts_the_page_and_the_command_line_agree(opened: Open, lesson: Path) -> None:
    model, texts = load(Source()), [*sentences()]
    named = tuple({each.head for each in model.card.heads})
    assert len(texts) == 300
    found: list[Any] = opened(lesson).evaluate(FOUND, texts)
    told = same = alone = claimed = unsupported = opened_wrong = 0
    for text, (fits, rows) in zip(texts, found, strict=True):
        captured = prepare(model, text, TextOptions()).record(named)
        choice = acting_choice(captured)
        told += choice is not None
        same += bool(choice and fits and (fits["layer"], fits["head"]) == choice.heads[0])
        alone += choice is None and fits is not None
        seen, opening = evidence(captured), fits and f"L{fits['layer']}H{fits['head']}"
        supported = {
            links[0].query
            for each in model.card.heads
            if str(each.head) == opening
            for links in acts_of(captured.weights(each.head), seen.get(each.behaviour, ()))
        }
        opened_wrong += bool(fits) and fits["query"] not in supported
        for each in model.card.heads:
            if each.behaviour in JUDGED:
                acts = acts_of(captured.weights(each.head), seen.get(each.behaviour, ()))
                shown = set(rows[f"{each.behaviour} {each.head}"])
                claimed += len(shown)
                unsupported += len(shown - {links[0].query for links in acts})
    assert told > 100
    assert same >= 0.9 * told
    assert alone <= 0.05 * len(texts)
    assert claimed > 200
    assert unsupported <= 0.1 * claimed
    assert opened_wrong <= 0.06 * told  # half of these are right, such as "the muddy pitch"


@pytest.mark.parametrize(
    ("text", "head", "claim"),
    [
        ("take a biopsy of the mole", "L3H0", "mole → biopsy"),
        ("The king and the queen sat on their thrones.", "L3H2", "their → king"),
        ("the king slept . the queen said she was tired", "L3H2", "she → queen"),
        ("The animal didn't cross the street because it was too tired", "L3H2", "it → animal"),
        ("Mrs Potter met Mr Dursley . Mrs Potter met Mr", "L4H0", "Potter"),
    ],
)
def test_a_typed_text_opens_on_the_head_and_the_row_that_fit_it(
    opened: Open, lesson: Path, text: str, head: str, claim: str
) -> None:
    page = opened(lesson)
    write(page, text)
    assert page.inner_text("#claim").startswith(f"{head}: ")
    assert claim in page.inner_text("#claim")
    assert "known for" in page.inner_text("#claim")
    assert "not on this row" not in page.inner_text("#claim")
    assert page.inner_text("#fits") == "Chosen by the page: it fits this text."


def test_a_chosen_head_stays_and_the_one_that_fits_is_offered(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    page.click('#grid button[data-layer="4"][data-head="1"]')
    assert page.inner_text("#fits").startswith("You chose this head. This one fits the text: L3H2")
    write(page, "take a biopsy of the mole")
    assert page.inner_text("#claim").startswith("L4H1")
    assert "L3H0: mole → biopsy" in page.inner_text("#fits")
    page.click("#fits button")
    assert page.inner_text("#claim").startswith("L3H0: mole → biopsy")
    write(page, "Bark is very cute and he is a dog")
    assert page.inner_text("#claim").startswith("L3H2: he → Bark")


@pytest.mark.parametrize(
    "text",
    [
        "Harry Potter saw the Eiffel tower",
        "DER ALTE MANN UND DAS MEER",
        "der alte Mann und das Meer",
        "楚留香",
        "الكلب الكبير",
        "Zürich Straße",
    ],
)
def test_pieces_and_other_languages_are_not_said_to_show_it(
    opened: Open, lesson: Path, text: str
) -> None:
    page = opened(lesson)
    write(page, text)
    shown = page.evaluate(FOUND, [text])[0][1]
    for behaviour, rows in shown.items():
        if not behaviour.startswith("previous"):
            assert rows == [], behaviour
    page.click('#grid button[data-layer="3"][data-head="2"]')
    assert page.inner_text("#claim").endswith("(not on this row)")


def test_the_row_of_a_pronoun_says_that_no_ending_changes_it(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    write(page, "The animal didn't cross the street because it was too tired")
    told = page.inner_text("#told")
    assert "no ending changes it. The row of “tired” knows the ending, and" in told
    assert "and attends most to “animal”" in told
    row = page.evaluate("[...weightsOf(3, 2, state.query)]")
    write(page, "The animal didn't cross the street because it was too wide")
    assert page.evaluate("[...weightsOf(3, 2, state.query)]") == pytest.approx(row, abs=1e-6)
    told = page.inner_text("#told")
    assert "The row of “wide” knows the ending, and attends most to “street”" in told
    write(page, "The animal didn't cross because it was too tired, but the dog barked.")
    assert "The row of “tired” knows the ending" in page.inner_text("#told")
    for none in ("Anna was tired when she slept", "The dog slept because it was a flurbling"):
        write(page, none)
        page.click("#written button >> text=/^(it|she)$/")
        told = page.inner_text("#told")
        assert "no ending changes it." in told
        assert "knows the ending" not in told
    page.click("#written button >> nth=-1")
    assert "no ending" not in page.inner_text("#told")


def test_the_claim_says_which_heads_are_off(opened: Open, lesson: Path) -> None:
    page = opened(lesson)
    page.uncheck('[data-switch="L3H2"]')
    until(page, "state.removed.length === 1 && before !== null")
    assert page.inner_text("#claim").endswith(" · without L3H2")
    assert page.inner_text("#claim").startswith("L3H2: ")  # what is looked at stays
    assert "it fits this text" not in page.inner_text("#fits")
    page.click('#grid button[data-layer="4"][data-head="1"]')
    assert "the text: L3H2" not in page.inner_text("#fits")  # one that is off is not offered
    page.click("#all-on")
    until(page, "before === null")
    assert "without" not in page.inner_text("#claim")
