"""Calls of tools in other programs' forms, and what a template writes of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import attnviz
from attnviz.errors import ExitStatus, RefusedChat
from attnviz.models.scratch.native import save_checkpoint
from tests.commands.generate.test_chats import lines, of_segments, prompt_of
from tests.conftest import Run, bytes_tokenizer, tiny_model

CALLED = {"city": "Oslo", "days": 2}
ASKS = {"role": "user", "content": "How is it?"}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"}
HERMES = """{% for m in messages %}<|{{ m.role }}|>{{ m.content }}
{% for c in m.tool_calls or [] %}{% set c = c.function if c.function is defined else c %}\
<call>{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}</call>
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


def test_python_spelling_of_an_object_is_not_read(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(JOINING.replace(" + ", " ~ "))
    answer = attnviz.generate(calling(json.dumps(CALLED)), str(folder), target=" cold")
    assert json.dumps(CALLED) in prompt_of(answer)


@pytest.mark.parametrize("content", ["", None])
def test_a_template_that_cannot_write_a_call_is_refused_by_its_name(
    run: Run, folder: Path, tmp_path: Path, content: str | None
) -> None:
    (folder / "chat_template.jinja").write_text(DEAF.replace("m.content", "m['content'] + ''"))
    said = {"messages": calling(json.dumps(CALLED), content)}
    asked = ("-m", str(folder), "--target", " cold")
    ended = run("generate", *asked, "--chat", lines(tmp_path / "c.jsonl", said))
    assert ended.status is ExitStatus.INPUT
    assert "leave call weather out, or use a model whose template writes calls" in ended.err
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
