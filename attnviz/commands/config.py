"""`attnviz config`: the user's own defaults, where they are set, and what they come to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from typer.core import TyperOption

from attnviz.errors import UsageError
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.defaults import NOT_HERE, key_of
from attnviz.kit.deliver import deliver, destination_of
from attnviz.kit.formats import Piece
from attnviz.kit.option import command
from attnviz.kit.session import Session
from attnviz.records.rows import to_json

EPILOG = """
Examples

attnviz config

attnviz config show

attnviz config -f json | jq .defaults.show
"""
COMMON = "format output quiet".split()
"""The options that the short help lists."""

EXAMPLE = """
It could hold:

  model = "gpt2"

  [show]
  view = "heatmap"
"""


@command
def config(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMAND",
            help="The command whose defaults to list.",
            autocompletion=completion.commands,
        ),
    ] = None,
    screen: g.Screen,
    output: g.ObjectOutput,
    noise: g.Noise,
) -> None:
    """Show your own defaults of options, and the file that sets them.

    The file is TOML: a key at its top, such as model, is for every command with that option; a
    table, such as [show], is for one command. What is typed comes before it. ATTNVIZ_CONFIG names
    another file; ATTNVIZ_CONFIG=/dev/null is for a script that wants none.
    """
    to = destination_of(session, output)
    names = _commands(session, name)
    every = {each: _defaults(session, each) for each in _commands(session, None)}
    defaults = {each: every[each] for each in names}
    if to.format.name == "txt":
        pieces: list[Piece] = list(_shown(session, every, name))
    else:
        path = session.configuration.path
        content = {
            "path": None if path is None else str(path),
            "set": session.configuration.values,
            "defaults": {
                each: {key: default.value for key, default in options.items()}
                for each, options in defaults.items()
            },
        }
        pieces = [f"{to_json(content)}\n"]
    deliver(session, to, [(None, pieces)])


@dataclass(frozen=True)
class Default:
    """The default of an option; `value` is None where there is none."""

    value: Any
    configured: bool


Defaults: TypeAlias = dict[str, Default]
"""Those of a command, by the option's name in the file."""


def _commands(session: Session, name: str | None) -> list[str]:
    names = session.root.command.list_commands(session.root)
    if name is not None and name not in names:
        raise UsageError(f"there is no command {name!r}", f"commands are {', '.join(names)}")
    return [name] if name else [*names]


def _defaults(session: Session, name: str) -> Defaults:
    """The defaults of a command; what the file sets is tried as if the command were called."""
    _, made, _ = session.root.command.resolve_command(session.root, [name])
    if session.misconfigured:
        raise session.misconfigured
    options = [p for p in made.params if isinstance(p, TyperOption) and key_of(p) not in NOT_HERE]
    found = session.configuration.set_for(name, map(key_of, options))
    for each in options:
        value = made.context_settings["default_map"].get(each.name)
        if value is None or each.is_flag:
            continue
        try:
            each.process_value(session.root, value)
        except typer.BadParameter as error:
            raise UsageError(
                f"{str(session.configuration.path)!r}: {key_of(each)!r} cannot be "
                f"{found[key_of(each)]!r} for attnviz {name} ({error.message.rstrip('.')})",
                "change it there",
            ) from None
    return {
        key_of(p): Default(found.get(key_of(p), p.default), key_of(p) in found) for p in options
    }


def _shown(
    session: Session, defaults: dict[str, Defaults], name: str | None
) -> Iterator[RenderableType]:
    """The file, and what it sets; or every default of one command."""
    path = session.configuration.path
    if path is None:
        yield Text("No file is read: ATTNVIZ_CONFIG says so, or there is no home folder.")
    else:
        there = "" if path.is_file() else " (not there)"
        yield Text(f"{path}{there}")
    if name is not None:
        yield Text()
        yield _table(_rows_of(defaults[name]))
        return
    if session.configuration.values:
        yield Text()
        yield _table(list(_rows_set(session, defaults)))
    elif path is not None:
        yield Text(EXAMPLE.rstrip())
    yield Text("\nattnviz config COMMAND lists every default of a command.")


def _rows_of(options: Defaults) -> list[tuple[str, ...]]:
    head = "option", "default", "set in"
    rows = ((key, _spelled(d), "the file" if d.configured else "") for key, d in options.items())
    return [head, *rows]


def _rows_set(session: Session, defaults: dict[str, Defaults]) -> Iterator[tuple[str, ...]]:
    yield "for", "option", "default"
    for key, value in session.configuration.values.items():
        if not isinstance(value, dict):
            count = sum(key in options for options in defaults.values())
            yield (
                "1 command" if count == 1 else f"{count} commands",
                key,
                _spelled(Default(value, configured=True)),
            )
    for name, options in defaults.items():
        for key in session.configuration.values.get(name, {}):
            yield name, key, _spelled(options[key])


def _spelled(default: Default) -> str:
    value = default.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "-" if value is None else str(value)


def _table(rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    first, *rest = rows
    for title in first:
        table.add_column(title, overflow="fold")
    for row in rest:
        table.add_row(*map(Text, row))
    return table
