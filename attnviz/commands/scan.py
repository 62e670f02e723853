"""`attnviz scan`: what every head does over a whole corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from attnviz.commands import groups as g
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.data.scan import Record, Split
from attnviz.errors import ExitStatus, InputError
from attnviz.inputs.corpus import check_field, corpus_files
from attnviz.renderers.titles import amount
from attnviz.scan.local import run_local
from attnviz.scan.plan import Plan, Request, locked, make_plan, merged
from attnviz.scan.result import write_result
from attnviz.scan.tables import import_parquet

EPILOG = """
[bold]Examples[/]

attnviz scan texts/ -o scanned

attnviz scan reviews.jsonl --field body --model gpt2 --workers 2 -o scanned

attnviz atlas scanned
"""
CORPUS, RUN = "The corpus", "The scan"


@dataclass(frozen=True)
class HowCut:
    """How the corpus becomes documents and windows."""

    split: Split = option_field(
        CORPUS, Request.split, "--split", help="What a document of a text file is."
    )
    field: str | None = option_field(
        CORPUS,
        None,
        "--field",
        metavar="NAME",
        help="Where the objects of JSON lines hold their text.",
        show_default=Request.key,
    )
    length: int = option_field(
        CORPUS,
        Request.length,
        "--length",
        metavar="N",
        min=8,
        help="The most tokens of a window; at most the model's context.",
    )


@dataclass(frozen=True)
class HowRun:
    """How the scan runs."""

    workers: int = option_field(
        RUN, 1, "--workers", metavar="N", min=1, max=1024, help="The number of processes."
    )
    max_bad: float = option_field(
        RUN,
        1.0,
        "--max-bad",
        metavar="PERCENT",
        min=0.0,
        max=100.0,
        help="Stop where more of the documents than this cannot be read.",
    )


@command
def scan(
    session: Session,
    *,
    corpus: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS...",
            help="Text files, JSON lines, or folders of them.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder of the result.")
    ],
    cut: HowCut,
    model: g.WhichModel,
    run: g.ModelRun,
    heads: g.WhichHeads,
    how: HowRun,
    noise: g.Noise,
) -> None:
    """Measure every head over a corpus: the scores of heads, over all documents.

    Scanning into the same folder again goes on where it stopped. attnviz atlas shows the result.
    """
    import_parquet()
    check_field(corpus_files(corpus), cut.field)
    request = Request(
        tuple(corpus),
        split=cut.split,
        key=cut.field or Request.key,
        length=cut.length,
        heads=heads.options,
    )
    plan = make_plan(output, request, g.source_of(session, model, run))
    with locked(plan.folder):
        _run(session, plan, how)
        total = merged(plan.records())
        if not total.documents:
            raise InputError("no document could be read", f"see {str(output / 'skipped.jsonl')!r}")
        write_result(output, total)
    if total.skipped:
        session.note(
            f"{amount(len(total.skipped), 'document')} could not be read: "
            f"{str(output / 'skipped.jsonl')!r} says why"
        )
    _check_bad(session, total, how.max_bad)
    counted = f"{amount(total.documents, 'document')}, {amount(total.tokens, 'token')}"
    session.note(f"{counted} in {str(output)!r}; attnviz atlas {output} shows it")


def _run(session: Session, plan: Plan, how: HowRun) -> None:
    """Count what is left; on a terminal, with a bar."""
    left, done = len(plan.left()), len(plan.shards)
    if left < done:
        session.note(f"going on: {done - left} of {amount(done, 'shard')} are finished")
    if not left:
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = session.consoles.err
    columns = (
        TextColumn("shards"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[tokens]:,} tokens"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    off = session.quiet or not console.is_terminal
    tokens = 0
    with Progress(*columns, console=console, transient=True, disable=off) as bar:
        task = bar.add_task("", total=left, tokens=0)

        def told(record: Record) -> None:
            nonlocal tokens
            tokens += record.tokens
            bar.update(task, advance=1, tokens=tokens)

        run_local(plan, how.workers, told)


def _check_bad(session: Session, total: Record, most: float) -> None:
    """End with exit code 3 where too many documents were skipped; the result stays."""
    every = total.documents + len(total.skipped)
    if len(total.skipped) * 100 > most * every:
        session.status = ExitStatus.INPUT
        session.complain(
            f"{len(total.skipped):,} of {every:,} documents could not be read, more than {most:g}%"
        )
