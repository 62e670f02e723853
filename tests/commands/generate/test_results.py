"""Results files: killed at any byte, gone on with, and never of two runs."""

import json
import random
import resource
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from tokenizers import decoders

from attnviz.commands.generate import results, runs
from attnviz.commands.generate.run import Answering
from attnviz.errors import ExitStatus
from attnviz.models.scratch.native import save_checkpoint
from tests.conftest import Result, Run, bytes_tokenizer, tiny_model
from tests.reading import rows_in

NOTE = "the count was stabbed by Leo with a knife ."
DOCUMENTS = [{"id": "note", "text": NOTE}, {"id": "diary", "text": "Anna painted the door ."}]


def question(name: str, text: str = "the murderer was", **more: Any) -> dict[str, Any]:
    return {"id": name, "question": text, "documents": DOCUMENTS, "target": " Leo .", **more}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Questions, of which the third and the fourth have no answer."""
    long = [{"id": "long", "text": "a door . " * 99}]
    entries = [
        question("a"),
        question("b", "therefore the murderer was", target=" Anna . Leo left ."),
        question("c", documents=[]),
        question("d", documents=long),
        question("e", target=" Leo and Anna ."),
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + '{"id": "f"\n')
    return path


def answer(run: Run, questions: Path, *more: str) -> Result:
    """Go on with the file of results beside the questions."""
    out = str(questions.with_name("results.jsonl"))
    return run("generate", "--lines", "--file", str(questions), "--resume", "-o", out, *more)


def test_a_file_has_the_rows_of_each_answer_and_why_a_line_has_none(
    run: Run, questions: Path
) -> None:
    ended = answer(run, questions, "--check")
    assert ended.status is ExitStatus.INPUT
    assert "line 3: --check deletes segments before the last one, but there are none" in ended.err
    assert "results.jsonl has 3 answers, and none for lines 3, 4, 6" in ended.err
    rows = rows_in(questions.with_name("results.jsonl").read_text())
    assert {row["line"] for row in rows if "error" not in row} == {1, 2, 5}
    failed = [(row["line"], row["id"]) for row in rows if "error" in row]
    assert failed == [(3, "c"), (4, "d"), (6, None)]
    assert {row["model"].split()[0] for row in rows} == {"builtin"}
    assert {row["settings"] for row in rows} == {"--check"}
    # without the columns of the file, the rows are those of any other run
    lines = run("generate", "--lines", "--file", str(questions), "--check", "-f", "jsonl").out
    more = ("model", "settings", "question", "input", "section", "source")
    plain = [{k: v for k, v in row.items() if k not in more} for row in rows if "error" not in row]
    assert plain == rows_in(lines)
    assert rows[-2]["question"] == "the murderer was"


def test_a_run_that_was_killed_at_any_byte_ends_in_the_same_file(
    run: Run, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LEAST_OWN", 16)
    answer(run, questions, "--check")
    out = questions.with_name("results.jsonl")
    whole, asked = out.read_bytes(), list[str]()
    first_of_5 = whole.index(b'{"line": 5')
    plain = Answering.check

    def counted(self: Answering, *rest: Any) -> Any:
        asked.append(str(self.prompt.id))
        return plain(self, *rest)

    monkeypatch.setattr(Answering, "check", counted)
    draw = random.Random(0)
    for cut in [first_of_5, first_of_5 + 9, draw.randrange(first_of_5)]:
        asked.clear()
        runs._WRITTEN.clear()  # as in a new process
        out.write_bytes(whole[:cut])
        answer(run, questions, "--check")
        assert out.read_bytes() == whole
        rows = [json.loads(row) for row in whole[:cut].split(b"\n")[:-1]]
        last = rows[-1]["line"] if rows else 1  # which may not be whole
        assert asked == [
            name for name, line in zip("abce", (1, 2, 3, 5), strict=True) if line >= last
        ]


def test_what_the_model_writes_does_not_depend_on_what_it_wrote_before(
    run: Run, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LEAST_OWN", 16)
    out, many = questions.with_name("results.jsonl"), [{"text": NOTE}] * 4
    entries = [question("a"), question("b", documents=many), question("a")]
    questions.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    answer(run, questions, "--check")
    rows = rows_in(out.read_text())
    of = {n: [row["unrelated"] for row in rows if row["line"] == n] for n in (1, 3)}
    assert of[1] == of[3]


@pytest.mark.parametrize("other", [["--check", "--head", "L3H2"], [], ["--check", "--hops", "1"]])
def test_other_settings_are_refused_and_change_nothing(
    run: Run, questions: Path, other: Sequence[str]
) -> None:
    answer(run, questions, "--check")
    out = questions.with_name("results.jsonl")
    before = out.read_bytes()
    ended = answer(run, questions, *other)
    assert ended.status is ExitStatus.USAGE
    assert "has the settings '--check', but this run" in ended.err
    assert out.read_bytes() == before


def test_another_model_is_refused(run: Run, questions: Path, gpt2_folder: Path) -> None:
    answer(run, questions)
    ended = answer(run, questions, "-m", str(gpt2_folder))
    assert ended.status is ExitStatus.USAGE
    assert "has the model 'builtin " in ended.err


@pytest.mark.parametrize(("old", "new"), [('"b"', '"z"'), ("door", "floor"), ("therefore", "so")])
def test_other_lines_are_refused_even_with_the_same_id(
    run: Run, questions: Path, old: str, new: str
) -> None:
    answer(run, questions)
    lines = questions.read_text().splitlines(True)
    questions.write_text("".join([lines[0], lines[1].replace(old, new), *lines[2:]]))
    ended = answer(run, questions)
    assert ended.status is ExitStatus.INPUT
    assert "line 2 is not the one that" in ended.err


def test_a_failed_line_that_was_mended_is_refused(run: Run, questions: Path) -> None:
    answer(run, questions)
    questions.write_text(questions.read_text().replace('"c"', '"x"'))
    assert "line 3 is not the one that" in answer(run, questions).err


def test_other_documents_before_the_same_lines_are_refused(run: Run, questions: Path) -> None:
    lines, note = questions.with_suffix(".txt"), questions.with_name("note.txt")
    lines.write_text("the murderer was\nthe count was\n")
    for text, status in ((NOTE, ExitStatus.OK), ("Leo slept .", ExitStatus.INPUT)):
        note.write_text(text)
        ended = answer(run, lines, "--doc", str(note), "--max-new-tokens", "2")
        assert ended.status is status


def test_lines_that_the_input_has_no_more_are_told(run: Run, questions: Path) -> None:
    answer(run, questions)
    questions.write_text("".join(questions.read_text().splitlines(True)[:2]))
    assert "also has lines 3, 4, 5, which the input has not" in answer(run, questions).err


def test_rows_say_what_a_segment_is_and_the_section_of_a_sentence(run: Run, tmp_path: Path) -> None:
    folder, chats = tmp_path / "model", tmp_path / "chats.jsonl"
    tokenizer = bytes_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    save_checkpoint(folder, tiny_model(n_positions=509), tokenizer)
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}<|assistant|>\n"
    )
    said = [("developer", "Be brief."), ("user", "Who?"), ("assistant", "Ann."), ("user", "Sure?")]
    messages = [{"role": role, "content": text} for role, text in said]
    target = "<think> It was Leo. </think> Yes. ."
    chats.write_text(json.dumps({"messages": messages, "target": target}) + "\n")
    out = tmp_path / "results.jsonl"
    run("generate", "-m", str(folder), "--chat", str(chats), "--check", "--resume", "-o", str(out))
    rows = rows_in(out.read_text())
    assert {row["segment"]: row["source"] for row in rows} == {
        **dict.fromkeys(("sink", "template", "answer")),
        **{"developer": "system", "user 1": "document", "assistant": "document"},
        "user 2": "question",
    }
    assert {row["text"]: row["section"] for row in rows} == {
        "<think> It was Leo.": "thinking",
        "</think>": "thinking",
        "Yes.": "answer",
        ".": "answer",
    }
    assert {row["question"] for row in rows} == {"Sure?"}
    # a full stop states nothing that could be supported
    assert {(row["groundedness"], row["verdict"]) for row in rows if row["text"] == "."} == {
        (None, "untested")
    }


def test_pages_of_another_run_are_not_overwritten(run: Run, questions: Path) -> None:
    pages = questions.with_name("pages")
    answer(run, questions, "--pages", str(pages))
    questions.with_name("results.jsonl").rename(questions.with_name("last.jsonl"))
    ended = answer(run, questions, "--pages", str(pages))
    assert ended.status is ExitStatus.USAGE
    assert "has the pages of another run" in ended.err


def test_a_file_made_without_pages_gets_none_later(run: Run, questions: Path) -> None:
    answer(run, questions)
    ended = answer(run, questions, "--pages", str(questions.with_name("pages")))
    assert ended.status is ExitStatus.USAGE
    assert "was made without --pages" in ended.err


@pytest.mark.parametrize("content", ["a text\n", "[1]\n", '{"line": 1}\n', '{"a": 1}\n{"b": 2}\n'])
def test_no_other_file_is_taken_for_one(run: Run, questions: Path, content: str) -> None:
    out = questions.with_name("results.jsonl")
    out.write_text(content)
    ended = answer(run, questions)
    assert (ended.status, out.read_text()) == (ExitStatus.INPUT, content)
    assert "is not a row of a results file" in ended.err


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"line": n, "row": 1} for n in range(500)]),
        '{"my": "notes"}',
        "[]",
        "\0" * 3000,
        '{"line": 1, "id": "a", "note": "mine"}',  # whole, and no row of ours
        '{"line": 1, "note": "mi',
        '{"line": "1", "row": 1',
        '{"line": 1, "row": 1, "text": "a long one, and more behind it"}\n{"line": 1, "row": 1',
    ],
    ids=str.__len__,
)
def test_no_other_file_without_a_newline_at_its_end_is_cut(
    run: Run, questions: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "LARGEST", 40 if "long one" in content else 1 << 26)
    out = questions.with_name("results.jsonl")
    out.write_text(content)
    ended = answer(run, questions)
    assert (ended.status, out.read_text()) == (ExitStatus.INPUT, content)
    assert "line 1 of" in ended.err
    assert "is not a row of a results file; give another file." in ended.err


def test_a_tail_that_begins_as_a_row_is_dropped(run: Run, questions: Path) -> None:
    out = questions.with_name("results.jsonl")
    answer(run, questions)
    whole = out.read_text()
    for tail in ("{", '{"line": 123, "id": "b", "ro'):
        out.write_text(tail)
        answer(run, questions)
        assert out.read_text() == whole


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("line", "Infinity"),
        ("line", "NaN"),
        ("line", "9" * 400),
        ("line", "true"),
        ("id", "{}"),
        ("id", "[1]"),
        ("id", "9" * 400),
        ("input", "null"),
        ("model", "{}"),
        ("settings", "1e999"),
        ("error", "[]"),
    ],
)
def test_a_row_with_a_field_of_another_kind_is_none_of_a_results_file(
    run: Run, tmp_path: Path, field: str, value: str
) -> None:
    out, asked = tmp_path / "results.jsonl", tmp_path / "questions.jsonl"
    asked.write_text(json.dumps(question("a")) + "\n")
    row = {"line": 1, "id": "a", "input": "", "model": "", "settings": "", "error": "why"}
    text = json.dumps({**row, field: "@"}).replace('"@"', value) + "\n"
    out.write_text(text)
    ended = answer(run, asked)
    assert (ended.status, out.read_text()) == (ExitStatus.INPUT, text)
    assert "is not a row of a results file" in ended.err


def test_a_disk_that_is_full_leaves_whole_answers(run: Run, questions: Path) -> None:
    answer(run, questions)
    out = questions.with_name("results.jsonl")
    whole = out.read_bytes()
    last = whole.index(b'{"line": 5')
    out.unlink()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (last + 1000, before[1]))
    try:
        ended = answer(run, questions)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ended.status is ExitStatus.OUTPUT
    assert out.read_bytes() == whole[:last]
    answer(run, questions)
    assert out.read_bytes() == whole


def test_two_runs_do_not_write_one_file(run: Run, questions: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with questions.with_name("results.jsonl").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ended = answer(run, questions)
    assert ended.status is ExitStatus.USAGE
    assert "another run writes" in ended.err


def test_each_answer_has_its_page_and_its_rows_name_it(run: Run, questions: Path) -> None:
    pages = questions.with_name("pages")
    answer(run, questions, "--check", "--pages", str(pages))
    assert sorted(each.name for each in pages.iterdir()) == ["1.html", "2.html", "5.html"]
    rows = rows_in(questions.with_name("results.jsonl").read_text())
    assert {row["page"] for row in rows if row["line"] == 2} == {"pages/2.html"}
    assert "Leo left" in (pages / "2.html").read_text()


@pytest.mark.parametrize("id_", ["\ud800", True, [1], {}, 10**400])
def test_an_id_that_no_row_can_hold_is_an_error_of_its_line(
    run: Run, questions: Path, id_: object
) -> None:
    entries = [question("a"), {**question("b"), "id": id_}]
    questions.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert answer(run, questions).status is ExitStatus.INPUT
    (failed,) = [
        r for r in rows_in(questions.with_name("results.jsonl").read_text()) if r["line"] == 2
    ]
    assert failed["id"] is None
    assert "error" in failed


def test_an_id_may_look_like_an_escape(run: Run, questions: Path) -> None:
    questions.write_text(json.dumps(question("C:\\udocs", documents=[])) + "\n")
    answer(run, questions, "--check")
    (failed,) = rows_in(questions.with_name("results.jsonl").read_text())
    assert failed["id"] == "C:\\udocs"


def test_a_disk_that_takes_a_part_at_a_time_gets_all_of_a_row(
    run: Run, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(run, questions)
    out = questions.with_name("results.jsonl")
    whole = out.read_bytes()
    out.unlink()

    class Slow(FileIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:100])

    monkeypatch.setattr(results, "FileIO", Slow)
    answer(run, questions)
    assert out.read_bytes() == whole


def test_an_id_that_repeats_is_named(run: Run, questions: Path) -> None:
    questions.write_text("".join(json.dumps(question(name)) + "\n" for name in "aba"))
    ended = answer(run, questions)
    assert ended.status is ExitStatus.OK
    assert "line 3 has the id 'a' of line 1" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "r.jsonl"], "--resume continues the lines of a file of rows"),
        (["--lines"], "--resume continues the lines of a file of rows"),
        (["--lines", "-o", "r.csv"], "--resume continues the lines of a file of rows"),
        (["--lines", "-o", "r-{line}.jsonl"], "--resume continues the lines of a file of rows"),
        (["--lines", "-o", "r.jsonl", "--square"], "--square does nothing for --resume"),
        (["--lines", "-o", "r.jsonl", "--check-method", "curve"], "an answer has no rows"),
        (["--lines", "-o", "r.jsonl", "--rows", "word"], "a row of a results file is a sentence"),
        (
            ["--lines", "-o", "r.jsonl", "--pages", "p", "--rows", "word"],
            "--rows does nothing for --pages",
        ),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(
    run: Run, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("generate", "the dog was", *arguments, "--resume")
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err
    assert not [*tmp_path.iterdir()]
