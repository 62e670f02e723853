"""Commands whose answer is a list of records: a table for a person, rows for a pipe."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType

from attnviz.commands.session import Session, plain_text
from attnviz.errors import UsageError
from attnviz.writers.atomic import write_bytes
from attnviz.writers.formats import choose_format
from attnviz.writers.records import record_chunks
from attnviz.writers.stream import write_stream


def record_format(session: Session, output: Path | None, form: str | None) -> str:
    """The format that was asked for, one of txt, json, jsonl, csv and tsv.

    Raises:
        UsageError: any other.
    """
    chosen = choose_format(output, form, session.environment.stdout.isatty())
    if chosen.binary or chosen.picture or chosen.name == "html":
        raise UsageError(
            f"this command does not write {chosen.name}", "use txt, json, jsonl, csv or tsv"
        )
    return chosen.name


def deliver_records(
    session: Session,
    records: Sequence[Mapping[str, object]],
    shown: Iterable[RenderableType],
    form: str,
    output: Path | None,
) -> None:
    """Write the records in the format, or what is shown of them in the terminal.

    Raises:
        OutputError: the file or the stream cannot take them.
    """
    if form == "txt" and output is None:
        session.show(shown)
        return
    if form == "txt":
        chunks: Iterable[str] = [plain_text(shown, session.consoles.out.width)]
    else:
        chunks = record_chunks(records, form)
    if output is None:
        write_stream(session.environment.stdout.buffer, chunks)
    else:
        write_bytes(output, (chunk.encode("utf-8") for chunk in chunks))
