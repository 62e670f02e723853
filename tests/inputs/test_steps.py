"""Rows of attention that an engine gave step by step, in JSON lines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import attnviz
from attnviz.errors import ExitStatus, InputError, UsageError
from tests.conftest import Run

SCHEMA = "attnviz-rows/1"
PROMPT, WRITTEN = ["The", " cat", " sat"], [" down", "."]
OF_HEAD = {"layer": 0, "head": 0}
FIRST = {"schema": SCHEMA, "tokens": ["a", " cat"], **OF_HEAD, "weights": [[1, 0], [0.5, 0.5]]}
OF_HEAD_5 = {"head": 5, "weights": FIRST["weights"]}
DEEP = '{"schema": "attnviz-rows/1", "weights": ' + 100_000 * "["
NEXT = {"tokens": [" sat"], "layer": 0, "head": 0, "weights": [0.2, 0.3, 0.5]}


def written(tmp_path: Path, *lines: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def steps_of_a_model(heads: tuple[tuple[int, int], ...]) -> tuple[list[dict], np.ndarray]:
    """The rows of a model with a cache, by step, and eager attention over the whole text."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=9, n_positions=16, n_embd=24, n_layer=3, n_head=4)
    config._attn_implementation = "eager"
    model = GPT2LMHeadModel(config).eval()
    ids, cache, lines, done = [3, 5, 7, 1, 8], None, list[dict](), 0
    for tokens in (PROMPT, *([word] for word in WRITTEN)):
        given = torch.tensor([ids[done : done + len(tokens)]])
        done += len(tokens)
        with torch.no_grad():
            out = model(given, past_key_values=cache, output_attentions=True)
        cache = out.past_key_values
        for n, (layer, head) in enumerate(heads):
            rows = out.attentions[layer][0, head].tolist()
            line = {"layer": layer, "head": head, "weights": rows[0] if len(rows) == 1 else rows}
            lines.append({**({"tokens": tokens} if n == 0 else {}), **line})
    with torch.no_grad():
        whole = model(torch.tensor([ids]), output_attentions=True).attentions
    return [{"schema": SCHEMA, "model": "own"}, *lines], torch.stack(whole)[:, 0].numpy()


def test_the_steps_of_a_cache_are_the_rows_of_the_whole_text(tmp_path: Path, run: Run) -> None:
    heads = (2, 3), (0, 1)
    lines, eager = steps_of_a_model(heads)
    for capture in (attnviz.from_attention(lines), attnviz.load(written(tmp_path, *lines))):
        assert [str(head) for head in capture.heads] == ["L0H1", "L2H3"]
        assert [token.exact for token in capture.tokens] == [*PROMPT, *WRITTEN]
        assert capture.record.causal
        for head in heads:
            np.testing.assert_allclose(capture.pattern(*head), eager[head], atol=1e-6)
    shown = run("show", str(written(tmp_path, *lines)), "-f", "jsonl", "--head", "L2H3")
    links = [json.loads(line) for line in shown.out.splitlines()]
    found = {(link["query"], link["key"]): link["weight"] for link in links}
    assert found[4, 1] == pytest.approx(float(eager[2, 3, 4, 1]), abs=1e-6)
    assert "no attention" not in shown.err  # of layer 1, of which nothing is told


def test_arrays_are_rows_and_other_arguments_are_refused() -> None:
    line = {**FIRST, "weights": np.array(FIRST["weights"])}
    np.testing.assert_array_equal(attnviz.from_attention([line]).pattern(0, 0)[1], [0.5, 0.5])
    for more in ({"tokens": ["a", " cat"]}, {"axes": "qk"}, {"queries": [0]}):
        with pytest.raises(UsageError, match="the rows of an engine bring their tokens"):
            attnviz.from_attention([FIRST], **more)


def test_rows_may_begin_behind_the_prompt() -> None:
    lines, eager = steps_of_a_model(((1, 2),))
    capture = attnviz.from_attention([lines[0], {"tokens": PROMPT}, *lines[2:]])
    assert capture.pattern(1, 2).shape == (2, 5)
    np.testing.assert_allclose(capture.pattern(1, 2), eager[1, 2, 3:], atol=1e-6)


def test_a_file_is_known_by_the_schema_of_its_first_line(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, FIRST, NEXT)
    for given in ((str(path),), ("--file", str(path))):
        assert run("show", *given).out.startswith("L0H0 ")
    assert "array, 3 tokens" in run("heads", str(path)).out
    other = written(tmp_path, {"text": "a cat sat"})
    ended = run("show", str(other), "--head", "L3H2", "--quiet", "-f", "json")
    assert json.loads(ended.out)["text"] == str(other)
    assert '"text":' in json.loads(run("show", "--file", str(other), "-f", "json").out)["text"]
    with pytest.raises(InputError, match="line 1 cannot be read: its schema is not attnviz-rows/1"):
        attnviz.load(other)


def test_what_needs_a_run_says_so(tmp_path: Path, run: Run) -> None:
    path = str(written(tmp_path, FIRST, NEXT))
    for command in ("predict", "ablate", "generate", "tokens"):
        ended = run(command, path)
        assert ended.status is ExitStatus.USAGE
        assert "capture" in ended.err


def test_rows_that_look_ahead_are_shown_with_a_note(tmp_path: Path, run: Run) -> None:
    ahead = {**FIRST, "weights": [[0.5, 0.5], [0.3, 0.7]]}
    ended = run("show", str(written(tmp_path, ahead)))
    assert ended.status is ExitStatus.OK
    assert "note: these rows are not causal: a query attends to a later token\n" in ended.err
    assert "causal" not in run("show", str(written(tmp_path, FIRST, NEXT))).err


def test_jsonl_without_the_schema_is_a_text_with_a_note(tmp_path: Path, run: Run) -> None:
    said = "rows.jsonl?; attention rows have a schema in the first line\n"
    for first in ({**FIRST, "schema": "attnviz"}, {"tokens": ["a"]}, ""):
        assert said in run("show", str(written(tmp_path, first))).err


def test_all_heads_of_a_file_are_those_that_it_holds(tmp_path: Path, run: Run) -> None:
    path = str(written(tmp_path, {**FIRST, "layer": 1, "head": 3}, {"layer": 3, **OF_HEAD_5}))
    every = run("show", path, "--head", "all", "-f", "jsonl").out.splitlines()
    assert {(row["layer"], row["head"]) for row in map(json.loads, every)} == {(1, 3), (3, 5)}
    third = run("show", path, "--layer", "3", "-f", "jsonl").out.splitlines()
    assert {(row["layer"], row["head"]) for row in map(json.loads, third)} == {(3, 5)}
    ended = run("show", path, "--layer", "2")
    assert ended.status is ExitStatus.USAGE
    assert (
        "it holds L1H3, L3H5; choose among these, or capture the text again with --head"
        in ended.err
    )


@pytest.mark.parametrize(
    "first",
    [
        '{"schema": "attnviz-rows/1" "tokens": ["a"]}',
        '\ufeff{"schema":"attnviz-rows/1", "layer"',
        DEEP,
    ],
    ids=["no comma", "no end", "deep"],
)
def test_a_first_line_that_is_no_json_is_refused_and_not_read_as_a_text(
    run: Run, tmp_path: Path, first: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(first + "\n")
    ended = run("show", str(tmp_path / "rows.jsonl"))
    assert ended.status is ExitStatus.INPUT
    assert "line 1 is not JSON" in ended.err


def test_positions_make_rows_causal() -> None:
    wide = {**FIRST, "weights": [[0.5, 0.5], [0.5, 0.5]]}
    assert not attnviz.from_attention([wide]).record.causal  # a prompt may be read from both sides
    wrong = "line 1 cannot be read: L0H0 attends to a later position than its own"
    with pytest.raises(InputError, match=wrong):
        attnviz.from_attention([{**wide, "position": 0}])
    with pytest.raises(InputError, match="line 2 cannot be read: it names position 5, not 2"):
        attnviz.from_attention([FIRST, {**NEXT, "position": 5}])
    assert attnviz.from_attention([FIRST, {**NEXT, "position": 2}]).record.causal


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([{**FIRST, "schema": "attnviz-rows/2"}], "line 1 cannot be read: its schema is not"),
        ([{**FIRST, "schema": 1}], "line 1 cannot be read"),
        ([FIRST, {**NEXT, "schema": "attnviz-rows/9"}], "line 2 cannot be read: its schema"),
        ([NEXT], "line 1 cannot be read: its schema is not attnviz-rows/1"),
        ([FIRST, {**NEXT, "weights": [0.5, 0.5]}], r"the shape \(1, 2\), not \(1, 3\)"),
        ([FIRST, {**NEXT, "weights": [[[1, 0, 0]]]}], r"the shape \(1, 1, 3\), not \(1, 3\)"),
        ([FIRST, {**NEXT, "weights": [0.5, [0.5], 0]}], "line 2 cannot be read"),
        ([FIRST, {**NEXT, "weights": ["a", "b", "c"]}], "its weights are not numbers"),
        ([FIRST, {**NEXT, "weights": ["1", "0", "0"]}], "its weights are not numbers"),
        ([FIRST, {"tokens": [" x", " y"], "layer": 0, "head": 0, "weights": [[1, 0], [1]]}],
         "its rows have different lengths"),
        ([{**FIRST, "layer": 60000, "head": 60000}], "more heads than any model has"),
        ([FIRST, {**NEXT, "weights": []}], r"the shape \(1, 0\), not \(1, 3\)"),
        ([FIRST, {**NEXT, "weights": [0.5, 0.5, 0.5]}], "line 2 cannot be read: row 0 .* is 1.5"),
        ([FIRST, {**NEXT, "weights": [-1, 1, 1]}], "its smallest number -1"),
        ([FIRST, {**NEXT, "weights": [float("nan"), 0, 0]}], "its sum is nan"),
        ([FIRST, {**NEXT, "tokens": []}], r"not \(0, 2\)"),
        ([FIRST, {**NEXT, "tokens": "sat"}], "line 2 cannot be read: tokens cannot be right"),
        ([FIRST, {**NEXT, "tokens": ["\ud800"]}], "line 2 cannot be read"),
        ([FIRST, {**NEXT, "layer": -1}], "its weights are of no layer and head"),
        ([FIRST, {**NEXT, "layer": 1 << 40}], "its weights are of no layer and head"),
        ([FIRST, {**NEXT, "layer": True}], "layer cannot be right"),
        ([FIRST, {"weights": [[1, 0], [0, 1]]}], "its weights are of no layer and head"),
        ([FIRST, {**NEXT, "head": 1}], "the file cannot be read: L0H1 has rows of other steps"),
        ([FIRST, {"layer": 0, "head": 0, "weights": [[1, 0], [0, 1]]}], "the second of L0H0 in"),
        ([FIRST, {"tokens": [" x"]}, {**NEXT, "weights": [0, 0, 0, 1]}], "a step between others"),
        ([{"schema": SCHEMA, "tokens": ["a"]}], "there are no weights"),
        ([FIRST, {"tokens": [" x"], "layer": 0, "head": 0}], "line 2 .* a head and has no weights"),
        ([{"schema": SCHEMA, "token": ["a"]}], "line 1 .*'token' is not a field; write 'tokens'"),
        ([FIRST, 7], "line 2 cannot be read"),
        ([FIRST, None], "line 2 cannot be read"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_right_is_refused_by_its_number(
    tmp_path: Path, lines: list[Any], wrong: str
) -> None:
    with pytest.raises(InputError, match=wrong):
        attnviz.load(written(tmp_path, *lines))
    with pytest.raises(InputError, match=wrong):
        attnviz.from_attention(lines)


def test_a_damaged_file_is_refused(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, FIRST, NEXT)
    for broken in (b'{"tokens": [" x"', b"[" * 100_000, b"\xff\xfe", b"", b" "):
        damaged = tmp_path / "damaged.jsonl"
        damaged.write_bytes(path.read_bytes() + broken + b"\n")
        with pytest.raises(InputError, match="line 3 is "):
            attnviz.load(damaged)
        ended = run("heads", str(damaged))
        assert (ended.status, ended.out) == (ExitStatus.INPUT, "")
    with pytest.raises(InputError, match="there is no file"):
        attnviz.load(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="tokens is not a list of texts"):
        attnviz.from_attention([[[1.0]]])
