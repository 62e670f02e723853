"""`attnviz heads`: scores of every head, over a text, a capture or the probe."""

import json
from math import log
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from attnviz.draw.picture import canvas
from attnviz.inputs.captures import load_capture, npz_chunks
from attnviz.kit.write import write_bytes
from attnviz.records.capture import PatternBlock
from attnviz.records.heads import Head
from attnviz.records.metrics import METRICS, MeasureHeads, entropy, marks_of_tokens
from tests.builtin import HEADS
from tests.conftest import Run
from tests.factories import make_capture
from tests.reading import head_of

TEXT = "a fluffy blue creature roamed the verdant forest"
SHOWN = ("show", TEXT, "--head", "L1H2", "--drop-sink")


def rows(out: str) -> dict[str, dict[str, object]]:
    return {head_of(row): row for row in map(json.loads, out.splitlines())}


def test_the_probe_finds_the_head_that_copies_what_followed(run: Run) -> None:
    found = rows(run("heads", "--samples", "2", "-f", "jsonl").out)
    assert len(found) == len(HEADS)
    roles = {row["role"] for row in found.values()}
    assert {"induction", "previous token"} <= roles
    best = max(found.values(), key=lambda row: row["induction"])  # type: ignore[arg-type,return-value]
    assert best["role"] == "induction"
    assert best["passed"] == "induction ≥ 0.4"
    assert "induction" in best["card"]  # type: ignore[operator]
    assert 0 < best["induction_error"] < 0.2  # type: ignore[operator]


def test_the_convention_is_said_and_changes_the_scores(run: Run) -> None:
    second = rows(run("heads", "--samples", "1", "-f", "jsonl").out)["L0H0"]
    whole = rows(run("heads", "--samples", "1", "--convention", "whole", "-f", "jsonl").out)["L0H0"]
    bare = rows(run("heads", "--samples", "1", "--no-bos", "-f", "jsonl").out)["L0H0"]
    assert "BOS and then 50 random tokens twice, 1 sample from seed 0" in str(second["measured"])
    assert str(second["measured"]).endswith("the second copy's rows")
    assert str(whole["measured"]).endswith("whole diagonals")
    assert "no BOS" in str(bare["measured"])
    assert second["duplicate"] != whole["duplicate"]
    assert second["first"] != bare["first"]


def test_the_same_seed_draws_the_same_tokens(run: Run) -> None:
    arguments = ("heads", "--samples", "2", "-f", "csv", "--seed")
    assert run(*arguments, "3").out == run(*arguments, "3").out != run(*arguments, "4").out


def test_a_saved_capture_scores_as_its_text_does(run: Run, tmp_path: Path) -> None:
    saved = str(tmp_path / "c.npz")
    run("show", TEXT, "-o", saved)
    fresh, again = (rows(run("heads", what, "-f", "jsonl").out) for what in (TEXT, saved))
    for head, row in fresh.items():
        for score in ("entropy", "distance", "previous", "first"):
            assert again[head][score] == pytest.approx(row[score], abs=1e-6)
    weights = load_capture(Path(saved)).layers[1].weights
    expected = entropy(weights).mean(axis=1)
    found = [fresh[f"L1H{n}"]["entropy"] for n in range(4)]
    np.testing.assert_allclose(found, expected, atol=1e-5)  # type: ignore[arg-type]


def test_a_text_of_few_tokens_names_no_role_and_says_so(run: Run) -> None:
    shown = run("heads", TEXT, "--width", "200").out
    few = "previous token (8 of 11), self (9 of 18), sink (9 of 26), broad (8 of 11)"
    above, table = shown.split("\nhead ")
    assert f"these roles need more rows: {few}; a longer text or --probe has them" in above
    assert "these roles" not in table
    assert {row["role"] for row in rows(run("heads", TEXT, "-f", "jsonl").out).values()} == {None}
    assert "\nfirst > 0.3: " in shown
    long = f"{TEXT} . {TEXT} . {TEXT}"
    told = run("heads", long, "--width", "200").out
    assert "these roles need" not in told
    assert "\nsinks (first > 0.3): " in told
    assert "induction" in told
    probe = run("heads", "--length", "4", "--samples", "1", "--width", "200").out
    assert "previous token (4 of 11)" in probe
    assert "; a longer probe has them" in probe


def test_heads_are_sorted_filtered_and_cut(run: Run) -> None:
    arguments = ("heads", TEXT, "-f", "jsonl")
    far = [row["distance"] for row in rows(run(*arguments, "--sort", "distance").out).values()]
    assert far == sorted(far, reverse=True)  # type: ignore[type-var]
    assert len(rows(run(*arguments, "--sort", "entropy", "--top", "3").out)) == 3
    long = ("heads", f"{TEXT} . {TEXT} . {TEXT}", "-f", "jsonl")
    only = rows(run(*long, "--role", "sink", "--layer", "0").out)
    assert only
    assert all((row["role"], row["layer"]) == ("sink", 0) for row in only.values())
    # what a text cannot show comes last, whatever is first
    assert rows(run(*arguments, "--sort", "induction").out)["L0H0"]["induction"] is None


def test_a_letter_that_no_font_has_is_told_beside_the_picture(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "_other_fonts", lambda region: [])
    monkeypatch.setattr(canvas, "_add_new_fonts", int)
    canvas._lettering.cache_clear()
    said = run("heads", "a 楚 creature", "-o", str(tmp_path / "a.svg"))
    assert "no installed font has U+695A" in said.err
    assert "a U+695A creature" in (tmp_path / "a.svg").read_text()


def test_transforms_come_before_the_scores(run: Run) -> None:
    text = "unbelievable wonderfulness roamed"
    words = rows(run("heads", text, "--words", "-f", "jsonl").out)
    assert "pieces of words merged" in str(words["L1H2"]["measured"])
    plain = rows(run("heads", text, "-f", "jsonl").out)
    assert words["L1H2"]["distance"] != plain["L1H2"]["distance"]
    for row in rows(run("heads", TEXT, "--drop-sink", "-f", "jsonl").out).values():
        assert row["first"] is None  # no query has that key
    weighted = rows(run("heads", TEXT, "--weighted", "-f", "jsonl").out)
    raw = rows(run("heads", TEXT, "-f", "jsonl").out)
    assert weighted["L2H0"]["first"] != raw["L2H0"]["first"]
    assert all(0 <= row["first"] <= 1.0001 for row in weighted.values())  # type: ignore[operator]


def test_without_the_sink_a_query_that_saw_nothing_else_does_not_count(run: Run) -> None:
    found = rows(run("heads", TEXT, "--drop-sink", "-f", "jsonl").out)
    links = [
        json.loads(line)
        for line in run(
            "show", TEXT, "--head", "L1H2", "--drop-sink", "-f", "jsonl"
        ).out.splitlines()
    ]
    before = [link["weight"] for link in links if link["query"] == link["key"] + 1]
    assert found["L1H2"]["previous"] == pytest.approx(
        sum(before) / len(before),
        abs=1e-4,  # of token 1, the token before was removed
    )
    entropies, seen = {}, range(2, 9)  # query i sees i keys; the first of these has no choice
    for query in seen:
        row = [link["weight"] for link in links if link["query"] == query and link["weight"] > 0]
        entropies[query] = -sum(weight * log(weight) for weight in row)
    assert found["L1H2"]["normalised"] == pytest.approx(
        fmean(entropies[query] / log(query) for query in seen), abs=1e-4
    )
    shown = run("heads", TEXT, "--drop-sink").out
    assert "first" not in shown.split("\n\n")[-1]


def test_a_token_twice_in_a_row_shows_copies_and_nothing_behind_them(run: Run) -> None:
    shown = run("heads", "a very very fluffy cat", columns=200).out
    assert "no token is repeated here in a way that shows ind; --probe measures" in shown


def test_words_that_begin_alike_are_not_the_same_word(run: Run, gpt2_folder: Path) -> None:
    arguments = ("heads", "abc abd abe", "--words", "-m", str(gpt2_folder), "-f", "jsonl")
    assert {row["duplicate"] for row in rows(run(*arguments).out).values()} == {None}
    again = ("heads", "abc abd abc", "--words", "-m", str(gpt2_folder), "-f", "jsonl")
    assert None not in {row["duplicate"] for row in rows(run(*again).out).values()}


def test_the_probe_says_which_metrics_leave_out_the_first_copy(run: Run) -> None:
    said = str(rows(run("heads", "--samples", "1", "-f", "jsonl").out)["L0H0"]["measured"])
    named = {name for name in METRICS if name in said}
    length, weights = 5, np.tril(np.random.default_rng(0).random((1, 11, 11)) + 0.1)
    weights /= weights.sum(axis=2, keepdims=True)
    other = weights.copy()
    other[:, : 1 + length] = np.eye(11)[: 1 + length]  # BOS and the first copy: each to itself
    marks = marks_of_tokens([0, *range(1, 6), *range(1, 6)], since=1 + length)

    def measured(pattern: np.ndarray) -> dict[str, float]:
        score = MeasureHeads(marks, causal=True)
        score(PatternBlock(0, (0,), np.arange(11), pattern.astype(np.float32)))
        return {name: value for own in score.metrics().values() for name, value in own.items()}

    one, changed = measured(weights), measured(other)
    same = {name for name in METRICS if one[name] == pytest.approx(changed[name])}
    assert named == same == {"previous", "duplicate", "induction"}


def test_a_head_with_another_role_on_the_probe_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = " ".join(["the cat sat on the mat . the dog sat on the log ."] * 3)
    assert "on the probe" not in run("heads", text).out  # which was not measured
    probed = rows(run("heads", "-f", "jsonl").out)
    here = rows(run("heads", text, "-f", "jsonl").out)
    others = [
        f"{head} {row['role']}"
        for head, row in probed.items()
        if row["role"] and here[head]["role"] not in (None, row["role"])
    ]
    said = " ".join(run("heads", text).out.split())
    assert others
    assert f"another role on the probe: {', '.join(others[:6])}" in said


def test_roles_say_how_much_a_head_rests_beside_what_it_does(run: Run, tmp_path: Path) -> None:
    n = 30
    weights = np.zeros((n, n), np.float32)
    weights[:, 0], weights[np.arange(1, n), np.arange(n - 1)] = 0.7, 0.3
    weights[0, 0], weights[1, 0] = 1, 1
    capture = make_capture(
        " ".join(map(str, range(n))), heads_per_layer=(1,), patterns={Head(0, 0): weights}
    )
    saved = str(tmp_path / "saved.npz")
    write_bytes(Path(saved), npz_chunks(capture))
    assert "previous token; rests .69" in run("heads", saved).out
    (row,) = rows(run("heads", saved, "-f", "jsonl").out).values()
    assert (row["role"], row["passed"]) == ("previous token", "previous off rests ≥ 0.4")
    assert row["rests"] == pytest.approx(0.69, abs=0.005)
