"""`--pairs`: many prompts, each with an answer of its own, and the mean over them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import rows_in

Pair = dict[str, object]


def pair(color: str, animal: str, **more: object) -> Pair:
    text, source = (f"a {c} {animal} slept . the {animal} was" for c in (color, "gray"))
    return {"text": text, "source": source, "answer": "gray", "versus": color, **more}


PAIRS = [pair("blue", "bird"), pair("red", "fox"), pair("green", "bird")]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return write(tmp_path / "pairs.jsonl", PAIRS)


def write(path: Path, pairs: Sequence[Pair]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in pairs), "utf-8")
    return path


def of_head(rows: Sequence[dict[str, Any]], layer: int, head: int) -> list[dict[str, Any]]:
    return [row for row in rows if (row["layer"], row["head"]) == (layer, head)]


def test_the_mean_over_pairs_is_a_ratio_of_means_with_its_standard_error(
    run: Run, written: Path
) -> None:
    found = of_head(rows_in(run("patch", "--pairs", str(written), "-f", "jsonl").out), 4, 0)
    *each, mean = found
    assert [row["line"] for row in found] == [1, 2, 3, None]
    changes = np.array([row["change"] for row in each])
    gaps = np.array([row["source"] - row["before"] for row in each])
    share = changes.mean() / gaps.mean()
    error = (changes - share * gaps).std(ddof=1) / np.sqrt(3) / gaps.mean()
    wanted = [changes.mean(), changes.std(ddof=1) / np.sqrt(3), share, error]
    names = "change", "error", "share", "share_error"
    assert np.allclose([mean[name] for name in names], wanted, rtol=1e-5)
    assert (mean["texts"], mean["answer"]) == (3, None)


def test_the_effect_of_an_ablation_on_pairs_is_the_mean_of_their_effects(
    run: Run, written: Path
) -> None:
    out = run("ablate", "--pairs", str(written), "--layer", "4", "-f", "jsonl").out
    *each, mean = of_head(rows_in(out), 4, 1)
    alone = []
    for given in PAIRS:
        asked = "--answer", str(given["answer"]), "--versus", str(given["versus"])
        out = run("ablate", str(given["text"]), *asked, "--head", "L4H1", "-f", "jsonl").out
        alone.append(rows_in(out)[0]["change"])
    assert np.allclose([row["change"] for row in each], alone, atol=1e-5)
    assert np.isclose(mean["change"], np.mean(alone), atol=1e-5)
    assert mean["unit"] == "logits"


def test_pairs_come_from_standard_input_too(run: Run, written: Path) -> None:
    piped = run("patch", "--pairs", "-", "-f", "csv", stdin=written.read_bytes())
    assert piped.status == ExitStatus.OK
    assert piped.out == run("patch", "--pairs", str(written), "-f", "csv").out


def test_a_mean_names_the_first_pairs_tokens_and_that_others_have_others(
    run: Run, written: Path, tmp_path: Path
) -> None:
    out = run("patch", "--pairs", str(written), "--part", "residual").out
    assert "builtin, mean of 3 pairs" in out
    assert "blue ← gray, …" in out
    assert "bird#1, …" in out
    assert "\nslept  " in out
    assert "±: standard error over these pairs" in out
    given = "--pairs", str(written), "--part", "residual"
    for name in ("mean.html", "mean.png"):
        assert run("patch", *given, "-o", str(tmp_path / name)).status == ExitStatus.OK
    assert "blue ← gray, …" in (tmp_path / "mean.html").read_text("utf-8")
    means = [row for row in rows_in(run("patch", *given, "-f", "jsonl").out) if row["line"] is None]
    assert {row["position"]: row["token"] for row in means}[2] is None


def test_positions_have_a_mean_only_where_they_correspond(run: Run, tmp_path: Path) -> None:
    longer = pair("blue", "bird")
    longer |= {name: f"one day {longer[name]}" for name in ("text", "source")}
    file = str(write(tmp_path / "pairs.jsonl", [*PAIRS, longer]))
    refused = run("patch", "--pairs", file, "--part", "residual")
    assert (refused.status, refused.out) == (ExitStatus.INPUT, "")
    assert "patched at different positions" in refused.err
    # rows of each pair are still of use
    kept = run("patch", "--pairs", file, "--part", "residual", "-f", "jsonl")
    assert kept.status == ExitStatus.OK
    assert "patched at different positions" in kept.err
    assert {row["line"] for row in rows_in(kept.out)} == {1, 2, 3, 4}
    # those that were named correspond
    named = run("patch", "--pairs", file, "--part", "residual", "--query", "-1", "-f", "jsonl")
    assert named.err == ""
    rows = [row for row in rows_in(named.out) if row["layer"] == 4]
    assert np.isclose(rows[-1]["change"], np.mean([row["change"] for row in rows[:-1]]))


SAME = {"text": PAIRS[0]["text"], "source": PAIRS[0]["text"]}
ALIKE = {"text": "a bird slept in the", "source": "a dog slept in the"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello", "it is not JSON (expecting value at character 1)"),
        ("[" * 100_000, "it is not JSON (too deeply nested)"),
        ('{"text": ' + "9" * 5000 + "}", "it is not JSON (a number is too long)"),
        ("[1]", "it is a list"),
        ('{"text": 5}', "there is no text"),
        ('{"text": "a blue bird", "source": 3}', "source is not a text"),
        ('{"text": "a blue bird", "source": "a red bird", "anser": "red"}', "write 'answer'"),
        ('{"text": "a blue bird"}', "there is no source"),
        (json.dumps(SAME), "the source is the text itself"),
        (json.dumps(ALIKE), "is the likeliest token after both texts"),
        (json.dumps({**PAIRS[0], "answer": "blue"}), "the same token"),
        # an answer alone is measured in nats, and the lines before are measured in logits
        (json.dumps({**PAIRS[0], "versus": None}), "another measurement than the lines before it"),
    ],
)
def test_a_bad_line_is_reported_and_left_out(
    run: Run, tmp_path: Path, line: str, said: str
) -> None:
    file = write(tmp_path / "pairs.jsonl", PAIRS[:1])
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{line}\n{json.dumps(PAIRS[1])}\n")
    ended = run("patch", "--pairs", str(file), "-f", "jsonl", "--head", "L4H0")
    assert ended.status == ExitStatus.INPUT
    assert ended.err.startswith("attnviz: line 2: ")
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert [row["line"] for row in rows_in(ended.out)] == [1, 3, None]


def test_fields_of_ones_own_may_stand_beside_the_others(run: Run, tmp_path: Path) -> None:
    own = {name: PAIRS[0][name] for name in ("text", "source")}
    more = {"id": 7, "answer_id": 3, "note": ["x"]}
    file = write(tmp_path / "pairs.jsonl", [own | more])
    assert run("patch", "--pairs", str(file), "--head", "L4H0").status == ExitStatus.OK


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a blue bird",), "--pairs already gives the texts"),
        (("--from", "a red bird"), "--pairs already gives the sources"),
    ],
)
def test_texts_beside_a_file_of_pairs_are_refused(
    run: Run, written: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = run("patch", *arguments, "--pairs", str(written))
    assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
    assert said in ended.err


def test_a_file_that_cannot_be_read_is_said_in_a_sentence(run: Run, tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "no.jsonl", "there is no file")):
        ended = run("ablate", "--pairs", str(path))
        assert (ended.status, ended.out) == (ExitStatus.INPUT, "")
        assert said in ended.err
