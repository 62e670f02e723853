"""`attnviz generate`: a model answers; what did each part of the answer look at?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from attnviz.commands.generate.answer import RowUnit, View
from attnviz.commands.generate.handle import AttentionAnswer
from attnviz.commands.generate.outputs import WHOLE, AnswerLook, pieces_of
from attnviz.commands.generate.run import Writing, answering, chat_prompt
from attnviz.draw.titles import full_note, run_notes
from attnviz.errors import IdleOption, InputError, UsageError, option
from attnviz.inputs.prompts import By, Document, Prompt, cut_prompt, read_chat, with_documents
from attnviz.inputs.text import STDIN, read_file, read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, check_lines, deliver, destination_of
from attnviz.kit.formats import Piece
from attnviz.kit.lines import each_line, note_strange, say, text_alone
from attnviz.kit.model import AnyModel, loaded, model_of, text_options
from attnviz.kit.option import (
    Arguments,
    Call,
    Cli,
    command_of,
    feature,
    only,
    option_field,
    panel_option,
)
from attnviz.kit.session import Session
from attnviz.kit.values import Messages, documents_of, prompt_of, which_heads, words
from attnviz.records.exhibit import PictureLook
from attnviz.records.tokens import Chat, Sampling
from attnviz.records.transforms import How

ANSWER = "The answer"
Docs: TypeAlias = Annotated[
    Mapping[str, str] | None,
    Cli(list[Path] | None),
    panel_option(
        g.TEXT, "--doc", metavar="FILE", help="A document before the question. Repeatable."
    ),
]
NamedParts: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    panel_option(
        g.TEXT,
        "--segment",
        metavar="NAME=WHERE",
        help="A named part of the prompt: NAME=/regular expression/ or NAME=START:END. Repeatable.",
    ),
]
CutBy: TypeAlias = Annotated[
    By | None,
    panel_option(g.TEXT, "--by", help="Cut the prompt into segments.", show_default="sentence"),
]
GivenAnswer: TypeAlias = Annotated[
    str | None,
    panel_option(
        ANSWER, "--target", metavar="TEXT", help="Read this answer instead of writing one."
    ),
]
MaxNewTokens: TypeAlias = Annotated[
    int,
    panel_option(
        ANSWER,
        "--max-new-tokens",
        metavar="N",
        min=1,
        max=g.LARGEST_SEED,
        help="The most tokens to write.",
    ),
]
Temperature: TypeAlias = Annotated[
    float,
    panel_option(
        ANSWER,
        "--temperature",
        metavar="T",
        min=0.0,
        max=100.0,
        help="Sample each token at this temperature; 0 always takes the likeliest.",
    ),
]
TopP: TypeAlias = Annotated[
    float,
    panel_option(
        ANSWER,
        "--top-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Sample from the likeliest tokens whose probabilities add up to this.",
    ),
]
SamplingSeed: TypeAlias = Annotated[
    int,
    panel_option(
        ANSWER,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The random seed of the sampling.",
    ),
]
Stop: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    panel_option(
        ANSWER,
        "--stop",
        metavar="TEXT",
        help="End the answer after this text. Repeatable.",
        show_default="what the model's card says",
    ),
]
JoinedBy: TypeAlias = Annotated[
    How, panel_option(g.HEADS, "--reduce", help="How the heads are joined.")
]


def _segments_once(call: Arguments) -> None:
    if call["docs"] and (call["by"] or call["segments"]):
        raise IdleOption(
            f"{option('docs')} makes segments of the documents",
            f"leave {option('by')} and {option('segments')} out",
        )


@feature(
    only(
        "max_new_tokens temperature top_p seed stop",
        lambda call: call["target"] is None,
        "does nothing for an answer that is given",
    ),
    _segments_once,
)
def generate(
    prompt: str | Messages,
    model: AnyModel = "builtin",
    *,
    docs: Docs = None,
    segments: NamedParts = (),
    by: CutBy = None,
    target: GivenAnswer = None,
    max_new_tokens: MaxNewTokens = Sampling.most,
    temperature: Temperature = Sampling.temperature,
    top_p: TopP = Sampling.top_p,
    seed: SamplingSeed = Sampling.seed,
    stop: Stop = (),
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    reduce: JoinedBy = "mean",
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> AttentionAnswer:
    """Let a model go on with a prompt, and record what each new token attended to.

    >>> attnviz.generate("the creature was", target="blue")
    <AttentionAnswer builtin, 1 token, L4H0>

    `docs` are texts by name. Without heads, the retrieval heads are taken where they are known,
    else all.

    Args:
        prompt: a text; or the messages of a chat, or an object with these as `messages` and
            perhaps `documents` and `tools`, which go through the model's own template.
        model: a name as for `load_model`, or a loaded model.

    Raises:
        AttnvizError: the prompt, the model or an option cannot be used; the message says
            what to do instead.
    """
    documents, parts = documents_of(docs), words("segments", segments)
    asked = prompt_of(prompt)
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    if isinstance(asked, Chat):
        if documents or parts or by:
            raise UsageError("a chat is the whole prompt", "leave its segments out")
        read = chat_prompt(model._loaded, asked)
        options = replace(options, special=True, bos=False)
    else:
        read = _prompt(asked, [Document(*each) for each in documents.items()], parts, by)
    sampling = Sampling(max_new_tokens, temperature, top_p, seed)
    writing = Writing(sampling, words("stop", stop), target)
    which = which_heads(layers, heads)
    answer = answering(model._loaded, read, options, writing, which, reduce, each_head=True)
    return AttentionAnswer(answer, answer.answer(answer.tokens_with_rows()))


def _prompt(
    text: str, documents: Sequence[Document], segments: Sequence[str], by: By | None
) -> Prompt:
    return with_documents(text, documents) if documents else cut_prompt(text, by, segments)


EPILOG = """
Examples

attnviz generate --file sample_texts/mystery.txt

attnviz generate "Who wrote it?" --doc letter.txt --doc diary.txt --model gpt2

attnviz generate "a fluffy blue creature roamed . the creature was" -f jsonl | jq -r .segment
"""
COMMON = (
    "file lines docs segments by model target max_new_tokens heads view format output quiet"
).split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class AnswerLooks(g.Canvas):
    """How the answer is shown."""

    rows: RowUnit = option_field(
        g.LOOK,
        "sentence",
        "--rows",
        help="What a row is: a part of the answer, or the whole answer in one head.",
    )
    view: View = option_field(
        g.LOOK,
        "table",
        "--view",
        help="table: the share of each segment. heatmap: the same in colours. text: the prompt, "
        "shaded by what each row attended to.",
    )
    title: str | None = option_field(
        g.LOOK,
        None,
        "--title",
        metavar="TITLE",
        help="The title of a picture.",
        show_default="model and heads",
    )
    check: bool = option_field(
        ANSWER,
        False,
        "--check",
        help="Also delete one segment after another, and measure how much less probable the answer "
        "becomes.",
    )


ChatFile: TypeAlias = Annotated[
    Path | None,
    panel_option(
        g.TEXT,
        "--chat",
        metavar="FILE",
        help="Messages with roles (JSON), put through the model's own chat template.",
    ),
]


@command_of(
    generate,
    "text lines docs chat segments by truncate bos special model run target max_new_tokens "
    "temperature top_p seed stop layers heads looks reduce screen output noise",
)
def command_line(
    session: Session,
    call: Call[AttentionAnswer],
    *,
    text: g.TextIn,
    lines: Annotated[
        bool,
        panel_option(g.TEXT, "--lines", help="Treat each line of the input as a separate prompt."),
    ] = False,
    chat: ChatFile = None,
    model: g.WhichModel,
    run: g.ModelRun,
    looks: AnswerLooks,
    screen: g.Screen,
    output: g.OutputOptions,
    noise: g.Noise,
) -> None:
    """Let a model answer, and show what each part of the answer attended to."""
    to = destination_of(session, output)
    look = _look(session, to, looks)
    check_lines(to, alone=to.format.binary or to.format.name == "html", lines=lines)
    numbers = (call[name] for name in ("max_new_tokens", "temperature", "top_p", "seed"))
    writing = Writing(Sampling(*numbers), tuple(call["stop"]), call["target"])
    if lines:
        prompts = _of_lines(session, text, call, chat)
    else:
        alone = _of_text(session, text, call, chat)
    ready = model_of(session, model, run)
    heads = which_heads(call["layers"], call["heads"])
    strange = list[bool]()

    def made(prompt: Prompt | Chat, line: int | None, first: bool) -> Iterable[Piece]:
        options = text_options(ready, call["bos"], call["special"], call["truncate"])
        if isinstance(prompt, Chat):
            prompt = chat_prompt(ready._loaded, prompt)
            options = replace(options, special=True, bos=False)
        answer = answering(
            ready._loaded, prompt, options, writing, heads, call["reduce"], each_head=look.each_head
        )
        where, new, read = "" if line is None else f"line {line}: ", 0, answer.read
        say(session, answer.model_notes if first else (), "")
        say(session, (*answer.notes, *run_notes(read)), where)
        strange.append(read.strange)

        def count() -> None:
            nonlocal new
            new += 1
            watch()

        yield from pieces_of(answer, look, count, line, first=first)
        if new == answer.room:
            say(session, [full_note(new)], where)

    with session.counting("token") as watch:
        answers = _answers(session, prompts, made) if lines else [(None, made(alone, None, True))]
        deliver(session, to, answers)
    note_strange(session, strange, "line" if lines else "text")


Prompts: TypeAlias = Iterator[tuple[int, Prompt | Chat | InputError]]


def _answers(
    session: Session,
    prompts: Prompts,
    made: Callable[[Prompt | Chat, int | None, bool], Iterable[Piece]],
) -> Iterator[tuple[int | None, Iterable[Piece]]]:
    """What goes out for each prompt; a bad line is reported on stderr and left out.

    Raises:
        InputError: at the end, where no line was good.
    """
    good = 0

    def of_line(prompt: Prompt | Chat, line: int) -> Iterable[Piece]:
        nonlocal good
        pieces = list(made(prompt, line, not good))  # its errors are this line's
        good += 1
        return pieces

    yield from each_line(session, prompts, of_line, none="no line could be answered")


def _look(session: Session, to: Destination, looks: AnswerLooks) -> AnswerLook:
    """How the answer goes out, every option of which has a meaning there."""
    form = to.format
    if form.name != "txt":
        session.refuse("view", wrong=f"does nothing for {form.name}")
    if form.name in WHOLE:
        wrong = f"does nothing for {form.name}, which holds the rows of each token and head"
        session.refuse("rows", "check", "reduce", wrong=wrong)
    if form.picture:
        session.refuse("check", wrong="is for tables and rows")
    else:
        hint = f"leave it out, or add {option('output', 'FILE.png')}"
        session.refuse(g.Canvas, "title", wrong="is for pictures", hint=hint)
    if looks.rows == "head":
        session.refuse("reduce", wrong="joins heads, and each has a row of its own")
        if looks.view == "text":
            raise UsageError(
                f"{option('view', 'text')} shows what parts of the answer attended to",
                f"leave it or {option('rows', 'head')} out",
            )
    picture = PictureLook(cmap=looks.cmap, dpi=looks.dpi, title=looks.title)
    return AnswerLook(form.name, looks.view, looks.rows, looks.check, picture, to.display(session))


def _of_text(
    session: Session, text: g.TextIn, call: Call[AttentionAnswer], chat: Path | None
) -> Prompt | Chat:
    """The one prompt, or a chat, which the model's template makes one of."""
    if chat is not None:
        if text.text or text.file or call["docs"] or call["by"] or call["segments"]:
            raise UsageError(
                f"{option('chat')} is the whole prompt", "leave the text and its segments out"
            )
        return read_chat(chat, session.stdin)
    documents = _documents(session, text, call["docs"] or [])
    read = text_alone(session, text, "a saved capture has no prompt to answer")
    return _prompt(read, documents, call["segments"], call["by"])


def _of_lines(
    session: Session, text: g.TextIn, call: Call[AttentionAnswer], chat: Path | None
) -> Prompts:
    """A prompt for each line."""
    if chat is not None:
        raise UsageError(f"{option('chat')} is one prompt", f"leave {option('lines')} out")
    documents = _documents(session, text, call["docs"] or [])
    for number, read in read_lines(text.text, text.file, session.stdin):
        try:
            if not isinstance(read, InputError):
                yield number, _prompt(read, documents, call["segments"], call["by"])
            else:
                yield number, read
        except InputError as error:
            yield number, InputError(f"line {number}: {error.wrong}", error.hint)


def _documents(session: Session, text: g.TextIn, paths: Sequence[Path]) -> list[Document]:
    """The documents before the question; one of them may be standard input.

    Raises:
        UsageError: standard input is asked for twice.
    """
    question = text.text if text.file is None else str(text.file)
    named = [*map(str, paths), STDIN if question is None else question]
    if STDIN in named[:-1] and named.count(STDIN) > 1:
        raise UsageError(
            f"standard input is one text, and {option('docs', STDIN)} is not all that reads it",
            "give the question in quotes, and other documents as files",
        )
    names = ["standard input" if str(path) == STDIN else path.stem for path in paths]
    texts = [read_file(path, session.stdin) for path in paths]
    return [Document(*each) for each in zip(names, texts, strict=True)]
