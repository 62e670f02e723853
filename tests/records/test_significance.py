"""Holm's p-values beside the definition, and what commands say of them."""

from pathlib import Path
from statistics import NormalDist

import pytest

from attnviz.records.metrics import Estimate
from attnviz.records.significance import holm, two_sided
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

NORMAL = NormalDist()


def with_p(p: float, error: float = 0.5) -> Estimate:
    """A mean whose two-sided p-value is this."""
    return Estimate(-NORMAL.inv_cdf(p / 2) * error, error)


@pytest.mark.parametrize("z", [0.0, 0.3, -1.0, 1.96, -4.0])
def test_a_p_value_is_both_tails_of_the_normal_distribution(z: float) -> None:
    assert two_sided(Estimate(z * 3, 3)) == pytest.approx(2 * NORMAL.cdf(-abs(z)))


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
    assert holm([with_p(p) for p in plain]) == pytest.approx(corrected)


def test_what_never_varies_is_sure_and_what_has_no_error_is_not_told() -> None:
    assert holm([Estimate(0.0, 0.0), Estimate(0.1, 0.0)]) == [1.0, 0.0]
    assert holm([Estimate(1.0), Estimate(2.0)]) == [None, None]


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
        wanted = holm([Estimate(row["change"], row["error"]) for row in means])
        assert [row["p_holm"] for row in means] == pytest.approx(wanted, rel=1e-4, abs=1e-300)
        sure = sum(row["p_holm"] < 0.05 for row in means)
        assert 0 < sure < 20
        out = on_one_line(run(command, "--pairs", str(pairs)).out)
        assert "20 heads were tested, and after Holm's correction for all of them" in out
        said = "differs from 0 (p < 0.05, normal approximation, rough for 6 texts)"
        assert f"the mean change of {sure} {said}" in out
    alone = run("ablate", "--pairs", str(pairs), "--head", "L4H0").out
    assert "Holm" not in alone
