"""Patterns made readable: what is left out or joined is said, and every format obeys."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from attnviz.inputs.captures import npz_chunks
from attnviz.kit.prepare import Budget
from attnviz.kit.write import write_bytes
from attnviz.records.heads import Head
from tests.builtin import LAYERS, NAMED
from tests.conftest import Run
from tests.factories import make_capture, random_patterns
from tests.reading import on_one_line, rows_in

TEXT = "a fluffy blue creature roamed the verdant forest"


def sums(out: str) -> dict[object, float]:
    found: dict[object, float] = defaultdict(float)
    for link in rows_in(out):
        found[link["query_token"]] += link["weight"]
    return found


def test_without_the_sink_the_rest_sums_to_1_and_its_share_is_said(
    run: Run, tmp_path: Path
) -> None:
    tokens = TEXT.split()
    weights = random_patterns(1, len(tokens) + 1, causal=True, seed=1)[0]
    for row in (3, 4):  # which attend to nothing else
        weights[row] = 0
        weights[row, 0] = 1
    capture = make_capture(TEXT, heads_per_layer=(1,), bos=True, patterns={Head(0, 0): weights})
    saved = str(tmp_path / "saved.npz")
    write_bytes(Path(saved), npz_chunks(capture))
    rows = run("show", saved, "--drop-sink", "-f", "jsonl").out
    assert "BOS" not in {link["key_token"] for link in rows_in(rows)}
    # who looks at nothing else, as BOS itself does, has no row
    assert set(sums(rows)) == {*tokens} - {tokens[2], tokens[3]}
    assert all(total == pytest.approx(1, abs=1e-5) for total in sums(rows).values())
    (dropped,) = json.loads(run("show", saved, "--drop-sink", "-f", "json").out)["transforms"]
    assert (dropped["kind"], dropped["keys"]) == ("keys-dropped", ["BOS"])
    # BOS itself, which can see nothing else, does not count
    share = weights[1:, 0].mean()
    assert dropped["share"] == pytest.approx(share, abs=1e-5)
    assert dropped["empty"] == tokens[2:4]
    shown = on_one_line(run("show", saved, "--drop-sink").out)
    assert f"{share:.0%} of the weight was on BOS, which is left out" in shown
    assert "attended to nothing else" in shown


def test_dropped_keys_are_listed_as_english_does_and_a_sign_in_quotes(run: Run) -> None:
    drop = [word for key in ("fluffy", ",", "blue") for word in ("--drop-key", key)]
    shown = on_one_line(run("show", "a fluffy, blue creature", "--head", "L2H0", *drop).out)
    assert 'of the weight was on fluffy, "," and blue, which are left out' in shown


def test_the_rollout_has_one_map_the_last_layers_or_those_asked_for(run: Run) -> None:
    rows = rows_in(run("show", TEXT, "--rollout", "-f", "jsonl").out)
    assert {(link["layer"], link["head"]) for link in rows} == {(LAYERS - 1, "rollout")}
    alone = rows_in(run("show", TEXT, "--rollout", "--query", "forest", "-f", "jsonl").out)
    assert alone == [link for link in rows if link["query_token"] == "forest"]
    both = rows_in(run("show", TEXT, "--rollout", "--layer", "0,2", "-f", "jsonl").out)
    assert {link["layer"] for link in both} == {0, 2}
    shown = run("show", TEXT, "--rollout").out.replace("\n", " ")
    assert "it drifts to the first" in shown
    both_ways = run("show", "the cat", "-m", "translator", "--kind", "encoder", "--rollout").out
    assert "rollout" in both_ways
    assert "drifts" not in both_ways


def test_links_to_itself_and_to_the_token_before_are_left_out(run: Run) -> None:
    rows = rows_in(run("show", TEXT, "--head", "all", "--skip", "self,previous", "-f", "jsonl").out)
    assert rows
    assert all(link["query"] - link["key"] > 1 for link in rows)
    shown = run("show", TEXT, "--head", "L1H0", "--skip", "self,previous").out
    assert "2 rows have no link but to itself or to the token before it" in shown
    told = json.loads(run("show", TEXT, "--head", "L1H0", "--skip", "self", "-f", "json").out)
    assert told["skip_distances"] == [0]
    assert told["patterns"][0][3][3] is None


def test_tokens_are_named_by_a_regular_expression(run: Run) -> None:
    rows = rows_in(run("show", TEXT, "--query", "/^[cf]/", "--head", "L1H0", "-f", "jsonl").out)
    assert {link["query_token"] for link in rows} == {"fluffy", "creature", "forest"}


def test_a_capture_of_some_heads_cannot_be_rolled_out(run: Run, tmp_path: object) -> None:
    saved = f"{tmp_path}/c.npz"
    run("show", TEXT, "--head", "L1H0", "-o", saved)
    assert "capture the text again with --head all" in run("show", saved, "--rollout").err


LINE = re.compile(r"(L\dH\d)  +(\S+) → (.*)")


def test_the_strongest_links_of_all_heads_as_lines(run: Run) -> None:
    arguments = ("show", TEXT, "--head", "all", "--skip", "self", "--drop-sink")
    shown = run(*arguments, "--view", "links", "--width", "100").out
    lines = [LINE.fullmatch(line) for line in shown.splitlines()]
    found = [(m[1], m[2], key.rsplit(" ", 1)) for m in lines if m for key in m[3].split(", ")]
    rows = {
        (f"L{link['layer']}H{link['head']}", link["query_token"], link["key_token"]): link["weight"]
        for link in rows_in(run(*arguments, "-f", "jsonl").out)
    }
    for head, query, (key, weight) in found:
        assert float(weight) == pytest.approx(rows[head, query, key], abs=0.0051)
    plain = rows_in(run("show", TEXT, "--head", "all", "--skip", "self", "-f", "jsonl").out)
    by_query = defaultdict(float)  # before rows were rescaled, of keys that are no rest
    for link in plain:
        name = (f"L{link['layer']}H{link['head']}", link["query_token"])
        if (*name, link["key_token"]) in rows:
            by_query[name] = max(by_query[name], link["weight"])
    befores = [by_query[m[1], m[2]] for m in lines if m]
    assert len(befores) == 20
    assert befores == sorted(befores, reverse=True)
    assert befores[-1] == pytest.approx(sorted(by_query.values())[-20], abs=1e-5)
    assert "more lines; --min 0.5" in shown


def test_a_row_with_one_key_left_is_no_line(run: Run) -> None:
    rows = rows_in(run("show", TEXT, "--head", "L1H1", "--drop-sink", "-f", "jsonl").out)
    keys = defaultdict(set)
    for link in rows:
        keys[link["query_token"]].add(link["key_token"])
    alone = {query for query, its in keys.items() if len(its) == 1}
    shown = run("show", TEXT, "--head", "L1H1", "--drop-sink", "--view", "links").out
    lines = {m[2] for m in map(LINE.fullmatch, shown.splitlines()) if m}
    assert alone
    assert not alone & lines
    assert lines


def test_a_row_with_little_left_is_faint_and_says_how_much(tmp_path: Path, run: Run) -> None:
    weights = np.array([[1, 0, 0, 0], [0.7, 0.3, 0, 0], [0.9, 0.08, 0.02, 0], [0.4, 0.1, 0.2, 0.3]])
    patterns = {Head(0, 0): weights.astype(np.float32)}
    capture = make_capture("a b c d", heads_per_layer=(1,), patterns=patterns)
    saved = str(tmp_path / "saved.npz")
    write_bytes(Path(saved), npz_chunks(capture))
    shown = run("show", saved, "--drop-sink").out
    assert re.search(r"c → b 0\.08 .*c 0\.02 .*0\.10 left", shown)
    assert "d → d 0.50" in shown
    assert shown.count("left\n") == 1
    colored = run("show", saved, "--drop-sink", "--color", "always").out
    faint = next(line for line in colored.splitlines() if "left" in line and "0.08" in line)
    assert faint.startswith("\x1b[1;2m")
    assert "told by" not in shown
    assert "rests only by their columns" in on_one_line(shown)


@pytest.mark.parametrize("bos", [True, False])
def test_without_filters_the_links_of_every_text_are_left_out_and_counted(
    run: Run, bos: bool
) -> None:
    """The links are those of the rows; what every text has is found by hand."""
    asked = ("show", TEXT, "--head", "all", "--bos" if bos else "--no-bos")
    shown = run(*asked, "--view", "links", "--width", "200").out
    first = "BOS" if bos else "a"
    kinds = {f"to {first}": 0, "of a token to itself": 0, "to the token before": 0, "": 0}
    others = set()
    for link in rows_in(run(*asked, "-f", "jsonl").out):
        distance = link["query"] - link["key"]
        near = {0: "of a token to itself", 1: "to the token before"}.get(distance, "")
        kind = f"to {first}" if link["key"] == 0 else near
        kinds[kind] += link["weight"] >= 0.1
        if not kind and link["weight"] >= 0.05:
            others.add((f"L{link['layer']}H{link['head']}", link["query_token"]))
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if kind)
    assert f"left out, of links of 0.1 or more: {told}; --min 0.1 shows all" in shown
    lines = [found for line in shown.splitlines() if (found := LINE.fullmatch(line))]
    assert len(lines) == 20
    assert {(line[1], line[2]) for line in lines} <= others
    assert f"{len(others) - 20} more lines; left out" in shown


@pytest.mark.parametrize(
    "filters",
    [["--top", "2"], ["--min", "0.1"], ["--skip", "self"], ["--drop-sink"], ["--key", "a"]],
)
def test_a_filter_of_links_is_taken_at_its_word(run: Run, filters: list[str]) -> None:
    assert "left out, of" not in run("show", TEXT, "--view", "links", *filters).out


def test_a_text_of_such_links_alone_says_so(run: Run) -> None:
    shown = on_one_line(run("show", "blue", "--view", "links").out)
    assert "no link to show; left out, of links of 0.1 or more:" in shown


def test_with_a_least_weight_all_lines_are_shown_and_none_is_said(run: Run) -> None:
    shown = run("show", TEXT, "--view", "links", "--min", "0.3").out
    assert len([line for line in shown.splitlines() if LINE.fullmatch(line)]) > 20
    assert "more lines" not in shown
    nothing = run("show", TEXT, "--view", "links", "--min", "1", "--query", "a", "--key", "a")
    assert "no link to show" in nothing.out


@pytest.mark.parametrize("width", [40, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    shown = run("show", TEXT, "--view", "links", "--min", "0.05", "--width", str(width)).out
    assert max(map(len, shown.splitlines())) <= width


def test_scores_are_a_heatmap_and_rows_of_their_own_name(run: Run, tmp_path: Path) -> None:
    arguments = ("show", TEXT, "--head", NAMED["adjectives"], "--scores")
    found = rows_in(run(*arguments, "-f", "jsonl", "--query", "creature").out)
    weights = rows_in(run(*arguments[:-1], "-f", "jsonl", "--query", "creature").out)
    assert [link["key"] for link in found] == [link["key"] for link in weights]
    assert len(found) == 5
    every = rows_in(run(*arguments, "-f", "jsonl").out)
    lowest = min(link["score"] for link in every)
    shown = run(*arguments, "--width", "80").out
    assert "scores before mask and softmax" in on_one_line(shown)
    assert f"{lowest:.1f}" in shown
    saved = str(tmp_path / "s.npz")
    assert run(*arguments, "-o", saved).status is ExitStatus.OK
    assert run("show", saved, "--width", "80").out == shown  # the one head that it holds
    told = json.loads(run(*arguments, "-f", "json").out)
    assert told["min"] is None
    assert run(*arguments, "-o", str(tmp_path / "s.png")).status is ExitStatus.OK


def test_norm_based_attention_is_the_weight_times_what_its_key_adds(
    run: Run, tmp_path: Path
) -> None:
    arguments = ("show", TEXT, "--head", "L2H3", "--query", "creature")
    raw = rows_in(run(*arguments, "-f", "jsonl").out)
    found = rows_in(run(*arguments, "--weighted", "-f", "jsonl").out)
    ratio = {a["key"]: b["weight"] / a["weight"] for a, b in zip(raw, found, strict=True)}
    assert len({round(value, 3) for value in ratio.values()}) > 1  # a norm for each key
    assert "norm-based" in run(*arguments, "--weighted", "--width", "200").out
    saved = str(tmp_path / "w.npz")
    run("show", TEXT, "--weighted", "-o", saved)
    again = rows_in(run("show", saved, *arguments[2:], "--weighted", "-f", "jsonl").out)
    for a, b in zip(found, again, strict=True):
        assert a["weight"] == pytest.approx(b["weight"], abs=1e-6)
    assert rows_in(run("show", saved, *arguments[2:], "-f", "jsonl").out) == raw
    scored = run("heads", TEXT, "--weighted", "--drop-sink", "-f", "jsonl")
    assert scored.err == ""


@pytest.mark.parametrize(
    "arguments",
    [["--words"], ["--drop-sink"], ["--rollout"], ["--reduce", "mean"], ["--view", "links"]],
)
def test_saved_scores_are_shown_as_they_are(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    saved = str(tmp_path / "s.npz")
    run("show", TEXT, "--scores", "--head", "all", "-o", saved)
    ended = run("show", saved, *arguments)
    assert ended.status is ExitStatus.USAGE
    assert "scores" in ended.err


def test_a_capture_of_weights_has_no_scores_and_one_without_norms_says_so(
    run: Run, tmp_path: Path
) -> None:
    saved = str(tmp_path / "c.npz")
    run("show", TEXT, "-o", saved)
    assert "holds weights, not scores" in run("show", saved, "--scores").err
    assert "holds weights, not contributions" in run("show", saved, "--contribution").err
    write_bytes(Path(saved), npz_chunks(make_capture("a b")))
    assert "again with --weighted" in run("show", saved, "--weighted").err


@pytest.mark.parametrize("view", ["grid", "text", "links", "table"])
def test_a_view_of_weights_is_refused_for_scores_before_a_model_is_looked_for(
    run: Run, view: str
) -> None:
    ended = run("show", "-", "--lines", "--scores", "--view", view, "-m", "nope", stdin=b"a\nb\n")
    assert ended.status is ExitStatus.USAGE
    assert ended.err.count("\n") == 1


CHINESE = "楚留香说"
MERGED = "tokens that are parts of one character are merged; --no-chars shows them apart"


@pytest.mark.parametrize("view", ["table", "heatmap", "text", "grid", "links"])
def test_the_terminal_merges_the_parts_of_characters_and_says_so(run: Run, view: str) -> None:
    merged = run("show", CHINESE, "--view", view)
    assert "parts of characters merged" in on_one_line(merged.out)
    assert MERGED in merged.err
    assert "1/3" not in merged.out
    asked = run("show", CHINESE, "--view", view, "--chars")
    assert asked.out == merged.out
    assert MERGED not in asked.err


def test_a_picture_merges_the_parts_of_characters_and_says_so(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    assert MERGED in run("show", CHINESE, "-o", str(path)).err
    assert "5 tokens with BOS, parts of characters merged" in path.read_text()
    assert MERGED not in run("show", CHINESE, "--no-chars", "-o", str(path)).err
    assert "14 tokens with BOS: “" in path.read_text()


@pytest.mark.parametrize(
    "more",
    [
        ["--no-chars"],
        ["--query", "楚 2/3"],  # a part that is named is wanted apart
        ["--scores"],  # which are unchanged
    ],
)
def test_parts_of_characters_stay_apart_where_that_is_asked_for(run: Run, more: list[str]) -> None:
    shown = run("show", CHINESE, "--head", "L3H1", *more)
    assert shown.status is ExitStatus.OK
    assert "14 tokens with BOS" in on_one_line(shown.out)
    assert MERGED not in shown.err


def test_rows_and_captures_hold_every_token_unless_they_are_asked_to_merge(
    run: Run, tmp_path: Path
) -> None:
    rows = rows_in(run("show", CHINESE, "-f", "jsonl").out)
    assert "楚 1/3" in {link["query_token"] for link in rows}
    saved = str(tmp_path / "a.npz")
    said = run("show", CHINESE, "-o", saved)
    assert MERGED not in said.err
    assert "14 tokens" in on_one_line(run("show", saved, "--no-chars").out)
    again = run("show", saved)
    assert MERGED in again.err
    assert "parts of characters merged" in on_one_line(again.out)
    run("show", CHINESE, "--chars", "-o", saved)
    assert MERGED not in run("show", saved).err  # it was asked for


def test_patterns_too_large_to_be_kept_are_shown_by_their_tokens(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "holds_whole", lambda self, heads: False)
    shown = run("show", CHINESE, "--head", "L3H1")
    assert shown.status is ExitStatus.OK
    assert "14 tokens with BOS" in on_one_line(shown.out)
    assert MERGED not in shown.err


def test_merging_is_said_once_for_many_lines(run: Run) -> None:
    said = run("show", "-", "--lines", stdin="a fluffy\n楚留\n香说\n".encode())
    assert said.err.count(MERGED) == 1


def test_a_text_without_such_parts_is_shown_as_it_is(run: Run) -> None:
    plain = run("show", TEXT)
    assert MERGED not in plain.err
    assert plain.out == run("show", TEXT, "--no-chars").out


def test_off_is_no_change_to_what_cannot_be_changed(run: Run) -> None:
    assert run("show", TEXT, "--scores", "--no-chars").status is ExitStatus.OK
    assert run("show", TEXT, "--scores", "--chars").status is ExitStatus.USAGE


def test_contributions_have_a_sign_and_their_rows_sum_to_1(run: Run, tmp_path: Path) -> None:
    arguments = ("show", TEXT, "--contribution", "--head", "L2H3")
    found = rows_in(run(*arguments, "-f", "jsonl").out)
    sums = defaultdict[int, float](float)
    for link in found:
        sums[link["query"]] += link["contribution"]
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-5)
    assert min(link["contribution"] for link in found) < 0
    merged = rows_in(run(*arguments, "--words", "--reduce", "mean", "-f", "jsonl").out)
    assert {link["head"] for link in merged} == {"mean"}
    shown = run(*arguments, "--width", "80").out
    assert "contribution weights" in shown
    saved = str(tmp_path / "c.npz")
    assert run(*arguments, "-o", saved).status is ExitStatus.OK
    assert run("show", saved, "--contribution", "--width", "80").out == shown
    assert run(*arguments, "-o", str(tmp_path / "c.png")).status is ExitStatus.OK
    run("show", TEXT, "-o", saved)
    assert "holds weights, not contributions" in run("show", saved, "--contribution").err
    captured = attnviz.capture(TEXT, heads="L2H3", contribution=True)
    columns = captured.show(contribution=True).to_columns()
    assert columns["contribution"].tolist() == pytest.approx([r["contribution"] for r in found])


def test_a_least_contribution_leaves_smaller_ones_out(run: Run) -> None:
    arguments = ("show", TEXT, "--contribution", "--head", "L2H3")
    every = rows_in(run(*arguments, "-f", "jsonl").out)
    for least in ("0.3", "1"):
        found = rows_in(run(*arguments, "-f", "jsonl", "--min", least).out)
        assert found == [link for link in every if link["contribution"] >= float(least)]
    assert "under 0.3" in on_one_line(run(*arguments, "--min", "0.3").out)


@pytest.mark.parametrize("option", ["--drop-sink", "--rollout", "--scores"])
def test_saved_contributions_are_taken_for_no_weights(
    run: Run, tmp_path: Path, option: str
) -> None:
    saved = str(tmp_path / "c.npz")
    run("show", TEXT, "--contribution", "--head", "all", "-o", saved)
    assert "contributions have a sign" in run("show", saved, option).err


def test_the_tokens_of_an_answer_are_apart_from_where_they_stand() -> None:
    """Its rows are counted behind the prompt: the key before each is the one that was read."""
    answer = attnviz.generate("a fluffy blue creature roamed the", max_new_tokens=3).capture
    prompt = len(answer.key_tokens) - len(answer.tokens)
    shown = answer.show(skip="previous", chars=False).to_columns()
    found = set(zip(shown["query"].tolist(), shown["key"].tolist(), strict=True))
    seen = {(row, key) for row in range(3) for key in range(prompt + row)}
    assert found == seen
