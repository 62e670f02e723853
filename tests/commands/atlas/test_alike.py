"""`attnviz atlas --like`, `--pair` and `--cluster`: heads by how alike their scores are."""

import sys
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.commands.atlas.record import SCORES
from attnviz.errors import ExitStatus, UsageError
from tests.commands.atlas.atlases import HEADS, made_scan
from tests.conftest import Run
from tests.reading import rows_in

KINDS = {0: (0.9, 0.0), 1: (0.1, 0.8), 2: (0.5, 0.1)}
"""Previous-token and induction score of the heads of this number, in every layer."""


def by_kind(layer: int, head: int, name: str) -> float:
    previous, induction = KINDS[head]
    return {"previous": previous + layer / 1000, "induction": induction}.get(name, 0.2)


@pytest.fixture
def scan(tmp_path: Path) -> str:
    return str(made_scan(tmp_path / "scan", by_kind))


def points_of(folder: str) -> np.ndarray:
    """The heads by their scores in standard deviations (heads, scores)."""
    rows = attnviz.atlas(folder).rows
    values = np.array([[row[name] for name in SCORES] for row in rows])
    values = values[:, values.std(axis=0) > 1e-9]  # others tell no heads apart
    return (values - values.mean(axis=0)) / values.std(axis=0)


def test_the_heads_most_like_one_are_the_nearest_by_all_scores(run: Run, scan: str) -> None:
    found = rows_in(run("atlas", scan, "--like", "L2H1", "-f", "jsonl").out)
    points = points_of(scan)
    distances = np.linalg.norm(points - points[HEADS.index((2, 1))], axis=1)
    assert (found[0]["other_layer"], found[0]["other_head"]) == (3, 1)
    assert found[0]["mutual"]
    for row in found:
        place = HEADS.index((row["other_layer"], row["other_head"]))
        assert row["distance"] == pytest.approx(distances[place])
    assert [row["distance"] for row in found] == sorted(row["distance"] for row in found)
    assert len(found) == len(HEADS) - 1
    shown = run("atlas", scan, "--like", "L2H1", "--top", "1").out
    assert "the heads most like L2H1 of org/tiny" in shown
    assert "L3H2" not in shown


def test_groups_hold_heads_of_a_kind_and_say_what_makes_them_stand_out(
    run: Run, scan: str, tmp_path: Path
) -> None:
    found = rows_in(run("atlas", scan, "--cluster", "3", "-f", "jsonl").out)
    groups = {}
    for row in found:
        groups.setdefault(row["group"], set()).add(row["head"])
    assert sorted(map(sorted, groups.values())) == [[0], [1], [2]]
    (score,) = {row["score"] for row in found if row["head"] == 1}
    assert score == "induction"
    picture = tmp_path / "groups.png"
    assert run("atlas", scan, "--cluster", "3", "-o", str(picture)).status == ExitStatus.OK
    assert picture.stat().st_size > 10_000
    assert "group 3, 2 heads: " in run("atlas", scan, "--cluster", "3").out


def test_two_models_are_compared_head_by_head(run: Run, scan: str, tmp_path: Path) -> None:
    """The other model has the same kinds of heads in another order, and one layer more."""
    heads = tuple((layer, head) for layer in range(3) for head in range(3))
    other = made_scan(
        tmp_path / "other",
        lambda layer, head, name: by_kind(layer, (head + 1) % 3, name),
        heads=heads,
        model="org/other",
        length=16,
    )
    found = rows_in(run("atlas", scan, str(other), "--pair", "best", "-f", "jsonl").out)
    assert {(row["head"], row["other_head"]) for row in found} == {(0, 2), (1, 0), (2, 1)}
    (row, *_) = rows_in(
        run("atlas", scan, str(other), "--like", "L3H1", "--top", "1", "-f", "jsonl").out
    )
    assert (row["layer"], row["head"], row["other_head"]) == (3, 1, 0)
    wrong = run("atlas", scan, str(other), "--pair", "same")
    assert wrong.status == ExitStatus.USAGE
    assert wrong.err.endswith("these scans are of different heads; take --pair best.\n")


def test_checkpoints_are_compared_head_by_head_the_largest_change_first(
    run: Run, scan: str, tmp_path: Path
) -> None:
    def changed(layer: int, head: int, name: str) -> float:
        grown = 0.5 if (layer, head, name) == (3, 2, "induction") else 0.0
        return by_kind(layer, head, name) + grown

    later = str(made_scan(tmp_path / "later", changed))
    first, *others = rows_in(run("atlas", scan, later, "--pair", "same", "-f", "jsonl").out)
    assert (first["layer"], first["head"], first["score"]) == (3, 2, "induction")
    assert first["other_value"] - first["value"] == pytest.approx(0.5)
    assert {row["distance"] for row in others} == {0}
    found = attnviz.atlas(scan).matched(attnviz.atlas(later), "same")
    assert found.rows[0] == first


def test_what_cannot_be_compared_is_refused_in_a_sentence(
    run: Run, scan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(made_scan(tmp_path / "elsewhere", by_kind, corpus=[["other.txt", 1, 1]]))
    wrong = run("atlas", scan, elsewhere, "--pair", "best")
    assert "other.txt only in " in wrong.err
    for options, said in (
        (("--pair", "best"), "--pair is for two scans; give two folders"),
        (("--cluster", "9"), "--cluster 9 is more than there are heads; give at most 6"),
        (("--like", "L9H9"), "the scan has no head L9H9"),
        (("--like", "L2H1", "--sort", "first"), "--sort does nothing for --like"),
    ):
        ended = run("atlas", scan, *options)
        assert said in ended.err
        assert ended.status == ExitStatus.USAGE
    monkeypatch.setitem(sys.modules, "scipy.cluster.hierarchy", None)
    with pytest.raises(UsageError, match="groups of heads need scipy, which is not installed"):
        attnviz.atlas(scan).clusters(3)
