"""A statement is contradicted where documents say something else, and supported by its words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz.commands.generate import contradiction
from attnviz.commands.generate.contradiction import (
    SaidWord,
    _parted,
    _replaces,
    _words_in,
    contradictions,
    is_untested,
    raised_words,
    rivals_of,
    words_of,
)
from attnviz.commands.generate.runs import AnswerRuns
from attnviz.errors import ExitStatus
from attnviz.models.catalog import Source, load
from attnviz.records.grounding import Contradiction, Groundedness, Grounds, RaisedWord, Statement
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

DOCS = {
    "diary": "Clara cleaned the floor with a brush . Anna painted the door .",
    "letter": "the count was stabbed by Victor with a knife .",
}
FOUND = Contradiction("red", "blue", 0, 0.9)
ASKS = "therefore the murderer was"


def checked(target: str, docs: dict[str, str] = DOCS) -> Statement:
    (said,) = attnviz.generate(ASKS, docs=docs, target=target).check().statements
    return said


def test_a_wrong_name_is_contradicted_by_the_document_that_has_the_right_one() -> None:
    said = checked(" Peter .")
    assert said.verdict == "contradicted"
    found = said.contradiction
    assert found is not None
    assert (found.given, found.instead, found.document) == ("Peter", "Victor", "letter")
    assert found.said == "“Peter”: letter says “Victor”"


def test_the_right_name_is_supported_and_without_its_document_nothing_contradicts() -> None:
    assert checked(" Victor .").verdict == "supported"
    alone = {"diary": DOCS["diary"], "note": "the police came to the house ."}
    assert checked(" Peter .", alone).verdict == "not supported"


def test_terminal_rows_and_page_tell_it_in_the_same_words(run: Run, tmp_path: Path) -> None:
    for name, text in DOCS.items():
        (tmp_path / name).write_text(text)
    docs = [arg for name in DOCS for arg in ("--doc", str(tmp_path / name))]
    asked = ("generate", ASKS, *docs, "--target", " Peter .", "--check")
    assert "contradicted: “Peter”: letter says “Victor”" in on_one_line(run(*asked).out)
    names = ("verdict", "given", "instead", "says")
    for unit in ("sentence", "word"):
        row = rows_in(run(*asked, "--rows", unit, "-f", "jsonl").out)[0]
        assert [row[name] for name in names] == ["contradicted", "Peter", "Victor", "letter"]
    page = tmp_path / "answer.html"
    run(*asked, "-o", str(page))
    assert "<b>contradicted: “Peter”: letter says “Victor”</b>" in page.read_text()


def test_a_report_counts_contradictions_first_and_may_fail_on_them(
    run: Run, tmp_path: Path
) -> None:
    documents = [{"id": name, "text": text} for name, text in DOCS.items()]
    lines = [
        {"question": ASKS, "documents": documents, "target": target}
        for target in (" Victor .", " Peter .")
    ]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    results = str(tmp_path / "results.jsonl")
    asked = ("--lines", "--file", str(tmp_path / "lines.jsonl"), "--check", "--resume")
    run("generate", *asked, "-o", results)
    ended = run("report", results)
    assert ended.status is ExitStatus.OK
    out = on_one_line(ended.out)
    assert "contradicted: 1, unsupported: 0 of 2 statements" in out
    assert out.index("line 2") < out.index("line 1")
    ended = run("report", results, "--fail-on", "contradicted")
    assert ended.status is ExitStatus.BELOW
    assert "1 statement contradicted by documents" in ended.err
    run("report", results, "-o", str(tmp_path / "report.html"))
    assert "“Peter”: letter says “Victor”" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_choices_are_those_of_a_plain_run(gpt2_folder: Path, engine: Any) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    plain = transformers.GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()
    with torch.inference_mode():
        logits = plain(torch.tensor([[5, 9, 7, 8]])).logits[0, 1:].double()
    told = logits.log_softmax(-1)
    found = model.choices([[5, 9]], [7, 8, 6], [[7, 3], [8, 4], [6, 5]])[0]
    expected = [[told[0, 7], told[0, 3]], [told[1, 8], told[1, 4]], [told[2, 6], told[2, 5]]]
    np.testing.assert_allclose(found, np.array(expected, float), atol=1e-4)
    among = [3, 8, 1]
    best = [among[int(i)] for i in logits[:, among].argmax(-1)]
    assert model.likeliest([5, 9], [7, 8, 6], among) == best


def grounds(whole: float, without: float, *unrelated: float) -> Grounds:
    noise = [[each] for each in unrelated] or np.zeros((0, 1))
    return Grounds(np.array([whole]), np.array([without]), np.array(noise))


@pytest.mark.parametrize(
    ("given", "rival", "parts"),
    [
        (grounds(-7, -3, -3, -3.1), grounds(-0.1, -2, -2, -2.1), True),
        (grounds(-5, -6, -6.2, -6), grounds(-0.1, -6, -6, -6), True),  # raised less than its rival
        (grounds(-7, -3, -3, -3), grounds(-0.1, -2, -2, -0.05), False),  # noise raises it, too
        (grounds(-7, -3, -3, -9), grounds(-0.1, -2, -2, -2), False),  # noise takes as much away
        (grounds(-1, -5, -5, -5), grounds(-0.5, -2, -2, -2), False),  # the answer gains more
    ],
)
def test_a_rival_counts_where_documents_raise_it_beyond_all_noise(
    given: Grounds, rival: Grounds, parts: bool
) -> None:
    assert _parted(given, rival) == [0] * parts


@pytest.mark.parametrize(
    ("given", "told", "instead"),
    [
        ("480", "290 km/h, as it", "290"),
        ("Marta", "Elsa Norby founded", "Elsa"),
        ("old", "botanical garden", "botanical"),
        ("takes", "of Halden takes place", ""),  # added to it
        ("takes", "Halden takes place", ""),
        ("opened", "open", ""),  # bent
        ("August", "15 March", ""),  # of another kind
        ("library", "Garden", ""),
        ("green", "of the", ""),  # a function word
        ("opens", "not open", "not"),
        ("480", "fast", ""),
        ("1,200", "2,900 people", "2,900"),
        ("2024-03-15", "2024-05-15.", "2024-05-15"),
        ("480", ".", ""),
    ],
)
def test_a_word_is_replaced_by_one_of_its_kind(given: str, told: str, instead: str) -> None:
    assert _replaces(SaidWord(given, 0, 1, begins=False), told) == instead


def test_a_function_word_at_the_beginning_of_a_sentence_replaces_no_name() -> None:
    assert not _replaces(SaidWord("Lena", 0, 1, begins=True), "The mill was")
    assert _replaces(SaidWord("Lena", 0, 1, begins=True), "Ann came") == "Ann"
    assert _replaces(SaidWord("August", 4, 5, begins=False), "May 1934") == "May"


@pytest.mark.parametrize(
    ("raised", "contradicted"),
    [([True, True], True), ([True, False], False), ([False, True], True), ([], True)],
)
def test_a_negation_is_contradicted_unless_it_is_of_something_else(
    raised: list[bool], contradicted: bool
) -> None:
    """“not stabbed by Peter” says nothing against “stabbed by Victor”."""
    asked = attnviz.generate(ASKS, docs=DOCS, target=" not stabbed by Peter .")
    model, ids, answer = asked._asked.model, asked._asked._ids, asked._answer
    new = [token.id for token in asked.tokens]
    rivals = rivals_of(model, ids, answer, [])
    assert rivals[0] == new[1]  # what follows the negation
    up, calm = np.arange(len(new)) == 0, np.full((19, len(new)), -5.0)
    own = Grounds(np.full(len(new), -5.0), np.full(len(new), -5.0), calm)
    others = Grounds(np.where(up, -0.1, -5.0), np.full(len(new), -5.0), calm)
    runs, words = AnswerRuns(model, model, ids, new, rivals), words_of(answer)
    content = [each for each in words if each.text in ("stabbed", "Peter")]
    known = [RaisedWord(w.first, each) for w, each in zip(content, raised, strict=False)]
    told = [*contradictions(runs, words, own, others, answer, [*DOCS.values()], known)]
    assert [(n.given, n.instead) for n in told] == [("not stabbed", "stabbed")] * contradicted


@pytest.mark.parametrize(
    ("whole", "known", "torn"),
    [(-1.7, [0], True), (-1.7, [], False), (-0.2, [0], False)],  # ahead, in the question, behind
)
def test_a_rival_that_is_less_ahead_leaves_a_word_of_the_documents_open(
    whole: float, known: list[int], torn: bool
) -> None:
    asked = attnviz.generate(ASKS, docs=DOCS, target=" Peter .")
    model, answer = asked._asked.model, asked._answer
    new = [token.id for token in asked.tokens]
    rivals = [*model.tokenizer.ids(" Victor"), new[1]]
    calm = np.full((19, 2), -5.0)
    own = Grounds(np.array([whole, -5]), np.array([-2.0, -5]), calm)
    others = Grounds(np.array([-0.4, -5]), np.full(2, -5.0), calm)
    runs = AnswerRuns(model, model, asked._asked._ids, new, rivals)
    about = (runs, words_of(answer), own, others, answer, [*DOCS.values()])
    words = [RaisedWord(place, False) for place in known]
    assert not [*contradictions(*about, words)]
    assert [c.instead for c in contradictions(*about, words, torn=True)] == ["Victor"] * torn


def test_a_statement_with_such_a_word_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradiction, "APART", np.inf)
    said = checked(" Peter .", {"note": "the maid was stabbed by Peter .", **DOCS})
    assert said.undecided
    assert not said.contradiction


def test_numbers_and_dates_are_whole_words() -> None:
    said = [found[0] for found, _ in _words_in("On 2024-03-15, 1,200 of 3.5 (by Ann's) came.")]
    assert said == ["On", "2024-03-15", "1,200", "of", "3.5", "by", "Ann's", "came"]
    assert [begins for _, begins in _words_in("He came. She (Ann) left")] == [
        *(True, False, True, False, False)
    ]


def test_words_of_content_that_documents_have_and_raise_make_a_statement_supported() -> None:
    words = [
        SaidWord(each, n, n + 1, begins=not n) for n, each in enumerate(("The", "old", "mill"))
    ]
    given = Grounds(np.array([0, -1.0, -0.1]), np.array([0, -4.0, -4.0]), np.full((19, 3), -4.0))
    documents = ["an old house , and two mills ."]
    assert raised_words(words, given, "", documents) == (RaisedWord(1, True), RaisedWord(2, True))
    assert raised_words(words, given, "which mill ?", documents) == (RaisedWord(1, True),)
    assert raised_words(words, given, "", ["a house"]) == (
        RaisedWord(1, False),
        RaisedWord(2, False),
    )


@pytest.mark.parametrize(
    ("text", "of", "more", "verdict"),
    [
        ("It is red.", Groundedness(0.8, 0.1), {}, "supported"),
        ("It is red.", Groundedness(0.1, 0.1), {}, "not supported"),
        ("It is red.", Groundedness(0.8, None), {}, "untested"),
        ("It is red.", Groundedness(None, None), {}, "known"),
        ("!", Groundedness(None, None), {}, "untested"),
        ("No.", Groundedness(0.8, 0.1), {"undecided": True}, "untested"),
        ("No.", Groundedness(0.1, 0.1), {"undecided": True}, "not supported"),
        ("It is red.", Groundedness(0.8, 0.1), {"words": (True, False, False)}, "not supported"),
        ("It is red.", Groundedness(0.8, 0.1), {"words": (True, False)}, "supported"),
        (
            "Red.",
            Groundedness(0.8, 0.1),
            {"contradiction": Contradiction("a", "b", 0, 1)},
            "contradicted",
        ),
    ],
)
def test_a_verdict_needs_its_test(text: str, of: Groundedness, more: Any, verdict: str) -> None:
    words = tuple(RaisedWord(n, each) for n, each in enumerate(more.pop("words", ())))
    assert Statement(text, 0, 3, of, words=words, **more).verdict == verdict


@pytest.mark.parametrize(
    ("text", "untested"),
    [
        *[("Nobody came.", True), ("It wasn't red.", True), ("It was not.", False)],
        *[("A note.", False), ("It cannot fly.", True), ("犬が好きです。", True)],
    ],
)
def test_a_negation_that_no_word_takes_back_is_known(text: str, untested: bool) -> None:
    assert is_untested(text) is untested
