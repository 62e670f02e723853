"""`attnviz generate`: a model answers; what did each part of the answer look at?"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from attnviz.commands.generate.answer import Answer, AnswerView, RowUnit, repeats
from attnviz.commands.generate.chain import check_hops
from attnviz.commands.generate.prompt import documents_given, prompt_for, prompt_given
from attnviz.commands.generate.results import Results, answer_lines, results_file
from attnviz.commands.generate.rows import AttentionAnswer, of_shares
from attnviz.commands.generate.run import Answering, Writing, answering
from attnviz.commands.generate.square import of_square, square_of
from attnviz.commands.show.run import pieces_of
from attnviz.draw.terminal.around import line_heading
from attnviz.draw.titles import amount, run_notes
from attnviz.errors import IdleOption, InputError, UsageError, option
from attnviz.inputs.chats import Question, chat_of_line, question_or_text
from attnviz.inputs.prompts import By
from attnviz.inputs.text import read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, check_lines, deliver, destination_of
from attnviz.kit.lines import each_line, note_strange, say
from attnviz.kit.option import (
    Arguments,
    Call,
    Cli,
    command_of,
    feature,
    finished_by,
    only,
    panel_option,
)
from attnviz.kit.prepare import TextOptions
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    Messages,
    documents_of,
    loaded,
    model_of,
    prompt_of,
    which_heads,
    words,
)
from attnviz.kit.write import (
    ROWS,
    Piece,
    check_folder,
    encoded,
    make_folder,
    record_chunks,
    write_bytes,
)
from attnviz.records.apply import whole_exhibit
from attnviz.records.grounding import CheckMethod
from attnviz.records.rows import ABSENT
from attnviz.records.tokens import Chat, Sampling
from attnviz.records.transforms import How

answer_option = partial(panel_option, "The answer")
WHOLE = {
    "npz": "which holds the rows of each token and head",
    "html": "which has sentences and tokens",
}
"""Formats that have rows of their own, and which."""
Docs: TypeAlias = Annotated[
    Mapping[str, str] | None,
    Cli(list[Path] | None),
    g.text_option("--doc", metavar="FILE", help="A document before the question. Repeatable."),
]
NamedParts: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    g.text_option(
        "--segment",
        metavar="NAME=WHERE",
        help="A named part of the prompt: NAME=/regular expression/ or NAME=START:END. Repeatable.",
    ),
]
CutBy: TypeAlias = Annotated[
    By | None, g.text_option("--by", help="Cut the prompt into segments.", show_default="sentence")
]
Raw: TypeAlias = Annotated[
    bool,
    g.text_option(
        "--raw", help="Documents and question as they are, without the model's chat template."
    ),
]
GivenAnswer: TypeAlias = Annotated[
    str | None,
    answer_option("--target", metavar="TEXT", help="Read this answer instead of writing one."),
]
MaxNewTokens: TypeAlias = Annotated[
    int,
    answer_option(
        "--max-new-tokens", metavar="N", min=1, max=g.LARGEST_SEED, help="The most tokens to write."
    ),
]
Temperature: TypeAlias = Annotated[
    float,
    answer_option(
        "--temperature",
        metavar="T",
        min=0.0,
        max=100.0,
        help="Sample each token at this temperature; 0 always takes the likeliest.",
    ),
]
TopP: TypeAlias = Annotated[
    float,
    answer_option(
        "--top-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Sample from the likeliest tokens whose probabilities add up to this.",
    ),
]
SamplingSeed: TypeAlias = Annotated[
    int,
    answer_option(
        "--seed", metavar="N", min=0, max=g.LARGEST_SEED, help="The random seed of the sampling."
    ),
]
Stop: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    answer_option(
        "--stop",
        metavar="TEXT",
        help="End the answer after this text. Repeatable.",
        show_default="what the model's card says",
    ),
]
NamedSections: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    answer_option(
        "--section",
        metavar="NAME=/REGEX/",
        help="A named section of the answer, for rows of sections. Repeatable.",
    ),
]
Hops: TypeAlias = Annotated[
    int,
    answer_option(
        "--hops",
        metavar="N",
        min=0,
        max=1000,
        help="Carry the shares of written tokens, such as a chain of thought, N times back to what "
        "these attended to.",
    ),
]
JoinedBy: TypeAlias = Annotated[How, g.heads_option("--reduce", help="How the heads are joined.")]


def _segments_once(call: Arguments) -> None:
    if call["docs"] and (call["by"] or call["segments"]):
        raise IdleOption(
            f"{option('docs')} makes segments of the documents",
            f"leave {option('by')} and {option('segments')} out",
        )


def _signs_kept(call: Arguments) -> None:
    if call["contribution"] and call["reduce"] == "max":
        raise IdleOption(
            f"contributions have a sign, which {option('reduce', 'max')} does not keep",
            f"leave it or {option('contribution')} out",
        )


def _begun_by_template(options: TextOptions) -> TextOptions:
    """The options for a prompt whose chat template writes special tokens itself."""
    if options.bos is not None:
        raise IdleOption(
            f"{option('bos')} does nothing beside a chat template, which begins the prompt",
            "leave it out",
        )
    return replace(options, special=True, bos=False)


def _when_written(written: Answering, options: Mapping[str, Any]) -> AttentionAnswer:
    """The whole answer, as its page shows it; the command line shows it as it is written."""
    written = replace(written, each_head=written.apart)
    return AttentionAnswer(written, written.written())


@feature(
    only(
        "max_new_tokens temperature top_p seed stop",
        lambda call: call["target"] is None,
        "does nothing for an answer that is given",
    ),
    _segments_once,
    _signs_kept,
)
@finished_by(_when_written)
def generate(
    prompt: str | Messages,
    model: AnyModel = "builtin",
    *,
    docs: Docs = None,
    segments: NamedParts = (),
    by: CutBy = None,
    raw: Raw = False,
    target: GivenAnswer = None,
    max_new_tokens: MaxNewTokens = Sampling.most,
    temperature: Temperature = Sampling.temperature,
    top_p: TopP = Sampling.top_p,
    seed: SamplingSeed = Sampling.seed,
    stop: Stop = (),
    sections: NamedSections = (),
    hops: Hops = 0,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    reduce: JoinedBy = "mean",
    contribution: g.Contribution = False,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Answering:
    """Let a model go on with a prompt, and record what each new token attended to.

    >>> attnviz.generate("the creature was", target="blue")
    <AttentionAnswer builtin, 1 token, L4H0>

    `docs` are texts by name. With a model that has a chat template they go through it, unless
    `raw`. Without heads, the retrieval heads are taken where they are known, else all.

    Args:
        prompt: a text; or the messages of a chat, or an object with these as `messages` and
            perhaps `documents` and `tools`, which go through the model's own template; or an object
            with a `question` and perhaps `documents`, each with its `text` and perhaps its `id`.
        model: a name as for `load_model`, or a loaded model.
    """
    documents, parts = documents_of(docs), words("segments", segments)
    asked, model = prompt_of(prompt), loaded(model)
    options = model._text_options(bos, special, truncate)
    read = prompt_for(model._loaded, asked, documents, by, parts, raw=raw)
    if read.template is not None:
        options = _begun_by_template(options)
    if not isinstance(asked, str) and asked.target is not None:
        target = asked.target
    sampling = Sampling(max_new_tokens, temperature, top_p, seed)
    writing = Writing(sampling, words("stop", stop), target)
    which = which_heads(layers, heads)
    if contribution:
        model._loaded.check_contributions()
    ready = answering(model._loaded, read, options, writing, which, reduce, model._source)
    named = words("sections", sections)
    return replace(ready, contribution=contribution, sections=named, hops=hops)


EXAMPLES = """
attnviz generate --file sample_texts/mystery.txt
attnviz generate "therefore the murderer was" --doc sample_texts/letter.txt --check
attnviz generate "a fluffy blue creature roamed . the creature was" -f jsonl | jq -r .segment
"""
SHORT_HELP = (
    "file lines docs segments by model target max_new_tokens check heads view format output quiet"
)


@dataclass(frozen=True)
class AnswerLooks(g.Canvas):
    """How the answer is shown."""

    rows: Annotated[
        RowUnit | None,
        g.look_option(
            "--rows",
            help="What a row is: a part of the answer (sections are thinking, tool calls and "
            "results, and the answer), or the whole answer in one head.",
            show_default="sentence; of links, token",
        ),
    ] = None
    view: Annotated[
        AnswerView | None,
        g.look_option(
            "--view",
            help="table: the share of each segment. links: the tokens that each row attends to "
            "most. heatmap: the shares in colours. text: the prompt, shaded by what each row "
            "attended to.",
            show_default="table; of a translation, links",
        ),
    ] = None
    title: Annotated[
        str | None,
        g.look_option(
            "--title",
            metavar="TITLE",
            help="The title of a picture.",
            show_default="model and heads",
        ),
    ] = None
    square: Annotated[
        bool,
        g.look_option(
            "--square",
            help="What each sentence of the answer attended to of its earlier sentences; with "
            "--check also what the later ones become without it.",
        ),
    ] = False
    check: Annotated[
        bool,
        answer_option(
            "--check",
            help="Also delete one segment after another, then all documents, and measure how much "
            "less probable the answer becomes.",
        ),
    ] = False
    check_method: Annotated[
        CheckMethod | None,
        answer_option(
            "--check-method",
            help="delete: as --check alone. chain: the same, rows being the links that --hops goes "
            "back. subsets: random subsets of the documents, and a sparse "
            "linear fit. curve: more and more of their tokens.",
            show_default="delete",
        ),
    ] = None

    def unit(self, view: AnswerView) -> RowUnit:
        """The unit of a row in this view."""
        return self.rows or ("token" if view == "links" else "sentence")

    @property
    def checks(self) -> CheckMethod | None:
        """How the answer is checked; None: it is not."""
        return self.check_method or ("delete" if self.check else None)


ChatFile: TypeAlias = Annotated[
    Path | None,
    g.text_option(
        "--chat",
        metavar="FILE",
        help="Messages with roles (JSON), put through the model's own chat template; with --lines, "
        "or of a .jsonl file, each line is a chat.",
    ),
]


Resume: TypeAlias = Annotated[
    bool,
    g.output_option(
        "--resume",
        help="Append each line's rows to FILE.jsonl, and leave out the lines that it has.",
    ),
]
Pages: TypeAlias = Annotated[
    Path | None,
    g.output_option(
        "--pages", metavar="FOLDER", help="With --resume: also write the page of each answer."
    ),
]


@command_of(
    generate,
    "text lines docs chat segments by raw truncate bos special model run target max_new_tokens "
    "temperature top_p seed stop sections hops layers heads looks reduce contribution",
)
def command_line(
    session: Session,
    call: Call[Answering],
    *,
    text: g.TextIn,
    lines: Annotated[
        bool, g.text_option("--lines", help="Treat each line of the input as a separate prompt.")
    ] = False,
    chat: ChatFile = None,
    model: g.WhichModel,
    run: g.ModelRun,
    looks: AnswerLooks,
    output: g.OutputOptions,
    resume: Resume = False,
    pages: Pages = None,
) -> None:
    """Go on with a text, and show what each new token looked at."""
    to = destination_of(session, output)
    _check_looks(session, to, looks, signed=call["contribution"])
    check_hops(looks.check_method, call["hops"])
    lines = lines or (chat is not None and chat.suffix.lower() == ".jsonl")
    check_lines(to, alone=to.format.binary or to.format.name == "html", lines=lines)
    _check_resume(session, to, lines=lines)
    documents = documents_given(session, text, call["docs"] or [])
    prompt = prompt_given(session, call, text, chat, lines=lines)
    ready = model_of(session, model, run)
    with ExitStack() as open_:
        watch = open_.enter_context(session.counting("token"))
        results = None
        if resume:
            assert to.output is not None
            identity = ready._loaded.identity
            results = open_.enter_context(results_file(to.output, identity, pages))
        writer = _Writer(session, to, looks, watch, results)

        def answered(prompt: str | Chat | Question, line: int | None = None) -> Iterator[Piece]:
            return writer.noted(call(prompt=prompt, model=ready, docs=documents or None), line)

        def of_line(text: str, line: int) -> Iterable[Piece]:
            asked = question_or_text(text, is_json=is_json) if chat is None else chat_of_line(text)
            return list(answered(asked, line))  # its errors are this line's

        is_json = text.file is not None and text.file.suffix.lower() == ".jsonl"
        prompts = read_lines(text.text, text.file or chat, session.stdin) if lines else iter(())
        if results is not None:

            def rows_of(text: str, line: int) -> bytes:
                return b"".join(encoded(of_line(text, line)))

            answer_lines(session, results, prompts, rows_of)
        elif lines:
            none = "no line could be answered"
            deliver(session, to, each_line(session, prompts, of_line, none=none))
        else:
            deliver(session, to, [(None, answered(prompt))])
    note_strange(session, writer.strange, "line" if lines else "text")


@dataclass(frozen=True)
class _Writer:
    """Writes answers one after the other; `watch` is called at each new token.

    `strange`: of each prompt that was answered, whether the model has seen no texts like it.
    """

    session: Session
    to: Destination
    looks: AnswerLooks
    watch: Callable[[], object]
    results: Results | None = None
    strange: list[bool] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    with_id: list[bool] = field(default_factory=list)

    def noted(self, asked: Answering, line: int | None) -> Iterator[Piece]:
        """An answer in its format, with notes on stderr before and after it."""
        where, read = "" if line is None else f"line {line}: ", asked.read
        say(self.session, () if self.strange else asked.model_notes)
        notes = [note for note in asked.notes if note not in self.told]
        self.told.update(asked.prompt.notes[:1])  # on the template, the same for every line
        say(self.session, (*notes, *run_notes(read)), where)
        answer = yield from self._pieces(asked, line)
        new = len(answer.weights)
        full = f"the answer ends after {amount(new, 'token')}, as the model's context is full"
        say(self.session, [full] if new == asked.room else (), where)
        again = repeats([token.id for token in answer.capture.query_tokens])
        looping = f"the answer repeats itself; {option('temperature', 0.7)} draws other tokens"
        say(self.session, [looping] if again and asked.target is None else (), where)
        wordless = (
            "the answer has no word, so that its shares say little; end the prompt in mid-sentence"
        )
        say(self.session, [] if any(map(str.isalnum, answer.text)) else [wordless], where)
        self.strange.append(read.strange)

    def _pieces(self, asked: Answering, line: int | None) -> Generator[Piece, None, Answer]:
        """An answer in its format; the first one's rows have their header.

        Rows of a stream are written while the model writes, each when its part of the answer has
        ended; except with a check or gates, which need the whole answer.
        """
        form, looks, first = self.to.format.name, self.looks, not self.strange
        self._check_columns(asked)
        each_head = looks.rows == "head"
        view = self._view(asked) if form == "txt" else "table"
        parts_may_change = looks.square or looks.rows == "section" or asked.sections or asked.hops
        at_end = looks.checks or each_head or parts_may_change or asked.model.gated
        if form in ROWS and not (at_end or self.results is not None):
            for shares in asked.stream(looks.unit(view), self.watch):
                rows = of_shares(shares, line or 1).rows
                yield from record_chunks(rows, form, "generate", header=first)
                first = False
            return shares.answer
        page = self.results and self.results.page_of(line or 1)
        each_head = each_head or form == "npz" or ((form == "html" or bool(page)) and asked.apart)
        asked = replace(asked, each_head=each_head)
        answer = asked.written(self.watch)
        if form == "npz":
            yield from pieces_of(whole_exhibit(answer.capture), form)
            return answer
        result = _result(asked, answer, looks, view, line or 1)
        if form == "txt" and line is not None:
            yield line_heading(line, first=first)
        if page:
            write_bytes(page, encoded(result.pieces("html")))
        if form in ROWS:
            rows = result.rows
            if self.results is not None:
                rows = [self.results.row(row, asked, line or 1) for row in rows]
            yield from record_chunks(rows, form, "generate", header=first)
        else:
            look = {"cmap": looks.cmap, "dpi": looks.dpi, "title": looks.title}
            yield from result.pieces(form, self.to.display(self.session), **look)
        return answer

    def _view(self, asked: Answering) -> AnswerView:
        """The view that is asked for; else of a translation its links, unless it is cut."""
        if self.looks.view is not None:
            return self.looks.view
        cut = self.session.given("by", "segments", "docs", "rows", "hops", "sections")
        plain = asked.model.kind == "cross" and not (cut or self.looks.checks)
        return "links" if plain else "table"

    def _check_columns(self, asked: Answering) -> None:
        """See that a prompt has an id where those before it had one, as rows of a table do."""
        has = asked.prompt.id is not ABSENT
        if self.to.format.name in ("csv", "tsv") and has not in (self.with_id or [has]):
            raise InputError(
                "texts and questions have other columns", f"use {option('format', 'jsonl')}"
            )
        self.with_id.append(has)


def _result(
    asked: Answering, answer: Answer, looks: AnswerLooks, view: AnswerView, line: int
) -> Result[Any]:
    """What is shown of an answer: its shares, or its sentences among each other."""
    if looks.square:
        square = square_of(answer)
        return of_square(asked.suppressed(square) if looks.checks else square, line)
    check = asked.check(answer, looks.checks) if looks.checks else None
    return of_shares(replace(answer.shares(looks.unit(view)), check=check), line, view)


def _check_resume(session: Session, to: Destination, *, lines: bool) -> None:
    """See that a file can be gone on with, and that its rows are of answers."""
    wrong = f"is for a file of answers, {option('output', 'FILE.jsonl')} {option('resume')}"
    if not session.value("resume"):
        session.refuse("pages", wrong=wrong)
        return
    if not lines or to.output is None or to.each_line_apart or to.format.name != "jsonl":
        raise UsageError(
            f"{option('resume')} goes on with the lines of a file of rows",
            f"add {option('lines')} and {option('output', 'FILE.jsonl')}",
        )
    if to.output.exists() and not to.output.is_file():
        raise UsageError(f"{str(to.output)!r} cannot be gone on with", "name a regular file")
    idle = ("square", *(("rows", "contribution") if session.given("pages") else ()))
    session.refuse(*idle, wrong=f"does nothing for {option('pages' if idle[1:] else 'resume')}")
    if session.value("check_method") == "curve":
        raise UsageError("points of curves are no rows of answers", "choose another method")
    if pages := session.value("pages"):
        check_folder(pages)
        make_folder(pages)


def _check_looks(session: Session, to: Destination, looks: AnswerLooks, *, signed: bool) -> None:
    """See that every option of how the answer is shown has a meaning there.

    `signed`: what is shown may lie below zero.
    """
    form = to.format
    if signed and (looks.view == "text" or form.name == "html"):
        where = option("view", "text") if looks.view == "text" else "a page"
        raise UsageError(
            f"{where} shows weights, and contributions have a sign",
            f"leave it or {option('contribution')} out",
        )
    if looks.square:
        wrong = f"does nothing for {option('square')}"
        session.refuse("rows", "view", "hops", "sections", "check_method", wrong=wrong)
    if form.name != "txt":
        session.refuse("view", wrong=f"does nothing for {form.name}")
    if form.name in WHOLE:
        wrong = f"does nothing for {form.name}, {WHOLE[form.name]}"
        idle = ("check", "check_method", "reduce", "hops") if form.name == "npz" else ()
        session.refuse("square", "rows", "sections", *idle, wrong=wrong)
    if form.picture:
        session.refuse("check", "check_method", wrong="is for tables and rows")
    else:
        hint = f"leave it out, or add {option('output', 'FILE.png')}"
        session.refuse(g.Canvas, "title", wrong="is for pictures", hint=hint)
    _check_rows(session, looks)


def _check_rows(session: Session, looks: AnswerLooks) -> None:
    """See that options of segments, sections and heads fit the rows and the view."""
    if looks.rows != "section" and not session.given("hops"):
        session.refuse("sections", wrong="is for sections", hint=f"add {option('rows', 'section')}")
    if looks.view == "links":
        wrong = f"is for segments, and not for {option('view', 'links')}"
        session.refuse("hops", "sections", "by", "segments", wrong=wrong)
    if looks.rows == "head":
        session.refuse("reduce", "hops", wrong="joins heads, and each has a row of its own")
        if looks.view in ("text", "links"):
            raise UsageError(
                f"{option('view', looks.view)} shows what parts of the answer attended to",
                f"leave it or {option('rows', 'head')} out",
            )
