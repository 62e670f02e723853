"""`attnviz schema`: JSON Schema of what the commands write."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from attnviz.errors import UsageError
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import STDOUT
from attnviz.kit.option import command, panel_option
from attnviz.kit.session import Session
from attnviz.kit.write import check_target, write_bytes, write_stream

EPILOG = """
Examples

attnviz schema

attnviz schema heads | jq '."$defs".HeadRow.properties | keys'
"""
COMMON = ["output"]
"""The options that the short help lists."""


@command
def schema(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMAND",
            help="One of the commands that are listed.",
            show_default=False,
            autocompletion=completion.commands,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        panel_option(g.OUTPUT, "--output", "-o", metavar="FILE", help="Write to a file."),
    ] = None,
    noise: g.Noise,
) -> None:
    """Print the JSON Schema of what a command writes.

    Without a command, those that have one are listed. The schema describes -f json; a line of
    -f jsonl is its $defs/row, whose properties are the columns of csv and tsv.
    """
    folder = files("attnviz") / "schemas"
    known = sorted(each.name.removesuffix(".json") for each in folder.iterdir())
    if name is None:
        text = "".join(f"{each}\n" for each in known)
    elif name in known:
        text = (folder / f"{name}.json").read_text(encoding="utf-8")
    else:
        raise UsageError(f"{name!r} has no schema", f"those that have one are {', '.join(known)}")
    if output is None or str(output) == STDOUT:
        write_stream(session.environment.stdout.buffer, [text])
    else:
        check_target(output)
        write_bytes(output, [text.encode()])
        session.wrote(output)
