"""`attnviz help`: a command's name wins, and every other name is looked up as a term."""

import pytest

from attnviz.draw.glossary import definitions, terms
from attnviz.errors import ExitStatus
from tests.conftest import Run


@pytest.mark.parametrize("name", ["query", "residual stream", "BOS", "logit"])
def test_a_term_is_told_in_the_sentences_of_the_glossary(run: Run, name: str) -> None:
    title, *lines = run("help", *name.split(), columns=60).out.splitlines()
    assert title == name
    told, _, others = " ".join(lines).partition(" see also: ")
    assert told == definitions()[name]
    assert set(others.split(", ")) <= {*definitions()} - {name}


def test_a_name_that_is_both_is_a_command_unless_a_term_is_asked_for(run: Run) -> None:
    command, term = run("help", "heads"), run("help", "--term", "heads")
    assert command.out == run("heads", "--help").out
    assert "attnviz help --term heads" in command.err
    assert term.out.startswith("head\nA part of a layer")
    assert run("help", "show").err == ""


def test_without_a_name_all_terms_are_listed_by_subject(run: Run) -> None:
    first, *subjects = run("help", columns=60).out.split("\n\n")
    assert "attnviz --help" in " ".join(first.split())
    listed: dict[str, list[str]] = {}
    for block in subjects:
        subject, *names = block.splitlines()
        listed[subject] = " ".join(names).split(", ")
    assert [name for names in listed.values() for name in names] == [each.name for each in terms()]
    assert [*listed] == [*dict.fromkeys(each.subject for each in terms())]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("qeury", "there is no command and no term 'qeury'; the nearest are query, "),
        ("shwo", "there is no command and no term 'shwo'; the nearest are show, "),
        ("--term shwo", "there is no term 'shwo'; the nearest are "),
        ("--term logit query", "two terms are asked for, one of them by --term; give one."),
    ],
)
def test_what_is_unknown_is_a_usage_error_that_names_the_nearest(
    run: Run, words: str, said: str
) -> None:
    ended = run("help", *words.split())
    assert ended.status is ExitStatus.USAGE
    assert ended.out == ""
    assert ended.err.startswith(f"attnviz: {said}")
    assert ended.err.count("\n") == 1
