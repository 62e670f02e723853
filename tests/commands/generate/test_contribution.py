"""What an answer took from each segment by contribution weights: their sign and sums are kept."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

PROMPT = "a fluffy blue creature roamed . the creature was"


def test_shares_of_an_answer_are_sums_of_contributions_and_sum_to_1(run: Run) -> None:
    head = ("--head", "L4H0", "--target", "blue")
    shares = rows_in(run("generate", PROMPT, *head, "--contribution", "-f", "jsonl").out)
    (links,) = [
        attnviz.capture(PROMPT, heads="L4H0", contribution=True)
        .show(query=-1, contribution=True)
        .to_columns()
    ]
    own = dict(zip(links["key"].tolist(), links["contribution"].tolist(), strict=True))
    expected = {"sink": own[0], "1": sum(own[i] for i in range(1, 7))}
    found = {each["segment"]: each["share"] for each in shares}
    assert found["sink"] == pytest.approx(expected["sink"], abs=1e-5)
    assert found["1"] == pytest.approx(expected["1"], abs=1e-5)
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)
    weights = rows_in(run("generate", PROMPT, *head, "-f", "jsonl").out)
    of_weights = {each["segment"]: each["share"] for each in weights}
    assert max(abs(found[each] - of_weights[each]) for each in found) > 0.01


def test_rows_of_each_head_are_written_with_their_sign(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "a.npz"
    arguments = ("generate", PROMPT, "--contribution", "--max-new-tokens", "2")
    assert run(*arguments, "--head", "all", "-o", str(saved)).status is ExitStatus.OK
    held = attnviz.load(saved).record
    weights = np.concatenate([layer.weights for layer in held.layers])  # (heads, 2, n)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-4)
    assert weights.min() < 0
    told = json.loads(run("show", str(saved), "--head", "L4H0", "-f", "json").out)
    assert told["transforms"] == [{"kind": "contributions"}]
    assert "contribution weights" in on_one_line(run(*arguments).out)


def test_a_check_says_that_its_shares_are_contributions(run: Run, tmp_path: Path) -> None:
    sentences = " . ".join(("the cat was red", "the dog was blue", "it was big", "he ran", "a b"))
    asked = ("generate", f"{sentences} . the cat was", "--target", "red", "--contribution")
    said = on_one_line(run(*asked, "--check", "--hops", "1").out)
    assert "deleted contribution change (nats)" in said
    assert "rank correlation of contribution and effect" in said
    assert "takes most from" in said
    assert "attention" not in said.replace("it takes the attention that no other key is given", "")
    picture = tmp_path / "a.svg"
    run(*asked, "-o", str(picture))
    assert "What contributed to the answer" in picture.read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--reduce", "max", "--head", "all"], "have a sign"),
        (["--view", "text"], "have a sign"),
        (["-o", "x.html"], "have a sign"),
        (["-m", "translator"], "which translator is not"),
    ],
)
def test_what_takes_no_sign_is_refused(run: Run, more: list[str], said: str) -> None:
    ended = run("generate", PROMPT, "--contribution", *more)
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err
