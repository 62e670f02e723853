"""A model's chat template: chosen as transformers does, and rendered with the places of parts.

The place of a message in what the template makes of it is not known, so the chat is rendered a
second time with marks around each message. Where that, without its marks, is the first rendering,
the marks show the places; else parts are tried one by one; one whose marks change the result has
no place.
"""

import atexit
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from attnviz.errors import ModelError, RefusedChat, option
from attnviz.models import rendering
from attnviz.models.folder.files import cut, foreign, read_bytes
from attnviz.models.folder.tokenizer import tokenizer_settings, transformers_tokenizer
from attnviz.records.tokens import Chat, ChatPart, Segment, Slice

FILE, OTHERS = "chat_template.jinja", "additional_chat_templates"
SETTINGS = "tokenizer_config.json", "special_tokens_map.json", "tokenizer.json"
LARGEST = 1 << 20
"""The most bytes of a template; those of real models have 20,000."""
PATIENCE = 30
"""The most for the process that renders, its start included."""
MOST_WRITTEN = 2 * 12 * rendering.LONGEST
"""The most bytes that it writes, two texts: JSON takes up to 12 for a character."""
BEGIN, END = "\ue000{}\ue001", "\ue002{}\ue001"
MARK = re.compile("([\ue000\ue002])([0-9]+)\ue001")
CHANGE = "change the chat, or give the prompt as a text"


@dataclass(frozen=True)
class ChatTemplate:
    """A template, its name, the special tokens that it may name, and what errors call it."""

    source: str
    name: str
    variables: Mapping[str, str]
    called: str = "the model's chat template"


@dataclass(frozen=True)
class Rendered:
    """A chat as its model reads it: the parts that have a place, those that are left out, notes."""

    text: str
    segments: tuple[Segment, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...] = ()


def read_template(folder: Path, chat: Chat) -> ChatTemplate | None:
    """Read the template that transformers takes for a chat, if the model's folder has one."""
    files = [path for path in (folder / FILE, *(folder / OTHERS).glob("*.jinja")) if path.is_file()]
    if not files and not tokenizer_settings(folder).get("chat_template"):
        return None
    for path in files:
        try:
            read_bytes(path, LARGEST).decode("utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the chat template {str(path)!r} cannot be read ({cut(error)})",
                "download it again",
            ) from None
    held = (*files, *(folder / name for name in SETTINGS))
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in held if path.is_file())
    templates, special = _templates_of(folder, tuple(files), stamps)
    every = templates if isinstance(templates, dict) else {"default": templates}
    named = {name: source for name, source in every.items() if isinstance(source, str)}
    # as `get_chat_template` chooses
    tools = "tools" in chat.content and "tool_use" in named
    name = chat.template or ("tool_use" if tools else "default")
    if not named:
        raise ModelError("the model's chat template is not a text", CHANGE)
    if name not in named:
        raise ModelError(
            f"the model has no chat template {name!r}, but {', '.join(map(repr, named))}",
            "name one of them as the chat's chat_template",
        )
    return ChatTemplate(named[name], name, special)


@lru_cache(4)
def _templates_of(
    folder: Path, files: tuple[Path, ...], stamps: tuple[tuple[str, int], ...]
) -> tuple[Any, Mapping[str, str]]:
    """The chat templates and special tokens of a folder, read once; `stamps`: its files' times."""
    with foreign(folder):
        names = [str(path.relative_to(folder)) for path in files]
        tokenizer = transformers_tokenizer(folder, names)
    return tokenizer.chat_template, tokenizer.special_tokens_map


def rendered(template: ChatTemplate, chat: Chat) -> Rendered:
    """The prompt, and the segments of the parts, as far as the template writes them."""
    used = f"the chat went through the model's template {template.name!r}"
    lists = any(isinstance(m.get("content"), list) for m in chat.content["messages"])
    try:
        text, marked = _render(template, chat, [(), chat.parts])
        joined = lists and "\\ue000" in marked  # a list in Python's spelling, marks and all
    except ModelError:
        if not lists:
            raise
        joined = True
    if joined:
        whole = rendered(template, _joined(chat))
        note = "the template takes one text a message, so the parts of each message were joined"
        return replace(whole, notes=(*whole.notes, note))
    if MARK.sub("", marked) == text:
        placed = dict.fromkeys(chat.parts, marked)
    else:
        room = max(1, rendering.LONGEST // (len(text) + 1))
        _, *tried = _render(template, chat, [(), *((part,) for part in chat.parts[:room])])
        alone = zip(chat.parts, tried, strict=False)
        placed = {part: each for part, each in alone if MARK.sub("", each) == text}
    segments = _segments(dict.fromkeys(placed.values()), text, chat.parts)
    found = {segment.name for segment in segments}
    missing = [part.name for part in placed if part.name not in found]
    gone = "the template leaves this out, so the model does not read it"
    lost = [part.name for part in chat.parts if part not in placed]
    changed = "the template changes what is said, so this counts as template"
    told = [f"{say}: {', '.join(of)}" for say, of in ((gone, missing), (changed, lost)) if of]
    return Rendered(text, segments, (used, *told), tuple(missing))


def _joined(chat: Chat) -> Chat:
    """The chat with one text for each message."""

    if chat.images:
        raise RefusedChat(
            "the model's chat template takes no images",
            f"give the prompt as a text with {option('image')}",
        )

    def text(content: Any) -> Any:
        parts = content if isinstance(content, list) else [content]
        texts = [part["text"] if isinstance(part, dict) else part for part in parts]
        return "".join(texts) if isinstance(content, list) else content

    messages = [
        {**m, "content": text(m["content"])} if isinstance(m.get("content"), list) else m
        for m in chat.content["messages"]
    ]
    parts = tuple(
        replace(part, paths=(part.paths[0][:3],))
        if part.paths and part.paths[0][2] == "content" and len(part.paths[0]) > 3
        else part
        for part in chat.parts
    )
    return replace(chat, content={**chat.content, "messages": messages}, parts=parts)


def _marked(chat: Chat, parts: Collection[ChatPart]) -> Any:
    """A copy of the chat with marks around these of its parts, within the blanks around each."""
    copy: Any = json.loads(json.dumps(chat.content))
    every = (
        (within or (0, None), path, number)
        for number, part in enumerate(chat.parts)
        if part in parts
        for path, within in zip_longest(part.paths, part.within)
    )
    # of one text the last part first, so that the slices of the others stay as they are
    for (start, end), path, number in sorted(every, key=lambda e: e[0][0], reverse=True):
        *keys, last = path
        where = copy
        for key in keys:
            where = where[key]
        end = len(where[last]) if end is None else end
        inner = where[last][start:end].strip()
        if inner:
            marked = f"{BEGIN.format(number)}{inner}{END.format(number)}"
            content = where[last][start:end].replace(inner, marked, 1)
            where[last] = f"{where[last][:start]}{content}{where[last][end:]}"
    return copy


def _segments(marked: Iterable[str], text: str, parts: Sequence[ChatPart]) -> tuple[Segment, ...]:
    """The parts by the marks in renderings, each of which has those of other parts."""
    slices: dict[int, list[Slice]] = {}
    for each in marked:
        begun, removed = dict[int, int](), 0
        for mark in MARK.finditer(each):
            number, at = int(mark[2]), mark.start() - removed
            if mark[1] == BEGIN[0]:
                begun[number] = at
            elif begun.get(number, at) < at:
                slices.setdefault(number, []).append((begun[number], at))
            removed += len(mark[0])
    placed = sorted((slice_, number) for number, own in slices.items() for slice_ in own)
    segments, before = dict[int, list[Slice]](), 0
    for number, run in groupby(placed, key=itemgetter(1)):
        own = [slice_ for slice_, _ in run]
        if parts[number].around:
            end = own[-1][1]
            after = min((first for (first, _), _ in placed if first >= end), default=len(text))
            own = [_object_around(text, own, (before, after))]
        segments.setdefault(number, []).extend(own)
        before = own[-1][1]
    return tuple(Segment(parts[number].name, tuple(own)) for number, own in segments.items())


def _object_around(text: str, texts: Sequence[Slice], within: Slice) -> Slice:
    """The widest braces around these texts, else their lines, as far as they are `within`.

    Braces in the texts themselves count for none.
    """
    inner = widest = texts[0][0], texts[-1][1]
    opened, bounds = list[int](), [within[0], *chain(*texts), within[1]]
    for at in chain(*(range(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True))):
        if text[at] == "{":
            opened.append(at)
        elif text[at] == "}" and opened:
            first = opened.pop()
            if first < inner[0] and inner[1] <= at:
                widest = first, at + 1
    if widest != inner:
        return widest
    start = text.rfind("\n", 0, inner[0]) + 1
    lines = (i for i in range(inner[1], within[1] + 1) if text[i : i + 1] in ("\n", ""))
    closed = (i for i in lines if text.count("{", start, i) <= text.count("}", start, i))
    end = next(closed, inner[1])
    return (start if start >= within[0] else inner[0], end)


def _render(
    template: ChatTemplate, chat: Chat, marked: Sequence[Collection[ChatPart]]
) -> list[str]:
    """Render the chat once with marks around each of these collections of its parts."""
    variables = {"add_generation_prompt": True, **template.variables, **chat.variables}
    try:
        chats = [_marked(chat, parts) for parts in marked]
        request = {"template": template.source, "variables": variables, "chats": chats}
        answer = _in_a_process(request)
    except RecursionError:
        raise RefusedChat("the chat is nested too deeply", CHANGE) from None
    if "texts" in answer:
        texts: list[str] = answer["texts"]
        return texts
    why = " ".join(answer["why"].split()).rstrip(".")
    if answer.get("refused"):
        raise RefusedChat(f"{template.called} refuses this chat: {why}", CHANGE)
    raise RefusedChat(f"{template.called} does not take this chat ({why})", CHANGE)


def _in_a_process(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the child process."""
    with _ONE:
        if _CHILD and (_CHILD[0][0] != request["template"] or _CHILD[0][1].poll() is not None):
            _end_child()
        if not _CHILD:
            # by its path: with -m, the folder that the user stands in could bring its own modules
            command, pipe = [sys.executable, rendering.__file__], subprocess.PIPE
            child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            _CHILD.append((request["template"], child))
        child = _CHILD[0][1]
        try:
            content = _asked(child, json.dumps(request).encode() + b"\n")
            answer: dict[str, Any] = json.loads(content)
        except (OSError, ValueError):  # it has ended, or wrote too much
            with suppress(subprocess.TimeoutExpired):
                child.wait(1)
            _end_child()
            if child.returncode > 0:  # the process ran out of memory while it wrote
                return {"why": "it needs too much memory"}
            raise ModelError(
                "the model's chat template takes too long", "use another model"
            ) from None
        except BaseException:  # what is still to be read would answer another chat
            _end_child()
            raise
    return answer


_ONE = Lock()
_CHILD: list[tuple[str, "subprocess.Popen[bytes]"]] = []
"""The process that renders, which waits for other chats of the same template."""


def _asked(child: "subprocess.Popen[bytes]", line: bytes) -> bytes:
    assert child.stdin is not None
    assert child.stdout is not None
    timer = Timer(PATIENCE, child.kill)
    timer.start()
    try:
        child.stdin.write(line)
        child.stdin.flush()
        return child.stdout.readline(MOST_WRITTEN)
    finally:
        timer.cancel()


@atexit.register
def _end_child() -> None:
    while _CHILD:
        child = _CHILD.pop()[1]
        child.poll()
        child.kill()
        with suppress(OSError):
            child.communicate()
