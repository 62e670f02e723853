"""A prompt: its text, and the segments that it is made of."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.text import STDIN, Stdin, check_not_blank, read_file
from attnviz.records.positions import SECONDS, compiled, is_expression
from attnviz.records.tokens import TAKEN, Chat, ChatPart, Segment, Slice, partition

# A prompt cut into segments: by sentences, lines or paragraphs, or as a user names them.

By: TypeAlias = Literal["sentence", "line", "paragraph"]
# possessive, and never begun within a run: a text may be nothing but dots
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”’）]*")
_ENDS: Mapping[By, "re.Pattern[str]"] = MappingProxyType(
    {"line": re.compile(r"\n"), "paragraph": re.compile(r"\n[^\S\n]*\n")}
)
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No|Fig|[A-Z]))\.$")
_LONGEST = len("Prof.\n")


def cut(text: str, by: By) -> Iterator[Slice]:
    """The slices of a text, each without the blanks around it; empty ones are left out.

    A sentence ends behind `.`, `!`, `?` or `…` before a blank (not behind a common abbreviation),
    behind their Chinese forms, and where a line ends.
    """
    start = 0
    for end in [*_ends(text, by), len(text)]:
        inner = text[start:end]
        if inner.strip():
            first = start + len(inner) - len(inner.lstrip())
            yield first, start + len(inner.rstrip())
        start = end


def _ends(text: str, by: By) -> Iterator[int]:
    if by != "sentence":
        yield from (end.end() for end in _ENDS[by].finditer(text))
        return
    for end in re.finditer(rf"{_SENTENCE_END.pattern}|\n", text):
        if not _ABBREVIATION.search(text, max(0, end.end() - _LONGEST), end.end()):
            yield end.end()


def numbered(text: str, by: By) -> tuple[Segment, ...]:
    """A segment for each part of a text, named by its number from 1."""
    return tuple(Segment(str(n), (slice_,)) for n, slice_ in enumerate(cut(text, by), start=1))


def named(text: str, wanted: Sequence[str]) -> tuple[Segment, ...]:
    """The segments that a user names: `NAME=/regular expression/` or `NAME=START:END`.

    Raises:
        UsageError: one cannot be read.
    """
    names = [each.partition("=")[0] for each in wanted]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two segments are named {name!r}", "give each another name")
        if name in TAKEN:
            raise UsageError(f"the name {name!r} is taken", "give the segment another one")
    return tuple(_segment(text, each) for each in wanted)


def _segment(text: str, wanted: str) -> Segment:
    name, _, where = wanted.partition("=")
    if not name or not where:
        raise UsageError(
            f"{option('segments', repr(wanted))} has no {'place' if name else 'name'}",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    slices: tuple[Slice, ...] = ()
    if is_expression(where):
        slices = tuple(_matches(text, where))
    elif numbers := re.fullmatch(r"([0-9]{0,9}):([0-9]{0,9})", where):
        start, end = int(numbers[1] or 0), int(numbers[2] or len(text))
        slices = ((start, min(end, len(text))),) if start < min(end, len(text)) else ()
    else:
        raise UsageError(
            f"{option('segments', repr(wanted))} does not say where the segment is",
            "give NAME=/regular expression/ or NAME=START:END, in characters",
        )
    if not slices:
        raise InputError(
            f"{option('segments', repr(wanted))} holds nothing of the prompt",
            f"the length of the prompt is {len(text):,}",
        )
    return Segment(name, slices)


def _matches(text: str, expression: str) -> Iterator[Slice]:
    """The slices that a regular expression between slashes matches, empty ones left out."""
    try:
        matches = list(compiled(expression, "segments").finditer(text, timeout=SECONDS))
    except TimeoutError:
        raise UsageError(
            f"{option('segments', expression)} takes too long to search for", "simplify it"
        ) from None
    yield from (match.span() for match in matches if match.end() > match.start())


BETWEEN = "\n\n"
"""Stands between documents, and between the last one and the question."""
QUESTION = "question"


@dataclass(frozen=True)
class Document:
    """A text that stands before the question, and its name."""

    name: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """The text that a model reads before it answers; every character belongs to a segment.

    `template`: of a chat, the name of the template that made it. `notes`: what is to be said of it.
    """

    text: str
    segments: tuple[Segment, ...]
    template: str | None = None
    notes: tuple[str, ...] = ()


def with_documents(question: str, documents: Sequence[Document]) -> Prompt:
    """The documents in order, then the question, with a blank line between any two.

    Line ends at the end of a document are dropped; the blank lines between count for none.
    Documents of the same name are numbered.
    """
    for document in documents:
        check_not_blank(document.text, f"the document {document.name!r}")
    trimmed = [Document(each.name, each.text.rstrip("\r\n")) for each in documents]
    parts = [*trimmed, Document(QUESTION, question)]
    text, segments = "", list[Segment]()
    for name, part in zip(_told_apart([part.name for part in parts], TAKEN), parts, strict=True):
        text += BETWEEN if text else ""
        segments.append(Segment(name, ((len(text), len(text) + len(part.text)),)))
        text += part.text
    return Prompt(text, partition(text, segments, blanks=True))


def _told_apart(names: Sequence[str], taken: Collection[str] = ()) -> Iterator[str]:
    """The names; one that several have, or that is taken, with its number among its like."""
    for i, name in enumerate(names):
        several = name in taken or names.count(name) > 1
        yield f"{name} {names[: i + 1].count(name)}" if several else name


def cut_prompt(text: str, by: By | None, wanted: Sequence[str]) -> Prompt:
    """A prompt with the segments that a user names, or cut into sentences, lines or paragraphs.

    Raises:
        UsageError: both are asked for, or a segment cannot be read.
    """
    if by and wanted:
        raise UsageError(
            f"{option('by')} cuts a prompt that has no other segments",
            f"leave it or {option('segments')} out",
        )
    segments = named(text, wanted) if wanted else numbered(text, by or "sentence")
    return Prompt(text, partition(text, segments))


# A chat from a JSON file: messages with roles, and perhaps documents and tools.

CHAT_HINT = 'give [{"role": "user", "content": "…"}, …], or an object with these as "messages"'
LISTS = ("messages", "documents", "tools")
OWN = (*LISTS, "conversations", "chat_template", "return_assistant_tokens_mask")
"""Names that no variable of a template can have, as `apply_chat_template` takes them itself."""


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
    chat = {"messages": content} if isinstance(content, list) else content
    if not isinstance(chat, dict) or not chat.get("messages"):
        raise InputError(f"{origin} holds no messages", CHAT_HINT)
    kept = {key: chat[key] for key in LISTS if chat.get(key) is not None}
    for key, entries in kept.items():
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise InputError(f"{key} in {origin} is not a list of objects", CHAT_HINT)
    for number, message in enumerate(kept["messages"], start=1):
        _check(message, f"message {number} in {origin}")
    name, variables = chat.get("chat_template"), chat.get("chat_template_kwargs") or {}
    if not isinstance(name, str | None):
        raise InputError(f"chat_template in {origin} is not the name of a template", "leave it out")
    if not isinstance(variables, dict) or not variables.keys().isdisjoint(OWN):
        raise InputError(
            f"chat_template_kwargs in {origin} is not an object of the template's own variables",
            'give, for example, {"enable_thinking": false}',
        )
    parts = list(_parts(kept))
    distinct = _told_apart([part.name for part in parts])
    parts = [replace(part, name=own) for part, own in zip(parts, distinct, strict=True)]
    return Chat(kept, tuple(parts), name, variables)


def _check(message: Mapping[str, Any], where: str) -> None:
    """See that a message has a role, and text or something else that a template writes."""
    content = message.get("content")
    others = [k for k, value in message.items() if value and k not in ("role", "content")]
    if not isinstance(message.get("role"), str) or (content is None and not others):
        raise InputError(f"{where} has no role or no text", CHAT_HINT)
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where} has a part that is no text", "leave images and sounds out")


def _parts(chat: Mapping[str, Any]) -> Iterator[ChatPart]:
    for i, document in enumerate(chat.get("documents", ())):
        for key in ("text", "content", "contents"):
            if isinstance(document.get(key), str):
                title = document.get("title")
                name = title if isinstance(title, str) else "document"
                yield ChatPart(name, (("documents", i, key),))
    for i, message in enumerate(chat["messages"]):
        content, path = message.get("content"), ("messages", i, "content")
        if isinstance(content, str):
            yield ChatPart(message["role"], (path,))
        elif isinstance(content, list):
            within = [(n, "text") if isinstance(p, dict) else (n,) for n, p in enumerate(content)]
            yield ChatPart(message["role"], tuple((*path, *keys) for keys in within))


# Prompts from lines of JSON: `{"text": …, "answer": …, "versus": …, "source": …}`.

PROMPT_HINT = (
    'give {"text": "…", "answer": "…", "versus": "…", "source": "…"}, of which text is needed'
)
FIELDS = "text", "answer", "versus", "source"
LIKE = 0.82
"""How alike a name is to that of a field for which it was meant: `verses`, but not `source_id`."""


def read_prompt(line: str) -> dict[str, str]:
    """The fields of one line: a text, what is measured after it, and a source of vectors.

    Raises:
        InputError: it is no such object.
    """
    content = json_of(line, PROMPT_HINT)
    if isinstance(content, list):
        raise InputError("it is a list", "write each of its objects on a line of its own")
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError("there is no text", PROMPT_HINT)
    wrong = [name for name in FIELDS if not isinstance(content.get(name), str | None)]
    if wrong:
        raise InputError(f"{wrong[0]} is not a text", PROMPT_HINT)
    for name in content:  # others may stand beside them, but no misspelt one
        meant = [] if name in FIELDS else get_close_matches(name, FIELDS, 1, LIKE)
        if meant and meant[0] not in content:
            raise InputError(f"{name!r} is not a field", f"write {meant[0]!r}")
    return {name: content[name] for name in FIELDS if content.get(name) is not None}


def json_of(line: str, hint: str) -> Any:
    """The value that a line of JSON is; `hint` says what to give.

    Raises:
        InputError: it is no JSON.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]} at character {error.colno}"
    except RecursionError:
        why = "too deeply nested"
    except ValueError:  # Python reads no integer of thousands of digits
        why = "a number is too long"
    raise InputError(f"it is not JSON ({why})", hint)
