"""`attnviz heads --labels`: which heads attend to the keys that a file says are true."""

import json
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from attnviz.records.heads import Head
from tests.builtin import HEADS
from tests.conftest import Run

FIRST = {
    "text": "a fluffy blue creature roamed the verdant forest",
    "links": [["creature", ["fluffy", "blue"]], ["forest", "verdant"]],
}
SECOND = {"text": "the small red bird saw a big green tree", "links": [[-1, ["big", 8]]]}


def written(path: Path, *lines: object) -> str:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts))
    return str(path)


def test_scores_are_means_over_the_labelled_rows_then_over_texts(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path / "labels.jsonl", FIRST, SECOND)
    found = [
        json.loads(row)
        for row in run("heads", "--labels", file, "-f", "jsonl").out.split("\n")[:-1]
    ]
    assert len(found) == len(HEADS)
    assert [row["mass"] for row in found] == sorted((row["mass"] for row in found), reverse=True)
    captures = [attnviz.capture(str(text["text"])) for text in (FIRST, SECOND)]
    true = [{4: [2, 3], 8: [7]}, {9: [7, 8]}]  # BOS is token 0
    for row in found:
        head = Head(row["layer"], row["head"])
        masses, hits = [], []
        for captured, keys in zip(captures, true, strict=True):
            weights = captured.pattern(*head)
            masses.append(fmean(float(weights[q, k].sum()) for q, k in keys.items()))
            hits.append(fmean(float(int(np.argmax(weights[q])) in k) for q, k in keys.items()))
        assert row["mass"] == pytest.approx(fmean(masses), abs=1e-6)
        assert row["strongest"] == pytest.approx(fmean(hits))
        assert row["mass_error"] == pytest.approx(stdev(masses) / 2**0.5, abs=1e-6)
        assert (row["texts"], row["rows"]) == (2, 3)


def test_the_table_has_the_best_heads_first_and_errors_of_several_texts_only(
    run: Run, tmp_path: Path
) -> None:
    out = run("heads", "--labels", written(tmp_path / "a", FIRST, SECOND), "--top", "2").out
    assert "2 texts, 3 rows" in out
    assert len([line for line in out.splitlines() if line.startswith("L")]) == 2
    assert "± s.e." in out
    assert "±" not in run("heads", "--labels", written(tmp_path / "b", FIRST)).out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no json", "line 2: it is not JSON"),
        ("[" * 9999, "line 2: it is not JSON"),
        ({"links": [["a", ["b"]]]}, "line 2: there is no text"),
        ({"text": "a b", "links": []}, "line 2: there are no links"),
        ({"text": "a", "links": [["a", "a"]], "imge": "b"}, "line 2: 'imge' is not a field"),
        ({"text": "a b", "links": ["ab"]}, "line 2: a link is not [query, [keys]]"),
        ({"text": "a b", "links": [["b", []]]}, "line 2: a link names no token"),
        ({"text": "a b", "links": [["b", [True]]]}, "line 2: a link names no token"),
        ({"text": "a b", "links": [["b", ["zebra"]]]}, "line 2: the key 'zebra' is not in the"),
        ({"text": "a b", "links": [["zebra", ["b"]]]}, "line 2: the query 'zebra' is not in"),
        ({"text": "a b", "links": [["a", ["b"]]]}, "line 2: token 1 cannot attend to token 2"),
        ({"text": "a b", "links": [[99, ["b"]]]}, "line 2: the query 99 is not a position"),
    ],
)
def test_a_bad_line_is_told_and_left_out(run: Run, tmp_path: Path, line: object, said: str) -> None:
    ended = run("heads", "--labels", written(tmp_path / "l", FIRST, line), "-f", "jsonl")
    assert ended.status is ExitStatus.INPUT
    assert said in ended.err
    assert json.loads(ended.out.splitlines()[0])["texts"] == 1


def test_options_of_the_metrics_do_nothing_for_labels(run: Run, tmp_path: Path) -> None:
    file = written(tmp_path / "l", FIRST)
    for options in (("--sort", "entropy"), ("--length", "9"), ("--probe",), ("--words",)):
        ended = run("heads", "--labels", file, *options)
        assert ended.status is ExitStatus.USAGE
        assert "does nothing for labelled links" in ended.err


def test_a_picture_of_labels_is_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    assert run("heads", "--labels", written(tmp_path / "l", FIRST), "-o", str(out)).status == 0
    assert out.read_bytes().startswith(b"\x89PNG")


def test_an_empty_file_and_a_text_beside_it_are_told(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    assert "is empty" in run("heads", "--labels", str(empty)).err
    both = run("heads", "a text", "--labels", written(tmp_path / "l", FIRST))
    assert "without a text of yours" in both.err
