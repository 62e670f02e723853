"""Chats and questions, a line each: what the model reads of them, and how their parts are cut."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import attnviz
from attnviz.errors import ExitStatus, IdleOption, InputError, UsageError
from attnviz.models.scratch.native import save_checkpoint
from tests.conftest import Run, bytes_tokenizer, tiny_model
from tests.reading import rows_in

TEMPLATE = """{% for m in messages %}<|{{ m.role }}|>
{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.content }}
{% endfor %}<|assistant|>
"""
WITH_DOCUMENTS = (
    """{% for d in documents or [] %}[{{ d.title }}] {{ d.text }}
{% endfor %}"""
    + TEMPLATE
)
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi there. Who won? Tell me!"},
    {"role": "assistant", "content": "Ann."},
    {"role": "user", "content": "Sure? Why."},
]
DOCUMENTS = [{"id": "a", "text": "Leo did it."}, {"id": "b", "text": "Tom slept."}]
QUESTION = {"id": "q1", "question": "who did it?", "documents": DOCUMENTS, "target": " Leo"}
DOCS = {"a": "Leo did it.", "b": "Tom slept."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with a chat template that knows no documents and no system."""
    folder = tmp_path / "model"
    save_checkpoint(folder, tiny_model(n_positions=509), bytes_tokenizer())
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def lines(path: Path, *entries: object) -> str:
    """The path of a file with these lines."""
    told = (each if isinstance(each, str) else json.dumps(each) for each in entries)
    path.write_text("\n".join(told) + "\n")
    return str(path)


def of_segments(answer: attnviz.AttentionAnswer) -> dict[str, str]:
    """The text of each segment of the prompt."""
    capture = answer.capture.record
    slices = {each.name: each.slices for each in capture.segments}
    return {name: "".join(capture.text[a:b] for a, b in own) for name, own in slices.items()}


def prompt_of(answer: attnviz.AttentionAnswer) -> str:
    """The text that the model read."""
    capture = answer.capture.record
    return capture.text[: capture.query_tokens[0].start]


def test_each_line_of_a_file_is_a_chat_with_its_id_and_bad_ones_are_named(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    system = [{"role": "system", "content": "Be brief."}]
    chats = lines(
        tmp_path / "chats.jsonl",
        {"id": "c1", "messages": SAID, "target": " Leo"},
        "{no json",
        {"messages": system},  # which the template refuses
        {"id": [1], "messages": SAID},
        SAID[:1],
        {"id": 7, "messages": SAID[:1]},
    )
    ended = run(
        "generate", "-m", str(folder), "--chat", chats, "--max-new-tokens", "2", "-f", "jsonl"
    )
    assert ended.status is ExitStatus.INPUT
    told = [line for line in ended.err.splitlines() if line.startswith("attnviz: ")]
    assert [line.split()[2] for line in told] == ["2:", "3:", "4:"]
    assert "no system" in told[1]
    assert ended.err.count("the model's template 'default'") == 1
    rows = rows_in(ended.out)
    assert {(row["line"], row["id"]) for row in rows} == {(1, "c1"), (5, None), (6, 7)}
    alone = attnviz.generate({"id": "c1", "messages": SAID}, str(folder), target=" Leo")
    assert alone.id == "c1"
    first = [row for row in rows if row["line"] == 1]
    assert [row["share"] for row in first] == pytest.approx([r["share"] for r in alone.shares()])


def test_no_good_chat_ends_like_no_good_line(run: Run, folder: Path, tmp_path: Path) -> None:
    ended = run("generate", "-m", str(folder), "--chat", lines(tmp_path / "c.jsonl", "{", "[]"))
    assert ended.status is ExitStatus.INPUT
    assert "no line could be answered" in ended.err


def test_chats_come_through_a_pipe_with_lines(run: Run, folder: Path) -> None:
    stdin = f"{json.dumps(SAID)}\n{json.dumps(SAID[:1])}\n".encode()
    asked = (
        "generate",
        "-m",
        str(folder),
        "--chat",
        "-",
        "--lines",
        "--target",
        " Leo",
        "-f",
        "csv",
    )
    table = run(*asked, stdin=stdin).out.splitlines()
    assert table[0].startswith("line,id,row,")
    assert {line.split(",")[0] for line in table[1:]} == {"1", "2"}


def test_messages_are_cut_into_sentences_and_nothing_is_lost(folder: Path) -> None:
    answer = attnviz.generate(SAID, str(folder), by="sentence", target=" Leo")
    found = of_segments(answer)
    assert {name: text for name, text in found.items() if name != "template"} == {
        "user 1.1": "Hi there. ",
        "user 1.2": "Who won? ",
        "user 1.3": "Tell me!",
        "assistant": "Ann.",
        "user 2.1": "Sure? ",
        "user 2.2": "Why.",
    }
    assert sum(map(len, found.values())) == len(prompt_of(answer))
    alone = attnviz.generate(SAID[:1], str(folder), by="sentence", target=" Leo")
    assert [name for name in of_segments(alone) if "user" in name] == ["user 1", "user 2", "user 3"]


def test_a_named_segment_is_sought_in_messages_alone(folder: Path) -> None:
    named = ["w=/[a-z]?[Ww]\\w+/", "u=/user|Ann/"]
    answer = attnviz.generate(SAID, str(folder), segments=named, target=" Leo")
    found = of_segments(answer)
    assert (found["w"], found["u"]) == ("WhowonWhy", "Ann")  # not the user of the template
    assert found["user 1"] == "Hi there.  ? Tell me!"
    assert sum(map(len, found.values())) == len(prompt_of(answer))
    for wrong in ("w=1:3", "assistant=/Hi/"):
        with pytest.raises(UsageError, match=r"a chat template moves|is taken"):
            attnviz.generate(SAID, str(folder), segments=[wrong], target=" Leo")


@pytest.mark.parametrize("template", [TEMPLATE, WITH_DOCUMENTS])
def test_documents_go_through_the_template_as_transformers_has_it(
    folder: Path, template: str
) -> None:
    (folder / "chat_template.jinja").write_text(template)
    oracle = AutoTokenizer.from_pretrained(folder)
    question = {"role": "user", "content": "who did it?"}
    if template == TEMPLATE:
        question["content"] = "Leo did it.\n\nTom slept.\n\nwho did it?"
    titled = [{"title": each["id"], "text": each["text"]} for each in DOCUMENTS]
    expected = oracle.apply_chat_template([question], documents=titled, tokenize=False)
    by_docs = attnviz.generate("who did it?", str(folder), docs=DOCS, target=" Leo")
    by_question = attnviz.generate(QUESTION, str(folder))
    for answer in (by_docs, by_question):
        assert prompt_of(answer) == expected
        found = of_segments(answer)
        assert (found["a"], found["b"], found["question"]) == (*DOCS.values(), "who did it?")
        assert any("; raw leaves the template out" in note for note in answer.notes)
    assert by_docs.text == by_question.text
    assert (by_docs.id, by_question.id) == (None, "q1")
    assert by_docs.shares()[0].keys() == {*by_question.shares()[0]} - {"id"}


def test_a_result_of_a_tool_is_a_source_and_the_user_before_it_asks(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(TEMPLATE.replace("m.content", "m.content or ''"))
    result = {"role": "tool", "content": "Ann won."}
    answer = attnviz.generate([SAID[0], result, result], str(folder), target=" Ann")
    assert set(answer.check().documents) == {"tool 1", "tool 2"}
    assert set(
        attnviz.generate([result, SAID[0]], str(folder), target=" Ann").check().documents
    ) == {"tool"}


def test_raw_documents_are_read_without_the_template(folder: Path) -> None:
    answer = attnviz.generate("who did it?", str(folder), docs=DOCS, raw=True, target=" Leo")
    assert prompt_of(answer) == "Leo did it.\n\nTom slept.\n\nwho did it?"
    with pytest.raises(IdleOption, match="a chat needs its template"):
        attnviz.generate(SAID, str(folder), raw=True, target=" Leo")
    with pytest.raises(IdleOption, match="bos does nothing beside a chat template"):
        attnviz.generate("who?", str(folder), docs=DOCS, bos=True, target=" Leo")


def test_a_line_may_be_a_question_with_documents(run: Run, tmp_path: Path) -> None:
    file = lines(
        tmp_path / "questions.jsonl",
        QUESTION,
        {"question": "who slept?", "documents": [{"text": "Tom slept."}]},
        {"id": "q3", "question": 3},
        {"id": "q4", "question": "who?", "documents": [{"id": "a"}]},
        '{"question": "cut',
    )
    ended = run("generate", "--lines", "--file", file, "--max-new-tokens", "1", "-f", "csv")
    assert ended.status is ExitStatus.INPUT
    told = [line for line in ended.err.splitlines() if line.startswith("attnviz: ")]
    assert [line.split()[2] for line in told] == ["3:", "4:", "5:"]
    rows = [line.split(",") for line in ended.out.splitlines()]
    assert [(row[1], row[4]) for row in rows if row[0] == "1"][1:4] == [
        ("q1", "a"),
        ("q1", "b"),
        ("q1", "question"),
    ]
    assert {(row[1], row[4]) for row in rows if row[0] == "2"} >= {("", "document")}
    assert {row[3] for row in rows if row[0] == "1"} == {"Leo"}


def test_keys_that_are_not_read_are_told_once(run: Run, folder: Path, tmp_path: Path) -> None:
    asked = {"question": "who slept?", "answer": "Tom", "documents": [{"text": "Tom slept."}]}
    twice = lines(tmp_path / "questions.jsonl", asked, asked, {**asked, "target": "Tom"})
    err = run("generate", "--lines", "--file", twice, "--max-new-tokens", "1").err
    assert err.count("not read: “answer”; an answer that is given is “target”\n") == 1
    assert err.count("not read: “answer”\n") == 1  # it has its answer
    chat = {"id": 1, "messages": SAID, "split": "test", "tools": []}
    notes = attnviz.generate(chat, str(folder), max_new_tokens=1).notes
    assert any("not read: “split”;" in note for note in notes)
    del asked["answer"]
    assert not any("not read" in note for note in attnviz.generate(asked).notes)


def test_chats_and_questions_are_told_apart(run: Run, tmp_path: Path) -> None:
    for chat in ({"messages": SAID}, QUESTION):  # a question is a chat of one message
        err = run("generate", "--chat", lines(tmp_path / "c.jsonl", chat)).err
        assert 'as {"question": "…", "documents": […]}, a line each of a .jsonl --file' in err
    for chat in ({"messages": SAID}, SAID):
        err = run("generate", "--lines", "-", stdin=json.dumps(chat).encode()).err
        assert "line 1: the line is a chat, not a question; give the file as --chat" in err


def test_texts_and_questions_are_no_table_together(run: Run, tmp_path: Path) -> None:
    file = lines(tmp_path / "mixed.txt", QUESTION, "the creature was")
    asked = ("generate", "--lines", "--file", file, "--max-new-tokens", "1")
    assert "line 2: texts and questions have other columns" in run(*asked, "-f", "csv").err
    assert run(*asked, "-f", "jsonl").status is ExitStatus.OK


def test_a_segment_that_is_the_sink_alone_is_not_deleted(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("#{{ messages[0].content }}")
    asked = [{"role": "user", "content": "Who won? Ann."}]
    check = attnviz.generate(asked, folder, by="sentence", target=" A").check()
    assert [each.segment for each in check.effects] == ["user 1"]


def test_a_document_may_be_a_text_alone_and_a_blank_one_is_left_out_with_a_note() -> None:
    documents = ["Leo did it.", {"id": "gone", "text": " \n"}, {"id": "b", "text": "Tom slept."}]
    answer = attnviz.generate({**QUESTION, "documents": documents})
    assert [*of_segments(answer)][:3] == ["document", "b", "question"]
    assert any("document 2, which is blank" in note for note in answer.notes)


def test_the_system_of_a_question_is_a_message_of_the_models_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(TEMPLATE.replace("m.role == 'system'", "false"))
    answer = attnviz.generate({**QUESTION, "system": "Be brief."}, str(folder), target=" Leo")
    asked = "\n\n".join([*DOCS.values(), QUESTION["question"]])
    said = [("system", "Be brief."), ("user", asked)]
    oracle = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": role, "content": text} for role, text in said]
    assert prompt_of(answer) == oracle.apply_chat_template(messages, tokenize=False)
    assert {**DOCS, "system": "Be brief."}.items() <= of_segments(answer).items()
    assert answer.check().documents == ("a", "b")


LANGCHAIN = [
    {"page_content": "Leo did it.", "metadata": {"source": "a"}},
    {"title": "b", "content": "Tom slept."},
]
RAGAS: dict[str, Any] = {"user_input": "who did it?", "retrieved_contexts": [*DOCS.values()]}


@pytest.mark.parametrize(
    "documents",
    [
        {"documents": DOCUMENTS},
        {"documents": LANGCHAIN},
        {"documents": [*DOCS.values()]},
        {"contexts": [*DOCS.values()]},
        {"retrieved_contexts": [*DOCS.values()]},
    ],
)
def test_documents_that_a_template_does_not_write_stand_before_the_question(
    folder: Path, documents: dict[str, Any]
) -> None:
    chat = {"messages": [*SAID[:2], {"role": "user", "content": "who did it?"}], **documents}
    answer = attnviz.generate(chat, str(folder), target=" Leo")
    last = "Leo did it.\n\nTom slept.\n\nwho did it?"
    oracle = AutoTokenizer.from_pretrained(folder)
    messages = [*SAID[:2], {"role": "user", "content": last}]
    assert prompt_of(answer) == oracle.apply_chat_template(messages, tokenize=False)
    found = [*of_segments(answer).items()]
    own = [name for name, _ in found if name not in ("user 1", "assistant", "user 2", "template")]
    assert [text for name, text in found if name in own] == [*DOCS.values()]
    assert dict(found)["user 2"] == "who did it?"
    assert own in (["a", "b"], ["document 1", "document 2"])
    check = answer.check()
    assert {*own} < {*check.documents}
    assert check.statements[0].groundedness is not None
    assert "does not write the documents: they come before" in str(answer.notes)
    assert "leaves this out" not in str(answer.notes)
    assert "template (" in str(answer)
    assert "was not deleted, as the answer follows it" in " ".join(str(answer).split())


@pytest.mark.parametrize("documents", [DOCUMENTS, LANGCHAIN])
def test_documents_that_a_template_writes_stay_in_its_own_place(
    folder: Path, documents: list[dict[str, Any]]
) -> None:
    template = WITH_DOCUMENTS.replace("d.text", "(d.text or d.content or d.page_content)")
    (folder / "chat_template.jinja").write_text(template)
    answer = attnviz.generate({"messages": SAID, "documents": documents}, folder, target=" Leo")
    oracle = AutoTokenizer.from_pretrained(folder)
    expected = oracle.apply_chat_template(SAID, documents=documents, tokenize=False)
    assert prompt_of(answer) == expected
    assert "stand before" not in str(answer.notes)
    assert of_segments(answer)["b"].strip() == "Tom slept."


def test_documents_stand_before_the_text_of_a_message_of_several_parts(folder: Path) -> None:
    parts = [{"type": "text", "text": "who "}, {"type": "text", "text": "did it?"}]
    for template in (TEMPLATE, TEMPLATE.replace("m.content }}", "m.content[0].text }}")):
        (folder / "chat_template.jinja").write_text(template)
        chat = {"messages": [{"role": "user", "content": parts}], "documents": DOCUMENTS}
        answer = attnviz.generate(chat, folder, target=" Leo")
        found = of_segments(answer)
        assert (found["a"], found["b"]) == (*DOCS.values(),)
        assert found["user"] == ("who did it?" if template == TEMPLATE else "who")


def test_a_document_without_a_text_or_a_question_is_refused(folder: Path) -> None:
    for documents, wrong in (
        ([{"title": "a"}], "document 1 in the prompt has no text"),
        ([DOCUMENTS[0], {"text": 5}], "document 2 in the prompt has no text"),
        ("Leo did it.", "documents in the prompt is not a list"),
    ):
        with pytest.raises(InputError, match=wrong):
            attnviz.generate({"messages": SAID, "documents": documents}, folder, target=" Leo")
    alone = [{"role": "assistant", "content": "Ann."}]
    with pytest.raises(InputError, match="no user asks about them"):
        attnviz.generate({"messages": alone, "documents": DOCUMENTS}, folder, target=" Leo")
    with pytest.raises(InputError, match="has documents twice, once as contexts"):
        attnviz.generate({**QUESTION, "contexts": ["Leo did it."]})
    blank = {"messages": SAID, "documents": [{"title": "a", "text": " "}]}
    notes = attnviz.generate(blank, folder, target=" Leo").notes
    assert any("document 1, which is blank" in note for note in notes)


def test_records_of_ragas_are_questions_and_chats(run: Run, folder: Path, tmp_path: Path) -> None:
    file = lines(tmp_path / "ragas.jsonl", {**RAGAS, "response": "Leo", "target": "Leo"})
    for asked in (("--file", file), ("--lines", "--file", file)):
        rows = rows_in(run("generate", *asked, "--check", "-f", "jsonl").out)
        assert {row["segment"] for row in rows} >= {"document 1", "document 2", "question"}
        assert all("groundedness" in row for row in rows)
    stdin = json.dumps(RAGAS).encode()
    assert run("generate", "--lines", "-", "--target", "Leo", "-f", "jsonl", stdin=stdin).out
    said = [
        {"type": "human", "content": "who?"},
        {"type": "ai", "content": "Ann."},
        {"type": "human", "content": "who did it?"},
    ]
    for user, name in (("who did it?", "user"), (said, "user 2")):
        answer = attnviz.generate({**RAGAS, "user_input": user}, folder, target="Leo")
        chat = lines(tmp_path / "chat.jsonl", {**RAGAS, "user_input": user, "target": "Leo"})
        rows = rows_in(run("generate", "--chat", chat, "-m", str(folder), "-f", "jsonl").out)
        assert {row["segment"] for row in rows} >= {"document 1", "document 2", name}
        assert "document 2" in of_segments(answer)


@pytest.mark.parametrize("line", [{"prompt": "who?"}, {}, {"context": "Leo did it."}])
def test_json_without_a_known_key_is_no_prompt(run: Run, line: dict[str, str]) -> None:
    ended = run("generate", "--lines", "-", stdin=json.dumps(line).encode())
    assert ended.status is ExitStatus.INPUT
    assert not ended.out
    for known in ("question", "user_input", "text", "documents", "contexts", "retrieved_contexts"):
        assert f'"{known}"' in ended.err
    text = b"{the creature was}\n[1, 2, 3]\n{"
    assert run("generate", "--lines", "-", "--target", "blue", stdin=text).status is ExitStatus.OK
