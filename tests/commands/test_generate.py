"""`attnviz generate`: the answer, and what each part of it looked at."""

import json
from pathlib import Path

import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run

PROMPT = "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was"
STOP = ("--stop", ".", "--max-new-tokens", "6")


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_built_in_model_names_the_murderer_and_shares_sum_to_1(run: Run) -> None:
    ended = run("generate", PROMPT, *STOP, "--rows", "token", "-f", "jsonl")
    assert ended.status is ExitStatus.OK, ended.err
    found = rows(ended.out)
    assert found[0]["text"] == "Leo"
    assert [row["segment"] for row in found if row["row"] == 1] == ["sink", "1", "2", "3", "answer"]
    for number in {row["row"] for row in found}:
        shares = [float(str(row["share"])) for row in found if row["row"] == number]
        assert sum(shares) == pytest.approx(1, abs=1e-4)


def test_a_given_answer_has_the_rows_of_the_same_answer_written(run: Run) -> None:
    written = rows(run("generate", PROMPT, *STOP, "-f", "jsonl").out)
    text = str(written[0]["text"])
    given = rows(run("generate", PROMPT, "--target", f" {text}", "-f", "jsonl").out)
    assert [row["segment"] for row in given] == [row["segment"] for row in written]
    for mine, theirs in zip(given, written, strict=True):
        assert mine["share"] == pytest.approx(theirs["share"], abs=1e-5)


def test_the_table_names_the_heads_and_quotes_the_segments(run: Run) -> None:
    out = run("generate", PROMPT, *STOP, columns=100).out
    assert out.startswith("builtin, its retrieval head L4H0: ")
    assert "\nanswer " in out
    assert "Tom was stabbed by Leo ." in out


def test_a_narrow_table_sums_up_what_does_not_fit(run: Run) -> None:
    prompt = " . ".join(["Anna was kind"] * 12)
    out = run("generate", prompt, "--max-new-tokens", "3", "--width", "50").out
    assert "others" in out
    assert all(len(line) <= 50 for line in out.splitlines())


def test_the_deletion_of_what_tells_costs_most(run: Run) -> None:
    out = run("generate", PROMPT, *STOP, "--check", columns=100).out
    changes = [line.split() for line in out.split("deleted")[1].splitlines()[1:3]]
    assert [row[0] for row in changes] == ["1", "2"]  # the last segment asks, and stays
    assert float(changes[0][2]) < -1 < float(changes[1][2])


def test_rows_have_what_deletions_change(run: Run) -> None:
    found = rows(run("generate", PROMPT, *STOP, "--check", "-f", "jsonl").out)
    changes = {row["segment"]: row["change"] for row in found if row["row"] == 1}
    assert float(str(changes["1"])) < -1
    assert changes["3"] is None  # it asks
    assert "change" not in rows(run("generate", PROMPT, *STOP, "-f", "jsonl").out)[0]


def test_documents_become_segments(run: Run, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Tom was stabbed by Leo .")
    (tmp_path / "diary.txt").write_text("Anna cleaned the floor .")
    docs = ("--doc", str(tmp_path / "letter.txt"), "--doc", str(tmp_path / "diary.txt"))
    found = rows(run("generate", "the murderer was", *docs, *STOP, "-f", "jsonl").out)
    assert [row["segment"] for row in found][:4] == ["sink", "letter", "diary", "question"]


def test_the_translators_words_look_at_the_source(run: Run) -> None:
    found = rows(
        run("generate", "-m", "translator", "a blue cat", "--rows", "word", "-f", "jsonl").out
    )
    assert {row["segment"] for row in found} == {"1", "special"}
    assert [row["text"] for row in found if row["segment"] == "1"] == ["un", "chat", "bleu"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--by", "line", "--segment", "a=0:2"), "--by cuts a prompt"),
        (("--segment", "a=/nosuch/"), "holds nothing of the prompt"),
        (("--top-p", "0.5"), "--top-p does nothing without --temperature"),
        (("--top-p", "0"), "is no share"),
        (("--doc", "README.md", "--by", "line"), "--doc makes segments"),
        (("--chat", "README.md"), "--chat is the whole prompt"),
        (("--head", "L9H0"), "no layer 9"),
        (("--check", "--segment", "a=0:66"), "segments before the last one"),
        (
            ("--target", "a", "--temperature", "1"),
            "--temperature does nothing for an answer that is given",
        ),
    ],
)
def test_what_does_not_go_together_is_told(
    run: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = run("generate", PROMPT, *arguments)
    assert ended.status is ExitStatus.USAGE, ended.err
    assert sentence in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "content", ["no json", "[]", "{}", '{"messages": 3}', '[{"role": "user"}]', '["a"]', "[" * 9999]
)
def test_a_malformed_chat_is_told(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "chat.json").write_text(content)
    ended = run("generate", "--chat", str(tmp_path / "chat.json"))
    assert ended.status is ExitStatus.INPUT, ended.err
    assert ended.err.count("\n") == 1


def test_a_chat_needs_a_template(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hi"}]')
    ended = run("generate", "--chat", str(tmp_path / "chat.json"))
    assert ended.status is ExitStatus.MODEL
    assert "builtin has no chat template" in ended.err


TEMPLATE = (
    "{% for m in messages %}{{ '<|endoftext|>' + m['role'] + '\\n' + m['content'] | trim }}"
    "{% endfor %}{% if add_generation_prompt %}<|endoftext|>assistant\\n{% endif %}"
)


def test_a_chats_messages_are_segments_and_so_is_its_template(
    run: Run, gpt2_copy: Path, tmp_path: Path
) -> None:
    (gpt2_copy / "chat_template.jinja").write_text(TEMPLATE)
    chat = [
        {"role": "system", "content": "Be brief. "},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "user", "content": "so?"},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    given = ("--chat", str(tmp_path / "chat.json"), "--max-new-tokens", "3", "-f", "jsonl")
    ended = run("generate", "-m", str(gpt2_copy), *given)
    assert ended.status is ExitStatus.OK, ended.err
    named = [row["segment"] for row in rows(ended.out) if row["row"] == 1]
    assert named == ["sink", "template", "system", "user 1", "user 2", "answer"]


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "long"),
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{{ messages[0]['content'][:2] }}", "changes what is said"),
        ("{{ 'a' * 10 ** 11 }}", "does not take this chat"),
        ("{{ x", "does not take this chat"),
    ],
)
def test_a_template_that_fails_is_told(
    run: Run, gpt2_copy: Path, tmp_path: Path, template: str, sentence: str
) -> None:
    (gpt2_copy / "chat_template.jinja").write_text(template)
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hi"}]')
    ended = run("generate", "-m", str(gpt2_copy), "--chat", str(tmp_path / "chat.json"))
    assert ended.status is ExitStatus.MODEL, ended.err
    assert sentence in ended.err
    assert ended.err.count("\n") == 1
