"""What a results file comes to: means with standard errors, what is left out, what got worse."""

import json
import os
import re
import statistics
import subprocess
import sys
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

import attnviz
from attnviz.errors import ExitStatus, InputError
from tests.commands.report.results import RUN, answer, failed, written
from tests.conftest import Run

TWO = {"letter": (-3.0, True), "diary": (0.05, False)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def error_of(values: list[float]) -> float:
    return statistics.stdev(values) / sqrt(len(values))


def summary(run: Run, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("report", *arguments, "-f", "json").out)
    return found


def test_means_are_over_questions_whose_own_are_over_statements(file: Path) -> None:
    path = written(file, answer(1, [0.9, 0.5, None]), answer(2, [0.4]), answer(3, [1.0, 0.0]))
    own = [0.7, 0.4, 0.5]  # by hand
    found = attnviz.report(path).groundedness
    assert found.mean == pytest.approx(sum(own) / 3)
    assert found.error == pytest.approx(error_of(own))


def test_a_statement_is_unsupported_where_unrelated_text_gives_as_much(
    run: Run, file: Path
) -> None:
    path = written(
        file,
        answer(1, [0.9, 0.1, 0.05, None]),  # 0.1 is not more than 0.1; null says nothing
        answer(2, [0.4, 0.9]),
        answer(3, [0.004], unrelated=0.0),  # shown as 0.00
    )
    shares = [2 / 3, 0.0, 1.0]
    found = summary(run, path)
    assert (found["statements"], found["unsupported_statements"]) == (6, 3)
    assert found["unsupported"] == pytest.approx(sum(shares) / 3)
    assert found["unsupported_error"] == pytest.approx(error_of(shares))


def test_a_document_is_unused_that_is_not_needed_and_costs_nothing(run: Run, file: Path) -> None:
    documents = {
        "a": (0.5, True),  # needed
        "b": (-0.04, False),  # over three statements, its deletion costs 0.12 nats
        "c": (-0.03, False),  # and that of this one 0.09
        "d": (0.0, False),
    }
    path = written(file, answer(1, [0.5] * 3, documents=documents), answer(2))
    found = summary(run, path)
    assert found["unused"] == pytest.approx((2 / 4 + 0) / 2)
    assert [row["unused"] for row in found["rows"]] == [0.5, 0.0]


def test_documents_that_no_question_used_are_named(run: Run, file: Path) -> None:
    other = {"letter": (-3.0, True), "diary": (-0.5, False), "map": (0.0, False)}
    path = written(file, answer(1, documents={**TWO, "map": (0.0, False)}))
    assert summary(run, path)["never_used"] == {}  # one question says little
    path = written(
        file, answer(1, documents={**TWO, "map": (0.0, False)}), answer(2, documents=other)
    )
    assert summary(run, path)["never_used"] == {"map": 2}
    assert "never used: map (2 questions)" in run("report", path).out


def test_documents_without_a_name_of_their_own_are_not_joined(run: Run, file: Path) -> None:
    names = "document", "document 2", "tool 3", "user", "document 1.2", "document of 3", "7"
    unused = dict.fromkeys(names, (0.0, False))
    path = written(file, answer(1, documents=unused), answer(2, documents=unused))
    assert summary(run, path)["never_used"] == {"document of 3": 2, "7": 2}


def test_the_share_of_the_system_prompt_is_over_questions_that_have_one(
    run: Run, file: Path
) -> None:
    path = written(file, answer(1, [0.5] * 2, system=0.25), answer(2, system=0.05), answer(3))
    found = summary(run, path)
    assert found["system_share"] == pytest.approx(0.15)
    assert found["system_share_error"] == pytest.approx(error_of([0.25, 0.05]))
    assert found["system_share_questions"] == 2


def test_a_row_says_what_its_segment_is_and_its_name_does_not(run: Run, file: Path) -> None:
    rows = answer(1, documents={"rules": (0.0, False), "system 2": (-3.0, True)})
    for row in rows:
        row["source"] = {"rules": "system", "system 2": "document"}.get(row["segment"])
    found = summary(run, written(file, rows))
    assert found["system_share"] == pytest.approx(rows[1]["share"])
    assert found["rows"][0]["documents"] == 1


def test_thinking_is_in_no_mean_and_in_no_answer(run: Run, file: Path) -> None:
    rows = answer(1, [0.05, 0.9, 0.0, 0.5])
    for row in rows:
        row["section"] = ("thinking", "answer", "tool call", "answer 2")[row["row"] - 1]
    never = [{**row, "section": "thinking"} for row in answer(2, [0.2])]
    path = written(file, rows, never)
    found = summary(run, path)
    assert (found["groundedness"], found["groundedness_questions"]) == (0.7, 1)
    assert (found["statements"], found["unsupported_statements"]) == (2, 0)
    assert found["empty"] == 1  # it came to no answer
    said = [(row["statements"], row["answer"]) for row in found["rows"]]
    assert said == [(2, "statement 2 . statement 4 ."), (0, "")]
    items = re.findall(r"<li.*?</li>", run("report", path, "-f", "html").out)
    assert items[0] == (
        '<li class="unmeasured"><bdi>statement 1 .</bdi> <small>thinking</small></li>'
    )
    assert "<small>supported 0.90<" in items[1]
    assert "<small>tool call<" in items[2]


def test_documents_of_which_none_was_deleted_alone_have_no_column(run: Run, file: Path) -> None:
    def subsets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if k not in ("change", "needed")} for row in rows]

    path = written(file, subsets(answer(1, documents=TWO)), subsets(answer(2, [None])))
    found = summary(run, path)
    assert (found["without_documents"], found["certain"]) == (0, 1)
    assert (found["unused_questions"], found["never_used"]) == (0, {})
    assert [row["documents"] for row in found["rows"]] == [2, 1]
    for form in "txt", "html":
        out = run("report", path, "-f", form).out
        assert not re.search(r"unused|not used|change \(nats\)", out)


def test_a_file_made_without_a_check_is_refused(run: Run, file: Path) -> None:
    for rows in answer(1, settings=""), [{**failed(1)[0], "settings": "--seed 1"}]:
        ended = run("report", written(file, rows))
        assert (ended.status, ended.err.count("\n")) == (ExitStatus.INPUT, 1)
        assert "results.jsonl' was made without --check; write one with: attn" in ended.err


def test_questions_without_documents_and_certain_ones_are_counted_apart(
    run: Run, file: Path
) -> None:
    path = written(file, answer(1, [None], documents={}), answer(2, [None]), answer(3, [0.5]))
    found = summary(run, path)
    assert (found["groundedness"], found["groundedness_error"]) == (0.5, None)
    assert (found["without_documents"], found["certain"]) == (1, 1)
    assert attnviz.report(path).about == (
        "groundedness .50 over 1 question; 1 had no documents; 1 as probable without documents"
    )


@pytest.mark.parametrize("text", [" ", ".", "… ?!", "“—”"])
def test_an_answer_without_a_letter_is_empty(run: Run, file: Path, text: str) -> None:
    blank = [{**row, "text": text} for row in answer(1, [0.0])]
    found = summary(run, written(file, blank, answer(2)))
    assert (found["groundedness"], found["groundedness_questions"]) == (0.8, 1)
    assert (found["empty"], found["without_documents"], found["certain"]) == (1, 0, 0)
    assert (found["unsupported"], found["unused_questions"]) == (0.0, 1)


def test_a_statement_without_a_letter_is_in_no_mean_of_its_answer(run: Run, file: Path) -> None:
    rows = answer(1, [0.6, 0.0])
    path = written(file, [{**row, "text": "?"} if row["row"] == 2 else row for row in rows])
    found = summary(run, path)
    assert (found["groundedness"], found["statements"], found["empty"]) == (0.6, 1, 0)
    assert found["rows"][0]["answer"] == "statement 1 . ?"
    for text in "7", "no", "не", "無":
        found = summary(run, written(file, [{**row, "text": text} for row in rows]))
        assert (found["groundedness"], found["statements"]) == (0.3, 2), text


def test_rows_of_no_results_file_are_told_how_to_make_one(run: Run, file: Path) -> None:
    rows = [{k: v for k, v in row.items() if k not in RUN} for row in answer(1)]
    for content in rows, []:
        ended = run("report", written(file, content))
        assert (ended.status, ended.err.count("\n")) == (ExitStatus.INPUT, 1)
        assert "attnviz generate --lines --check -o results.jsonl --resume" in ended.err


def test_failed_questions_come_first_then_unsupported_ones_then_the_least_grounded(
    run: Run, file: Path
) -> None:
    path = written(
        file, answer(1, [0.9]), answer(2, [0.3]), answer(3, [0.95, 0.05]), failed(4), failed(5)
    )
    rows = summary(run, path)["rows"]
    assert [row["line"] for row in rows] == [4, 5, 3, 2, 1]
    assert rows[0]["error"] == "the prompt is too long"
    assert "failed: q4, q5: the prompt is too long" in run("report", path).out


def test_a_failure_is_told_once_without_what_to_do(run: Run, file: Path) -> None:
    nameless = [{**failed(3, "line 3 is empty; give at least one word.")[0], "id": None}]
    others = [failed(n, f"reason {n}; mend it.") for n in (4, 5)]
    path = written(
        file, answer(1), failed(2, "the line is a chat; give --chat."), nameless, *others
    )
    *_, told, means = run("report", path).out.strip().split("\n\n")
    assert means.startswith("Means over questions")
    assert told.splitlines() == [
        "failed: q2: the line is a chat",
        "failed: line 3: it is empty",
        "failed: q4: reason 4",
        "failed: q5: reason 5",
    ]
    few = run("report", path, "--top", "2").out
    assert "failed: 2 more, for 2 other reasons; --top shows more" in few


def test_a_table_without_a_number_is_left_out(run: Run, file: Path) -> None:
    out = run("report", written(file, failed(1))).out
    assert "mean over" not in out.lower()
    assert "to read first" not in out
    assert "failed: q1: the prompt is too long" in out


# Damage: named, and in no mean.


def test_a_cut_file_leaves_its_last_question_out(run: Run, file: Path) -> None:
    written(file, answer(1), answer(2))
    kept = file.stat().st_size
    text = Path(written(file, answer(1), answer(2), answer(3, [0.1, 0.2]))).read_text()
    for size in range(kept, len(text) - 1, 97):
        file.write_text(text[:size])
        ended = run("report", str(file), "-f", "json")
        found = json.loads(ended.out)
        assert (found["groundedness"], found["answered"]) == (0.8, 2), size
        assert (ended.status == ExitStatus.INPUT) == (size > kept), size
        assert ("is left out" in ended.err) == (size > kept), size


@pytest.mark.parametrize("gone", range(8))
def test_an_answer_of_which_any_row_is_missing_is_left_out(run: Run, file: Path, gone: int) -> None:
    rows = answer(2, [0.1, 0.2])
    path = written(file, answer(1), rows[:gone] + rows[gone + 1 :], answer(3))
    ended = run("report", path, "-f", "json")
    assert json.loads(ended.out)["groundedness"] == 0.8
    assert "q2 is left out: rows of it are missing" in ended.err
    assert ended.status == ExitStatus.INPUT


def changed(**values: Any) -> str:
    """The letter's row of a second statement, with other values."""
    return json.dumps({**answer(2, [0.1, 0.2])[5], **values})


DAMAGE = {
    "no JSON": "nonsense",
    "half a row": '{"line": 2, "ro',
    "deep": "[" * 100_000,
    "a list": "[1, 2]",
    "another object": '{"a": 1}',
    "blank": "  ",
    "a long number": '{"line": ' + "9" * 5000 + "}",
    "no number": changed(share="much"),
    "NaN": changed(change=float("nan")),
    "infinite": changed().replace("-3.0", "1e999"),
    "too grounded": changed(groundedness=1.5),
    "true": changed(row=True),
    "an unknown source": changed(source="user"),
    "another source": changed(source="system"),
    "half a character": changed(text="\ud800"),
    "an error": json.dumps(failed(2)[0]),
    "another id": changed(id="other"),
    "another text": changed(text="other ."),
    "another segment": changed(segment="diary"),
    "another share": changed(share=0.9),
    "of the first statement": changed(row=1),
    "of a third statement": changed(row=3),
    "of a seventh statement": changed(row=7),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_row_leaves_its_answer_out_by_name(run: Run, file: Path, name: str) -> None:
    rows: list[Any] = answer(2, [0.1, 0.2])
    path = written(file, answer(1), [*rows[:5], DAMAGE[name], *rows[6:]], answer(3))
    ended = run("report", path, "-f", "json")
    assert json.loads(ended.out)["groundedness"] == 0.8
    assert "q2 is left out" in ended.err
    assert "Traceback" not in ended.err
    assert ended.status == ExitStatus.INPUT


def test_a_missing_row_is_missed_by_its_share_or_by_the_other_statements(
    run: Run, file: Path
) -> None:
    small = [
        {**row, "share": 1.0 if row["segment"] == "sink" else 0.0} for row in answer(2, [1, 1])
    ]
    path = written(file, answer(1), small[:-1], answer(3, [0.1])[:-1], answer(4))
    ended = run("report", path)
    assert "q2 is left out" in ended.err
    assert "q3 is left out" in ended.err


def test_an_error_before_the_rows_of_its_line_leaves_it_out(run: Run, file: Path) -> None:
    ended = run("report", written(file, answer(1), failed(2), answer(2, [0.1]), answer(3)))
    assert "q2 is left out" in ended.err


def test_bytes_that_are_no_text_are_named(run: Run, file: Path) -> None:
    written(file, answer(1), answer(2))
    file.write_bytes(file.read_bytes() + b"\xff\xfe\x00\n")
    ended = run("report", str(file))
    assert "row 9 is not UTF-8" in ended.err
    assert ended.status == ExitStatus.INPUT


@pytest.mark.parametrize("content", [b"\x00\xff" * 5000, b"\xff\n" * 5000, b"{}\n" * 5000, b""])
def test_a_file_of_something_else_is_refused_in_one_sentence(
    run: Run, file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    ended = run("report", str(file))
    assert (ended.status, ended.out, ended.err.count("\n")) == (ExitStatus.INPUT, "", 1)


def test_a_file_of_much_damage_is_refused_in_one_sentence(run: Run, file: Path) -> None:
    ended = run("report", written(file, answer(1), answer(2), ["nonsense"] * 1001))
    assert (ended.status, ended.out, ended.err.count("\n")) == (ExitStatus.INPUT, "", 1)


def test_a_line_that_stands_twice_counts_once(run: Run, file: Path) -> None:
    path = written(file, answer(1, [0.8]), answer(2, [0.4]), answer(1, [0.0]))
    ended = run("report", path, "-f", "json")
    assert json.loads(ended.out)["groundedness"] == pytest.approx(0.6)
    assert "q1 is left out: line 1 was there before" in ended.err


def test_ids_that_repeat_are_named_and_all_counted(run: Run, file: Path) -> None:
    path = written(file, answer(1, id_="a"), answer(2, [0.4], id_="a"))
    ended = run("report", path, "-f", "json")
    found = json.loads(ended.out)
    assert (found["groundedness"], found["repeated_ids"]) == (pytest.approx(0.6), ["a"])
    assert "1 id repeated: a" in ended.err
    assert ended.status == ExitStatus.OK


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_id_names_nothing(run: Run, file: Path, blank: str) -> None:
    path = written(file, answer(1, id_=blank), answer(2, id_=blank), answer(3, id_=blank)[:-1])
    ended = run("report", path)
    assert re.findall(r"^line \d(?= )", ended.out, re.MULTILINE) == ["line 1", "line 2"]
    assert "line 3 is left out" in ended.err
    assert "repeated" not in ended.err


@pytest.mark.parametrize(
    ("name", "value"), [("model", "gpt2 1234"), ("settings", "--check --hops 2")]
)
def test_a_file_of_two_runs_is_refused_by_both_names_and_rows(
    run: Run, file: Path, name: str, value: str
) -> None:
    path = written(file, answer(1), answer(2, **{name: value}))
    ended = run("report", path)
    assert f"{RUN[name]!r} in row 1 and {value!r} in row 5" in ended.err
    assert (ended.status, ended.out) == (ExitStatus.INPUT, "")


# Against an earlier file, and for CI.


def test_differences_are_paired_by_id_and_what_got_worse_comes_first(
    run: Run, file: Path, tmp_path: Path
) -> None:
    old = written(
        tmp_path / "old.jsonl",
        answer(7, [0.5], id_="a"),
        answer(2, [0.9], id_="b"),
        answer(3, [0.4], id_="c"),
        answer(4, [0.4], id_="gone"),
    )
    new = written(
        file,
        answer(1, [0.6], id_="a"),
        answer(2, [0.5], id_="b"),
        answer(3, [0.3], id_="c"),
        answer(9, [0.1], id_="fresh"),
    )
    found = summary(run, new, "--against", old)
    table = run("report", new, "--against", old).out
    (row,) = re.findall(r"^documents not used .*", table, re.MULTILINE)
    assert row.endswith("+.00 ± .00      3")
    changes = [0.1, -0.4, -0.1]
    assert [row["id"] for row in found["rows"]] == ["b", "c", "fresh", "a"]
    against = found["against"]
    assert against["groundedness"] == pytest.approx(statistics.fmean(changes))
    assert against["groundedness_error"] == pytest.approx(error_of(changes))
    assert against["questions"] == 3
    assert (against["only_now"], against["only_earlier"]) == (["fresh"], ["gone"])
    assert "1 question only in the earlier file: gone" in run("report", new, "--against", old).err
    assert "−.13 ± .15 over 3 pairs" in table


def test_a_new_question_is_ranked_among_those_that_did_not_get_worse(
    run: Run, file: Path, tmp_path: Path
) -> None:
    old = [answer(1, [0.9]), answer(2, [0.5]), answer(3, [0.6]), answer(4, [None])]
    new = [
        answer(1, [0.8]),  # got worse
        answer(2, [0.499]),  # shown as .00
        answer(3, [0.7]),  # got better
        answer(4, [0.55]),  # had no groundedness
        answer(5, [0.05]),  # new, and unsupported
    ]
    path = written(file, *new)
    found = summary(run, path, "--against", written(tmp_path / "old.jsonl", *old))
    assert [row["line"] for row in found["rows"]] == [1, 5, 2, 4, 3]
    assert found["against"]["questions"] == 4


def test_questions_without_an_id_are_paired_by_line(file: Path, tmp_path: Path) -> None:
    def without(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if k != "id"} for row in rows]

    old = written(tmp_path / "old.jsonl", without(answer(1, [0.5])), without(answer(2, [0.5])))
    new = written(file, without(answer(2, [0.25])), without(answer(3, [0.9])))
    found = attnviz.report(new, against=old)
    assert found.record.change("groundedness").mean == -0.25
    assert found.notes == (
        "1 question only in this file: line 3",
        "1 question only in the earlier file: line 1",
    )


def test_questions_of_a_repeated_id_are_paired_by_line_and_told_apart(
    run: Run, file: Path, tmp_path: Path
) -> None:
    old = written(tmp_path / "old.jsonl", answer(1, [0.5], id_="a"), answer(2, id_="gone"))
    new = written(file, answer(1, [0.4], id_="a"), answer(3, [0.9], id_="a"))
    found = attnviz.report(new, against=old)
    assert dict(found.record.changes) == {1: pytest.approx(-0.1)}
    assert found.notes == (
        "1 id repeated: a",
        "1 question of repeated ids without a pair: line 3: a",
        "1 question only in the earlier file: gone",
    )
    assert re.findall(r"^line \d: a", run("report", new).out, re.MULTILINE) == [
        "line 1: a",
        "line 3: a",
    ]


def test_another_model_is_compared_and_other_settings_are_not(file: Path, tmp_path: Path) -> None:
    new = written(file, answer(1))
    other = written(tmp_path / "old.jsonl", answer(1, model="gpt2 12"))
    found = attnviz.report(new, against=other)
    assert found.notes == ("the models differ: builtin 8c6242cd678a12b7, and gpt2 12 before",)
    other = written(tmp_path / "old.jsonl", answer(1, settings="--check --hops 2"))
    with pytest.raises(InputError, match=r"'--check', but .* with '--check --hops 2'"):
        attnviz.report(new, against=other)


@pytest.mark.parametrize(
    ("least", "grounded", "status"),
    [
        ("0.8", 0.8, ExitStatus.OK),
        ("0.8", 0.79, ExitStatus.BELOW),
        ("0", None, ExitStatus.BELOW),  # nothing was measured
        ("0", 0.0, ExitStatus.OK),
        ("nan", 0.5, ExitStatus.USAGE),
        ("1.5", 0.5, ExitStatus.USAGE),
    ],
)
def test_an_exit_code_says_that_groundedness_is_too_low(
    run: Run, file: Path, least: str, grounded: float | None, status: ExitStatus
) -> None:
    ended = run("report", written(file, answer(1, [grounded])), "--fail-under", least)
    assert ended.status == status
    assert ended.err.count("\n") == (status != ExitStatus.OK)
    assert bool(ended.out) == (status != ExitStatus.USAGE)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("--fail-under 0.5", ExitStatus.BELOW),  # none may fail
        ("--fail-under 0.5 --max-failed 2", ExitStatus.BELOW),
        ("--fail-under 0.5 --max-failed 3", ExitStatus.INPUT),  # the damage is told all the same
        ("--max-failed 2", ExitStatus.BELOW),
        ("", ExitStatus.INPUT),
    ],
)
def test_questions_without_an_answer_are_too_many(
    run: Run, file: Path, options: str, status: ExitStatus
) -> None:
    """One good answer says little where one failed, one is cut, and one is empty."""
    blank = [{**row, "text": " "} for row in answer(3, [1.0])]
    path = written(file, answer(1, [1.0]), failed(2), blank, answer(4)[:-1])
    ended = run("report", path, *options.split())
    assert ended.status == status
    said = "3 of 4 questions have no answer, and --max-failed is "
    assert (said in ended.err) == (status == ExitStatus.BELOW)
    assert ended.out


@pytest.mark.parametrize(
    ("drop", "now", "status"),
    [
        ("0.05", (0.8, 0.8), ExitStatus.OK),  # no change
        ("0.05", (0.9, 0.6), ExitStatus.OK),  # -0.05: as much as it may fall
        ("0.05", (0.9, 0.5), ExitStatus.BELOW),
        ("0", (0.9, 0.9), ExitStatus.OK),
        ("0.05", (0.9, None), ExitStatus.OK),  # of the one pair that is left
        ("1", (None, None), ExitStatus.BELOW),  # no pair
        ("nan", (0.9, 0.9), ExitStatus.USAGE),
    ],
)
def test_an_exit_code_says_that_groundedness_fell(
    run: Run,
    file: Path,
    tmp_path: Path,
    drop: str,
    now: tuple[float | None, float | None],
    status: ExitStatus,
) -> None:
    old = written(tmp_path / "old.jsonl", answer(1, [0.8]), answer(2, [0.8]))
    new = written(file, answer(1, [now[0]]), answer(2, [now[1]]))
    ended = run("report", new, "--against", old, "--fail-drop", drop)
    assert ended.status == status
    assert ended.err.count("\n") == (status != ExitStatus.OK)


def test_a_limit_is_broken_also_where_nobody_reads_on(file: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "attnviz", "report", written(file, answer(1, [0.5]))]
    with os.fdopen(writing, "wb") as closed:
        for least, status in ("0.4", ExitStatus.OK), ("0.6", ExitStatus.BELOW):
            ended = subprocess.run([*program, "--fail-under", least], stdout=closed, check=False)
            assert ended.returncode == status


def test_a_drop_needs_an_earlier_file(run: Run, file: Path) -> None:
    ended = run("report", written(file, answer(1)), "--fail-drop", "0.1")
    assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
    assert "--fail-drop needs an earlier file; give --against." in ended.err


# What goes out.


def test_a_report_does_not_take_the_place_of_its_results(run: Run, file: Path) -> None:
    path, before = written(file, answer(1)), file.read_bytes()
    ended = run("report", path, "-o", path)
    assert (ended.status, file.read_bytes()) == (ExitStatus.USAGE, before)
    assert "results.jsonl', an input of the same call; name another file." in ended.err


def test_the_path_of_a_page_holds_where_the_report_lies(run: Run, tmp_path: Path) -> None:
    (tmp_path / "night").mkdir()
    (tmp_path / "out").mkdir()
    path = written(tmp_path / "night" / "r.jsonl", answer(1, page="pages/1.html"))
    attnviz.report(path).save(tmp_path / "out" / "report.jsonl")
    (row,) = map(json.loads, (tmp_path / "out" / "report.jsonl").read_text().splitlines())
    assert row["page"] == "../night/pages/1.html"
    run("report", path, "-o", str(tmp_path / "night" / "report.jsonl"))
    (row,) = map(json.loads, (tmp_path / "night" / "report.jsonl").read_text().splitlines())
    assert row["page"] == "pages/1.html"


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_of_the_terminal_is_too_long(run: Run, file: Path, columns: int) -> None:
    questions = [answer(n, [0.1 * (n % 10)], system=0.1) for n in range(1, 40)]
    path = written(file, *questions, failed(41, "a reason " * 30))
    out = run("report", path, "--width", str(columns)).out
    assert max(map(len, out.splitlines())) <= columns
    assert "29 more questions" in out


@pytest.mark.parametrize("columns", [60, 80])
def test_a_comparison_is_a_table(run: Run, file: Path, tmp_path: Path, columns: int) -> None:
    long = "a name of twenty let"
    old = written(tmp_path / "old.jsonl", answer(1, [0.5], id_=long), answer(2))
    new = written(file, answer(1, [0.4], id_=long, system=0.1), answer(2))
    out = run("report", new, "--against", old, "--width", str(columns)).out
    assert re.search(r"^unsupported statements +\.00 ± \.00 +2 +\+\.00 ± \.00 +2$", out, re.M)
    (row,) = re.findall(rf"^{long} .*", out, re.MULTILINE)
    assert ("What is 1?" in row) == (columns == 80)


def test_hostile_texts_reach_no_terminal_and_no_markup(run: Run, file: Path) -> None:
    nasty = "\x1b[2J<script>alert(1)</script>\u202e"
    rows = answer(1, id_=nasty, question=nasty, page="javascript:alert(1)")
    for row in rows:
        row["text"] = nasty
    path = written(file, rows, failed(2, nasty))
    shown, page = run("report", path).out, run("report", path, "-f", "html").out
    assert "\x1b[2J" not in shown + page
    assert "\u202e" not in shown + page
    assert "<script" not in page
    assert "javascript:" not in page


def test_answers_about_images_are_left_out_and_a_file_of_them_says_so(
    run: Run, tmp_path: Path
) -> None:
    image = str(Path("docs/images/shapes-1.png").absolute())
    lines, made = tmp_path / "lines.jsonl", str(tmp_path / "results.jsonl")
    asked = {"question": "what is left of the circle?"}
    lines.write_text(json.dumps({**asked, "image": image}) + "\n")
    command = ("generate", "--file", str(lines), "-m", "shapes", "--head", "L3H0", "--check")
    command += ("--max-new-tokens", "1")
    assert run(*command, "--resume", "-o", made).status is ExitStatus.OK
    why = "line 1 is left out: it has images, and groundedness is only of documents"
    assert f"holds no results of an evaluation: {why}; " in run("report", made).err
    with lines.open("a") as more:
        more.write(json.dumps({**asked, "documents": ["a red circle ."]}) + "\n")
    assert run(*command, "--resume", "-o", made).status is ExitStatus.OK
    ended = run("report", made)
    assert "line 2" in ended.out
    assert why in ended.err


def test_rows_of_an_answer_are_told_from_those_of_a_results_file(run: Run, file: Path) -> None:
    file.write_text(run("generate", "the bird was", "-f", "jsonl").out)
    assert "row 1 was not written with --resume; " in run("report", str(file)).err
