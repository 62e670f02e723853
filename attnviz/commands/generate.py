"""`attnviz generate`: a model answers; what did each part of the answer look at?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import text_alone
from attnviz.data.chat import Chat
from attnviz.data.check import Check
from attnviz.data.generate import Sampling
from attnviz.data.shares import Shares, Unit
from attnviz.data.transforms import How
from attnviz.errors import UsageError, option
from attnviz.inputs.chat import read_chat
from attnviz.inputs.prompt import Document, Prompt, cut_prompt, with_documents
from attnviz.inputs.segments import By
from attnviz.inputs.text import read_file
from attnviz.renderers.terminal import answer as table
from attnviz.runs.generate import Writing, answering, chat_prompt
from attnviz.runs.prepare import load_model

EPILOG = """
[bold]Examples[/]

attnviz generate --file sample_texts/mystery.txt

attnviz generate "Who wrote it?" --doc letter.txt --doc diary.txt --model gpt2

attnviz generate "a fluffy blue creature roamed . the creature was" -f jsonl | jq -r .segment
"""
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
        help="Draw each token at this temperature; 0 takes the likeliest.",
    )
    top_p: float = option_field(
        ANSWER,
        Sampling.top_p,
        "--top-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Draw from the likeliest tokens that have this probability together.",
    )
    seed: int = option_field(
        ANSWER,
        Sampling.seed,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The seed of the drawing.",
    )
    stop: list[str] | None = option_field(
        ANSWER, None, "--stop", metavar="TEXT", help="End behind this text. Repeatable."
    )

    @property
    def sampling(self) -> Sampling:
        """The record that runs take."""
        return Sampling(self.most, self.temperature, self.top_p, self.seed)


@dataclass(frozen=True)
class Rows:
    """What a row is of."""

    rows: Unit = option_field(g.LOOK, "sentence", "--rows", help="What a row of the table is.")
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
    segments: Segments,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    given: Given,
    sampled: Sampled,
    heads: g.WhichHeads,
    rows: Rows,
    screen: g.Screen,
    output: g.RecordOutput,
    noise: g.Noise,
) -> None:
    """Let a model answer, and show what each part of the answer looked at."""
    to = destination_of(session, output)
    prompt = _prompt(session, text, segments)
    loaded = load_model(g.source_of(session, model, run))
    options = tokens.options(run)
    if isinstance(prompt, Chat):
        prompt, options = chat_prompt(loaded, prompt), replace(options, special=True, bos=False)
    if given.target is not None:
        session.refuse(Sampled, wrong="does nothing for an answer that is given")
    writing = Writing(sampled.sampling, tuple(sampled.stop or ()), given.target)
    asked = answering(loaded, prompt, options, writing, heads.options, rows.reduce)
    answer = asked.answer(list(session.progress(asked.new_tokens(), "token")))
    shares = answer.shares(rows.rows)
    check = asked.check(answer) if rows.check else None
    deliver_report(
        session,
        to,
        lambda: list(_records(shares, check)),
        lambda: table.render(shares, check, to.display(session)),
    )


def _prompt(session: Session, text: g.TextIn, parts: Segments) -> Prompt | Chat:
    """The prompt, or a chat, which the model's template makes one of."""
    if parts.chat is not None:
        if text.text or text.file or parts.docs or parts.by or parts.segments:
            raise UsageError(
                f"{option('chat')} is the whole prompt", "leave the text and its segments out"
            )
        return read_chat(parts.chat)
    read = text_alone(session, text, "a saved capture has no prompt to answer")
    if not parts.docs:
        return cut_prompt(read, parts.by, parts.segments or ())
    if parts.by or parts.segments:
        raise UsageError(
            f"{option('docs')} makes segments of the documents",
            f"leave {option('by')} and {option('segments')} out",
        )
    return with_documents(read, [Document(path.stem, read_file(path)) for path in parts.docs])


def _records(shares: Shares, check: Check | None) -> Iterator[dict[str, object]]:
    """A row for each part of the answer and each column; `change` is of the whole answer."""
    changes = {each.segment: each.change for each in check.effects} if check else {}
    for number, (row, of_row) in enumerate(zip(shares.rows, shares.shares, strict=True), start=1):
        for column, share in zip(shares.columns, of_row, strict=True):
            yield {
                "row": number,
                "text": row.text,
                "segment": column.name,
                "part": column.part,
                "share": float(share),
                **({"change": changes.get(column.name)} if check else {}),
            }
