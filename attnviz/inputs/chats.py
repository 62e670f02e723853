"""Chats, and questions with documents, from JSON: read, checked, and their parts named."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.beside import (
    FILES,
    IMAGES,
    KNOWN,
    QUESTION_HINT,
    checked_documents,
    folder_of,
    images_beside,
    in_our_words,
    is_jsonl,
    is_object_with,
    is_told,
    json_of,
    local_picture,
    named_text,
)
from attnviz.inputs.calls import is_call, with_objects, with_role
from attnviz.inputs.prompts import Document, Prompt, told_apart
from attnviz.inputs.text import STDIN, Stdin, check_encodable, read_file
from attnviz.records.places import RawImage
from attnviz.records.rows import LARGEST
from attnviz.records.tokens import RESTS, TAKEN, Chat, ChatPart, Slice

CHAT_HINT = 'give [{"role": "user", "content": "…"}, …], or an object with these as "messages"'
LISTS = ("messages", "documents", "tools")
OF_LINE = ("id", "target")
OF_CHAT = (*LISTS, "chat_template", "chat_template_kwargs", *OF_LINE)
OF_QUESTION = ("question", "system", "documents", *IMAGES, *OF_LINE)
"""The keys of a chat, and of a question, that are read."""
OWN = (*LISTS, "conversations", "chat_template", "return_assistant_tokens_mask")
"""Names that no variable of a template can have, as `apply_chat_template` takes them itself."""
THINKING = ("reasoning_content", "reasoning", "thinking")
"""The fields in which templates expect an assistant's thinking."""
_THOUGHT = re.compile(r"\s*(?:<think>(.*?)</think>|\[THINK\](.*?)\[/THINK\])", re.DOTALL)
"""Thinking in front of an assistant's text."""


def read_chat(path: Path, stdin: Stdin) -> Chat:
    """The chat of a file; `-` is standard input.

    Raises:
        InputError: the file cannot be read, or does not hold a chat.
    """
    origin = "standard input" if str(path) == STDIN else repr(str(path))
    if str(path) != STDIN and not path.exists():
        raise InputError(f"there is no file {origin} to read a chat from", CHAT_HINT)
    try:
        content = json.loads(read_file(path, stdin))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin} is not JSON ({error})", CHAT_HINT) from None
    return chat_of(content, origin, folder_of(path))


def chat_of(content: object, origin: str, folder: Path = Path()) -> Chat:
    """Read the chat in a JSON value; `folder`: that of its images.

    Raises:
        InputError: it is none.
    """
    chat = {"messages": content} if isinstance(content, list) else in_our_words(content, origin)
    if isinstance(chat, dict) and chat.keys().isdisjoint(("messages", *IMAGES)):
        question = chat.pop("question", None)
        chat |= {"messages": [{"role": "user", "content": question}]} if is_told(question) else {}
    if not isinstance(chat, dict) or not chat.get("messages"):
        raise InputError(f"{origin} holds no messages", CHAT_HINT)
    kept = {key: chat[key] for key in LISTS if chat.get(key) is not None}
    blank = tuple[str, ...]()
    if "documents" in kept:
        kept["documents"], blank = checked_documents(kept["documents"], origin)
    for key, entries in kept.items():
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise InputError(f"{key} in {origin} is not a list of objects", CHAT_HINT)
    kept["messages"] = [*map(with_role, kept["messages"])]
    for number, message in enumerate(kept["messages"], start=1):
        _check(message, f"message {number} in {origin}")
    kept["messages"], images = _without_files(kept["messages"], folder)
    name, variables = chat.get("chat_template"), chat.get("chat_template_kwargs") or {}
    if not isinstance(name, str | None):
        raise InputError(f"chat_template in {origin} is not the name of a template", "leave it out")
    if not isinstance(variables, dict) or not variables.keys().isdisjoint(OWN):
        raise InputError(
            f"chat_template_kwargs in {origin} is not an object of the template's own variables",
            'give, for example, {"enable_thinking": false}',
        )
    own = _of_line(chat, origin, OF_CHAT)
    own["unread"] += blank
    given = Chat(kept, _named_parts(kept), name, variables, **own, images=images)
    opened = {**kept, "messages": [*map(with_objects, kept["messages"])]}
    if opened == kept:
        return given
    return replace(given, content=opened, parts=_named_parts(opened), as_given=given)


def _named_parts(chat: Mapping[str, Any]) -> tuple[ChatPart, ...]:
    parts = list(_parts(chat))
    names = zip(parts, told_apart([part.name for part in parts], TAKEN), strict=True)
    return tuple(replace(part, name=own_name) for part, own_name in names)


def _of_line(entry: Mapping[str, Any], origin: str, read: Collection[str]) -> dict[str, Any]:
    """The user's own name of a prompt, the given answer, and the keys that are not read."""
    id_, target = entry.get("id"), entry.get("target")
    large = isinstance(id_, int) and abs(id_) > LARGEST
    if isinstance(id_, bool) or not isinstance(id_, str | int | None) or large:
        raise InputError(
            f"the id in {origin} is neither a text nor a whole number of up to 30 digits",
            "give one",
        )
    if not isinstance(target, str | None):
        raise InputError(f"the target in {origin} is not a text", "give the answer as a text")
    check_encodable(str(id_))
    unread = tuple(str(key) for key in entry if key not in read)
    return {"id": id_, "target": target, "unread": unread}


def _check(message: Mapping[str, Any], where: str) -> None:
    """Check that a message has a role, and text or something else that a template writes."""
    content = message.get("content")
    others = [k for k, value in message.items() if value and k not in ("role", "content")]
    if not isinstance(message.get("role"), str) or (content is None and not others):
        raise InputError(f"{where} has no role or no text", CHAT_HINT)
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(map(is_call, calls)):
        wrong = f"{where} has a call of a tool without a name"
        raise InputError(wrong, 'give {"function": {"name": "…", "arguments": {…}}}')
    parts = [part for part in _listed(content) if not _is_image(part)]
    if any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts):
        raise InputError(f"{where} has an image_url, which is not read", PART_HINT)
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where} has a part that is neither text nor image", PART_HINT)


def _listed(content: object) -> Sequence[Any]:
    """The parts of a message that has several."""
    return content if isinstance(content, list) else []


# Images in messages: `{"type": "image", "path": FILE}`, as in transformers.

PART_HINT = 'give {"type": "text", "text": "…"} or {"type": "image", "path": "FILE"}'


def _is_image(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "image"


def _without_files(
    messages: Sequence[Any], folder: Path
) -> tuple[list[Any], tuple[RawImage | None, ...]]:
    """The messages as a template reads them, and their images; None for one without a file."""
    images = list[RawImage | None]()

    def place(part: Any) -> Any:
        if not _is_image(part):
            return part
        source = next((part[key] for key in FILES if part.get(key) is not None), None)
        images.append(None if source is None else local_picture(source, folder))
        return {key: value for key, value in part.items() if key not in FILES}

    cleaned = [
        {**each, "content": [*map(place, each["content"])]}
        if _listed(each.get("content"))
        else each
        for each in messages
    ]
    return cleaned, tuple(images)


def images_of(chat: Chat, given: Sequence[RawImage]) -> tuple[RawImage, ...]:
    """The images of a chat; those without a file are taken in order from `given`.

    Raises:
        UsageError: there are more or fewer of them than places.
    """
    places = chat.images.count(None)
    if places != len(given):
        raise UsageError(
            f"the chat has {places} place{'s' * (places != 1)} for an image without a path, but "
            f"{option('image')} is given {len(given)} time{'s' * (len(given) != 1)}",
            f"give {option('image')} once for each place, or a path in the chat",
        )
    beside = iter(given)
    return tuple(next(beside) if each is None else each for each in chat.images)


def with_images(chat: Chat, number: int) -> Chat:
    """A chat whose last message has this number of image places before its text."""
    *before, last = chat.content["messages"]
    parts = [*({"type": "image"} for _ in range(number)), {"type": "text", "text": last["content"]}]
    content: tuple[str | int, ...] = ("messages", len(before), "content")

    def moved(part: ChatPart) -> ChatPart:
        paths = ((*path, number, "text") if path == content else path for path in part.paths)
        return replace(part, paths=tuple(paths))

    messages = [*before, {**last, "content": parts}]
    return replace(
        chat,
        content={**chat.content, "messages": messages},
        parts=tuple(map(moved, chat.parts)),
        images=(None,) * number,
    )


def _parts(chat: Mapping[str, Any]) -> Iterator[ChatPart]:
    """Yield documents, tools and the contents of messages, without blank ones."""
    for i, document in enumerate(chat.get("documents", ())):
        name, key = named_text(document, "title", "id", "doc_id")
        yield ChatPart(name, (("documents", i, key),))
    for i, tool in enumerate(chat.get("tools", ())):
        yield from _object("tool", tool.get("function", tool), _described(tool, ("tools", i)))
    for i, message in enumerate(chat["messages"]):
        yield from _of_message(message, ("messages", i))


def _of_message(message: Mapping[str, Any], at: tuple[str | int, ...]) -> Iterator[ChatPart]:
    content, path = message.get("content"), (*at, "content")
    text = content if isinstance(content, str) else ""
    thought = _THOUGHT.match(text) if message["role"] == "assistant" else None
    after = thought.end() if thought else 0
    thoughts: list[tuple[Any, Slice | None]] = []
    if thought and (thought[1] or thought[2] or "").strip():
        thoughts.append((path, thought.span(1 if thought[1] else 2)))
    thoughts += [((*at, key), None) for key in THINKING if is_told(message.get(key))]
    if thoughts:
        paths, slices = zip(*thoughts, strict=True)
        yield ChatPart("thinking", paths, slices)
    if text[after:].strip():
        yield ChatPart(message["role"], (path,), ((after, len(text)),) if after else ())
    elif isinstance(content, list):
        every = [(n, "text") if isinstance(p, dict) else (n,) for n, p in enumerate(content)]
        texts = [keys for keys, p in zip(every, content, strict=True) if not _is_image(p)]
        if texts:
            yield ChatPart(message["role"], tuple((*path, *keys) for keys in texts))
    calls = message.get("tool_calls")
    for n, call in enumerate(calls or ()):
        to = (*at, "tool_calls", n, *(("function",) if "function" in call else ()))
        own = call.get("function", call)
        yield from _object("call", own, _called(own, to))


def _object(
    kind: str, about: object, paths: Iterator[tuple[tuple[str | int, ...], str]]
) -> Iterator[ChatPart]:
    """The part around these texts, named by the function that the object is about."""
    told = tuple(path for path, text in paths if text.strip())
    name = about.get("name") if isinstance(about, Mapping) else None
    if told:
        yield ChatPart(f"{kind} {name}" if is_told(name) else kind, told, around=True)


def _described(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
    """The names and descriptions in a tool: texts that no template compares with others."""
    pairs = value.items() if isinstance(value, dict) else []
    for key, inner in pairs:
        if isinstance(inner, str) and key in ("name", "description"):
            yield (*path, key), inner
        yield from _described(inner, (*path, key))


def _called(call: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
    """The name and the arguments of a call that are texts."""
    given = call.get("arguments", {})
    within = given if isinstance(given, dict) else {}
    texts: dict[tuple[str, ...], Any] = {("name",): call.get("name"), ("arguments",): given}
    texts |= {("arguments", key): value for key, value in within.items()}
    yield from (((*path, *keys), text) for keys, text in texts.items() if isinstance(text, str))


# A question with documents: `{"id": …, "question": …, "documents": [{"id": …, "text": …}]}`.


@dataclass(frozen=True)
class Question:
    """A question, the documents before it, the user's name of it, and a given answer.

    `unread`: other keys of its object, and documents without a text. `images`: those given with it.
    `system`: how to answer, for a template.
    """

    text: str
    documents: tuple[Document, ...]
    id: str | int | None = None
    target: str | None = None
    unread: tuple[str, ...] = ()
    images: tuple[RawImage, ...] = ()
    system: str = ""


def question_of(content: Mapping[str, Any], origin: str, folder: Path = Path()) -> Question:
    """Read the question in an object; `folder`: that of its images.

    Raises:
        InputError: it is none.
    """
    content = in_our_words(content, origin)
    text, about = content.get("question"), _of_line(content, origin, OF_QUESTION)
    if not is_told(text):
        raise InputError(f"the question in {origin} is not a text", QUESTION_HINT)
    if not isinstance(system := content.get("system") or "", str):
        raise InputError(f"the system in {origin} is not a text", "say in it how to answer")
    entries, blank = checked_documents(content.get("documents") or [], origin)
    about["unread"] += blank
    named = [(each, *named_text(each, "id", "title", "doc_id")) for each in entries]
    documents = tuple(Document(name, each[key]) for each, name, key in named)
    images = images_beside(content, folder)
    return Question(text, documents, **about, images=images, system=system.strip())


def question_or_text(line: str, file: Path | None = None) -> str | Question:
    """The question of a line: an object with a `question`, or a `text` and images; else its text.

    `file`: of the line; one of a .jsonl file is such an object.

    Raises:
        InputError: it looks like such an object, but cannot be read.
    """
    if not is_jsonl(file) and not is_object_with(
        ("question", "user_input", "query", *IMAGES), line
    ):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            return line
        some = content[:1] if isinstance(content, list) else [content]
        if not any(isinstance(each, dict) for each in some):
            return line
    content = in_our_words(json_of(line, QUESTION_HINT), "the line")
    asks = isinstance(content, dict)
    if asks and "question" not in content and isinstance(content.get("text"), str):
        content["question"] = content.pop("text")
    if asks and not content.keys().isdisjoint(("question", *IMAGES)):
        return question_of(content, "the line", folder_of(file))
    said = content if isinstance(content, list) else content.get("messages") if asks else None
    if said and isinstance(said, list) and isinstance(said[0], dict) and "role" in said[0]:
        raise InputError("the line is a chat, not a question", f"give the file as {option('chat')}")
    raise InputError("the line holds no question", KNOWN)


def chat_of_line(line: str, file: Path | None = None) -> Chat:
    """The chat of one line of a file.

    Raises:
        InputError: it does not hold one.
    """
    return chat_of(json_of(line, CHAT_HINT), "the chat", folder_of(file))


def with_system(chat: Chat, system: str) -> Chat:
    """A chat with a system message in front."""

    def moved(part: ChatPart) -> ChatPart:
        at = ((p[0], int(p[1]) + 1, *p[2:]) if p[0] == "messages" else p for p in part.paths)
        return replace(part, paths=tuple(at))

    messages = [{"role": "system", "content": system}, *chat.content["messages"]]
    parts = [ChatPart("system", (("messages", 0, "content"),)), *map(moved, chat.parts)]
    names = zip(parts, told_apart([part.name for part in parts]), strict=True)
    named = tuple(replace(part, name=name) for part, name in names)
    return replace(chat, content={**chat.content, "messages": messages}, parts=named)


def chat_of_question(prompt: Prompt, *, apart: bool) -> Chat:
    """A question after documents as the one message of a chat.

    `apart`: the template has its own place for documents; else they precede the question.
    """
    parts = [(each.name, each.slices[0]) for each in prompt.segments if each.name not in RESTS]
    content: tuple[str | int, ...] = ("messages", 0, "content")
    if not apart:
        message = {"role": "user", "content": prompt.text}
        named = (ChatPart(name, (content,), (slice_,)) for name, slice_ in parts)
        return Chat({"messages": [message]}, tuple(named))
    texts = [prompt.text[start:end] for _, (start, end) in parts]
    *names, question = (name for name, _ in parts)
    entries = [
        {"title": n, "doc_id": n, "text": text} for n, text in zip(names, texts, strict=False)
    ]
    chat = {"messages": [{"role": "user", "content": texts[-1]}], "documents": entries}
    own = [ChatPart(name, (("documents", i, "text"),)) for i, name in enumerate(names)]
    return Chat(chat, (*own, ChatPart(question, (content,))))
