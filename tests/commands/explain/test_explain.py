"""`attnviz explain`: a head number by number, the lessons' examples, and one's own matrices."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

import attnviz
from attnviz.commands.explain.examples import KEYS
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import on_one_line

TEXT = "a fluffy blue creature"


def explained(run: Run, *more: str) -> str:
    """The sheet on one line, with single spaces."""
    ended = run("explain", *more)
    assert ended.status is ExitStatus.OK, ended.err
    return on_one_line(ended.out)


def test_the_numbers_shown_are_those_of_the_capture(run: Run) -> None:
    weights = attnviz.capture(TEXT, heads="L1H2").pattern(1, 2)[-1]
    shown = explained(run, TEXT, "--head", "L1H2", "--only", "3", "--digits", "6")
    for token, weight in zip(("BOS", "a", "fluffy", "blue", "creature"), weights, strict=True):
        row = re.search(rf" {token} (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) ([\d.]+)", shown)
        assert row, token
        assert float(row[4]) == pytest.approx(weight, abs=2e-6)


def test_only_some_steps_are_told(run: Run) -> None:
    shown = explained(run, TEXT, "--only", "2,4-5")
    assert re.findall(r" (\d) [A-Z][a-z]", shown) == ["2", "4", "5"]


def test_digits_change_what_is_shown_and_not_what_is_computed(run: Run) -> None:
    row = re.compile(r"q\(creature\) \[ *(-?\d+\.\d+) ")
    (few,) = row.findall(explained(run, TEXT, "--digits", "1"))
    (many,) = row.findall(explained(run, TEXT, "--digits", "9"))
    assert (len(few.split(".")[1]), len(many.split(".")[1])) == (1, 9)
    assert few == f"{float(many):.1f}"


def test_many_digits_also_show_in_the_weights_of_a_sum(run: Run) -> None:
    assert re.search(r"[=+] 0\.\d\d·v\(blue\)", explained(run, TEXT, "--only", "4"))
    many = explained(run, TEXT, "--only", "4", "--digits", "6")
    assert re.search(r"[=+] 0\.\d{6}·v\(blue\)", many)


def test_what_no_mask_hides_is_the_same_before_and_behind_it(run: Run) -> None:
    shown = explained(run, TEXT, "--only", "3", "--digits", "9")
    rows = re.findall(r" (?:BOS|a|fluffy|blue|creature) -?[\d.]+ (-?[\d.]+) (-?[\d.]+) 0\.", shown)
    assert len(rows) == 5
    assert all(before == behind for before, behind in rows)


def test_columns_tell_both_conventions(run: Run) -> None:
    shown = explained(run, TEXT, "--columns")
    assert "q = x̂·W_Q + b_Q" in shown
    for said in (
        "qᵀ = W_Qᵀ·x̂ᵀ + b_Qᵀ (32, 128)·(128, 5) = (32, 5)",
        "scoresᵀ = k·qᵀ / √32 (5, 32)·(32, 5) = (5, 5)",
        "zᵀ = vᵀ·weightsᵀ (32, 5)·(5, 1) = (32, 1)",
        "ΔEᵀ = W_Oᵀ·zᵀ (128, 32)·(32, 1) = (128, 1)",
    ):
        assert f"as columns: {said}" in shown


def test_columns_show_each_matrix_a_second_time_with_tokens_as_columns(run: Run) -> None:
    rows = explained(run, "--example", "three-inputs")
    both = explained(run, "--example", "three-inputs", "--columns")
    for name in ("x (3, 4)", "W_K (4, 3)", "keys (3, 3)", "scores (3, 3)", "outputs (3, 3)"):
        start = rows.index(name)
        assert rows[start : start + 40] in both  # the rows stay as they are
    for turned in (
        "xᵀ (4, 3) x1 x2 x3 [ 1 0 1] [ 0 2 1] [ 1 0 1] [ 0 2 1]",
        "W_Kᵀ (3, 4) [0 1 0 1] [0 1 1 1] [1 0 0 0]",
        "kᵀ = W_Kᵀ·xᵀ (3, 3) x1 x2 x3 [ 0 4 2] [ 1 4 3] [ 1 0 1]",
        "scoresᵀ (3, 3) x1 x2 x3 x1 [ 2 4 4] x2 [ 4 16 12] x3 [ 4 12 10]",
        "x1 [0.0634 0.0000 0.0003] x2 [0.4683 0.9820 0.8805]",
        "outputsᵀ (3, 3) x1 x2 x3 [1.9366 2.0000 1.9997]",
        "each row (as columns: each column) becomes weights that sum to 1",
    ):
        assert turned in both
    assert "as columns" not in rows


def test_matrices_of_other_than_square_shape_keep_their_labels_as_columns(
    run: Run, tmp_path: Path
) -> None:
    file = matrices(tmp_path / "m.json", labels=["the first", "b", "楚"])
    lines = run("explain", "--matrices", str(file), "--columns").out.splitlines()
    at = lines.index("   xᵀ (2, 3)")
    heads, *rows = lines[at + 1 : at + 4]
    assert heads.split() == ["the", "first", "b", "楚"]
    assert {cell_len(row) - 1 for row in rows} == {cell_len(heads)}  # but for the bracket


def test_json_and_npz_hold_every_array_in_full(run: Run, tmp_path: Path) -> None:
    said = json.loads(run("explain", TEXT, "--head", "L0H1", "-f", "json").out)
    assert (said["schema"], said["subject"]) == ("attnviz/3", "head")
    assert (said["layer"], said["head"], said["query"]) == (0, 1, 4)
    pattern = np.array(said["arrays"]["pattern"], np.float32)
    np.testing.assert_array_equal(pattern, attnviz.capture(TEXT, heads="L0H1").pattern(0, 1))
    assert said["arrays"]["scores"][0][1] is None  # behind the mask
    run("explain", TEXT, "--head", "L0H1", "-o", str(tmp_path / "e.npz"))
    with np.load(tmp_path / "e.npz", allow_pickle=False) as saved:
        assert set(saved.files) == {"meta", *said["arrays"]}
        np.testing.assert_array_equal(saved["w_o"], np.array(said["arrays"]["w_o"], np.float32))
        np.testing.assert_allclose(saved["embedding"] + saved["position"], saved["x"], atol=1e-6)
        for name in ("scaled", "unmasked", "weighted", "logits"):
            assert np.isfinite(saved[name]).all(), name
    assert said["versions"]["attnviz"] == attnviz.__version__


def test_another_similarity_stands_beside_the_models_own_row(run: Run) -> None:
    same = explained(run, TEXT, "--similarity", "scaled-dot", "--only", "3")
    assert "equals the model's own row" in same
    for kind in ("dot", "rbf", "general"):
        other = explained(run, TEXT, "--similarity", kind, "--only", "3")
        assert "not what the model computes" in other
    assert "softmax(x̂·(W_Q·W_Kᵀ)·x̂ᵀ)" in other
    assert "leaves out the model's biases and scaling" in other


def test_nothing_but_the_head_that_was_named_is_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnviz.kit.prepare import Prepared

    def refused(*_: object) -> None:
        raise AssertionError("captured")

    monkeypatch.setattr(Prepared, "record", refused)
    assert "L0H1" in explained(run, TEXT, "--head", "L0H1", "--only", "3")


def test_a_piece_of_a_character_is_called_one(run: Run) -> None:
    ended = run("explain", "我爱北京", "--query", "/京 3/", "--only", "3")
    strange, piece = ended.err.splitlines()
    assert "has not seen text like this" in strange
    assert "“京 3/3” is a part of the character 京" in piece
    assert run("explain", TEXT, "--only", "3").err == ""


def matrices(path: Path, **changes: object) -> Path:
    """A file of matrices that fit, but for the changes."""
    given = {
        "x": [[1.0, 0.5], [0.0, 2.0], [1.0, 1.0]],
        "w_query": [[1, 0, 1, 2], [0, 1, 1, 0]],
        "w_key": [[0, 1, 1, 0], [1, 0, 0, 1]],
        "w_value": [[1, 2], [3, 4]],
        "labels": ["one", "two", "three"],
    }
    path.write_text(json.dumps(given | changes))
    return path


def test_a_users_matrices_are_worked_out(run: Run, tmp_path: Path) -> None:
    file = matrices(tmp_path / "m.json", heads=2, w_output=[[1, 0], [0, 1]])
    ended = run("explain", "--matrices", str(file), "-f", "json")
    said = json.loads(ended.out)
    arrays = {name: np.array(value, np.float64) for name, value in said["arrays"].items()}
    q, k = arrays["queries"][1], arrays["keys"][1]
    scores = np.exp(q @ k.T / np.sqrt(2))
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(arrays["pattern"][1], expected, atol=1e-6)
    assert "z(three)" in explained(run, "--matrices", str(file))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"w_key": [[1, 2, 3, 4]]},
            r"w_key has the shape \(1, 4\), but must have \(2, …\), as x is \(3, 2\)",
        ),
        (
            {"w_key": [[1, 2], [3, 4]]},
            r"w_key has the shape \(2, 2\), but must have \(2, 4\), as w_query is",
        ),
        ({"w_output": [[1, 2]]}, r"w_output has the shape \(1, 2\), but must have \(2, …\)"),
        ({"heads": 3}, r"w_query has the shape \(2, 4\), but must have \(2, a multiple of 3\)"),
        ({"heads": 0}, "needs a whole number from 1"),
        ({"x": [[1, 2], [3]]}, "x is not a matrix"),
        ({"x": [[1, None], [3, 4]]}, r"x has NaN, Infinity or null at \(0, 1\)"),
        ({"x": [[1, 2], [float("nan"), 4]]}, r"x has NaN, Infinity or null at \(1, 0\)"),
        ({"w_value": [[1, 2], [3, float("inf")]]}, r"w_value has NaN, Infinity or null at"),
        # given, and no matrix: not the same as left out
        ({"w_output": []}, "w_output is not a matrix"),
        ({"w_output": 0}, "w_output is not a matrix"),
        ({"w_output": ""}, "w_output is not a matrix"),
        ({"w_outputs": [[1, 0], [0, 1]]}, "'w_outputs', which is not a known key; the keys are x,"),
        ({"labels": ["one"]}, "needs 3 labels"),
    ],
)
def test_matrices_that_do_not_fit_are_refused_with_their_shapes(
    run: Run, tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    ended = run("explain", "--matrices", str(matrices(tmp_path / "m.json", **changes)))
    assert ended.status is ExitStatus.INPUT
    assert ended.out == ""
    assert re.search(says, ended.err), ended.err


def test_the_example_file_of_the_lessons_has_every_key_and_is_worked_out(
    run: Run, tmp_path: Path
) -> None:
    lessons = (Path(__file__).parents[3] / "docs" / "lessons.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", lessons, re.DOTALL)
    assert set(json.loads(example)) == set(KEYS)
    (tmp_path / "m.json").write_text(example)
    shown = explained(run, "--matrices", str(tmp_path / "m.json"))
    assert "outputs = merged·W_O (3, 4)·(4, 2) = (3, 2)" in shown


def test_labels_cannot_command_the_terminal(run: Run, tmp_path: Path) -> None:
    labels = ["\x1b[31mred", "two\nlines", "\u202eback"]
    ended = run("explain", "--matrices", str(matrices(tmp_path / "m.json", labels=labels)))
    assert ended.status is ExitStatus.OK
    assert not set("\x1b\u202e") & set(ended.out)
    assert "two\\nlines" in ended.out


def test_embeddings_are_compared_without_queries_and_keys(run: Run) -> None:
    said = json.loads(run("explain", TEXT, "-m", "embeddings", "-f", "json").out)
    x = np.array(said["arrays"]["x"], np.float64)
    scores = np.exp(x @ x.T)
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(said["arrays"]["pattern"], expected, atol=1e-6)
    np.testing.assert_allclose(said["arrays"]["output"], expected @ x, atol=1e-5)
    assert "nearly flat" in explained(run, TEXT, "-m", "embeddings")


def test_embeddings_have_a_mask_only_where_it_is_asked_for(run: Run) -> None:
    def pattern(*more: str) -> np.ndarray:
        said = run("show", TEXT, "-m", "embeddings", "-f", "npz", *more).raw
        with np.load(io.BytesIO(said)) as saved:
            return np.asarray(saved["layer_0"][0])

    assert np.triu(pattern(), 1).any()
    assert not np.triu(pattern("--causal"), 1).any()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    for arguments in ((TEXT,), ("--example", "multi-head"), (TEXT, "-m", "embeddings")):
        for more in ((), ("--columns",)):
            lines = run("explain", *arguments, *more, "--width", str(width)).out.splitlines()
            assert max(map(cell_len, lines)) <= width


def test_a_narrow_terminal_shows_the_mask_too(run: Run) -> None:
    shown = explained(run, f"{TEXT} roamed", "--query", "blue", "--only", "3", "--width", "40")
    assert "masked" in shown
    assert re.search(r"creature -?[\d.]+ -?[\d.]+ −∞ 0\.0000", shown)


def test_plain_ascii_is_written_where_nothing_else_can_be(run: Run) -> None:
    from rich.console import Console

    from attnviz.commands.explain.examples import render_worked, small_matrices, work
    from attnviz.commands.explain.sheet import Sheet
    from attnviz.console import Display
    from attnviz.records.trace import Way

    worked = work(small_matrices("multi-head", None, "normal", 0)[0], Way("scaled-dot"))
    sheet = Sheet(Display(80, unicode=False))
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as shown:
        for line in render_worked(worked, sheet, title="ascii"):
            console.print(line)
    assert shown.get().isascii()


def test_the_query_that_shows_what_the_head_is_known_for_is_followed(run: Run) -> None:
    shown = run("explain", "Bark is very cute and he is a dog", "--only", "3").out
    assert "computes what “he” takes" in shown
    assert "builtin, 10 tokens with BOS" in on_one_line(shown)
    plain = run("explain", "Bark is very cute", "--only", "3").out
    assert "computes what “cute” takes" in plain
