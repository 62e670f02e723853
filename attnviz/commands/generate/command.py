"""`attnviz generate`: a model answers; what did each part of the answer look at?"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from attnviz.commands.generate.answer import RowUnit, View
from attnviz.commands.generate.outputs import WHOLE, AnswerLook, pieces_of
from attnviz.commands.generate.run import Writing, answering, chat_prompt
from attnviz.draw.titles import full_note, run_notes
from attnviz.errors import ExitStatus, InputError, UsageError, option
from attnviz.inputs.prompts import By, Document, Prompt, cut_prompt, read_chat, with_documents
from attnviz.inputs.text import STDIN, read_file, read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, check_lines, deliver, destination_of
from attnviz.kit.formats import Piece
from attnviz.kit.lines import note_strange, say, text_alone
from attnviz.kit.option import command, option_field, panel_option
from attnviz.kit.session import Session, as_flag
from attnviz.records.exhibit import PictureLook
from attnviz.records.prompt import Chat, Sampling
from attnviz.records.transforms import How

EPILOG = """
Examples

attnviz generate --file sample_texts/mystery.txt

attnviz generate "Who wrote it?" --doc letter.txt --doc diary.txt --model gpt2

attnviz generate "a fluffy blue creature roamed . the creature was" -f jsonl | jq -r .segment
"""
COMMON = "file lines docs segments by model target most heads view format output quiet".split()
"""The options that the short help lists."""
ANSWER = "The answer"


@dataclass(frozen=True)
class Segments:
    """What the prompt is made of."""

    docs: list[Path] | None = option_field(
        g.TEXT, None, "--doc", metavar="FILE", help="A document before the question. Repeatable."
    )
    chat: Path | None = option_field(
        g.TEXT,
        None,
        "--chat",
        metavar="FILE",
        help="Messages with roles (JSON), put through the model's own chat template.",
    )
    segments: list[str] | None = option_field(
        g.TEXT,
        None,
        "--segment",
        metavar="NAME=WHERE",
        help="A named part of the prompt: NAME=/regular expression/ or NAME=START:END. Repeatable.",
    )
    by: By | None = option_field(
        g.TEXT, None, "--by", help="Cut the prompt into segments.", show_default="sentence"
    )


@dataclass(frozen=True)
class Given:
    """The answer that is given."""

    target: str | None = option_field(
        ANSWER, None, "--target", metavar="TEXT", help="Read this answer instead of writing one."
    )


@dataclass(frozen=True)
class Sampled:
    """How the answer is written."""

    most: int = option_field(
        ANSWER,
        Sampling.most,
        "--max-new-tokens",
        metavar="N",
        min=1,
        max=g.LARGEST_SEED,
        help="The most tokens to write.",
    )
    temperature: float = option_field(
        ANSWER,
        Sampling.temperature,
        "--temperature",
        metavar="T",
        min=0.0,
        max=100.0,
        help="Sample each token at this temperature; 0 always takes the likeliest.",
    )
    top_p: float = option_field(
        ANSWER,
        Sampling.top_p,
        "--top-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Sample from the likeliest tokens whose probabilities add up to this.",
    )
    seed: int = option_field(
        ANSWER,
        Sampling.seed,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The random seed of the sampling.",
    )
    stop: list[str] | None = option_field(
        ANSWER,
        None,
        "--stop",
        metavar="TEXT",
        help="End the answer after this text. Repeatable.",
        show_default="what the model's card says",
    )

    @property
    def sampling(self) -> Sampling:
        """The record that runs take."""
        return Sampling(self.most, self.temperature, self.top_p, self.seed)


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
    reduce: How = option_field(g.HEADS, "mean", "--reduce", help="How the heads are joined.")


@command
def generate(
    session: Session,
    *,
    text: g.TextIn,
    lines: Annotated[
        bool,
        panel_option(g.TEXT, "--lines", help="Treat each line of the input as a separate prompt."),
    ] = False,
    segments: Segments,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    given: Given,
    sampled: Sampled,
    heads: g.WhichHeads,
    looks: AnswerLooks,
    screen: g.Screen,
    output: g.OutputOptions,
    noise: g.Noise,
) -> None:
    """Let a model answer, and show what each part of the answer attended to."""
    to = destination_of(session, output)
    look = _look(session, to, looks)
    check_lines(to, alone=to.format.binary or to.format.name == "html", lines=lines)
    if given.target is not None:
        session.refuse(Sampled, wrong="does nothing for an answer that is given")
    writing = Writing(sampled.sampling, tuple(sampled.stop or ()), given.target)
    prompts = _of_lines(session, text, segments) if lines else _of_text(session, text, segments)
    loaded = session.load(g.source_of(session, model, run))
    strange = list[bool]()

    def made(prompt: Prompt | Chat, line: int | None, first: bool) -> Iterable[Piece]:
        options = tokens.options(run)
        if isinstance(prompt, Chat):
            prompt, options = chat_prompt(loaded, prompt), replace(options, special=True, bos=False)
        chosen, how = heads.options, looks.reduce
        asked = answering(loaded, prompt, options, writing, chosen, how, each_head=look.each_head)
        where, new, read = "" if line is None else f"line {line}: ", 0, asked.read
        say(session, asked.model_notes if first else (), "")
        say(session, (*asked.notes, *run_notes(read)), where)
        strange.append(read.strange)

        def count() -> None:
            nonlocal new
            new += 1
            watch()

        yield from pieces_of(asked, look, count, line, first=first)
        if new == asked.room:
            say(session, [full_note(new)], where)

    with session.counting("token") as watch:
        deliver(session, to, _answers(session, prompts, made))
    note_strange(session, strange, "line" if lines else "text")


Prompts: TypeAlias = Iterator[tuple[int | None, Prompt | Chat | InputError]]


def _answers(
    session: Session,
    prompts: Prompts,
    made: Callable[[Prompt | Chat, int | None, bool], Iterable[Piece]],
) -> Iterator[tuple[int | None, Iterable[Piece]]]:
    """What goes out for each prompt; a bad line is reported on stderr and left out.

    Raises:
        AttnvizError: the one prompt cannot be answered.
        InputError: at the end, where no line was good.
    """
    bad = good = 0
    for line, prompt in prompts:
        try:
            if isinstance(prompt, InputError):  # it names the line
                raise prompt
            pieces = made(prompt, line, not good)
            pieces = pieces if line is None else list(pieces)  # its errors are this line's
        except InputError as error:
            if line is None:
                raise
            session.complain(("" if error is prompt else f"line {line}: ") + error.spelled(as_flag))
            bad += 1
            continue
        good += 1
        yield line, pieces
    if bad and not good:
        raise InputError("no line could be answered", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT


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


def _of_text(session: Session, text: g.TextIn, parts: Segments) -> Prompts:
    """The one prompt, or a chat, which the model's template makes one of."""
    if parts.chat is not None:
        if text.text or text.file or parts.docs or parts.by or parts.segments:
            raise UsageError(
                f"{option('chat')} is the whole prompt", "leave the text and its segments out"
            )
        yield None, read_chat(parts.chat, session.stdin)
        return
    documents = _documents(session, text, parts)
    read = text_alone(session, text, "a saved capture has no prompt to answer")
    yield None, _prompt(read, parts, documents)


def _of_lines(session: Session, text: g.TextIn, parts: Segments) -> Prompts:
    """A prompt for each line."""
    if parts.chat is not None:
        raise UsageError(f"{option('chat')} is one prompt", f"leave {option('lines')} out")
    documents = _documents(session, text, parts)
    for number, read in read_lines(text.text, text.file, session.stdin):
        try:
            yield number, read if isinstance(read, InputError) else _prompt(read, parts, documents)
        except InputError as error:
            yield number, InputError(f"line {number}: {error.wrong}", error.hint)


def _documents(session: Session, text: g.TextIn, parts: Segments) -> list[Document]:
    """The documents before the question; one of them may be standard input.

    Raises:
        UsageError: standard input is asked for twice.
    """
    paths = parts.docs or []
    given = text.text if text.file is None else str(text.file)
    asked = [*map(str, paths), STDIN if given is None else given]
    if STDIN in asked[:-1] and asked.count(STDIN) > 1:
        raise UsageError(
            f"standard input is one text, and {option('docs', STDIN)} is not all that reads it",
            "give the question in quotes, and other documents as files",
        )
    names = ["standard input" if str(path) == STDIN else path.stem for path in paths]
    texts = [read_file(path, session.stdin) for path in paths]
    return [Document(*each) for each in zip(names, texts, strict=True)]


def _prompt(read: str, parts: Segments, documents: Sequence[Document]) -> Prompt:
    if not documents:
        return cut_prompt(read, parts.by, parts.segments or ())
    if parts.by or parts.segments:
        raise UsageError(
            f"{option('docs')} makes segments of the documents",
            f"leave {option('by')} and {option('segments')} out",
        )
    return with_documents(read, documents)
