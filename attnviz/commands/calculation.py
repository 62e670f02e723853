"""Commands whose answer is a calculation: a page for a person, every array for a program."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from attnviz.commands.session import Session, plain_text
from attnviz.errors import UsageError
from attnviz.writers.atomic import write_bytes
from attnviz.writers.explain import Numbers, calculation_json, calculation_npz
from attnviz.writers.formats import Format, choose_format
from attnviz.writers.stream import write_stream

FORMATS = ("txt", "json", "npz")


@dataclass(frozen=True, eq=False)
class Calculation:
    """What is shown, and the facts and arrays that a program gets."""

    shown: Iterable[RenderableType]
    facts: Mapping[str, object]
    arrays: Mapping[str, Numbers]


def calculation_format(session: Session, output: Path | None, form: str | None) -> Format:
    """The format that was asked for: txt, json or npz.

    Raises:
        UsageError: any other, or npz to a terminal.
    """
    chosen = choose_format(output, form, session.environment.stdout.isatty())
    if chosen.name not in FORMATS:
        raise UsageError(f"this command does not write {chosen.name}", "use txt, json or npz")
    return chosen


def deliver_calculation(
    session: Session, calculation: Calculation, form: Format, output: Path | None
) -> None:
    """Show the page, or write it, or its numbers, where it was asked for.

    Raises:
        OutputError: the file or the stream cannot take it.
    """
    if form.name == "txt" and output is None:
        session.show(calculation.shown)
        return
    chunks: Iterable[str | bytes]
    if form.name == "txt":
        chunks = [plain_text(calculation.shown, session.consoles.out.width)]
    elif form.name == "json":
        chunks = calculation_json(calculation.facts, calculation.arrays)
    else:
        chunks = calculation_npz(calculation.facts, calculation.arrays)
    if output is None:
        write_stream(session.environment.stdout.buffer, chunks)
    else:
        write_bytes(output, (c.encode("utf-8") if isinstance(c, str) else c for c in chunks))
