"""`attnviz ablate` of links, MLPs and layers."""

from pathlib import Path
from typing import Any

import numpy as np

from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

TEXT = "a blue bird slept . the bird was"
ASKED = "--answer", "blue", "--versus", "red"


def rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    ended = run("ablate", TEXT, *arguments, "-f", "jsonl")
    assert ended.status == ExitStatus.OK, ended.err
    return rows_in(ended.out)


def test_a_cut_link_says_which_and_what_became_of_the_others(run: Run) -> None:
    given = "--cut", "bird#2:blue", *ASKED
    row = rows(run, *given)[0]
    assert (row["cut_query"], row["cut_key"]) == ("bird#2", "blue")
    assert (row["replacement"], row["renormalised"]) == (None, False)
    out = on_one_line(run("ablate", TEXT, *given, "--renormalise").out)
    assert "a head's link from bird#2 to blue removed, the softmax taken again over the rest" in out
    assert "negative = the link helps" in out


def test_cutting_every_link_of_a_head_is_ablating_the_head(run: Run) -> None:
    every = rows(run, "--cut", "/BOS|./:/BOS|./", "--head", "L4H1", *ASKED)
    (row,) = every
    (ablated,) = rows(run, "--head", "L4H1", *ASKED)
    assert np.isclose(row["change"], ablated["change"], atol=1e-4)
    assert abs(row["change"]) > 0.5


def test_mlps_and_layers_stand_beside_the_heads(run: Run) -> None:
    given = "ablate", TEXT, "--head", "all", "--mlp", "all", "--whole-layer", "all"
    wide = run(*given, "--width", "80").out
    assert "      H0    H1    H2    H3   MLP layer\n" in wide
    assert "a part's output replaced by 0" in wide
    found = {(r["kind"], r["layer"], r["head"]): r["change"] for r in rows(run, *given[2:])}
    assert len(found) == 5 * 6
    grid = [line.split() for line in wide.splitlines() if line.startswith("L2 ")]
    wanted = [found["head", 2, head] for head in range(4)]
    wanted += [found["mlp", 2, None], found["layer", 2, None]]
    assert np.allclose([float(cell) for cell in grid[0][1:]], wanted, atol=0.006)


def test_mlps_alone_have_a_grid_and_a_picture_of_their_own(run: Run, tmp_path: Path) -> None:
    out = run("ablate", TEXT, "--mlp", "all").out
    assert "an MLP's output replaced by 0" in on_one_line(out)
    assert "   MLP\n" in out
    assert "H0" not in out
    assert "what a layer adds replaced by 0" in run("ablate", TEXT, "--whole-layer", "1").out
    for given in (("--mlp", "all"), ("--mlp", "0", "--head", "all"), ("--whole-layer", "1")):
        file = tmp_path / "ablation.png"
        assert run("ablate", TEXT, *given, "-o", str(file)).status == ExitStatus.OK
        assert file.read_bytes().startswith(b"\x89PNG")


def test_several_parts_at_once_are_one_run(run: Run) -> None:
    given = "--mlp", "3", "--head", "L4H0", "--together", *ASKED
    every = rows(run, *given)
    assert every[0]["parts"] == [
        {"kind": "head", "layer": 4, "head": 0},
        {"kind": "mlp", "layer": 3, "head": None},
    ]
    out = run("ablate", TEXT, *given).out
    assert f"({every[0]['change']:+.3f})" in out
    assert "without L4H0, L3 MLP: logit(blue) - logit(red)" in on_one_line(out)


def test_the_last_of_other_options_holds(run: Run) -> None:
    arguments = "ablate", "a blue bird", "-f", "csv", "-f", "jsonl", "--layer", "0"
    assert run(*arguments).out.startswith("{")
