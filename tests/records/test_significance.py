"""Holm's p-values beside the definition, and what commands say of them."""

from math import atan2, pi, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from attnviz.records.metrics import Estimate
from attnviz.records.significance import holm, two_sided
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

# samples, two-sided p, t: printed tables of Student's distribution
TABLE = [
    (2, 0.05, 12.706),
    (3, 0.05, 4.303),
    (5, 0.05, 2.776),
    (5, 0.001, 8.610),
    (11, 0.05, 2.228),
    (20, 0.01, 2.861),
    (31, 0.1, 1.697),
    (121, 0.05, 1.980),
]


@pytest.mark.parametrize(("samples", "p", "t"), TABLE)
def test_a_p_value_is_both_tails_of_students_distribution(samples: int, p: float, t: float) -> None:
    for sign in (1, -1):
        assert two_sided(Estimate(sign * t * 3, 3), samples) == pytest.approx(p, rel=2e-3)


@pytest.mark.parametrize("t", [0.0, 1e-9, 0.3, 1.0, 4.0, 60.0, 1e9])
def test_two_and_three_samples_have_closed_forms(t: float) -> None:
    """Of 1 degree of freedom it is Cauchy's distribution, of 2 a root."""
    assert two_sided(Estimate(t, 1), 2) == pytest.approx(2 / pi * atan2(1, t), rel=1e-9)
    root = sqrt(2 + t * t)
    assert two_sided(Estimate(t, 1), 3) == pytest.approx(2 / (root * (root + t)), rel=1e-9)


def test_many_samples_are_all_but_normal() -> None:
    for z in (0.01, 0.5, 1.96, 5.0):
        p = two_sided(Estimate(z, 1), 10_000_001)
        assert p == pytest.approx(2 * NormalDist().cdf(-z), rel=1e-4)
    assert two_sided(Estimate(1e200, 1e-100), 9) == 0


def test_chance_finds_something_in_five_of_a_hundred_experiments() -> None:
    """20 texts, 144 heads without an effect: a normal approximation finds some in 24 of 100."""
    random, found = np.random.default_rng(0), 0
    for _ in range(100):
        samples = random.normal(size=(144, 20)).tolist()
        found += min(p for p in holm([Estimate.of(s) for s in samples], 20) if p is not None) < 0.05
    assert found < 12


def with_p(p: float, samples: int) -> Estimate:
    """A mean whose two-sided p-value is this, by bisection."""
    low, high = 0.0, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        less = two_sided(Estimate(middle, 0.5), samples) > p
        low, high = (middle, high) if less else (low, middle)
    return Estimate(low, 0.5)


# statsmodels.stats.multitest.multipletests(p, method="holm") gives the same
HOLM = [
    ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
    # none above 1
    ([0.6, 0.5, 0.02], [1.0, 1.0, 0.06]),
    # equal ones stay equal
    ([0.02, 0.02, 0.9], [0.06, 0.06, 0.9]),
    # one alone needs no correction
    ([0.03], [0.03]),
    ([], []),
]


@pytest.mark.parametrize(("plain", "corrected"), HOLM)
def test_p_values_are_corrected_as_holm_does(plain: list[float], corrected: list[float]) -> None:
    assert holm([with_p(p, 12) for p in plain], 12) == pytest.approx(corrected)


def test_what_never_varies_is_sure_and_what_has_few_samples_is_not_told() -> None:
    assert holm([Estimate(0.0, 0.0), Estimate(0.1, 0.0)], 5) == [1.0, 0.0]
    assert holm([Estimate(1.0, 0.1), Estimate(2.0, 0.1)], 4) == [None, None]
    assert holm([Estimate(1.0), Estimate(2.0)], 1) == [None, None]


COLOURS = "blue red green black white brown".split()


def test_many_heads_are_corrected_for_their_number(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    line = (
        '{{"text": "a {0} bird slept . the bird was", "answer": "{0}", "versus": "{1}", '
        '"source": "a {1} bird slept . the bird was"}}'
    )
    each = zip(COLOURS, [*COLOURS[1:], COLOURS[0]], strict=True)
    pairs.write_text("\n".join(line.format(*both) for both in each))
    for command in ("ablate", "patch"):
        rows = rows_in(run(command, "--pairs", str(pairs), "-f", "jsonl").out)
        means = [row for row in rows if row["line"] is None]
        assert {row["p_holm"] for row in rows if row["line"] is not None} == {None}
        wanted = holm([Estimate(row["change"], row["error"]) for row in means], 6)
        assert [row["p_holm"] for row in means] == pytest.approx(wanted, rel=1e-4, abs=1e-300)
        sure = sum(row["p_holm"] < 0.05 for row in means)
        assert 0 < sure < 20
        out = on_one_line(run(command, "--pairs", str(pairs)).out)
        assert "20 heads were tested, and after Holm's correction for all of them" in out
        said = "differs from 0 (p < 0.05, Student's t)"
        assert f"the mean change of {sure} {said}" in out
        four = tmp_path / "four.jsonl"
        four.write_text("\n".join(pairs.read_text().split("\n")[:4]))
        assert "20 heads are not tested on 4 texts" in on_one_line(
            run(command, "--pairs", str(four)).out
        )
    alone = run("ablate", "--pairs", str(pairs), "--head", "L4H0").out
    assert "Holm" not in alone
