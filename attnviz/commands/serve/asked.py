"""A run as a page asks for it: read from data that anybody may have sent, and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnviz.commands.generate.prompt import prompt_for
from attnviz.errors import UsageError
from attnviz.inputs.chats import chat_of
from attnviz.kit.calling import content_of
from attnviz.kit.option import check_text
from attnviz.kit.prepare import TextOptions
from attnviz.kit.values import Loaded
from attnviz.records.heads import Head

LONGEST, LONGEST_VIEW = 200_000, 40


@dataclass(frozen=True)
class Asked:
    """What a text is, and how it is read.

    `chat`: it is what a user says, and goes through the model's chat template. `beside`: the text
    that an encoder-decoder writes, or the second one of a pair. `image`, `sound`: in base64.
    """

    text: str
    chat: bool = False
    beside: str | None = None
    image: str | None = None
    sound: str | None = None

    def options(self, model: Loaded) -> tuple[str, TextOptions]:
        """The text that the model reads, and the options of its reading."""
        writes = model._loaded.kind != "self"
        target, pair = (self.beside, None) if writes else (None, self.beside)
        if model._loaded.reads != "text" and self.image is None and self.sound is None:
            reads = model._loaded.reads
            raise UsageError(f"{model.name} reads only {reads}", "choose a file above")
        image = () if self.image is None else (content_of("image", self.image, None),)
        sound: Any = None if self.sound is None else content_of("sound", self.sound, None)
        whole = self.chat and model._loaded.tokenizer.folder is not None
        options = model._text_options(
            False if whole else None, whole, None, target, image, sound, text_pair=pair
        )
        if not whole:
            return self.text, options
        chat = chat_of([{"role": "user", "content": self.text}], "the text")
        return prompt_for(model._loaded, chat, (), None, ()).text, options


def asked_of(content: Mapping[str, Any]) -> Asked:
    """Read what a page asks.

    Raises:
        UsageError: a value is of another type.
    """
    text, chat = content.get("text", ""), content.get("chat", False)
    check_text(text)
    if len(text) > LONGEST:
        raise UsageError(f"the text has more than {LONGEST:,} characters", "give a shorter one")
    more = {name: content.get(name) for name in ("beside", "image", "sound")}
    for value in more.values():
        if value is not None:
            check_text(value)
    if not isinstance(chat, bool):
        raise UsageError("“chat” is not true or false", "give one of them")
    return Asked(text, chat, **more)


def view_in(content: Mapping[str, Any]) -> tuple[str, int]:
    """The name of a view, and the number of its request among its own; ("", 0) without one."""
    view, number = content.get("view", ""), content.get("number", 0)
    if not isinstance(view, str) or len(view) > LONGEST_VIEW or type(number) is not int:
        raise UsageError("“view” is not a short text, or “number” no number", "leave both out")
    return view, number


def heads_in(value: Any) -> list[Head]:
    """Heads, each as [layer, head]; none for null."""
    if value is not None and not isinstance(value, list):
        raise UsageError("these name no heads", "give a list of [layer, head]")
    return [*filter(None, map(head_in, value or []))]


def head_in(value: Any) -> Head | None:
    """A head as [layer, head]; None for null."""
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
        return Head(value[0], value[1])
    raise UsageError("this names no head", "give [layer, head]")
