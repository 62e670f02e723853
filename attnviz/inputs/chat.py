"""A chat from a JSON file: messages with roles, and perhaps documents and tools."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnviz.errors import InputError
from attnviz.inputs.text import STDIN, Stdin, read_file
from attnviz.records.prompt import Chat, Said

CHAT_HINT = 'give [{"role": "user", "content": "…"}, …], or an object with these as "messages"'
LISTS = ("messages", "documents", "tools")
OWN = (*LISTS, "conversations", "chat_template", "return_assistant_tokens_mask")
"""What no variable of a template can be called, as `apply_chat_template` takes it itself."""


def read_chat(path: Path, stdin: Stdin) -> Chat:
    """The chat of a file; `-` is standard input.

    Raises:
        InputError: the file cannot be read, or holds no chat.
    """
    origin = "standard input" if str(path) == STDIN else repr(str(path))
    if str(path) != STDIN and not path.exists():
        raise InputError(f"there is no file {origin}, which is to hold a chat", CHAT_HINT)
    try:
        content = json.loads(read_file(path, stdin))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin} is not JSON ({error})", CHAT_HINT) from None
    return chat_of(content, origin)


def chat_of(content: object, origin: str) -> Chat:
    """The chat that a JSON value is.

    Raises:
        InputError: it is none.
    """
    given = {"messages": content} if isinstance(content, list) else content
    if not isinstance(given, dict) or not given.get("messages"):
        raise InputError(f"{origin} holds no messages", CHAT_HINT)
    kept = {key: given[key] for key in LISTS if given.get(key) is not None}
    for key, entries in kept.items():
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise InputError(f"{key} in {origin} is not a list of objects", CHAT_HINT)
    for number, message in enumerate(kept["messages"], start=1):
        _check(message, f"message {number} in {origin}")
    name, variables = given.get("chat_template"), given.get("chat_template_kwargs") or {}
    if not isinstance(name, str | None):
        raise InputError(f"chat_template in {origin} is not the name of a template", "leave it out")
    if not isinstance(variables, dict) or not variables.keys().isdisjoint(OWN):
        raise InputError(
            f"chat_template_kwargs in {origin} is not an object of the template's own variables",
            'give, for example, {"enable_thinking": false}',
        )
    return Chat(kept, tuple(_numbered(list(_parts(kept)))), name, variables)


def _check(message: Mapping[str, Any], where: str) -> None:
    """See that a message has a role, and text or something else that a template writes.

    Raises:
        InputError: it does not; or it has images or sounds, which are not read.
    """
    content = message.get("content")
    others = [k for k, value in message.items() if value and k not in ("role", "content")]
    if not isinstance(message.get("role"), str) or (content is None and not others):
        raise InputError(f"{where} has no role or no text", CHAT_HINT)
    if isinstance(content, list) and not all(map(_is_text, content)):
        raise InputError(f"{where} has a part that is no text", "leave images and sounds out")


def _is_text(part: object) -> bool:
    return isinstance(part.get("text") if isinstance(part, dict) else part, str)


def _parts(chat: Mapping[str, Any]) -> Iterator[Said]:
    for i, document in enumerate(chat.get("documents", ())):
        for key in ("text", "content", "contents"):
            if isinstance(document.get(key), str):
                title = document.get("title")
                name = title if isinstance(title, str) else "document"
                yield Said(name, (("documents", i, key),))
    for i, message in enumerate(chat["messages"]):
        content, path = message.get("content"), ("messages", i, "content")
        if isinstance(content, str):
            yield Said(message["role"], (path,))
        elif isinstance(content, list):
            within = [(n, "text") if isinstance(p, dict) else (n,) for n, p in enumerate(content)]
            yield Said(message["role"], tuple((*path, *keys) for keys in within))


def _numbered(found: list[Said]) -> Iterator[Said]:
    """The parts; of the same name, each has its number."""
    names = [part.name for part in found]
    for i, part in enumerate(found):
        count = names[: i + 1].count(part.name)
        yield Said(f"{part.name} {count}", part.paths) if names.count(part.name) > 1 else part
