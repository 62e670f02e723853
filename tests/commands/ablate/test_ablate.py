"""`attnviz ablate`: what the model says without a head."""

import re
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.ablate.record import effect_of
from attnviz.console import Display
from attnviz.draw.terminal.cells import signed_style
from attnviz.draw.terminal.grid import head_grid
from attnviz.records.parts import Part
from tests.builtin import HEADS
from tests.conftest import Run
from tests.reading import head_of, on_one_line, rows_in

TEXT = "a fluffy blue creature roamed the verdant forest . the creature was"


def test_an_effect_is_the_mean_of_paired_changes_with_its_standard_error() -> None:
    before, after = np.array([[-1.0, -2.0, -3.0]]), np.array([[-2.0, -2.5, -3.0]])
    effect = effect_of((Part("head", 0, 0),), before, after)
    assert effect.change.mean == pytest.approx(-0.5)
    assert effect.change.error == pytest.approx(0.5 / np.sqrt(3))
    assert effect_of((), before[:, :1], after[:, :1]).change.error is None


def test_every_head_has_a_row_and_the_one_that_matters_most_comes_first(run: Run) -> None:
    found = rows_in(run("ablate", TEXT, "-f", "jsonl").out)
    assert {head_of(row) for row in found} == set(map(str, HEADS))
    changes = [row["change"] for row in found]
    assert changes == sorted(changes, key=lambda change: -abs(change))
    for row in found:
        assert row["after"] == pytest.approx(row["before"] + row["change"])
        assert row["tokens"] == 12


def test_the_baseline_is_what_predict_says_of_each_token(run: Run) -> None:
    each = rows_in(run("predict", TEXT, "--each", "--top", "1", "-f", "jsonl").out)
    logs = [np.log(row["followed_probability"]) for row in each if row["followed"]]
    found = rows_in(run("ablate", TEXT, "--head", "L0H0", "-f", "jsonl").out)
    assert found[0]["before"] == pytest.approx(np.mean(logs), abs=1e-4)


def test_an_answer_is_looked_at_after_the_last_position(run: Run) -> None:
    best = rows_in(run("predict", TEXT, "-f", "jsonl").out)
    blue = next(row["probability"] for row in best if row["token"] == "blue")
    arguments = ("ablate", TEXT, "--answer", "blue", "-f", "jsonl")
    for row in rows_in(run(*arguments).out):
        assert row["before"] == pytest.approx(np.log(blue), abs=1e-4)
        assert row["error"] is None


def test_heads_together_show_what_comes_next_before_and_after(run: Run) -> None:
    arguments = ("ablate", TEXT, "--head", "L1H3,L2H1", "--together", "--answer", "blue")
    found = rows_in(run(*arguments, "-f", "jsonl", "--top", "3").out)
    assert [row["when"] for row in found] == ["before"] * 3 + ["after"] * 3
    plain = rows_in(run("predict", TEXT, "--top", "3", "-f", "jsonl").out)
    for mine, theirs in zip(found, plain, strict=False):
        assert mine["token"] == theirs["token"]
        assert mine["probability"] == pytest.approx(theirs["probability"], abs=1e-5)
    assert found[0]["parts"] == [
        {"kind": "head", "layer": 1, "head": 3},
        {"kind": "head", "layer": 2, "head": 1},
    ]
    likely = rows_in(run("predict", TEXT, "--top", "999", "-f", "jsonl").out)
    blue = next(row["probability"] for row in likely if row["token"] == "blue")
    assert f"without L1H3, L2H1: P(blue) {blue:.3f} → " in run(*arguments).out


def test_the_table_and_the_grid_fit_a_narrow_terminal(run: Run) -> None:
    shown = run("ablate", TEXT, "--top", "3", "--width", "40").out.splitlines()
    assert max(map(len, shown)) <= 40
    assert any(line.split()[:4] == ["H0", "H1", "H2", "H3"] for line in shown)
    wide = run("ablate", TEXT, "--top", "3", "--width", "120").out
    assert "replaced by 0" in wide
    mean = run("ablate", TEXT, "--with", "mean", "--width", "120").out
    assert "replaced by its mean over the positions" in mean


def test_an_answers_probability_and_rank_stand_above(run: Run) -> None:
    first, second = rows_in(run("predict", TEXT, "--top", "2", "-f", "jsonl").out)
    top, answer = str(first["token"]), str(second["token"])
    shown = on_one_line(run("ablate", TEXT, "--answer", answer, "--top", "1").out)
    said = f"P({answer}) = {second['probability']:.3f}, rank 2; top: {top}, "
    assert f"{said}{first['probability']:.3f}" in shown
    assert "s.e." not in shown
    best = on_one_line(run("ablate", TEXT, "--answer", top, "--top", "1").out)
    assert "rank 1 change" in best


def test_small_effects_have_more_digits_and_narrow_grids_a_legend(run: Run, tmp_path: Path) -> None:
    text = "a fluffy blue creature roamed the verdant forest"
    out = tmp_path / "a.svg"
    sizes = {
        head_of(row): abs(row["change"]) for row in rows_in(run("ablate", text, "-f", "jsonl").out)
    }
    small = next(head for head, size in sizes.items() if 0.001 < size < 0.01)
    run("ablate", text, "--head", str(small), "-o", str(out))
    assert re.search(r"0\.00[1-9]", out.read_text(encoding="utf-8"))
    narrow = head_grid(np.full((3, 30), -0.25, np.float32), 0.25, signed_style, Display(40))
    assert "the strongest colour or shade is 0.25 from 0, - below 0" in " ".join(map(str, narrow))
