"""Definitions are short, build on defined terms alone, and are found as people write them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from attnviz.draw.glossary import Entry, definitions, find_term, nearest_names, terms


@pytest.mark.parametrize("term", terms(), ids=lambda term: term.name)
def test_a_definition_is_one_to_four_sentences_that_do_not_begin_with_their_term(
    term: Entry,
) -> None:
    assert re.fullmatch(r"[A-Z].*\.", term.definition)
    assert 1 <= len(re.findall(r"[.!?](?= [A-Z]|$)", term.definition)) <= 4
    assert len(term.definition) <= 330
    assert not term.definition.casefold().startswith(term.name.casefold() + " is")
    assert not {"[", "]"} & {*term.definition}


def test_every_term_in_brackets_is_defined() -> None:
    assert {link.name for term in terms() for link in term.links.values()} <= {*definitions()}
    assert find_term("query") in find_term("key").links.values()  # type: ignore[union-attr]


def test_every_term_that_a_definition_uses_is_a_link() -> None:
    """A newcomer can look up every word of the field."""
    for term in terms():
        unlinked = re.sub(r"\[[^\]]+\]|context length", "", term.marked).casefold()
        others = {*definitions()} - {term.name} - {each.name for each in term.links.values()}
        used = [n for n in others if re.search(rf"\b{re.escape(n.casefold())}s?\b", unlinked)]
        assert used == [], term.name


def test_no_name_stands_for_two_terms() -> None:
    names = sorted(n.casefold() for term in terms() for n in (term.name, *term.synonyms))
    assert [a for a, b in pairwise(names) if a == b] == []


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("query", "query"),
        ("Queries", "query"),
        ("matrices", "matrix"),
        ("NATS", "nats"),
        ("nat", "nats"),
        ("bos", "BOS"),
        ("beginning of sequence", "BOS"),
        ("residual  stream", "residual stream"),
        ("W_q", "projection"),
        ("induction", "induction head"),
        ("attention heads", "head"),
        ("hops", "hop"),
        ("patches", "patch"),
        ("needed", "smallest set"),
        ("grounded", "groundedness"),
    ],
)
def test_a_term_is_found_in_any_case_in_the_plural_and_by_a_synonym(
    written: str, name: str
) -> None:
    found = find_term(written)
    assert found is not None
    assert found.name == name


PRINTED = {  # the terms in what a command prints
    "explain": "head, query, key, value, score, mask, softmax, token, weight, LayerNorm, ΔE, "
    "value up, value map, residual stream, chance, cosine, vocabulary, known for, BOS, "
    "rest, held-out",
    "why": "score, weight, entropy, head, MLP, biases, query, key, norm, attention, contrast, "
    "length, logit, part",
    "train": "held-out, trigram, bits per byte, head, broad, loss, checkpoint",
    "heads": "head, role, entropy, induction, retrieval head, probe, previous token, sink, broad",
    "generate": "prompt, token, head, sink, retrieval head, known for, groundedness, statement, "
    "supported, not supported, verdict, used",
}
EXPECTED = Path(__file__).parents[1] / "golden" / "expected"


@pytest.mark.parametrize(
    ("command", "term"), [(c, t) for c, said in PRINTED.items() for t in said.split(", ")]
)
def test_each_term_that_a_command_prints_is_in_the_glossary(command: str, term: str) -> None:
    printed = " ".join(path.read_text() for path in (EXPECTED / command).glob("*.txt"))
    assert term.casefold() in " ".join(printed.split()).casefold()
    assert find_term(term) is not None


@pytest.mark.parametrize("written", ["", "s", "qwerty", "[key]"])
def test_other_words_are_no_terms_and_have_three_neighbours(written: str) -> None:
    assert find_term(written) is None
    assert len(set(nearest_names(written))) == 3


def test_a_slip_of_the_finger_is_nearest_to_what_was_meant() -> None:
    assert nearest_names("entorpy")[0] == "entropy"
    assert nearest_names("shwo", ["show", "scan"])[0] == "show"


def test_the_chinese_terms_of_the_lessons_are_found_as_their_english_ones() -> None:
    lessons = (Path(__file__).parents[2] / "docs" / "lessons.md").read_text()
    rows = re.findall(r"^\| ([\w, -]+) \| (\W*[\u4e00-\u9fff].*?) \|", lessons, re.MULTILINE)
    assert len(rows) == 19  # with the heading
    for english, chinese in rows[1:]:
        names = english.split(", ")
        for name, own in zip(names, chinese.split("、"), strict=True):
            for each in re.findall(r"[\u4e00-\u9fff]+", own):
                assert find_term(each) == find_term(name) is not None, (name, each)
