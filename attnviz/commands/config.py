"""`attnviz config`: the user's own defaults, where they are set, and what they come to."""

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

from rich.console import RenderableType
from rich.text import Text
from typer.core import TyperOption

from attnviz.draw.terminal.cells import Column, listing
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, nearest
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver, destination_of
from attnviz.kit.option import command, positional
from attnviz.kit.session import NOT_HERE, Session, key_of
from attnviz.kit.write import Piece
from attnviz.records.rows import to_json

EXAMPLES = """
attnviz config
attnviz config show
attnviz config -f json | jq .defaults.show
"""
SHORT_HELP = "format output quiet"

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
        positional(
            "COMMAND", "The command whose defaults to list.", autocompletion=completion.commands
        ),
    ] = None,
    output: g.ObjectOutput,
) -> None:
    """Show your own defaults of options, and the file that sets them.

    The file is TOML: a key at its top, such as model, is for every command with that option; a
    table, such as [show], is for one command. What is typed comes before it. ATTNVIZ_CONFIG names
    another file; ATTNVIZ_CONFIG=/dev/null is for a script that wants none.
    """
    to = destination_of(session, output)
    commands = [each for each, _ in session.root.command.working()]
    if name is not None and name not in commands:
        hint = nearest(name, commands) or f"commands are {', '.join(commands)}"
        raise UsageError(f"there is no command {name!r}", hint)
    defaults = {each: _defaults(session, each) for each in commands}
    if to.format.name == "txt":
        pieces: list[Piece] = list(_shown(session, defaults, name))
    else:
        path = session.configuration.path
        content = {
            "path": None if path is None else str(path),
            "set": session.configuration.values,
            "defaults": defaults if name is None else {name: defaults[name]},
        }
        pieces = [f"{to_json(content)}\n"]
    deliver(session, to, [(None, pieces)])


Defaults: TypeAlias = dict[str, Any]
"""The defaults of a command, by the option's name in the file; None without any."""


def _defaults(session: Session, name: str) -> Defaults:
    """The defaults of a command; what the file sets is tried as if the command were called."""
    _, typed, _ = session.root.command.resolve_command(session.root, [name])
    if session.misconfigured:
        raise session.misconfigured
    options = {key_of(p): p for p in typed.params if isinstance(p, TyperOption)}
    configured = session.configuration.set_for(name, options)
    for key in configured:
        option = options[key]
        value = typed.context_settings["default_map"].get(option.name)
        if value is None or option.is_flag:
            continue
        try:
            option.process_value(session.root, value)
        except UsageError as error:
            path = str(session.configuration.path)
            raise UsageError(f"{path!r}, for attnviz {name}: {error.wrong}", error.hint) from None
    listed = {key: each for key, each in options.items() if key not in NOT_HERE and not each.hidden}
    return {key: each.default for key, each in listed.items()} | configured


def _shown(
    session: Session, defaults: dict[str, Defaults], name: str | None
) -> Iterator[RenderableType]:
    """The file, and what it sets; or every default of one command."""
    path, width = session.configuration.path, session.display.width
    if path is None:
        yield Text("No file is read: ATTNVIZ_CONFIG says so, or there is no home folder.")
    else:
        yield Text(f"{path}{'' if path.is_file() else ' (not there)'}")
    if name is not None:
        configured = session.configuration.set_for(name, defaults[name])
        rows = [
            (key, _spelled(value), "the file" if key in configured else "")
            for key, value in defaults[name].items()
        ]
        yield Text()
        yield from listing([Column("option"), DEFAULT, Column("set in")], rows, width)
        return
    if session.configuration.values:
        rows = list(_set(session, defaults))
        yield Text()
        yield from listing([Column("for"), Column("option"), DEFAULT], rows, width)
    elif path is not None:
        yield Text(EXAMPLE.rstrip())
    yield Text("\nattnviz config COMMAND lists every default of a command.")


DEFAULT = Column("default", wraps=True)


def _set(session: Session, defaults: dict[str, Defaults]) -> Iterator[tuple[str, str, str]]:
    """The settings of the file: the commands, the option, its default."""
    values = session.configuration.values
    for key, value in values.items():
        if not isinstance(value, dict):
            count = sum(key in options for options in defaults.values())
            yield amount(count, "command"), key, _spelled(value)
    for name, options in defaults.items():
        for key in values.get(name, {}):
            yield name, key, _spelled(options[key])


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "-" if value is None else str(value)
