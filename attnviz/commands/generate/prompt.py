"""The prompt as the model reads it: a text, a chat, or a question after documents."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.commands.generate.occluded import See
from attnviz.errors import (
    IdleOption,
    InputError,
    ModelError,
    RefusedChat,
    UsageError,
    option,
    series,
)
from attnviz.inputs.calls import arguments_of
from attnviz.inputs.chats import Question, chat_of_question, read_chat, with_images, with_system
from attnviz.inputs.given import found
from attnviz.inputs.prompts import (
    QUESTION,
    By,
    Document,
    Prompt,
    before_text,
    cut_around_images,
    cut_parts,
    cut_prompt,
    with_documents,
)
from attnviz.inputs.text import LARGEST, STDIN, check_not_blank, read_file
from attnviz.kit import options as g
from attnviz.kit.lines import text_alone
from attnviz.kit.option import Call
from attnviz.kit.prepare import TextOptions, check_uncut
from attnviz.kit.session import Session
from attnviz.records.places import MARK, ReadAs
from attnviz.records.tokens import RESTS, TEMPLATE, Chat, ChatPart, Segment, partition

if TYPE_CHECKING:
    from attnviz.models.chat import ChatTemplate, Rendered
    from attnviz.models.loaded import LoadedModel

INSTRUCTING = ("system", "developer")
"""Roles whose messages say how to answer."""
RESULTS = ("tool", "function", "ipython", "observation")
"""Roles of results: what they say is a source, even last."""


def prompt_for(
    model: "LoadedModel",
    asked: str | Chat | Question,
    documents: Sequence[Document],
    by: By | None,
    wanted: Sequence[str],
    *,
    raw: bool = False,
    images: int = 0,
) -> Prompt:
    """Make the model's input; `raw`: documents and question without its chat template.

    `images`: their number, beside those in a chat.
    """
    if isinstance(asked, Chat):
        if documents:
            raise UsageError("a chat is the whole prompt", f"leave {option('docs')} out")
        if raw:
            raise IdleOption(f"{option('raw')} is for documents, but a chat needs its template")
        return _chat_prompt(model, asked, by, wanted)
    if images:
        check_answers_images(model)
        check_not_blank(asked if isinstance(asked, str) else asked.text, "the text")
    if isinstance(asked, Question):
        if documents:
            raise UsageError("a question has its own documents", f"leave {option('docs')} out")
        if by or wanted:
            hint = f"leave {option('by')} and {option('segments')} out"
            raise IdleOption("documents and question are segments already", hint)
        return _question_prompt(model, asked, images, raw=raw)
    if documents:
        return _through_template(model, with_documents(asked, documents), images, raw=raw)
    if images:
        return _beside_images(model, asked, images, by, wanted, raw=raw)
    if raw:
        raise IdleOption(f"{option('raw')} is for documents, but a text is already read as it is")
    return cut_prompt(asked, by, wanted)


def _question_prompt(model: "LoadedModel", asked: Question, images: int, *, raw: bool) -> Prompt:
    if images and not asked.documents:
        read = _beside_images(model, asked.text, images, None, (), raw=raw)
    else:
        whole = with_documents(asked.text, asked.documents)
        read = _through_template(model, whole, images, raw=raw, system=asked.system)
    ignored = ("system",) if asked.system and not read.instructing else ()
    return replace(read, id=asked.id, unread=(*asked.unread, *ignored))


def check_answers_images(model: "LoadedModel") -> None:
    """Refuse images where the model reads none, or writes nothing about them."""
    if model.reads_images or model.reads == "image":
        model.require("generate")
    model.check_sees()


def _beside_images(
    model: "LoadedModel", text: str, images: int, by: By | None, wanted: Sequence[str], *, raw: bool
) -> Prompt:
    """A text with images, where it says `<image>`; else through the model's template, if any."""
    prompt = cut_around_images(text, by, wanted)
    if MARK in text:
        return prompt
    *others, last = prompt.segments
    if not (others or by or wanted):
        prompt = replace(prompt, segments=(Segment(QUESTION, last.slices),))
    asking = frozenset((prompt.segments[-1].name,))
    return _through_template(
        model, replace(prompt, asking=asking), images, raw=raw, documents=False
    )


def seeing(model: "LoadedModel", prompt: Prompt, options: TextOptions) -> See:
    """The reader of a prompt with images: those of the options, or others in their places."""
    check_uncut(options)
    how = ReadAs(options.bos, options.special, whole=prompt.template is not None)
    return partial(model.see, prompt.text, how=how)


def _chat_prompt(model: "LoadedModel", chat: Chat, by: By | None, wanted: Sequence[str]) -> Prompt:
    """A chat, cut into its parts or finer; what its template adds is a segment."""
    template = template_of(model, chat)
    if template is None:
        raise ModelError(
            f"{model.identity.name} has no chat template",
            f"give its prompt as a text, with {option('docs')} or {option('segments')}, or as "
            f'{{"question": "…", "documents": […]}}, a line each of a .jsonl {option("file")}',
        )
    made, before = _rendered_chat(template, chat)
    (used, *more), segments = made.notes, made.segments
    used += (
        ", which does not write the documents: they come before the last message of a user"
        if before
        else ""
    )
    if by or wanted:
        objects = {part.name for part in chat.parts if part.around}
        whole = [each for each in segments if each.name in objects]
        texts = [each for each in segments if each.name not in objects]
        segments = (*whole, *cut_parts(made.text, texts, by, wanted))
    parts = partition(made.text, segments, TEMPLATE, blanks=True)
    asking, instructing = _asking(chat, made.segments, parts, by)
    asking |= instructing
    notes = (used, *more)
    read = Prompt(made.text, parts, template.name, notes, chat.id, asking, instructing)
    return replace(read, unread=chat.unread)


def _rendered_chat(
    template: "ChatTemplate", chat: Chat, *, placed: bool = False
) -> "tuple[Rendered, bool]":
    """The chat, and whether documents that its template does not write come before the question.

    `placed`: also documents that it writes in another spelling, which have no place.
    """
    documents = [part for part in chat.parts if part.paths[0][0] == "documents"]
    names = {part.name for part in documents}
    try:
        made = _with_calls(template, chat)
        gone = names.difference(e.name for e in made.segments) if placed else made.missing
        if names.isdisjoint(gone):
            return made, False
    except RefusedChat:
        if not documents:
            raise
    return _with_calls(template, _documents_before(chat, documents)), True


def _with_calls(template: "ChatTemplate", chat: Chat) -> "Rendered":
    """The chat with the arguments of its calls of tools as objects, or else as they were given.

    Raises:
        RefusedChat: the template writes neither.
    """
    from attnviz.models.chat import rendered

    calls = sorted({part.name for part in chat.parts if "tool_calls" in part.paths[0]})
    hint = f"change the chat, or leave {series(calls)} out if the template writes no calls"
    try:
        made = rendered(template, chat)
    except RefusedChat as error:
        if chat.as_given is None:
            raise RefusedChat(error.wrong, hint) if calls else error from None
        return _with_calls(template, chat.as_given)
    if chat.as_given and any(str(each) in made.text for each in arguments_of(chat)):
        return _with_calls(template, chat.as_given)  # it wrote an object in Python's spelling
    if gone := sorted({*calls}.intersection(made.missing)):
        raise RefusedChat(f"{template.called} does not write {series(gone)}", hint)
    return made


def _documents_before(chat: Chat, documents: Sequence[ChatPart]) -> Chat:
    """The chat with its documents in the last message of a user, before what it says."""
    content: Any = json.loads(json.dumps({**chat.content, "documents": None}))
    said = [part for part in chat.parts if part.paths[0][0] == "messages"]
    asks = [p for p in said if content["messages"][p.paths[0][1]]["role"] == "user"][-1:]
    if not asks:
        wrong = "the model's chat template does not write the documents"
        raise InputError(f"{wrong}, but no user asks about them", "add a message of a user")
    (to, *more), moved = asks[0].paths, [*documents, *asks]
    texts = [str(reduce(getitem, p.paths[0], dict[Any, Any](chat.content))) for p in moved]
    own = [Document(part.name, text) for part, text in zip(documents, texts, strict=False)]
    prompt = with_documents(texts[-1], own)
    *slices, (start, _) = (e.slices[0] for e in prompt.segments if e.name not in RESTS)
    spans = [*slices, (start, LARGEST)]  # the last one goes on in further parts, where these join
    placed = {
        part: replace(part, paths=(to, *(more if part in asks else ())), within=(span,))
        for part, span in zip(moved, spans, strict=True)
    }
    reduce(getitem, to[:-1], content)[to[-1]] = prompt.text
    given = chat.as_given and _documents_before(chat.as_given, documents)
    every = tuple(placed.get(each, each) for each in chat.parts)
    return replace(chat, content=content, parts=every, as_given=given)


def _asking(
    chat: Chat, whole: Sequence[Segment], cut: Sequence[Segment], by: By | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The segments of the last message, where it is cut its last piece; and of instructions.

    Results of tools do not ask: after them it is the last message of a user.
    """
    messages = chat.content["messages"]
    roles = [each["role"] for each in messages]

    def begun_in(some: Collection[int]) -> list[str]:
        own = {
            part.name
            for part in chat.parts
            if part.paths[0][0] == "messages" and part.paths[0][1] in some and not part.around
        }
        slices = [slice_ for each in whole if each.name in own for slice_ in each.slices]
        starts = [(each.name, each.slices[0][0]) for each in cut if each.name != TEMPLATE]
        found = [name for name, start in starts if any(a <= start < b for a, b in slices)]
        return found if by else [name for name in found if name in own]

    users = [i for i, role in enumerate(roles) if role == "user"]
    last = begun_in(users[-1:] if roles[-1] in RESULTS else (len(messages) - 1,))
    instructs = [i for i, role in enumerate(roles) if role in INSTRUCTING]
    return frozenset(last[-1:] if by else last), frozenset(begun_in(instructs))


def template_of(model: "LoadedModel", chat: Chat) -> "ChatTemplate | None":
    """The template of a model for a chat, if it has one."""
    from attnviz.models.chat import read_template

    return read_template(model.tokenizer.folder, chat) if model.tokenizer.folder else None


def _through_template(
    model: "LoadedModel",
    prompt: Prompt,
    images: int,
    *,
    raw: bool,
    documents: bool = True,
    system: str = "",
) -> Prompt:
    """Make a prompt after `images` images by the model's chat template, if it has one.

    `documents`: its segments but the last one are documents. `system`: how to answer.
    """
    documents = documents and len(prompt.segments) > 1
    chat = chat_of_question(prompt, apart=documents)
    template = None if raw else template_of(model, chat)
    if template is None:
        return before_text(prompt, images) if images else prompt
    chat = with_images(chat, images) if images else chat
    chat = with_system(chat, system) if system else chat
    try:
        made, before = _rendered_chat(template, chat, placed=True)
    except RefusedChat as error:
        raise RefusedChat(error.wrong, "leave “system” out") if system else error from None
    where = "with the documents in its own place for them" if documents else "as one message"
    where = "with the documents before the question" if before else where
    note = f"the prompt went through the model's chat template {template.name!r}, {where}; "
    note += f"{option('raw')} leaves the template out"
    return _prompt_of(made, template.name, note, prompt.asking, chat.parts[: bool(system)])


def _prompt_of(
    made: "Rendered", name: str, note: str, asking: frozenset[str], instructs: Sequence[ChatPart]
) -> Prompt:
    """The prompt that a template made; `instructs`: the part that says how to answer, if any."""
    segments = partition(made.text, made.segments, TEMPLATE, blanks=True)
    first = frozenset(part.name for part in instructs)
    notes = (note, *made.notes[1:])
    return Prompt(made.text, segments, name, notes, asking=asking | first, instructing=first)


def own_prompt(
    path: str,
    asked: str | Chat | Question,
    documents: Sequence[Document],
    *,
    images: int,
    more: bool,
) -> Prompt:
    """Make a prompt by a user's own template; `images` or `more`: other options make it, too.

    Raises:
        UsageError: it is a chat, or there are such options.
        InputError: the template leaves a document or the question out, or cannot be rendered.
    """
    if more or images or isinstance(asked, Chat):
        wrong = f"{option('template')} writes documents and a question alone"
        raise UsageError(wrong, "leave it, or what else makes the prompt, out")
    if isinstance(asked, str):
        return _through_own(Path(path), with_documents(asked, documents))
    whole = with_documents(asked.text, asked.documents)
    made = _through_own(Path(path), whole, asked.system)
    return replace(made, id=asked.id, unread=asked.unread)


def _through_own(path: Path, prompt: Prompt, system: str = "") -> Prompt:
    from attnviz.models.chat import ChatTemplate, rendered

    called = f"the template {str(path)!r}"
    chat = chat_of_question(prompt, apart=True)
    *own, asks = chat.parts
    question = chat.content["messages"][0]["content"]
    parts = (*own, replace(asks, paths=(("question",), *asks.paths)))
    content = {**chat.content, "question": question, "system": system}
    chat = replace(chat, content=content, parts=parts)
    if system:
        chat = with_system(chat, system)
        first, *others = chat.parts
        chat = replace(chat, parts=(replace(first, paths=(("system",), *first.paths)), *others))
    try:
        made = rendered(ChatTemplate(read_file(path), path.name, {}, called), chat)
    except RefusedChat as error:
        raise InputError(error.wrong.replace("this chat", "the question"), "change it") from None
    if made.missing:
        wrong = f"{called} does not write {series(made.missing)}"
        hint = "write the text of every document, the question, and the system if there is one"
        raise InputError(wrong, hint)
    note = f"the prompt went through {called}"
    return _prompt_of(made, path.name, note, prompt.asking, chat.parts[: bool(system)])


# What the command line gives.


def prompt_given(
    session: Session, call: Call[Any], text: g.TextIn, chat: Path | None, *, lines: bool
) -> str | Chat:
    """The one prompt: a text, or a chat, which the model's template makes one of."""
    if chat is None:
        return "" if lines else text_alone(session, text, "a saved capture has no prompt to answer")
    if text.text or text.file or call["docs"]:
        raise UsageError(
            f"{option('chat')} is the whole prompt", "leave the text and its documents out"
        )
    return "" if lines else read_chat(chat, session.stdin)


def documents_given(session: Session, text: g.TextIn, paths: Sequence[Path]) -> list[Document]:
    """The documents before the question; one of them may be standard input."""
    question = text.text if text.file is None else str(text.file)
    named = [*map(str, paths), STDIN if question is None else question]
    if STDIN in named[:-1] and named.count(STDIN) > 1:
        raise UsageError(
            f"standard input is one text, but {option('docs', STDIN)} is not its only reader",
            "give the question in quotes, and other documents as files",
        )
    names = ["standard input" if str(path) == STDIN else found(path).stem for path in paths]
    texts = [read_file(path, session.stdin) for path in paths]
    return [Document(*each) for each in zip(names, texts, strict=True)]
