"""A page opens as its options say, with the head, names and scores that it has without them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run

TEXT = "Bark is unbelievably cute and he is a dog"
PLAIN: list[str] = []


def page(run: Run, out: Path, *options: str, text: str = TEXT) -> dict[str, Any]:
    ended = run("show", text, *options, "-o", str(out))
    assert ended.status is ExitStatus.OK, ended.err
    written = out.read_text(encoding="utf-8")
    found = re.search(r'id="data">(.*?)</script>', written, re.DOTALL)
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


def opens_with(told: dict[str, Any]) -> str:
    label: str = told["heads"][told["initial"]["heads"][0]]["label"]
    return label


@pytest.mark.parametrize(
    ("options", "initial"),
    [
        ("--words", {"unit": "words", "sink": False}),
        ("--chars", {"unit": "chars", "sink": False}),
        ("--drop-sink", {"unit": "tokens", "sink": True}),
        ("--words --drop-sink", {"unit": "words", "sink": True}),
        ("--min 0.25", {"unit": "tokens", "sink": False, "threshold": 0.25}),
    ],
)
def test_what_a_page_has_switches_for_turns_them_and_changes_nothing_else(
    run: Run, tmp_path: Path, options: str, initial: dict[str, object]
) -> None:
    plain, told = page(run, tmp_path / "a.html"), page(run, tmp_path / "b.html", *options.split())
    assert told["initial"] | initial == told["initial"]
    for same in ("heads", "keys", "queries", "top", "changed"):
        assert told[same] == plain[same]
    assert opens_with(told) == opens_with(plain)
    labels = told["queries"]["labels"]
    unit = told["initial"]["unit"]
    if unit != "tokens":
        labels = told["queries"]["units"][unit]["labels"]
    assert labels[told["initial"]["pin"]["index"]] == "he"


@pytest.mark.parametrize(
    "options", ["--weighted", "--drop-key and", "--weighted --words", "--drop-key a --chars"]
)
def test_a_page_of_changed_weights_has_the_head_and_the_scores_of_the_models_own(
    run: Run, tmp_path: Path, options: str
) -> None:
    plain, told = page(run, tmp_path / "a.html"), page(run, tmp_path / "b.html", *options.split())
    assert opens_with(told) == opens_with(plain)
    assert told["changed"]
    for name in ("scores", "role", "label"):
        assert [head[name] for head in told["heads"]] == [head[name] for head in plain["heads"]]


def test_a_saved_capture_opens_as_its_text_does(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "c.npz"
    run("show", TEXT, "-o", str(saved))
    plain = page(run, tmp_path / "a.html", "--words", "--query", "cute")
    told = page(run, tmp_path / "b.html", "--words", "--query", "cute", text=str(saved))
    assert told == plain


@pytest.mark.parametrize(
    ("options", "index"),
    [
        ("--query he", 11),
        ("--query -1", 14),
        ("--query is#2", 12),
        ("--words --query unbelievably", 3),
        ("--words --drop-sink --query he", 6),
        ("--drop-key and --query cute", 9),
    ],
)
def test_a_query_is_pinned_and_every_row_is_there(
    run: Run, tmp_path: Path, options: str, index: int
) -> None:
    plain, told = page(run, tmp_path / "a.html"), page(run, tmp_path / "b.html", *options.split())
    assert told["initial"]["pin"] == {"side": "q", "index": index}
    assert opens_with(told) == opens_with(plain)
    assert told["queries"]["labels"] == plain["queries"]["labels"]


def test_of_a_query_that_stands_twice_the_first_is_pinned(run: Run, tmp_path: Path) -> None:
    told = page(run, tmp_path / "a.html", "--query", "is")
    assert told["initial"]["pin"] == {"side": "q", "index": 2}


def test_a_query_that_is_not_in_the_text_is_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    ended = run("show", TEXT, "--query", "zebra", "-o", str(out))
    assert ended.status is ExitStatus.USAGE
    assert "is not in the text" in ended.err
    assert not out.exists()


def test_two_queries_are_refused(run: Run) -> None:
    ended = run("show", TEXT, "--query", "he", "--query", "cute", "-f", "html")
    assert ended.status is ExitStatus.USAGE


def test_scores_have_no_page_even_where_they_are_saved(run: Run, tmp_path: Path) -> None:
    saved, out = tmp_path / "s.npz", tmp_path / "s.html"
    assert run("show", TEXT, "--scores", "-o", str(saved)).status is ExitStatus.OK
    for given in ([str(saved)], [str(saved), "--words"], [TEXT, "--scores"]):
        ended = run("show", *given, "-o", str(out))
        assert ended.status is ExitStatus.USAGE
        assert "scores" in ended.err
        assert not out.exists()


def test_heads_that_are_joined_have_one_map_and_a_word_to_begin_with(
    run: Run, tmp_path: Path
) -> None:
    for options in (["--rollout"], ["--reduce", "mean"], ["--rollout", "--words", "--drop-sink"]):
        told = page(run, tmp_path / "r.html", *options)
        assert len(told["heads"]) == 1
        assert told["initial"]["pin"] is not None
        assert told["initial"]["unit"] == "tokens"  # what is on the page is merged already


def test_a_page_opens_in_characters_where_tokens_are_parts_of_them(
    run: Run, tmp_path: Path
) -> None:
    for number, (text, options, unit) in enumerate(
        [("她喜欢猫", (), "chars"), ("她喜欢猫", ("--no-chars",), "tokens"), (TEXT, (), "tokens")]
    ):
        told = page(run, tmp_path / f"{number}.html", *options, text=text)
        assert told["initial"]["unit"] == unit
