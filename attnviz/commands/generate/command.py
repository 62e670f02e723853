"""`attnviz generate`: a model answers; which tokens did each part of the answer attend to?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from attnviz.commands.generate.answered import AttentionAnswer
from attnviz.commands.generate.chain import check_hops
from attnviz.commands.generate.choice import choice_of, names_of
from attnviz.commands.generate.looks import AnswerLooks, answer_option, check_looks, check_resume
from attnviz.commands.generate.prompt import documents_given, own_prompt, prompt_for, prompt_given
from attnviz.commands.generate.results import Before, results_file
from attnviz.commands.generate.run import Answering, Writing, answering
from attnviz.commands.generate.writer import writing
from attnviz.errors import IdleOption, UsageError, option
from attnviz.inputs.beside import folder_of, is_jsonl
from attnviz.inputs.chats import Question, chat_of_line, images_of, question_or_text
from attnviz.inputs.prompts import By, Prompt
from attnviz.inputs.text import read_lines
from attnviz.inputs.vectors import steering_of
from attnviz.kit import options as g
from attnviz.kit.deliver import check_lines, deliver, destination_of
from attnviz.kit.described import Above
from attnviz.kit.lines import note_strange
from attnviz.kit.option import (
    Arguments,
    Call,
    Cli,
    command_of,
    feature,
    finished_by,
    only,
    without,
)
from attnviz.kit.others import read_once
from attnviz.kit.prepare import TextOptions
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    FilePath,
    Messages,
    documents_of,
    loaded,
    model_of,
    path_of,
    prompt_of,
    which_heads,
    words,
)
from attnviz.kit.write import Piece
from attnviz.records.tokens import Chat, Sampling, TextOfIds
from attnviz.records.transforms import How

Docs: TypeAlias = Annotated[
    Mapping[str, str] | None,
    Cli(list[Path] | None),
    g.text_option("--doc", metavar="FILE", help="A document before the question. Repeatable."),
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
OwnTemplate: TypeAlias = Annotated[
    FilePath | None,
    Cli(Path | None),
    g.text_option(
        "--template",
        metavar="FILE",
        help="A Jinja template that writes documents (title, text) and question, in place of the "
        "model's own.",
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
        min=Above(0),
        max=1.0,
        help="Sample from the likeliest tokens whose probabilities add up to this.",
    ),
]
SamplingSeed: TypeAlias = Annotated[
    int, g.seed_option(answer_option, "The random seed of the sampling.")
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
AddedVectors: TypeAlias = Annotated[
    Mapping[int, g.VectorFile] | FilePath | Sequence[str],
    Cli(list[str] | None),
    answer_option(
        "--add",
        metavar="LAYER:FILE.npy",
        help="Add a vector to the stream at the input of a layer, at every position, while the "
        "model reads and writes. Repeatable.",
    ),
]
Strength: TypeAlias = Annotated[
    float,
    answer_option(
        "--strength",
        metavar="S",
        min=-1e6,
        max=1e6,
        help="With --add, the factor on what is added.",
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


def _options_for(
    read: Prompt, asked: str | Chat | Question, options: TextOptions, *, own: bool
) -> TextOptions:
    """The options with the images of a chat; a chat template writes special tokens itself.

    `own`: it is the user's, before which a beginning token may stand.
    """
    if own:
        return replace(options, special=True)
    if isinstance(asked, TextOfIds) and read.text is not asked:
        raise UsageError("token ids are the whole prompt", "give the question as a text")
    if isinstance(asked, Chat):
        options = replace(options, given=images_of(asked, options.pictures))
    if read.template is None:
        return options
    if options.bos is not None:
        raise IdleOption(
            f"{option('bos')} does nothing beside a chat template, which begins the prompt"
        )
    return replace(options, special=True, bos=False)


def _when_written(written: Answering, options: Mapping[str, Any]) -> AttentionAnswer:
    """The whole answer, as its page shows it; the command line shows it as it is written."""
    written = replace(written, each_head=written.apart)
    return AttentionAnswer(written, written.written())


@feature(
    without(
        "max_new_tokens temperature top_p seed stop",
        "target",
        "does nothing for an answer that is given",
    ),
    only(
        "strength",
        lambda call: call.any_of("add"),  # perhaps an array, which is neither true nor false
        f"is for {option('add')}",
        f"add {option('add', 'LAYER:FILE.npy')}",
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
    image: g.Images = (),
    segments: g.NamedParts = (),
    by: CutBy = None,
    raw: Raw = False,
    template: OwnTemplate = None,
    target: GivenAnswer = None,
    max_new_tokens: MaxNewTokens = Sampling.most,
    temperature: Temperature = Sampling.temperature,
    top_p: TopP = Sampling.top_p,
    seed: SamplingSeed = Sampling.seed,
    stop: Stop = (),
    add: AddedVectors = (),
    strength: Strength = 1.0,
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
    `raw`. Without heads, those that retrieve are taken, which are measured once; else all.

    Args:
        prompt: a text; or the messages of a chat, or an object with these as `messages` and
            perhaps `documents` and `tools`, which go through the model's own template; or an object
            with a `question` and perhaps `documents`, each with its `text` and perhaps its `id`.
        model: a name as for `load_model`, or a loaded model.
    """
    asked, sampling = prompt_of(prompt), Sampling(max_new_tokens, temperature, top_p, seed)
    model, parts, named = loaded(model), words("segments", segments), words("sections", sections)
    images = (asked.images if isinstance(asked, Question) else ()) or image  # its own come first
    options = model._text_options(bos, special, truncate, None, images)
    made = partial(prompt_for, model._loaded, by=by, wanted=parts, raw=raw)
    if template is not None:
        made = partial(own_prompt, path_of("template", template), more=bool(raw or by or parts))
    read = made(asked, documents_of(docs), images=len(options.given))
    options = _options_for(read, asked, options, own=template is not None)
    if not isinstance(asked, str) and asked.target is not None:  # one that comes with it
        target = asked.target
    writing = Writing(sampling, words("stop", stop), target, steering_of(add, strength))
    which = which_heads(model, layers, heads)
    ready = answering(model._loaded, read, options, writing, which, reduce)
    return replace(ready, contribution=contribution, sections=named, hops=hops)


EXAMPLES = """
attnviz generate --file sample:mystery
attnviz generate "therefore the murderer was" --doc sample:letter --check
attnviz generate "a fluffy blue creature roamed . the creature was" -f jsonl | jq -r .segment
"""
SHORT_HELP = (
    "file lines docs segments by model target max_new_tokens check heads view format output quiet"
)


ChatFile: TypeAlias = Annotated[
    Path | None,
    g.text_option(
        "--chat",
        metavar="FILE",
        help="Messages with roles (JSON), put through the model's own chat template; with --lines, "
        "or of a .jsonl file, each line is a chat.",
    ),
]


PromptLines: TypeAlias = Annotated[
    bool,
    g.text_option(
        "--lines",
        help="Treat each line of the input as a separate prompt, or as JSON with a question and an "
        "image.",
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    g.output_option(
        "--resume",
        help="Append the rows of each line to FILE.jsonl, and skip the lines that it already has.",
    ),
]
Pages: TypeAlias = Annotated[
    Path | None,
    g.output_option(
        "--pages", metavar="FOLDER", help="With --resume: also write the page of each answer."
    ),
]


def _files_before(call: Call[Answering]) -> list[Path]:
    """The files that are read with every line."""
    vectors = [Path(each.partition(":")[2]) for each in call["add"]]
    return [*(call["image"] or ()), *filter(None, [call["template"]]), *vectors]


@command_of(
    generate,
    "text lines docs image chat segments by raw template truncate bos special model run target "
    "max_new_tokens temperature top_p seed stop add strength sections hops layers heads looks "
    "reduce contribution",
)
def command_line(
    session: Session,
    call: Call[Answering],
    *,
    text: g.TextIn,
    lines: PromptLines = False,
    chat: ChatFile = None,
    model: g.WhichModel,
    run: g.ModelRun,
    looks: AnswerLooks,
    output: g.OutputOptions,
    resume: Resume = False,
    pages: Pages = None,
) -> None:
    """Continue a text, and show which tokens each new token attended to."""
    to = destination_of(session, output)
    check_looks(session, to, looks, signed=call["contribution"])
    check_hops(looks.check_method, call["hops"])
    lines = lines or any(is_jsonl(each) for each in (chat, text.file))
    check_lines(to, alone=to.format.binary or to.format.name == "html", lines=lines)
    check_resume(session, to, lines=lines)
    documents = documents_given(session, text, call["docs"] or [])
    prompt = prompt_given(session, call, text, chat, lines=lines)
    before = Before(documents, _files_before(call), folder_of(chat or text.file))
    call = read_once(call)
    ready = model_of(session, model, run)
    which = which_heads(ready, call["layers"], call["heads"])
    with session.running("measuring which heads retrieve"):
        choice = choice_of(ready._loaded, which, ready._max_memory)
    results = partial(results_file, pages=pages, before=before, heads=names_of(choice))
    with writing(session, to, looks, ready._loaded.identity, results) as writer:

        def answered(prompt: str | Chat | Question, line: int | None = None) -> Iterator[Piece]:
            return writer.noted(call(prompt=prompt, model=ready, docs=documents or None), line)

        if lines:
            prompts = read_lines(text.text, text.file or chat, session.stdin)
            read = partial(chat_of_line if chat else question_or_text, file=chat or text.file)
            writer.write_lines(prompts, lambda each, line: answered(read(each), line))
        else:
            deliver(session, to, [(None, answered(prompt))])
    note_strange(session, writer.strange, "line" if lines else "text", writer.alone)
