"""A command as data, made of its declarations: `attnviz COMMAND --help -f json`, the man page.

docs/formats.md describes the object.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from typer.core import TyperArgument, TyperOption

from attnviz.errors import spelled
from attnviz.kit.session import as_flag

SCHEMA = "attnviz-help/1"
TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", Path: "path"}


class Above(float):
    """The `min` of an option that refuses this number, too."""


@dataclass(frozen=True)
class Exclusion:
    """Options that are refused, the reason, and the remedy.

    `formats`, `view`: those that refuse them, if the output decides.
    """

    options: Sequence[str]
    why: str
    instead: str
    formats: Sequence[str] = ()
    view: str | None = None


def described(command: Any, context: Any) -> dict[str, Any]:
    """A command: its usage, its options and their exclusions, and its output."""
    parameters = command.get_params(context)
    flags = {flag for each in parameters if not each.hidden for flag in each.opts}
    formats = next((each for each in parameters if each.name == "format"), None)
    return {
        "name": context.info_name,
        "usage": " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        "help": "\n\n".join(" ".join(each.split()) for each in command.help.split("\n\n")),
        "arguments": [_parameter(each) for each in parameters if isinstance(each, TyperArgument)],
        "options": options_of(command, context),
        "formats": [each.value for each in formats.shell_complete(context, "")] if formats else [],
        "exclusions": [_exclusion(each, flags) for each in command.exclusions],
        "examples": [*filter(None, (command.epilog or "").split("\n\n"))][1:],
    }


def options_of(command: Any, context: Any) -> list[dict[str, Any]]:
    """The options of a command; those that its short help lists are common."""
    return [
        _parameter(
            each,
            flags=each.opts,
            off=each.secondary_opts,
            panel=each.rich_help_panel,
            common=each.name in (*command.common, "help"),
        )
        for each in shown_options(command, context)
    ]


def shown_options(command: Any, context: Any) -> list[TyperOption]:
    """The options that a help lists: all but earlier names of others."""
    every = (each for each in command.get_params(context) if isinstance(each, TyperOption))
    return [each for each in every if not each.hidden]


def _exclusion(each: Exclusion, flags: set[str]) -> dict[str, Any]:
    """An exclusion in flags; parameters that are not options of the command have none."""
    options = (spelled(option, as_flag) for option in each.options)
    told = {name: spelled(getattr(each, name), as_flag) for name in ("why", "instead")}
    typed = [option for option in options if option.partition(" ")[0] in flags]
    return _filled({**asdict(each), **told, "options": typed})


def _filled(content: dict[str, Any]) -> dict[str, Any]:
    """The content without nulls, empty lists and false values."""
    return {k: each for k, each in content.items() if each or (each == 0 and each is not False)}


def _parameter(each: Any, **more: Any) -> dict[str, Any]:
    kind, shown = each.type_descriptor, each.show_default
    plain = get_args(kind.annotation)[0] if kind.is_list else kind.annotation
    content = {
        "name": each.name,
        "metavar": each.metavar,
        "type": TYPES.get(plain, "string"),
        "choices": kind.choices,
        "minimum": each.min,
        "exclusive_minimum": isinstance(each.min, Above),
        "maximum": each.max,
        "default": each.default,
        "default_meaning": shown if isinstance(shown, str) else None,
        "required": each.required,
        "several": kind.is_list,
        "environment": each.envvar,
        "help": each.help,
    }
    return _filled({**more, **content})
