"""`attnviz schema`: JSON Schema of what the commands write."""

import json
import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from attnviz.errors import UsageError, nearest
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import STDOUT
from attnviz.kit.option import command, positional
from attnviz.kit.session import Session
from attnviz.kit.write import check_target, write_bytes, write_stream
from attnviz.plugins import Plugin, found, working
from attnviz.records.rows import JsonOutput

EXAMPLES = """
attnviz schema
attnviz schema heads | jq '."$defs".HeadRow.properties | keys'
"""
SHORT_HELP = "output"


@cache
def outputs() -> dict[str, JsonOutput]:
    """The output of each command: the `JSON` of its module, or of `rows` in its folder."""
    package = __name__.rpartition(".")[0]
    known = {}
    for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        name = f"{module.name}.rows" if module.ispkg else module.name
        if find_spec(name) is not None:
            known[module.name.rpartition(".")[2]] = getattr(import_module(name), "JSON", None)
    for plugin, added in working(found("commands", known).values(), Plugin.load):
        known[plugin.name] = getattr(added, "JSON", None)
    return {name: each for name, each in sorted(known.items()) if each is not None}


@command
def schema(
    session: Session,
    *,
    name: Annotated[
        str | None,
        positional(
            "COMMAND", "One of the commands that are listed.", autocompletion=completion.commands
        ),
    ] = None,
    output: Annotated[
        Path | None, g.output_option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
) -> None:
    """Print the JSON Schema of what a command writes.

    Without a command, those that have one are listed. The schema describes -f json; a line of
    -f jsonl is its $defs/row, whose properties are the columns of csv and tsv.
    """
    known = outputs()
    if name is None:
        text = "".join(f"{each}\n" for each in known)
    elif name in known:
        text = json.dumps(known[name].schema(name), indent=1, ensure_ascii=False) + "\n"
    else:
        hint = nearest(name, known) or f"those that have one are {', '.join(known)}"
        raise UsageError(f"{name!r} has no schema", hint)
    if output is None or str(output) == STDOUT:
        write_stream(session.environment.stdout.buffer, [text])
    else:
        check_target(output)
        write_bytes(output, [text.encode()])
        session.wrote(output)
