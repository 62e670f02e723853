"""Messages in the forms of OpenAI, LangChain and RAGAS, and the calls of tools in them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from attnviz.inputs.beside import is_told
from attnviz.records.tokens import Chat

ROLES = {"human": "user", "ai": "assistant"}
"""The roles of messages by their `type`, which those of RAGAS and LangChain have."""


def with_role(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with a role; LangChain may keep its fields under `data` or `kwargs`."""
    inner, kind = message.get("data", message.get("kwargs")), message.get("type")
    if isinstance(inner, dict) and message.keys().isdisjoint(("role", "content")):
        message = {key: value for key, value in inner.items() if value or key == "content"}
        kind = inner.get("type") or (None if kind == "constructor" else kind)
    if isinstance(call := message.get("function_call"), dict) and not message.get("tool_calls"):
        message = {**message, "tool_calls": [{"type": "function", "function": call}]}
    return {"role": ROLES.get(kind, kind), **message} if isinstance(kind, str) else message


def with_objects(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with the arguments of its calls as objects, which most templates expect."""

    def opened(call: Any) -> Any:
        if "args" in call:  # of LangChain and RAGAS
            own = {"name": call.get("name"), "arguments": call["args"]}
            kept = {key: call[key] for key in ("id",) if call.get(key)}
            call = {**kept, "type": "function", "function": own}
        own = call.get("function", call)
        given = own.get("arguments")
        with suppress(ValueError, RecursionError):
            given = json.loads(given) if isinstance(given, str) else given
        if not isinstance(given, dict):
            return call
        own = {**own, "arguments": given}
        return {**call, "function": own} if "function" in call else own

    calls = message.get("tool_calls")
    return {**message, "tool_calls": [*map(opened, calls)]} if calls else message


def arguments_of(chat: Chat) -> Iterator[Mapping[str, Any]]:
    """The arguments of a chat's calls that are objects, without empty ones."""
    for message in chat.content["messages"]:
        for call in message.get("tool_calls") or ():
            given = call.get("function", call).get("arguments")
            if given and isinstance(given, dict):
                yield given


def is_call(call: object) -> bool:
    """Whether a value is a call with a name."""
    own = call.get("function", call) if isinstance(call, dict) else None
    return isinstance(own, dict) and is_told(own.get("name"))
