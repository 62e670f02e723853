"""`predict --attribute` of several texts: what each part adds to the logits, on the mean."""

import json
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus, UsageError
from attnviz.records.parts import Part, Shares, aligned
from tests.conftest import Run
from tests.reading import rows_in

PROMPTS = [
    {"text": f"a {right} {noun} slept . the {noun} was", "answer": right, "versus": wrong}
    for right, wrong, noun in (
        ("blue", "red", "bird"),
        ("green", "black", "fox"),
        ("red", "white", "creature"),
    )
]
COLOURS = "/blue|green|red/"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, PROMPTS)))
    return path


def alone(prompt: dict[str, str]) -> list[dict]:
    """The parts of the logits of one text."""
    asked = {"answer": prompt["answer"], "versus": prompt["versus"]}
    return attnviz.predict(prompt["text"], attribute=True, top=10_000, **asked).rows


def means(run: Run, pairs: Path, *options: str) -> list[dict]:
    out = run("predict", "--pairs", str(pairs), "--attribute", *options, "-f", "jsonl").out
    return [row for row in rows_in(out) if row["line"] is None]


def test_a_mean_is_that_of_the_single_texts_with_its_standard_error(run: Run, pairs: Path) -> None:
    single = [alone(prompt) for prompt in PROMPTS]
    for row in means(run, pairs):
        same = row["kind"], row["layer"], row["head"]
        values = [
            sum(r["value"] for r in rows if (r["kind"], r["layer"], r["head"]) == same)
            for rows in single
        ]
        assert row["value"] == pytest.approx(mean(values), abs=1e-5)
        assert row["error"] == pytest.approx(stdev(values) / 3**0.5, abs=1e-5)
        assert row["token"] is None, "each text has an answer of its own"


def test_the_means_add_up_to_the_mean_logit(run: Run, pairs: Path) -> None:
    for options in ((), ("--roles", "word"), ("--segment", f"colour={COLOURS}")):
        rows = means(run, pairs, *options)
        assert sum(row["value"] for row in rows) == pytest.approx(rows[0]["logit"], abs=1e-4)


def test_roles_tell_from_which_tokens_a_head_took_it(run: Run, pairs: Path) -> None:
    found = means(run, pairs, "--segment", f"colour={COLOURS}")
    heads = [row for row in found if row["kind"] == "head"]
    assert heads[0]["part"] == "L4H0 from colour"
    assert heads[0]["role"] == "colour"
    taken = [
        sum(
            row["value"]
            for row in alone(prompt)
            if (row["layer"], row["head"]) == (4, 0) and row["source"] == 2
        )
        for prompt in PROMPTS
    ]
    assert heads[0]["value"] == pytest.approx(mean(taken), abs=1e-5)
    by_position = means(run, pairs, "--roles", "position")
    same = next(row for row in by_position if row["part"] == "L4H0 from position 2")
    assert same["value"] == pytest.approx(heads[0]["value"], abs=1e-6)


def test_the_terminal_shows_the_mean_with_errors(run: Run, pairs: Path) -> None:
    shown = run("predict", "--pairs", str(pairs), "--attribute", "--top", "2").out
    assert "mean of 3 texts" in shown
    assert "± s.e." in shown
    lines = [line.split() for line in shown.splitlines()]
    assert [" ".join(line[:2]) for line in lines[-3:]][-1] == "all others"


def test_texts_without_an_answer_are_read_at_their_own_likeliest_token() -> None:
    texts = [prompt["text"] for prompt in PROMPTS]
    found = attnviz.predict(texts, attribute=True)
    own = [attnviz.predict(text, attribute=True, top=1).rows[0] for text in texts]
    assert found.rows[-1]["logit"] == pytest.approx(mean(row["logit"] for row in own), abs=1e-4)
    assert "logit of the token of each text" in str(found)


def test_a_part_that_a_text_lacks_adds_nothing() -> None:
    long, short = Part("head", 0, 0, 1), Part("head", 0, 0, 0)
    first = Shares((short, long), np.array([[1.0, 2.0]]), np.array([3.0]))
    second = Shares((short,), np.array([[5.0]]), np.array([5.0]))
    together, roles = aligned([first, second], [["a", "b"], ["a"]])
    assert roles == ("a", "b")
    assert together.values.tolist() == [[1.0, 2.0], [5.0, 0.0]]
    assert [(part.source, each.mean) for part, each in together.means] == [(0, 3.0), (1, 1.0)]
    without, _ = aligned([first, second], [[], []])
    assert without.values.tolist() == [[3.0], [5.0]]


def test_roles_are_for_an_attribution_and_of_one_kind(run: Run) -> None:
    with pytest.raises(UsageError, match="roles is for attribute"):
        attnviz.predict("a blue bird", roles="word")
    done = run("predict", "a b", "--attribute", "--roles", "word", "--segment", "x=/a/")
    assert done.status == ExitStatus.USAGE
    assert done.err == "attnviz: --roles does nothing with --segment; leave it out.\n"


def test_a_text_alone_names_its_words_and_the_rows_their_roles() -> None:
    found = attnviz.predict(PROMPTS[0]["text"], attribute=True, roles="position")
    assert "from position" not in str(found)
    assert any("position" in (row["role"] or "") for row in found.rows)
    texts = [prompt["text"] for prompt in PROMPTS]
    assert "from position" in str(attnviz.predict(texts, attribute=True, roles="position"))
