"""Calls of tools in other programs' forms, and what a template writes of them."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import attnviz
from attnviz.errors import AttnvizError, ExitStatus, InputError, RefusedChat
from attnviz.models.scratch.native import save_checkpoint
from tests.commands.generate.test_chats import lines, of_segments, prompt_of
from tests.conftest import Run, bytes_tokenizer, tiny_model

CALLED = {"city": "Oslo", "days": 2}
ASKS = {"role": "user", "content": "How is it?"}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"}
HERMES = """{% for m in messages %}<|{{ m.role }}|>{{ m.content }}
{% for c in m.tool_calls or [] %}{% set c = c.function if c.function is defined else c %}\
<call {{ (m.tool_calls | first).id }}>\
{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}</call>
{% endfor %}{% endfor %}"""
JOINING = """{% for m in messages %}{{ m.content }}\
{% for c in m.tool_calls or [] %}{{ c.function.name + ' ' + c.function.arguments }}\
{% endfor %}|{% endfor %}"""
DEAF = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    save_checkpoint(folder, tiny_model(n_positions=509), bytes_tokenizer())
    return folder


def calling(arguments: object, content: str | None = "") -> list[dict[str, Any]]:
    function = {"name": "weather", "arguments": arguments}
    call = {"id": "c1", "type": "function", "function": function}
    return [ASKS, {"role": "assistant", "content": content, "tool_calls": [call]}, TOLD]


# as `messages_to_dict`, `dumpd` and a `MultiTurnSample` write it
OWN_CALL = {"name": "weather", "args": CALLED, "id": "c1", "type": "tool_call"}
AI = {"content": "", "type": "ai", "name": None, "tool_calls": [OWN_CALL], "usage_metadata": None}
RESULT = {"content": "4 degrees", "type": "tool", "tool_call_id": "c1", "artifact": None}
HUMAN = {"content": "How is it?", "type": "human", "additional_kwargs": {}}
LANGCHAIN = [{"type": each["type"], "data": each} for each in (HUMAN, AI, RESULT)]
DUMPED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema"], "kwargs": each}
    for each in (HUMAN, AI, RESULT)
]
RAGAS = {"user_input": [HUMAN, {"content": "", "type": "ai", "tool_calls": [OWN_CALL]}, RESULT]}


@pytest.mark.parametrize(
    "chat",
    [
        calling(CALLED),
        calling(json.dumps(CALLED)),
        [ASKS, {"role": "assistant", "content": "", "tool_calls": [OWN_CALL]}, TOLD],
        LANGCHAIN,
        DUMPED,
        RAGAS,
    ],
)
def test_a_call_in_any_form_is_written_as_transformers_writes_its_object(
    folder: Path, chat: Any
) -> None:
    (folder / "chat_template.jinja").write_text(HERMES)
    answer = attnviz.generate(chat, str(folder), target=" cold")
    oracle = AutoTokenizer.from_pretrained(folder)
    assert prompt_of(answer) == oracle.apply_chat_template(calling(CALLED), tokenize=False)
    found = of_segments(answer)
    assert json.loads(found["call weather"]) == {"name": "weather", "arguments": CALLED}
    assert found["tool"] == "4 degrees"


def test_a_template_that_joins_arguments_as_text_gets_them_as_they_were_given(
    folder: Path,
) -> None:
    (folder / "chat_template.jinja").write_text(JOINING)
    given = '{"city":"Oslo"}'
    answer = attnviz.generate(calling(given), str(folder), target=" cold")
    oracle = AutoTokenizer.from_pretrained(folder)
    expected = oracle.apply_chat_template(calling(given), tokenize=False)
    assert prompt_of(answer) == expected
    assert given in of_segments(answer)["call weather"]


@pytest.mark.parametrize("given", [CALLED, {"n": 2, "hot": True, "x": None}, {"f": {"a": "b"}}])
def test_python_spelling_of_an_object_is_not_read(folder: Path, given: dict[str, Any]) -> None:
    (folder / "chat_template.jinja").write_text(JOINING.replace(" + ", " ~ "))
    answer = attnviz.generate(calling(json.dumps(given)), str(folder), target=" cold")
    assert json.dumps(given) in prompt_of(answer)


def test_documents_stand_before_the_question_also_where_arguments_stay_text(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(JOINING)
    chat = {"messages": calling('{"city":"Oslo"}'), "documents": [{"id": "d", "text": "Snow."}]}
    answer = attnviz.generate(chat, str(folder), target=" cold")
    assert prompt_of(answer).startswith("Snow.\n\nHow is it?|")


def test_an_older_call_of_a_function_is_a_call(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(
        HERMES.replace(" {{ (m.tool_calls | first).id }}", "")
    )
    call = {"name": "weather", "arguments": json.dumps(CALLED)}
    said = {"role": "assistant", "content": "", "function_call": call, "tool_calls": None}
    found = of_segments(attnviz.generate([ASKS, said, TOLD], str(folder), target=" cold"))
    assert json.loads(found["call weather"])["arguments"] == CALLED


DEEP: dict[str, Any] = {}
for _ in range(5000):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ("x", "message 2 in the prompt has a call of a tool without a name"),
        ([5], "has a call of a tool without a name"),
        ([{"name": 3, "arguments": {}}], "has a call of a tool without a name"),
        ([{"function": {"name": " "}}], "has a call of a tool without a name"),
        ([{"function": "weather"}], "has a call of a tool without a name"),
        ([{"name": "weather", "arguments": DEEP}], "nested too deeply"),
    ],
)
def test_what_is_no_call_is_one_sentence(folder: Path, calls: Any, why: str) -> None:
    (folder / "chat_template.jinja").write_text(HERMES)
    said = {"role": "assistant", "content": "", "tool_calls": calls}
    with pytest.raises(AttnvizError, match=why):
        attnviz.generate([ASKS, said, TOLD], str(folder), target=" cold")


def test_arguments_of_any_depth_are_read_or_refused(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(HERMES)
    for depth in (5, 900, 985, 990, 2000):
        given = '{"a": ' * depth + "1" + "}" * depth
        with suppress(InputError):
            attnviz.generate(calling(given), str(folder), target=" cold")


@pytest.mark.parametrize("content", ["", None])
def test_a_template_that_cannot_write_a_call_is_refused_by_its_name(
    run: Run, folder: Path, tmp_path: Path, content: str | None
) -> None:
    (folder / "chat_template.jinja").write_text(DEAF.replace("m.content", "m['content'] + ''"))
    said = {"messages": calling(json.dumps(CALLED), content)}
    asked = ("-m", str(folder), "--target", " cold")
    ended = run("generate", *asked, "--chat", lines(tmp_path / "c.jsonl", said))
    assert ended.status is ExitStatus.INPUT
    assert "leave call weather out if the template writes no calls" in ended.err
    with pytest.raises(RefusedChat, match="call weather" if content == "" else "content"):
        attnviz.generate(said, str(folder), target=" cold")


@pytest.mark.parametrize(
    "named",
    [
        {"input": "who did it?", "context": [{"page_content": "Leo did it.", "metadata": {}}]},
        {"query": "who did it?", "source_documents": [{"page_content": "Leo did it."}]},
        {"question": "who did it?", "context": "Leo did it."},
    ],
)
def test_results_of_langchain_chains_are_questions_with_documents(named: dict[str, Any]) -> None:
    found = of_segments(attnviz.generate(named, target=" Leo"))
    assert (found["document"], found["question"]) == ("Leo did it.", "who did it?")


@pytest.mark.parametrize(
    "more",
    [
        {"context": "web", "documents": ["Leo did it."]},
        {"input": "what?", "documents": ["Leo did it."]},
        {"context": {"user": 1}},
        {"query": 5},
    ],
)
def test_keys_of_chains_that_mean_something_else_stay_unread(more: dict[str, Any]) -> None:
    answer = attnviz.generate({"question": "who did it?", **more}, target=" Leo")
    assert of_segments(answer)["question"] == "who did it?"
    assert f"not read: “{next(iter(more))}”" in str(answer.notes)


def test_messages_beside_other_keys_stay_a_chat(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(DEAF)
    chat = {"messages": [ASKS], "query": "x", "context": "web", "data": {"x": 1}}
    assert of_segments(attnviz.generate(chat, str(folder), target=" A"))["user"] == "How is it?"
    odd = {**ASKS, "type": "message", "data": {"x": 1}}
    assert of_segments(attnviz.generate([odd], str(folder), target=" A"))["user"] == "How is it?"
    with pytest.raises(InputError, match="has no role"):
        attnviz.generate([{"type": "constructor", "kwargs": {"content": "x"}}], str(folder))
