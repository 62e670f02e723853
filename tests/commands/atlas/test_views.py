"""The views of a scan: one head, two scores of all heads, and several checkpoints."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.commands.atlas.terminal import render_development, render_head
from attnviz.commands.atlas.views import Development, develop, scatter_of, step_in, two_scores
from attnviz.console import Display
from attnviz.corpus.record import SCORES
from attnviz.corpus.result import one_head, read_atlas, read_head
from attnviz.corpus.tables import Atlas
from attnviz.draw.picture.panes import GAP, place_names, spread
from attnviz.draw.terminal.cells import side_by_side
from attnviz.errors import ExitStatus, UsageError
from attnviz.records.heads import Head
from tests.commands.atlas.atlases import HEADS, made_scan, sealed, write_table
from tests.conftest import Run
from tests.reading import head_of, on_one_line, rows_in

PNG = b"\x89PNG"


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    return made_scan(tmp_path / "scan")


def lines(scan: Path, display: Display, name: str = "L3H1", top: int | None = None) -> list[str]:
    """One head as it is shown."""
    atlas = read_atlas(scan)
    row = next(row for row in atlas.rows if head_of(row) == name)
    shown = render_head(read_head(atlas, row), display, top or 0)
    return [line.plain for line in shown]


# ---- one head ----


def test_scores_of_fewer_documents_say_so(scan: Path) -> None:
    found = {line[:17].strip(): line[17:].split() for line in lines(scan, Display(60))[2:12]}
    assert found["score"] == ["mean", "±", "error", "documents"]
    assert (found["induction"][2], found["previous"][2]) == ("3", "4")


def test_a_window_says_its_strongest_link_without_colour_and_shades_words_with(scan: Path) -> None:
    plain = lines(scan, Display(80))
    assert any("creature → fluffy 0.93, blue 0.02" in line for line in plain)
    ascii_ = lines(scan, Display(80, unicode=False))
    assert any("creature -> fluffy 0.93, blue 0.02" in line for line in ascii_)
    at = next(i for i, line in enumerate(plain) if line.startswith("  <bos> a fluffy"))
    words, numbers = plain[at : at + 2]
    assert numbers.index(".93") == words.index("fluffy")
    assert numbers.index("^") == words.index("creature")
    atlas = read_atlas(scan)
    head = read_head(atlas, atlas.rows[0])
    colored = [*render_head(head, Display(80, color=True), 0)]
    line = next(line for line in colored if "fluffy blue creature" in line.plain)
    styles = {line.plain[s.start : s.end]: str(s.style) for s in line.spans}
    assert " on #" in styles["fluffy"]
    assert "underline" in styles["creature"]
    assert " on #" not in styles.get("blue", "")


def test_the_bars_of_a_terminal_without_other_letters_are_ascii(scan: Path) -> None:
    text = "\n".join(lines(scan, Display(80, unicode=False)))
    assert text.isascii()
    assert "0.90-1.00 3 ============" in text
    assert "▇▇▇" in "\n".join(lines(scan, Display(80)))


@pytest.mark.parametrize("width", [40, 60, 80, 150])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_terminal(scan: Path, width: int, color: bool) -> None:
    shown = lines(scan, Display(width, color=color))
    assert max(map(cell_len, shown)) <= width
    assert not any(line.endswith(" ") for line in shown)


def test_histograms_stand_side_by_side_where_there_is_room(scan: Path) -> None:
    def beside(width: int) -> int:
        names = ("score", "weight by distance", "weight by key", "windows by")
        return max(sum(name in line for name in names) for line in lines(scan, Display(width))[2:])

    assert [beside(width) for width in (40, 60, 80, 150)] == [1, 2, 2, 4]


def test_tokens_that_differ_in_spaces_only_are_told_apart(scan: Path) -> None:
    text = "\n".join(lines(scan, Display(80)))
    assert '" fluffy" 2.5' in text
    assert '"fluffy"  0.5' in text


def test_top_sets_how_many_tokens_and_windows_are_shown(scan: Path) -> None:
    every, one = ("\n".join(lines(scan, Display(80), top=n)) for n in (None, 1))
    assert "ran" in every.split("windows with")[0]
    assert "ran" not in one.split("windows with")[0]


def test_what_tokens_and_paths_hold_is_no_command(tmp_path: Path, run: Run) -> None:
    from tests.commands.atlas.atlases import examples

    scan = made_scan(tmp_path / "scan", model="\x1b[2J[red]m", heads=HEADS[:1])
    hostile = ("\x1b[2J", "[b]x", "\n\n", " \u202eabc", " c\x07", " $x$", "<i>")
    rows = [{**row, "path": "\x1b]0;x\x07\n.txt"} for row in examples(Head(2, 0), hostile)]
    write_table(scan, "examples", rows)
    sealed(scan)
    for extra in ((), ("-f", "json"), ("-f", "csv")):
        out = run("atlas", str(scan), "--head", "2.0", *extra).out
        assert all(c.isprintable() or c == "\n" for c in out)
    shown = run("atlas", str(scan), "--head", "2.0").out
    assert "[red]m" in shown
    assert r"x\x07\n.txt" in shown  # a line end in a name ends no line


def test_a_long_window_is_shown_around_its_links(tmp_path: Path) -> None:
    import attnviz.corpus.tables as tables

    scan = made_scan(tmp_path / "scan", heads=HEADS[:1])
    atlas = read_atlas(scan)
    example = read_head(atlas, atlas.rows[0]).examples[0]
    words = ["<bos>", *(f" w{i}" for i in range(1, 400))]
    row = {
        **vars(example),
        **{
            "layer": 2,
            "head": 0,
            "tokens": words,
            "queries": [300],
            "keys": [100],
            "weights": [0.9],
        },
    }
    known = set(tables.columns("examples").names)
    row = {name: value for name, value in {"rank": 0, **row}.items() if name in known}
    write_table(scan, "examples", [row])
    sealed(scan)
    text = "\n".join(lines(scan, Display(80), "L2H0"))
    assert '"w300" → "w100" 0.90' in text
    assert all(word in text for word in ("w92", "w108", "w292", "w308"))
    assert not any(word in text for word in ("w91 ", "w109", "w200", "w309"))
    assert text.count("…") == 3


def test_a_head_that_was_not_scanned_is_told_with_those_that_were(run: Run, scan: Path) -> None:
    ended = run("atlas", str(scan), "--head", "L0H0")
    assert ended.status is ExitStatus.USAGE
    assert ended.err == (
        "attnviz: the scan has no head L0H0; it has L2H0, L2H1, L2H2, L3H0, L3H1, L3H2.\n"
    )
    for name in ("2", "all", "L2", "L2H0,L2H1", "x"):
        with pytest.raises(UsageError, match="names no single head"):
            one_head(read_atlas(scan), name)


def test_one_head_has_no_picture(run: Run, scan: Path, tmp_path: Path) -> None:
    ended = run("atlas", str(scan), "--head", "3.1", "-o", str(tmp_path / "a.png"))
    assert ended.status is ExitStatus.USAGE
    assert "--head 3.1 has no png; leave --head out" in ended.err


# ---- two scores ----


def atlas_of(values: dict[str, list[float | None]]) -> Atlas:
    """Heads of one layer with these scores; all others are 0."""
    n = len(next(iter(values.values())))
    rows = [
        {
            **{"layer": 0, "head": i, "documents": 9, "tokens": 99},
            "mean_over": "documents",
            **{name: values.get(name, [0.0] * n)[i] for name in SCORES},
            **{f"{name}_error": 0.1 for name in SCORES},
        }
        for i in range(n)
    ]
    return Atlas("m", rows)


def test_outliers_lie_far_from_the_median_in_robust_units() -> None:
    first: list[float | None] = [1, 2, 3, 4, 5, 100]
    scatter = scatter_of(atlas_of({"first": first, "self": [0, 1, 2, 3, 4, 5]}), "first", "self")
    away = {point.head.head: point.distance_from_median for point in scatter.points}
    # of first: median 3.5, deviations 2.5 1.5 .5 .5 1.5 96.5, their median 1.5
    assert away[5] == pytest.approx(96.5 / (1.4826 * 1.5))
    assert away[0] == pytest.approx(2.5 / (1.4826 * 1.5))
    assert [point.head for point in scatter.outliers] == [Head(0, 5)]
    assert scatter.points[0].head == Head(0, 5)


def test_where_most_heads_are_alike_the_mean_deviation_stands_in() -> None:
    alike: list[float | None] = [0.0] * 9 + [1.0]
    scatter = scatter_of(atlas_of({"first": alike}), "first", "self")
    assert [point.head.head for point in scatter.outliers] == [9]
    assert scatter.points[0].distance_from_median == pytest.approx(1 / (1.2533 * 0.1))
    nearly: list[float | None] = [1e-8 * i for i in range(9)] + [1.0]  # but for rounding
    assert (
        scatter_of(atlas_of({"first": nearly}), "first", "self").points[0].distance_from_median < 10
    )
    same = scatter_of(atlas_of({"first": [0.5] * 4}), "first", "self")
    assert not same.outliers


def test_heads_without_a_score_are_counted_and_left_out(run: Run, tmp_path: Path) -> None:
    values: dict[str, list[float | None]] = {"induction": [None, 0.1, 0.2]}
    scatter = scatter_of(atlas_of(values), "induction", "first")
    assert (len(scatter.points), scatter.missing) == (2, 1)
    with pytest.raises(UsageError, match="no head of this scan has both"):
        scatter_of(atlas_of({"induction": [None, None]}), "induction", "first")


def test_names_that_are_no_scores_are_told_with_all_scores(run: Run, scan: Path) -> None:
    for names in ("previous", "previous,inductoin", "a,b,c", "first,first", ",", ""):
        ended = run("atlas", str(scan), "--plot", names)
        assert ended.status is ExitStatus.USAGE
        assert ", ".join(SCORES) in ended.err
        assert ended.err.count("\n") == 1
    assert "did you mean induction?" in run("atlas", str(scan), "--plot", "first,inductoin").err
    assert two_scores("First, distance-variance") == ("first", "distance_variance")


def outlying(layer: int, head: int, name: str) -> float:
    """L3H2 stands out in induction; the others are nearly alike."""
    return 0.9 if (layer, head, name) == (3, 2, "induction") else 0.1 + 0.01 * head + 0.02 * layer


@pytest.mark.slow
def test_the_scatter_names_outliers_in_the_terminal_in_rows_and_in_a_picture(
    run: Run, tmp_path: Path
) -> None:
    scan = made_scan(tmp_path / "scan", outlying)
    shown = run("atlas", str(scan), "--plot", "first,induction").out
    heads = [line.split()[0] for line in shown.splitlines() if line.startswith("L")]
    assert heads == ["L3H2"]
    text = run("atlas", str(scan), "--plot", "first,induction", "-f", "jsonl").out
    rows = rows_in(text)
    assert [head_of(row) for row in rows if row["outlier"]] == ["L3H2"]
    assert rows[0]["induction"] == 0.9
    assert len(rows) == len(HEADS)
    picture, whole = tmp_path / "a.svg", tmp_path / "b.svg"
    run("atlas", str(scan), "--plot", "first,induction", "-o", str(picture))
    run("atlas", str(scan), "-o", str(whole))
    svg = picture.read_text()
    assert ">L3H2<" in svg
    assert not any(f">L{layer}H{head}<" in svg for layer, head in HEADS[:-1])
    assert "more than 3.5 robust standard deviations" in on_one_line(svg)
    assert ">duplicate<" in whole.read_text()  # without --plot the grids stay
    assert run("atlas", str(scan), "--plot", "first,self", "-o", str(tmp_path / "c.png")).err == ""
    assert (tmp_path / "c.png").read_bytes().startswith(PNG)


def test_a_scatter_without_outliers_claims_none(run: Run, tmp_path: Path) -> None:
    scan = made_scan(tmp_path / "scan", lambda layer, head, _: 0.1 * layer + 0.01 * head)
    assert "no head lies more than 3.5" in " ".join(
        run("atlas", str(scan), "--plot", "first,self").out.split()
    )


spots = st.lists(st.tuples(st.floats(0, 4), st.floats(0, 3)), min_size=1, max_size=30)


@given(spots, st.integers(1, 30))
def test_names_neither_overlap_nor_leave_the_picture(
    points: list[tuple[float, float]], n: int
) -> None:
    boxes = place_names(points[:n], [(0.45, 0.12)] * len(points[:n]), np.array(points), (4, 3))
    placed = [box for box in boxes if box is not None]
    assert placed
    for i, one in enumerate(placed):
        assert (one[0] >= 0, one[1] >= 0, one[2] <= 4, one[3] <= 3) == (True,) * 4
        for other in placed[:i]:
            apart = one[0] >= other[2] or other[0] >= one[2]
            assert apart or one[1] >= other[3] or other[1] >= one[3]


def test_a_name_stands_beside_its_point_and_not_on_another() -> None:
    points = [(2.0, 1.5), (2.3, 1.5)]
    (box,) = place_names(points[:1], [(0.4, 0.1)], np.array(points), (4.0, 3.0))
    assert box is not None
    left, bottom, right, top = box
    near = min(max(2.0, left), right), min(max(1.5, bottom), top)
    assert hypot(near[0] - 2.0, near[1] - 1.5) < 0.2
    assert not (left - GAP < 2.3 < right + GAP and bottom - GAP < 1.5 < top + GAP)


@given(st.lists(st.floats(0, 2), min_size=1, max_size=12))
def test_spread_heights_keep_their_order_and_their_distance(heights: list[float]) -> None:
    placed = spread(heights, 0.13, 2.0)
    assert all(-1e-9 <= at <= 2 + 1e-9 for at in placed)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    gaps = np.diff([placed[i] for i in order])
    assert (gaps >= 0.13 - 1e-9).all()


def test_heights_with_room_stay_where_they_are() -> None:
    assert spread([1.5, 0.2], 0.13, 2.0) == pytest.approx([1.5, 0.2])
    assert spread([0.5, 0.5], 0.1, 2.0) == pytest.approx([0.45, 0.55])


# ---- several checkpoints ----


def growing(step: int) -> Any:
    """L3H2's induction grows with the step, the other heads' a hundredth of it."""

    def score(layer: int, head: int, name: str) -> float:
        full = 1.0 if (layer, head, name) == (3, 2, "induction") else 0.01
        return 0.1 + 0.001 * full * step

    return score


@pytest.fixture
def checkpoints(tmp_path: Path) -> list[str]:
    """Scans of three checkpoints, not in order."""
    steps = (400, 20, 100)
    return [str(made_scan(tmp_path / f"step-{step}", growing(step))) for step in steps]


def test_checkpoints_stand_in_the_order_of_their_steps(checkpoints: list[str]) -> None:
    found = develop([read_atlas(path) for path in checkpoints])
    assert found.names == ("step-20", "step-100", "step-400")
    assert found.steps == (20, 100, 400)
    at = found.heads.index(Head(3, 2))
    assert found.means["induction"][at].tolist() == pytest.approx([0.12, 0.2, 0.5])
    best = found.changes("induction")[0]
    assert (best.head, round(best.change, 3)) == (Head(3, 2), 0.38)
    assert best.error == pytest.approx(hypot(0.01, 0.01))


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-400", 400),
        ("pythia-70m-step1000", 1000),
        ("global_step2000_hf", 2000),
        ("checkpoint-7", 7),
        ("ckpt_12", 12),
        ("gpt2", None),  # a number of a version
        ("pythia-70m", None),
        ("steps", None),
    ],
)
def test_a_step_is_read_from_a_name(name: str, step: int | None) -> None:
    assert step_in(name) == step


def named(folders: Sequence[str], atlases: Sequence[Atlas]) -> Development:
    """How scores develop over scans in folders of these names."""
    pairs = zip(atlases, folders, strict=True)
    return develop([replace(atlas, folder=folder) for atlas, folder in pairs])


def test_steps_may_stand_in_the_models_name_or_in_its_revision(checkpoints: list[str]) -> None:
    atlases = [read_atlas(Path(path)) for path in checkpoints]
    models = [replace(a, model=f"x/step{n}") for a, n in zip(atlases, (3, 2, 1), strict=True)]
    assert named("abc", models).names == ("c", "b", "a")
    revisions = [
        replace(a, manifest={**a.manifest, "revision": f"step{n}"})
        for a, n in zip(atlases, (3, 1, 2), strict=True)
    ]
    assert named("abc", revisions).steps == (1, 2, 3)
    # two with one step, or one without: in the order in which they are given
    assert named(("x/step1", "y/step1", "z"), atlases).steps is None
    assert named(("x/end", "y/end", "z/end"), atlases).names == ("x/end", "y/end", "z/end")


def test_the_heads_that_change_most_are_listed(run: Run, checkpoints: list[str]) -> None:
    out = run("atlas", *checkpoints, "--sort", "induction", "--top", "1").out
    (row,) = [line for line in out.splitlines() if line.startswith("L")]
    assert row.split() == [
        *("L3H2", "induction", "0.120", "→", "0.200", "→", "0.500"),
        *("+0.380", "±0.014"),
    ]
    every = run("atlas", *checkpoints).out
    scores = [line[6:].split("0.")[0].strip() for line in every.splitlines() if line[:1] == "L"]
    assert scores.count("induction") == 3  # of each score


def test_rows_have_every_head_score_and_checkpoint(run: Run, checkpoints: list[str]) -> None:
    text = run("atlas", *checkpoints, "-f", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == [
        "layer",
        "head",
        "score",
        "checkpoint",
        "step",
        "mean_over",
        "mean",
        "error",
    ]
    assert len(rows) == len(HEADS) * len(SCORES) * 3
    mine = [row for row in rows if (head_of(row), row["score"]) == ("L3H2", "induction")]
    assert [(row["checkpoint"], row["step"], row["mean"]) for row in mine] == [
        ("step-20", "20", "0.12000000000000001"),
        ("step-100", "100", "0.2"),
        ("step-400", "400", "0.5"),
    ]
    one = run("atlas", *checkpoints, "--head", "2.0", "-f", "csv").out
    assert {head_of(row) for row in csv.DictReader(io.StringIO(one))} == {"L2H0"}


def test_the_picture_has_a_panel_for_each_score_and_names_what_changes_most(
    run: Run, checkpoints: list[str], tmp_path: Path
) -> None:
    picture = tmp_path / "a.svg"
    ended = run("atlas", *checkpoints, "-o", str(picture), "--top", "1")
    assert (ended.status, ended.err) == (ExitStatus.OK, "")
    svg = picture.read_text()
    for said in ("entropy (nats)", "induction", "distance variance", "training step", "20<"):
        assert f">{said}" in svg
    assert ">L3H2<" in svg
    png = tmp_path / "a.png"
    assert run("atlas", *checkpoints, "-o", str(png)).status is ExitStatus.OK
    assert png.read_bytes().startswith(PNG)


@pytest.mark.parametrize("width", [40, 60, 80, 150])
def test_the_table_of_changes_fits_the_terminal(tmp_path: Path, width: int) -> None:
    paths = [str(made_scan(tmp_path / f"step-{10**i}", growing(10**i))) for i in range(7)]
    found = develop([read_atlas(path) for path in paths])
    shown = [line.plain for line in render_development(found, Display(width), 3)]
    assert max(map(cell_len, shown)) <= width
    header = next(line for line in shown if line.startswith("head"))
    assert " 1 " in header  # the first and the last stay
    assert "1,000,000" in header
    left_out = sum(f"{10**i:,}" not in header.split() for i in range(7))
    text = " ".join(shown)
    assert (f"{left_out} checkpoint" in text) == (left_out > 0)


def test_a_score_that_is_missing_at_an_end_has_no_change(tmp_path: Path) -> None:
    missing = made_scan(tmp_path / "a", lambda *_: None)
    there = made_scan(tmp_path / "b")
    found = develop([read_atlas(missing), read_atlas(there)])
    assert found.changes("first") == []
    shown = [line.plain for line in render_development(found, Display(80), 3)]
    assert "no score was measured" in shown[-1]


def test_a_score_that_no_head_has_is_not_drawn(run: Run, tmp_path: Path) -> None:
    paths = [str(made_scan(tmp_path / name, lambda *_: None)) for name in "ab"]
    ended = run("atlas", *paths, "--sort", "first", "-o", str(tmp_path / "c.png"))
    assert (ended.status, ended.err) == (
        ExitStatus.USAGE,
        "attnviz: no head has a value of first; choose another score.\n",
    )


@pytest.mark.parametrize(
    ("asked", "difference"),
    [
        ({"length": 64}, "their length differs (32, 64)"),
        ({"split": "line"}, "their split differs (file, line)"),
        ({"key": "body"}, "their key differs (text, body)"),
        ({"corpus": [["my texts/a.txt", 40, 7]]}, "my texts/b.txt only in"),
        (
            {"corpus": [["my texts/a.txt", 40, 7], ["my texts/b.txt", 51, 9]]},
            "my texts/b.txt changed between the scans",
        ),
        ({"heads": HEADS[:4]}, "their numbers of heads differ (6, 4)"),
        ({"heads": ((0, 0), *HEADS[1:])}, "L2H0 only in"),
    ],
)
def test_scans_that_cannot_be_compared_are_told_with_the_difference(
    run: Run, tmp_path: Path, asked: dict[str, Any], difference: str
) -> None:
    paths = [made_scan(tmp_path / "step-1"), made_scan(tmp_path / "step-2", **asked)]
    ended = run("atlas", *map(str, paths))
    assert ended.status is ExitStatus.USAGE
    assert "cannot be compared" in ended.err
    assert difference in ended.err
    assert ended.err.count("\n") == 1


def test_scans_of_other_windows_are_not_compared(scan: Path) -> None:
    atlas = read_atlas(scan)
    other = replace(atlas, rows=[{**row, "tokens": 61} for row in atlas.rows])
    with pytest.raises(UsageError, match=r"their numbers of tokens differ \(60, 61\)"):
        develop([atlas, other])


def test_options_of_one_scan_are_refused_for_several(
    run: Run, checkpoints: list[str], tmp_path: Path
) -> None:
    for option in (("--plot", "first,self"), ("--export", "headvis")):
        ended = run("atlas", *checkpoints, *option, "-o", str(tmp_path / "out"))
        assert ended.status is ExitStatus.USAGE
        assert f"{option[0]} is for one scan; give one folder" in ended.err
    both = run("atlas", checkpoints[0], "--head", "2.0", "--plot", "first,self")
    assert "--plot does nothing for --head 2.0" in both.err
    sort = run("atlas", checkpoints[0], "--plot", "first,self", "--sort", "first")
    assert "--sort does nothing for --plot first,self" in sort.err


# ---- side by side ----


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(30, 100))
def test_blocks_keep_their_order_and_the_width(sizes: list[int], width: int) -> None:
    from rich.text import Text

    blocks = [[Text(chr(97 + i) * n), Text(chr(97 + i))] for i, n in enumerate(sizes)]
    shown = [line.plain for line in side_by_side(blocks, width)]
    assert max(map(len, shown)) <= width
    letters = "".join(shown)
    assert [letters.index(chr(97 + i)) for i in range(len(sizes))] == sorted(
        letters.index(chr(97 + i)) for i in range(len(sizes))
    )
    assert all(letters.count(chr(97 + i)) == n + 1 for i, n in enumerate(sizes))
