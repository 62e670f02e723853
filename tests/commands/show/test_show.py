"""`attnviz show`: what goes in, what comes out, and where."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.commands.show import page as show_page
from attnviz.commands.show import run as show_run
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit.prepare import Prepared
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

TEXT = "two words"


@pytest.fixture
def model(gpt2_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tiny model, also as the default, so that commands need not name it."""
    monkeypatch.setenv("ATTNVIZ_MODEL", str(gpt2_folder))
    return str(gpt2_folder)


def test_the_first_line_says_which_head_and_why_and_the_model(run: Run, model: str) -> None:
    shown = run("show", TEXT, "--width", "200")
    coming, *lines = shown.out.splitlines()
    first = " ".join(lines[:2])
    assert shown.status is ExitStatus.OK
    assert coming.startswith("next: ")
    assert "9 tokens without BOS" in first
    assert " → " in first  # what is so of these weights
    assert "(chosen for its effect on the next token; --head all shows every head)" in first
    assert model in first


def test_a_jsonl_row_is_a_link_with_its_weight_in_full(run: Run, model: str) -> None:
    rows = rows_in(run("show", TEXT, "-H", "1.2", "-f", "jsonl").out)
    assert len(rows) == 9 * 10 / 2  # every unmasked pair
    assert all(row["key"] <= row["query"] for row in rows)
    capture = attnviz.capture(TEXT, model=model, heads="L1H2")
    for row in rows:
        weight = capture.pattern(1, 2)[row["query"], row["key"]]
        assert np.float32(row["weight"]) == weight


def test_rows_of_every_format_agree(run: Run, model: str) -> None:
    links = rows_in(run("show", TEXT, "-l", "1", "-f", "jsonl").out)
    for form, separator in (("csv", ","), ("tsv", "\t")):
        text = run("show", TEXT, "-l", "1", "-f", form).out
        rows = list(csv.DictReader(io.StringIO(text), delimiter=separator))
        assert [row["weight"] for row in rows] == [str(np.float32(x["weight"])) for x in links]
        assert [row["query_token"] for row in rows] == [x["query_token"] for x in links]


FILTERS: list[tuple[list[str], int]] = [
    (["--query", "w"], 2 + 5 + 1 - 1),  # both w: positions 1 and 4
    (["--query", "w#2"], 5),
    (["--query", "0"], 1),
    (["--query", "8", "--key", "w"], 2),
    (["--top", "1"], 9),
    (["--top", "2"], 17),
    (["--min", "1"], 1),  # only the first token, which sees nothing but itself
]


@pytest.mark.parametrize(("options", "count"), FILTERS)
def test_filters_leave_the_links_asked_for(
    run: Run, model: str, options: list[str], count: int
) -> None:
    shown = run("show", TEXT, "-H", "0.1", "-f", "jsonl", *options)
    assert len(shown.out.splitlines()) == count


def test_heads_are_chosen_by_layer_and_number(run: Run, model: str) -> None:
    shown = json.loads(run("show", TEXT, "-l", "0-1", "-H", "0,2", "-f", "json").out)
    assert [head["name"] for head in shown["heads"]] == ["L0H0", "L0H2", "L1H0", "L1H2"]


@pytest.mark.parametrize(
    ("reduce", "names"),
    [
        ("mean:heads", ["L0 mean", "L1 mean"]),
        ("max:layers", ["H0 max", "H1 max", "H2 max"]),
        ("mean", ["mean"]),
    ],
)
def test_heads_are_reduced_over_what_is_asked(
    run: Run, model: str, reduce: str, names: list[str]
) -> None:
    shown = json.loads(run("show", TEXT, "--reduce", reduce, "-f", "json").out)
    assert [head["name"] for head in shown["heads"]] == names
    for pattern in shown["patterns"]:
        assert reduce.startswith("max") or np.sum(pattern, axis=1) == pytest.approx(1, abs=1e-5)


EARLIER = [
    # as the version before spelled it, as it is spelled now
    (["--reduce", "mean", "--over", "heads"], ["--reduce", "mean:heads"]),
    (["--reduce", "max", "--over", "all"], ["--reduce", "max"]),
    (["--no-self"], ["--skip", "self"]),
    (["--no-previous", "--skip", "self"], ["--skip", "self,previous"]),
]


@pytest.mark.parametrize(("earlier", "now"), EARLIER)
def test_an_option_of_the_version_before_is_taken_and_says_its_new_name(
    run: Run, model: str, earlier: list[str], now: list[str]
) -> None:
    old, new = (run("show", TEXT, "-f", "jsonl", *given) for given in (earlier, now))
    assert (old.out, new.err) == (new.out, "")
    assert old.err.count("goes with the next version; write --") == 1


def test_help_lists_no_option_of_the_version_before(run: Run) -> None:
    listed = run("show", "--help-all").out.split()
    assert "--skip" in listed
    assert not {"--over", "--no-self", "--no-previous"} & {*listed}


def test_python_takes_the_arguments_of_the_version_before_with_a_warning() -> None:
    for earlier, now in (
        ({"reduce": "mean", "over": "layers"}, {"reduce": "mean:layers"}),
        ({"no_self": True, "no_previous": True}, {"skip": "self,previous"}),
    ):
        with pytest.warns(FutureWarning, match="goes with the next version; write "):
            old = attnviz.show(TEXT, heads="all", **earlier)
        new = attnviz.show(TEXT, heads="all", **now)
        assert old.to_columns()["weight"].tolist() == new.to_columns()["weight"].tolist()
    with (
        pytest.warns(FutureWarning),
        pytest.raises(UsageError, match=r"over needs reduce; add reduce='mean'"),
    ):
        attnviz.show(TEXT, over="heads")


def test_a_reduction_is_the_formula_on_the_heads(run: Run, model: str) -> None:
    everything = np.stack([attnviz.capture(TEXT, model=model).pattern(1, h) for h in range(3)])
    for how, expected in (("mean", everything.mean(0)), ("max", everything.max(0))):
        shown = run("show", TEXT, "-l", "1", "--reduce", how, "-f", "json")
        np.testing.assert_allclose(json.loads(shown.out)["patterns"][0], expected, atol=1e-6)


@pytest.mark.parametrize("source", ["argument", "file", "dash", "pipe"])
def test_the_text_comes_from_wherever_it_is(
    run: Run, model: str, tmp_path: Path, source: str
) -> None:
    (tmp_path / "text.txt").write_text(TEXT + "\n")
    arguments, stdin = {
        "argument": ([TEXT], None),
        "file": (["--file", str(tmp_path / "text.txt")], None),
        "dash": (["-"], TEXT.encode() + b"\n"),
        "pipe": ([], TEXT.encode()),
    }[source]
    shown = run("show", *arguments, "-f", "json", stdin=stdin)
    assert json.loads(shown.out)["text"] == TEXT


def test_each_line_is_answered_with_its_number_and_the_head_of_the_first(
    run: Run, model: str
) -> None:
    shown = run("show", "--lines", "-", "-f", "jsonl", stdin=b"a first line\nand a second\n")
    rows = rows_in(shown.out)
    assert {row["line"] for row in rows} == {1, 2}
    assert len({(row["layer"], row["head"]) for row in rows}) == 1
    second = run("show", "--lines", "-", "--width", "400", stdin=b"a first line\nand a second\n")
    assert second.out.count("(chosen on line 1;") == 1
    first = run("show", "a first line", "-f", "jsonl")
    assert [r for r in shown.out.splitlines() if '"line": 1' in r] == first.out.splitlines()


def test_a_bad_line_is_told_and_the_rest_go_on(run: Run, model: str) -> None:
    stdin = b"good\n\n\xff\xfe bad\n" + b"x" * 99 + b"\nalso good\n"
    shown = run("show", "--lines", "-", "-f", "json", stdin=stdin)
    assert shown.status is ExitStatus.INPUT
    assert [json.loads(line)["line"] for line in shown.out.splitlines()] == [1, 5]
    errors = shown.err.splitlines()
    assert len(errors) == 3
    assert [f"line {n}" in error for n, error in zip((2, 3, 4), errors, strict=True)] == [True] * 3
    assert "99 tokens, but the model takes at most 61" in errors[2]


def test_an_error_that_every_line_would_have_ends_the_stream_at_once(run: Run, model: str) -> None:
    ended = run("show", "--lines", "-", "--head", "L9H9", stdin=b"one\ntwo\nthree\n")
    assert ended.status is ExitStatus.USAGE
    assert ended.err.count("\n") == 1
    some = run("show", "--lines", "-", "--query", "two", stdin=b"a two\nthree\n")
    assert some.status is ExitStatus.INPUT
    assert some.err.startswith("attnviz: line 2: --query 'two' is not in the text")


def test_lines_go_into_one_file_or_into_one_each(run: Run, model: str, tmp_path: Path) -> None:
    run("show", "--lines", "-", "-o", str(tmp_path / "all.csv"), stdin=b"one\n\ntwo\n")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert {row["line"] for row in rows} == {"1", "3"}
    shown = run("show", "--lines", "-", "-o", str(tmp_path / "{line}.npz"), stdin=b"one\n\ntwo\n")
    assert shown.status is ExitStatus.INPUT
    assert sorted(p.name for p in tmp_path.glob("*.npz")) == ["1.npz", "3.npz"]
    assert attnviz.load(tmp_path / "3.npz").text == "two"


def test_without_one_good_line_no_file_is_touched(run: Run, model: str, tmp_path: Path) -> None:
    target = tmp_path / "all.csv"
    target.write_text("old")
    shown = run("show", "--lines", "-", "-o", str(target), stdin=b"\n \n")
    assert shown.status is ExitStatus.INPUT
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["all.csv"]


@pytest.mark.parametrize("options", [[], ["-f", "jsonl"], ["-f", "json"], ["--view", "grid"]])
def test_a_saved_capture_shows_what_the_model_showed(
    run: Run, model: str, tmp_path: Path, options: list[str]
) -> None:
    path = str(tmp_path / "capture.npz")
    assert run("show", TEXT, "-o", path).status is ExitStatus.OK
    assert run("show", path, *options).out == run("show", TEXT, *options).out


def test_a_capture_of_one_head_says_what_it_holds(run: Run, model: str, tmp_path: Path) -> None:
    path = str(tmp_path / "capture.npz")
    run("show", TEXT, "-H", "L1H2", "-o", path)
    shown = run("show", path, "-H", "L0H0")
    assert shown.status is ExitStatus.USAGE
    assert "does not hold L0H0; it holds L1H2" in shown.err


def test_an_argument_that_names_a_file_is_text_with_a_note(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("inside")
    shown = run("show", "notes.txt", "-f", "json")
    assert json.loads(shown.out)["text"] == "notes.txt"
    assert "did you mean --file" in shown.err
    assert run("show", "notes.txt", "-f", "json", "--quiet").err == ""


def test_bos_is_put_in_front_only_where_asked_for_and_always_said(run: Run, model: str) -> None:
    with_bos, without = (
        json.loads(run("show", TEXT, o, "-f", "json").out) for o in ("--bos", "--no-bos")
    )
    assert [with_bos["bos"], without["bos"]] == [True, False]
    assert with_bos["tokens"][0]["label"] == "BOS"
    assert len(with_bos["tokens"]) == len(without["tokens"]) + 1


def test_what_looks_like_a_special_token_is_text_unless_asked_for(run: Run, model: str) -> None:
    text = "a<|endoftext|>b"
    plain, special = (
        json.loads(run("show", text, *o, "-f", "json").out) for o in ([], ["--special"])
    )
    assert len(plain["tokens"]) == len(text)
    assert [token["id"] for token in special["tokens"]][1] == 0
    assert len(special["tokens"]) == 3


@pytest.mark.parametrize(("side", "kept"), [("left", "56789"), ("right", "01234")])
def test_a_long_text_is_cut_from_the_side_that_was_named(
    run: Run, model: str, side: str, kept: str
) -> None:
    text = "01234" + "x" * 70 + "56789"
    shown = json.loads(run("show", text, "--truncate", side, "--bos", "-f", "json").out)
    tokens = shown["tokens"]
    assert len(tokens) == 61
    assert tokens[0]["special"]
    assert [token["index"] for token in tokens] == list(range(61))
    ends = tokens[-5:] if side == "left" else tokens[1:6]
    assert "".join(token["text"] for token in ends) == kept
    assert all(text[t["start"] : t["end"]] == t["text"] for t in tokens)


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_picture_is_written_and_is_the_same_each_time(
    run: Run, model: str, tmp_path: Path, suffix: str, start: bytes
) -> None:
    path = tmp_path / f"1.{suffix}"
    assert run("show", TEXT, "-o", str(path)).status is ExitStatus.OK
    assert path.read_bytes().startswith(start)
    assert run("show", TEXT, "-f", suffix).raw == path.read_bytes()


def test_a_view_in_a_file_is_plain_text(run: Run, model: str, tmp_path: Path) -> None:
    target = tmp_path / "view.txt"
    run("show", TEXT, "-o", str(target), "--width", "60", terminal=True)
    assert target.read_text() == run("show", TEXT, "--width", "60").out
    assert "\x1b" not in target.read_text()


def test_what_a_cut_text_left_out_is_said_where_it_is_shown(run: Run, model: str) -> None:
    shown = run("show", "x" * 80, "--truncate", "left", "--width", "200")
    assert "the first 19 left out" in on_one_line(shown.out)
    assert shown.err == "note: the first 19 tokens are left out to fit the model's context\n"
    shown_right = run("show", "x" * 80, "--truncate", "right")
    assert "the last 19 left out" in on_one_line(shown_right.out)


def test_tokens_of_a_long_text_are_all_shown_with_a_note(run: Run, model: str) -> None:
    shown = run("tokens", "x" * 80, "-f", "jsonl")
    assert len(shown.out.splitlines()) == 80
    assert "has 80 tokens, but the model takes at most 61" in shown.err


def test_rows_of_tokens_hold_nothing_that_a_terminal_would_obey(run: Run, model: str) -> None:
    for form in ("csv", "tsv", "jsonl", "txt"):
        assert "\x1b" not in run("tokens", "\x1b[31mX\u202e", "-f", form).out


def test_a_page_too_large_for_a_browser_is_refused_before_the_model_runs(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, saved = tmp_path / "page.html", tmp_path / "capture.npz"
    assert run("show", TEXT, "-o", str(saved)).status is ExitStatus.OK
    monkeypatch.setattr(show_page, "MOST_WEIGHTS", 45)
    assert run("show", TEXT, "-H", "0.0", "-o", str(target)).status is ExitStatus.OK
    target.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(Prepared, "run", None)
        ended = run("show", TEXT, "-H", "all", "-o", str(target))
    for refused in (ended, run("show", str(saved), "-o", str(target))):
        assert refused.status is ExitStatus.INPUT
        assert "6 heads would hold 270 weights, over the limit for a browser of 45" in refused.err
        assert not target.exists()


@pytest.mark.parametrize("suffix", ["html", "npz"])
def test_a_file_that_takes_long_to_write_is_announced(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    arguments = ("show", TEXT, "-o", str(tmp_path / f"all.{suffix}"))
    assert run(*arguments).err == ""
    monkeypatch.setattr(show_run, "HEAVY", 270)
    assert run(*arguments).err == (
        "note: this file holds 270 weights, and takes a while to write\n"
    )


def test_a_text_that_is_the_name_of_a_model_has_a_note(run: Run, model: str) -> None:
    for name in ("gpt2", model):
        ended = run("tokens", name)
        assert ended.status is ExitStatus.OK
        assert f"is a model: did you mean --model {name[:30]}" in ended.err
    assert run("tokens", "two words").err == ""


def test_a_query_that_is_a_piece_of_a_word_is_noted(run: Run) -> None:
    said = "“ch” is not a whole word of the text, but a piece of “uncharacteristically”"
    text = "The dog uncharacteristically barks"
    assert said in run("show", text, "--query", "ch").err
    assert "is a piece of" not in run("show", text, "--query", "dog").err
    assert said in attnviz.show(text, query="ch").notes
    assert said in attnviz.heads(text, drop_key="ch").notes
