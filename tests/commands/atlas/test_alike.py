"""Heads that are alike: lines of pandas in docs/scan.md, in place of options of `attnviz atlas`."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnviz.errors import ExitStatus
from tests.commands.atlas.atlases import made_scan
from tests.conftest import Run

SCAN = Path(__file__).parents[3] / "docs/scan.md"
TITLE = "Heads that are alike"
KINDS = {0: (0.9, 0.0), 1: (0.1, 0.8), 2: (0.5, 0.1)}
"""Previous-token and induction score of the heads of this number, in every layer."""


def by_kind(layer: int, head: int, name: str) -> float | None:
    """Two scores tell heads apart; of the others, one is constant and one is missing."""
    previous, induction = KINDS[head]
    scores = {"previous": previous + layer / 1000, "induction": induction, "self": None}
    return scores.get(name, 0.2)


def test_the_lines_of_the_document_find_heads_of_a_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, section = SCAN.read_text(encoding="utf-8").split(f"## {TITLE}\n")
    (lines,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:1]
    made_scan(tmp_path / "scanned", by_kind)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(lines.replace('"ward"), 5', '"ward"), 3'), found)
    distances, groups, points = found["distances"], found["groups"], found["points"]
    assert list(distances.nsmallest(2).index) == [(3, 1), (2, 1)]
    assert groups.groupby("head").nunique().tolist() == [1, 1, 1]
    assert groups.nunique() == 3
    assert set(points.columns) == {"previous", "induction"}


@pytest.mark.parametrize("typed", ["--like=L2H1", "--pair=best", "--cluster=3"])
def test_an_option_that_is_gone_is_refused_with_the_document_that_replaces_it(
    run: Run, typed: str
) -> None:
    refused = run("atlas", "scanned", typed)
    assert refused.status == ExitStatus.USAGE
    assert f"{typed.partition('=')[0]} was removed; " in refused.err
    assert f'docs/scan.md, "{TITLE}", ' in refused.err
    assert refused.err.count("\n") == 1
