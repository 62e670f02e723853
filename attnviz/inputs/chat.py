"""A chat from a JSON file: messages with roles, and perhaps documents and tools."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnviz.data.chat import Chat, Said
from attnviz.errors import InputError
from attnviz.inputs.text import read_file

HINT = 'give [{"role": "user", "content": "…"}, …], or an object with these as "messages"'


def read_chat(path: Path) -> Chat:
    """The chat of a file.

    Raises:
        InputError: the file cannot be read, or holds no chat.
    """
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not JSON ({error})", HINT) from None
    return chat_of(content, repr(str(path)))


def chat_of(content: object, origin: str) -> Chat:
    """The chat that a JSON value is.

    Raises:
        InputError: it is none.
    """
    given = {"messages": content} if isinstance(content, list) else content
    if not isinstance(given, dict) or not given.get("messages"):
        raise InputError(f"{origin} holds no messages", HINT)
    kept = {key: given[key] for key in ("messages", "documents", "tools") if given.get(key)}
    for key, entries in kept.items():
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise InputError(f"{key} in {origin} is not a list of objects", HINT)
    kept["messages"] = [_plain(m, n, origin) for n, m in enumerate(kept["messages"], start=1)]
    return Chat(kept, tuple(_numbered(_parts(kept))))


def _plain(message: Mapping[str, Any], number: int, origin: str) -> dict[str, Any]:
    """A message whose content is one text; the parts of a list of texts are joined."""
    role, content = message.get("role"), message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        together = "".join(text for text in texts if isinstance(text, str))
        content = together if len(texts) == len(content) and all(texts) else None
    if content is None and message.get("tool_calls"):
        content = ""
    if not isinstance(role, str) or not isinstance(content, str):
        raise InputError(f"message {number} in {origin} has no role or no text", HINT)
    return {**message, "content": content}


def _parts(chat: Mapping[str, Any]) -> Iterator[Said]:
    for i, document in enumerate(chat.get("documents", ())):
        for key in ("text", "content", "contents"):
            if isinstance(document.get(key), str):
                title = document.get("title")
                yield Said(title if isinstance(title, str) else "document", ("documents", i, key))
    for i, message in enumerate(chat["messages"]):
        yield Said(message["role"], ("messages", i, "content"))


def _numbered(parts: Iterator[Said]) -> Iterator[Said]:
    """The parts; of the same name, each has its number."""
    found = list(parts)
    names = [part.name for part in found]
    for i, part in enumerate(found):
        count = names[: i + 1].count(part.name)
        yield Said(f"{part.name} {count}", part.path) if names.count(part.name) > 1 else part
