"""Chat templates in the style of many families give the texts and tokens of transformers."""

import json
import re
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoTokenizer

from attnviz.errors import ModelError
from attnviz.inputs.chats import chat_of
from attnviz.models import chat as models_chat
from attnviz.models.folder.config import ModelSizes
from attnviz.models.tokenizer import load_tokenizer
from attnviz.records.tokens import TEMPLATE, partition
from tests.conftest import slow

TEMPLATES = sorted(path.stem for path in Path(__file__).parent.glob("*.jinja"))
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a <city> & é",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CALL = {
    "id": "abcdefghi",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": 'Zürich "ZH"', "days": 2}},
}
SYSTEM = {"role": "system", "content": "Be brief. "}
TURNS = [
    {"role": "user", "content": " Hello\nthere "},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "<b>Who</b> are you? 猫"},
]
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo.", "reasoning": "hm"}
USED = [
    TURNS[0],
    {"role": "assistant", "content": None, "tool_calls": [CALL], "thinking": "a tool"},
    {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": '{"t": 20}'},
]
CHATS: dict[str, dict[str, Any]] = {
    "plain": {"messages": TURNS[:1]},
    "system and two turns": {"messages": [SYSTEM, *TURNS]},
    "tools with a call and a result": {"messages": USED, "tools": [WEATHER]},
    "thought, without thinking": {
        "messages": [TURNS[0], THOUGHT, TURNS[0]],
        "chat_template_kwargs": {"enable_thinking": False},
    },
    "documents": {
        "messages": TURNS[:1],
        "documents": [{"title": "one", "text": "a é"}, {"title": "two", "text": "b"}],
    },
    "parts": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": t} for t in ("Hello", " you")]}
        ]
    },
}
SIZES = ModelSizes("llama", (1,), 1 << 20, 4096, 0)


def _bytes() -> Tokenizer:
    words = ["<|end|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]"]
    alphabet = [*words, *sorted(ByteLevel.alphabet()), "Ġt", "he"]
    tokenizer = Tokenizer(BPE({c: i for i, c in enumerate(alphabet)}, [("Ġ", "t"), ("h", "e")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word in words])
    return tokenizer


def _pieces() -> Tokenizer:
    """As tokenizer.json of the first Llamas has it: a space before every piece of a text."""
    words = ["<unk>", "<s>", "</s>"]
    letters = [*words, *(f"<0x{i:02X}>" for i in range(256)), "▁", *"Heloyuabcdstrwi:", "He", "▁He"]
    merges = [("H", "e"), ("▁", "He")]
    model = BPE(
        {c: i for i, c in enumerate(letters)},
        merges,
        byte_fallback=True,
        fuse_unk=True,
        unk_token="<unk>",
    )
    tokenizer = Tokenizer(model)
    parts = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    tokenizer.normalizer = normalizers.Sequence(parts)
    replaced = decoders.Replace("▁", " ")
    tokenizer.decoder = decoders.Sequence([replaced, decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(words)
    return tokenizer


KINDS: dict[str, tuple[Callable[[], Tokenizer], dict[str, Any]]] = {
    "bytes": (_bytes, {"tokenizer_class": "PreTrainedTokenizerFast"}),
    "pieces": (_pieces, {"tokenizer_class": "LlamaTokenizer", "legacy": False}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with a tokenizer of each kind, and no template."""
    return {kind: _folder(tmp_path_factory.mktemp("tokenizer"), kind) for kind in KINDS}


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A folder with a tokenizer of bytes, and no template yet."""
    return shutil.copytree(folders["bytes"], tmp_path / "model")


def _folder(folder: Path, kind: str) -> Path:
    make, settings = KINDS[kind]
    make().save(str(folder / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken"}}
    given = {**special, **settings, "model_max_length": int(1e30)}
    (folder / "tokenizer_config.json").write_text(json.dumps(given))
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


def transformers_says(tokenizer: Any, chat: dict[str, Any]) -> tuple[str, list[int]]:
    """The text and the tokens of `apply_chat_template`."""
    given = {"add_generation_prompt": True, **chat.get("chat_template_kwargs", {})}
    given |= {key: chat[key] for key in ("tools", "documents", "chat_template") if key in chat}
    text = tokenizer.apply_chat_template(chat["messages"], tokenize=False, **given)
    ids = tokenizer.apply_chat_template(chat["messages"], **given)["input_ids"]
    return text, ids


def rendered(folder: Path, given: object) -> models_chat.Rendered:
    """A chat as attnviz renders it."""
    chat = chat_of(given, "the chat")
    found = models_chat.read_template(folder, chat)
    assert found is not None
    return models_chat.rendered(found, chat)


def attnviz_says(
    folder: Path, given: dict[str, Any]
) -> tuple[str, list[int], models_chat.Rendered]:
    """The text and the tokens that attnviz gives the model."""
    made = rendered(folder, given)
    tokenizer = load_tokenizer(folder, SIZES, bos=True)
    tokens = tokenizer.encode(made.text, bos=False, special=True)
    return made.text, [token.id for token in tokens], made


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_texts_and_tokens_of_a_chat_are_those_of_transformers(
    folders: dict[str, Path], tmp_path: Path, name: str, of: str
) -> None:
    folder = shutil.copytree(folders[of], tmp_path / "model")
    shutil.copy(Path(__file__).parent / f"{name}.jinja", folder / "chat_template.jinja")
    oracle = AutoTokenizer.from_pretrained(folder)
    for kind, chat in CHATS.items():
        try:
            expected = transformers_says(oracle, chat)
        except Exception as error:  # what a template raises
            refusal = str(error).rstrip(".") if type(error).__name__ == "TemplateError" else ""
            if kind != "parts":  # which attnviz joins for a template that takes none
                with pytest.raises(ModelError, match=f"chat template .*{re.escape(refusal)}"):
                    attnviz_says(folder, chat)
            continue
        text, ids, made = attnviz_says(folder, chat)
        if any("parts of each message were joined" in note for note in made.notes):
            continue
        assert (text, ids) == expected, kind
        for segment in made.segments:
            assert all(text[start:end].strip() for start, end in segment.slices)
        whole = partition(text, made.segments, TEMPLATE, blanks=True)
        slices = sorted(slice_ for segment in whole for slice_ in segment.slices)
        assert "".join(text[start:end] for start, end in slices) == text


LETTER = "{{% for m in messages %}}{}{{{{ m.content }}}}{{% endfor %}}"
"""A template that tells which one it is."""


def _jinja(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(LETTER.format("J"))


def _named(folder: Path, *names: str) -> None:
    path = folder / "tokenizer_config.json"
    templates = [{"name": name, "template": LETTER.format(name[0])} for name in names]
    if names:
        path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": templates}))


def _beside(folder: Path, *names: str) -> None:
    (folder / "additional_chat_templates").mkdir()
    for name in names:
        (folder / "additional_chat_templates" / f"{name}.jinja").write_text(
            LETTER.format(name[0].upper())
        )


@pytest.mark.parametrize(
    ("named", "file", "beside", "plain", "with_tools"),
    [
        (("default", "tool_use", "rag"), False, (), "d", "t"),
        (("default", "rag"), False, (), "d", "d"),
        (("default", "tool_use"), True, (), "J", "J"),
        ((), True, ("tool_use",), "J", "T"),
        (("default", "tool_use"), True, ("rag",), "J", "J"),
        ((), False, ("default",), "D", "D"),
        (("tool_use",), False, (), None, "t"),
        (("default",), False, ("tool_use",), None, "T"),
    ],
)
def test_of_several_templates_the_one_of_transformers_is_taken(
    folder: Path,
    named: tuple[str, ...],
    file: bool,
    beside: tuple[str, ...],
    plain: str | None,
    with_tools: str,
) -> None:
    _named(folder, *named)
    _beside(folder, *beside)
    if file:
        _jinja(folder)
    oracle = AutoTokenizer.from_pretrained(folder)
    for letter, tools in ((plain, {}), (with_tools, {"tools": [WEATHER]})):
        chat = {"messages": [{"role": "user", "content": "hi"}], **tools}
        if letter is None:
            with pytest.raises(ModelError, match="has no chat template 'default', but 'tool_use'"):
                rendered(folder, chat)
            continue
        made = rendered(folder, chat)
        assert made.text == transformers_says(oracle, chat)[0] == f"{letter}hi"
        assert "the model's template '" in made.notes[0]


def test_the_older_files_of_special_tokens_take_no_template(folder: Path) -> None:
    (folder / "special_tokens_map.json").write_text('{"eos_token": "</s>"}')
    (folder / "added_tokens.json").write_text('{"<|im_end|>": 2}')
    _jinja(folder)
    chat = {"messages": TURNS[:1]}
    assert attnviz_says(folder, chat)[:2] == transformers_says(
        AutoTokenizer.from_pretrained(folder), chat
    )


def test_a_template_that_is_no_text_is_told(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"chat_template": {"default": null}}')
    with pytest.raises(
        ModelError, match="the model's chat template is not a text; change the chat"
    ):
        rendered(folder, {"messages": TURNS[:1]})


def test_a_chat_names_its_template(folder: Path) -> None:
    _named(folder, "default", "rag")
    chat = {"messages": [{"role": "user", "content": "hi"}], "chat_template": "rag"}
    made = rendered(folder, chat)
    assert made.text == "rhi"
    assert made.notes == ("the chat went through the model's template 'rag'",)


@pytest.mark.parametrize(
    ("source", "content", "text", "note"),
    [
        ("{{ messages[0].content[:2] }}!", "hello", "he!", "counts as template: user"),
        ("{{ messages[0].content | length }}", "hello", "5", "counts as template: user"),
        (
            "{{ messages[0].content | int + 1 / messages[0].content | int }}",
            "1",
            "2.0",
            "as template",
        ),
        ("{{ messages[0].content + '!' }}", [{"text": "a"}, "b"], "ab!", "were joined"),
        ("{{ messages[0].content | trim }}", [{"text": "a"}, "b"], "ab", "were joined"),
    ],
)
def test_what_a_template_does_to_a_text_is_told(
    folder: Path, source: str, content: object, text: str, note: str
) -> None:
    (folder / "chat_template.jinja").write_text(source)
    made = rendered(folder, [{"role": "user", "content": content}])
    assert made.text == text
    assert note in made.notes[-1]


def test_only_the_parts_that_a_template_hides_have_no_place(folder: Path) -> None:
    source = "{% for m in messages %}<{{ m.content[:3] if loop.first else m.content }}>{% endfor %}"
    (folder / "chat_template.jinja").write_text(source)
    said = [("system", "hello"), ("user", "you"), ("assistant", "me")]
    made = rendered(folder, [{"role": role, "content": text} for role, text in said])
    assert {s.name: made.text[slice(*s.slices[0])] for s in made.segments} == {
        "user": "you",
        "assistant": "me",
    }


@pytest.mark.parametrize("name", ["qwen3", "hermes_tools", "mistral", "llama3", "granite"])
def test_a_tool_and_a_call_are_whole_objects(folder: Path, name: str) -> None:
    shutil.copy(Path(__file__).parent / f"{name}.jinja", folder / "chat_template.jinja")
    about = {"name": "search", "description": "Find {it", "parameters": {"type": "object"}}
    other = {"type": "function", "function": about}
    made = rendered(folder, {"messages": USED, "tools": [WEATHER, other]})
    told = {s.name: made.text[slice(*s.slices[0])] for s in made.segments}
    for segment in ("tool weather", "tool search"):
        tool = json.loads(told[segment])
        assert f"tool {tool.get('function', tool)['name']}" == segment
    call = json.loads(told["call weather"])
    assert call["name"] == "weather"
    assert CALL["function"]["arguments"] in call.values()


def test_the_thinking_that_a_template_leaves_out_is_told(folder: Path) -> None:
    shutil.copy(Path(__file__).parent / "qwen3.jinja", folder / "chat_template.jinja")
    thought = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo."}
    made = rendered(folder, [TURNS[0], thought, TURNS[2], thought])
    assert made.notes[1] == (
        "the template leaves this out, so the model does not read it: thinking 1"
    )
    told = {s.name: made.text[slice(*s.slices[0])] for s in made.segments}
    assert (told["assistant 1"], told["thinking 2"], told["assistant 2"]) == ("So.", "hm", "So.")


def test_every_rendering_of_a_chat_is_at_the_same_moment(own_process: None, folder: Path) -> None:
    source = "{{ strftime_now('%f') }} {{ messages[0].content }} {{ range(99999) | random }}"
    (folder / "chat_template.jinja").write_text(source)
    made = rendered(folder, [{"role": "user", "content": "you"}])
    assert [segment.name for segment in made.segments] == ["user"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        slow("{{ 'x' * 200000000 }}", "needs too much memory|takes too long"),
        ("{{ 'x' * 9000000 }}", "makes 9,000,000 characters"),
        slow("{{ raise_exception('x' * 9000000) }}", "refuses this chat: x{500}$"),
        ("{{ 9 ** (9 ** 9) }}", "takes too long"),
    ],
)
def test_a_template_takes_no_more_than_its_time_and_memory(
    own_process: None, folder: Path, source: str, sentence: str
) -> None:
    (folder / "chat_template.jinja").write_text(source)
    chat = chat_of([{"role": "user", "content": "you"}], "the chat")
    found = models_chat.read_template(folder, chat)
    assert found is not None
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as told:
            models_chat.rendered(found, chat)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert re.search(sentence, told.value.wrong)
    assert most < 1 << 26


def test_chats_of_one_template_are_rendered_in_one_process_and_a_failed_one_is_replaced(
    own_process: None, folder: Path
) -> None:
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    source = f"{{% if messages[0].content == 'long' %}}{loops}{{% endif %}}"
    (folder / "chat_template.jinja").write_text(source + "{{ messages[0].content }}!")
    made, process = list[str](), list[int]()
    for text in ("one", "two", "long", "three"):
        try:
            made.append(rendered(folder, [{"role": "user", "content": text}]).text)
        except ModelError as error:
            made.append(error.wrong)
            continue
        process.append(models_chat._CHILD[0][1].pid)
    assert made == ["one!", "two!", "the model's chat template takes too long", "three!"]
    assert process[0] == process[1] != process[2]


def test_there_are_templates_in_the_style_of_many_families() -> None:
    assert len(TEMPLATES) >= 20
