"""`attnviz help`: what a term means. The help of a command is read in `cli.py`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.glossary import Entry, find_term, nearest_names, terms
from attnviz.draw.terminal.cells import folded
from attnviz.errors import UsageError, option, series
from attnviz.kit import completion
from attnviz.kit.option import command, positional
from attnviz.kit.session import Session

EXAMPLES = """
attnviz help query
attnviz help residual stream
attnviz help heads
attnviz help --term heads
"""
SHORT_HELP = "term"


def render(entry: Entry, width: int) -> Iterator[RenderableType]:
    """Render the definition, and the terms that it builds on."""
    yield from folded(Text(entry.name, "bold"), width)
    yield from folded(Text(entry.definition), width)
    others = dict.fromkeys(each.name for each in entry.links.values() if each is not entry)
    if others:
        yield from folded(Text(f"see also: {', '.join(others)}", "dim"), width)


def list_terms(width: int) -> Iterator[RenderableType]:
    """List all terms by subject."""
    said = (
        "attnviz --help lists the commands; attnviz help NAME says what one of these terms means."
    )
    yield from folded(Text(said, "dim"), width)
    for subject, entries in groupby(terms(), lambda entry: entry.subject):
        yield Text()
        yield from folded(Text(subject, "bold"), width)
        yield from folded(Text(", ".join(entry.name for entry in entries)), width)


@command
def command_line(
    session: Session,
    *,
    words: Annotated[
        list[str] | None,
        positional(
            "NAME",
            "A command, or a term such as query or logit.",
            autocompletion=completion.subjects,
        ),
    ] = None,
    term: Annotated[
        str | None,
        typer.Option(
            "--term",
            metavar="NAME",
            help="A term, also one that is the name of a command.",
            autocompletion=completion.terms,
        ),
    ] = None,
) -> None:
    """Show the help of a command, or say what a term such as query or logit means.

    Without a name it lists all terms by subject. A name that is both is a command; --term says what
    it means. docs/glossary.md has every term.
    """
    if words and term:
        raise UsageError(f"two terms are asked for, one of them by {option('term')}", "give one")
    if not (words or term):
        session.show(list_terms(session.display.width))
        return
    name = term or " ".join(words or ())
    found = find_term(name)
    if found is None:
        commands = () if term else session.root.command.list_commands(session.root)
        near = series(nearest_names(name, commands))
        nowhere = "no term" if term else "no command and no term"
        raise UsageError(f"there is {nowhere} {name!r}", f"the nearest are {near}")
    session.show(render(found, session.display.width))
