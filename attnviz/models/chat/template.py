"""A model's chat template: read from its folder, and rendered with the places of what was said.

The place of a message in what the template makes of it is not known, so the chat is rendered a
second time with marks around each message. Where that, without its marks, is the first rendering,
the marks tell the places; a template that does more to a message is refused.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnviz.data.chat import Chat, Said
from attnviz.data.segments import Segment, Slice
from attnviz.errors import ModelError
from attnviz.models.folder.files import read_object
from attnviz.models.folder.gate import cut, read_bytes

CONFIG, FILE = "tokenizer_config.json", "chat_template.jinja"
LARGEST = 1 << 20
"""The most bytes of a template; those of real models have 20,000."""
SECONDS = 30
"""The most for the process that renders, its start included."""
VARIABLES = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
KEYS = ("messages", "documents", "tools")
BEGIN, END = "\ue000{}\ue001", "\ue002{}\ue001"
MARK = re.compile("([\ue000\ue002])([0-9]+)\ue001")


@dataclass(frozen=True)
class ChatTemplate:
    """A template, and the special tokens that it may name."""

    source: str
    variables: Mapping[str, str]


def read_template(folder: Path) -> ChatTemplate | None:
    """The template of a model's folder, if there is one.

    Raises:
        ModelError: it cannot be read.
    """
    settings = read_object(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    source = settings.get("chat_template")
    if isinstance(source, list):  # several, by name
        named = {t.get("name"): t.get("template") for t in source if isinstance(t, dict)}
        source = named.get("default")
    if (folder / FILE).is_file():
        try:
            source = read_bytes(folder / FILE, LARGEST).decode("utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the chat template in {str(folder)!r} cannot be read ({cut(error)})",
                "download it again",
            ) from None
    if not isinstance(source, str) or len(source) > LARGEST:
        return None
    variables = {name: _content(settings.get(name)) for name in VARIABLES}
    return ChatTemplate(source, {name: text for name, text in variables.items() if text})


def _content(token: object) -> str:
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def rendered(template: ChatTemplate, chat: Chat) -> tuple[str, tuple[Segment, ...]]:
    """The prompt, and the segments of the parts, as far as the template writes them.

    Args:
        template: of the model.
        chat: what was said.

    Raises:
        ModelError: the template refuses the chat, changes what was said, or takes too long.
    """
    text, marked = _render(template, [chat.content, _marked(chat)])
    if MARK.search(text) or MARK.sub("", marked) != text:
        raise ModelError(
            "the chat template changes what is said, so its places cannot be found",
            "leave the chat out, and give the prompt as a text",
        )
    return text, _segments(marked, chat.parts)


def _marked(chat: Chat) -> Any:
    """A copy of the chat with marks around each part, within the blanks around it."""
    copy: Any = json.loads(json.dumps(chat.content))
    for number, part in enumerate(chat.parts):
        *path, last = part.path
        where = copy
        for key in path:
            where = where[key]
        said = where[last]
        inner = said.strip()
        if inner:
            where[last] = said.replace(
                inner, f"{BEGIN.format(number)}{inner}{END.format(number)}", 1
            )
    return copy


def _segments(marked: str, parts: Sequence[Said]) -> tuple[Segment, ...]:
    slices: dict[int, list[Slice]] = {}
    begun, removed = dict[int, int](), 0
    for mark in MARK.finditer(marked):
        number, at = int(mark[2]), mark.start() - removed
        if mark[1] == BEGIN[0]:
            begun[number] = at
        elif begun.get(number, at) < at:
            slices.setdefault(number, []).append((begun[number], at))
        removed += len(mark[0])
    return tuple(Segment(parts[number].name, tuple(found)) for number, found in slices.items())


def _render(template: ChatTemplate, chats: Sequence[Mapping[str, Any]]) -> list[str]:
    asked = {
        "template": template.source,
        "variables": dict(template.variables),
        "chats": [{k: chat[k] for k in KEYS if k in chat} for chat in chats],
    }
    command = [sys.executable, "-m", "attnviz.models.chat.child"]
    try:
        ended = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        ended = None
    if ended is None or ended.returncode < 0:
        raise ModelError("the model's chat template takes too long", "use another model")
    if ended.returncode:
        why = ended.stderr.strip().split("\n")[-1]
        raise ModelError(
            f"the model's chat template does not take this chat ({cut(why)})",
            "change the chat, or give the prompt as a text",
        )
    texts: list[str] = json.loads(ended.stdout)
    return texts
