"""The help of a command: the options that most people use, or (`--help-all`) every one.

Typer's own help lays each option out in six columns, which breaks names apart at 80. Here an
option has two: its usage and its description.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from attnviz.console import make_consoles
from attnviz.errors import UsageError, option
from attnviz.kit.described import SCHEMA, Above, Exclusion, described, shown_options
from attnviz.kit.session import Session, process_session
from attnviz.kit.write import write_stream

WIDEST_NAME = 24
"""Cells for an option's usage; a longer one has its own line."""
MOST_CHOICES = 40
"""Cells for choices beside an option; longer lists are in its description."""
AS_JSON = "attnviz.help"
"""The mark of a context in which the help is asked for as JSON."""
ONCE = {
    "heads": "give a list, such as L3H2,L4H0",
    **dict.fromkeys(("layers", "mlps", "whole_layers"), "give a list, such as 0,2"),
    **dict.fromkeys(("answer", "versus", "mean_from", "resample_from", "output"), "give one"),
}
"""Parameters that may not be given twice, with a hint; for others the last one holds."""


class HelpedCommand(TyperCommand):
    """A command with the help of this module."""

    common: Sequence[str] = ()
    """The parameters that its short help lists, in this order."""
    exclusions: Sequence[Exclusion] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse one given twice if its first value would be lost."""
        if isinstance(ctx.obj, Session):
            ctx.obj.context = ctx  # for errors in the arguments
        args = help_alone(self, ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param in {each.name: each for each in order}.values():
            twice = sum(each is param for each in order) > 1
            if twice and param.name in ONCE and not param.multiple:
                raise UsageError(f"{option(param.name)} is given twice", ONCE[param.name])
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the short help; typer prints an empty line after it."""
        options = {each.name: each for each in shown_options(self, ctx)}
        listed = {"Options": [options[name] for name in (*self.common, "help")]}
        more = len(options) - len(listed["Options"])
        note = f"{ctx.command_path} --help-all lists all {len(options)} options." if more else ""
        _print(self, ctx, listed, note)

    def print_whole_help(self, ctx: Any) -> None:
        """Print the help of every option, in panels."""
        panels: dict[str, list[TyperOption]] = {}
        for each in shown_options(self, ctx):
            panels.setdefault(each.rich_help_panel or "Options", []).append(each)
        _print(self, ctx, panels)
        typer.echo()


class HelpedGroup(TyperGroup):
    """The list of commands, with the help of this module."""

    common: Sequence[str] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; typer prints an empty line after it."""
        _print(self, ctx, {"Options": shown_options(self, ctx)})


def help_alone(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> list[str]:
    """The arguments; if they ask for help, only that option, and its format is kept.

    Raises:
        UsageError: help has no such format.
    """
    parser = command.make_parser(ctx)
    params = command.get_params(ctx)
    options = {each.name: each for each in params if isinstance(each, TyperOption)}
    if "format" not in options:
        parser.add_option(options["help"], ["-f", "--format"], "format")
    try:
        given, rest, _ = parser.parse_args(args=list(args))
    except typer.TyperException:  # it is raised again when they are read
        return args
    asking = [name for name in ("help", "help_all") if given.get(name)]
    if ctx.resilient_parsing or not asking:
        return args
    if given.get("no_color") or given.get("color") == "never":
        _session(ctx).consoles = make_consoles(_session(ctx).environment, color="never")
    typed = split_format(rest)[1] if isinstance(command, TyperGroup) else []
    form = given.get("format") or "".join(typed[-1:]).removeprefix("--format=").removeprefix("-f")
    if form not in ("", "txt", "json"):
        raise UsageError("help is text or json", f"give {option('format', 'json')}, or none")
    ctx.meta[AS_JSON] = form == "json"
    return [options[asking[0]].opts[-1]]


def split_format(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without a format, and that format as it is typed."""
    for at, each in enumerate(args):
        n = 2 if each in ("-f", "--format") else int(each.startswith(("-f", "--format=")))
        if n:
            return [*args[:at], *args[at + n :]], [*args[at : at + n]]
    return [*args], []


def show_whole(context: typer.Context, value: bool) -> None:
    """The callback of `--help-all`."""
    if value and not context.resilient_parsing:
        assert isinstance(context.command, HelpedCommand)
        context.command.print_whole_help(context)
        raise typer.Exit


def _print(command: Any, ctx: Any, panels: dict[str, list[TyperOption]], note: str = "") -> None:
    if ctx.meta.get(AS_JSON):
        print_json(ctx, described(command, ctx))
        return
    console = _session(ctx).consoles.out
    for line in _lines(console, command, ctx, panels, note):
        console.print(line, soft_wrap=True)


def print_json(ctx: Any, content: dict[str, Any]) -> None:
    """Print a help for a program; typer ends its last line."""
    text = json.dumps({"schema": SCHEMA, **content}, indent=1, ensure_ascii=False)
    write_stream(_session(ctx).environment.stdout.buffer, [text])


def _session(ctx: Any) -> Session:
    session = ctx.find_root().obj
    return session if isinstance(session, Session) else process_session()


def _lines(
    console: Console, command: Any, ctx: Any, panels: dict[str, list[TyperOption]], note: str
) -> Iterator[Text]:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield from _wrapped(console, Text.assemble(("Usage: ", "bold"), usage))
    for paragraph in (command.help or "").split("\n\n"):
        yield Text()
        yield from _wrapped(console, Text(" ".join(paragraph.split())))
    arguments = [p for p in command.params if isinstance(p, TyperArgument)]
    titled: dict[str, Sequence[TyperArgument | TyperOption]] = {"Arguments": arguments, **panels}
    for title, parameters in titled.items():
        rows = [(signature_of(p), description_of(p, ctx)) for p in parameters]
        yield from _panel(console, title, rows)
    if isinstance(command, TyperGroup):
        listed = ((name, command.commands[name]) for name in command.list_commands(ctx))
        rows = [(Text(name, "bold cyan"), Text(each.help or "")) for name, each in listed]
        yield from _panel(console, "Commands", rows)
    yield from _examples(command.epilog or "")
    if note:
        yield Text()
        yield from _wrapped(console, Text(note))


def _panel(console: Console, title: str, rows: list[tuple[Text, Text]]) -> Iterator[Text]:
    """A title and its rows in two columns: usage and description."""
    if not rows:
        return
    most = min(WIDEST_NAME, console.width // 2)
    left = max((typed.cell_len for typed, _ in rows if typed.cell_len <= most), default=most)
    yield Text()
    yield Text(title, "bold")
    for typed, description in rows:
        lines = list(_wrapped(console, description, console.width - left - 4)) or [Text()]
        if typed.cell_len > left:
            if typed.cell_len > console.width - 2:  # choices may be broken after a bar
                typed = Text("| ").join(typed.split("|"))
            yield from (Text("  ") + each for each in _wrapped(console, typed, console.width - 2))
        else:
            gap = " " * (left - typed.cell_len + 2)
            yield Text.assemble("  ", typed, gap, lines.pop(0))
        yield from (Text(" " * (left + 4)) + each for each in lines)


def signature_of(parameter: TyperArgument | TyperOption) -> Text:
    """The usage of a parameter."""
    if isinstance(parameter, TyperArgument):
        return Text(parameter.metavar or parameter.name, "bold cyan")
    names = sorted(parameter.opts, key=lambda name: name.startswith("--"))
    typed = Text(", ").join(Text(name, "bold cyan") for name in names + parameter.secondary_opts)
    if not parameter.is_flag:
        choices = "|".join(_choices(parameter))
        kind = choices if 0 < len(choices) <= MOST_CHOICES else parameter.name.upper()
        typed.append(f" {parameter.metavar or kind}", "yellow")
    return typed


def _choices(parameter: TyperOption) -> list[str]:
    return list(map(str, parameter.type_descriptor.choices or ()))


def description_of(parameter: TyperArgument | TyperOption, ctx: Any) -> Text:
    """The description of a parameter, with its bounds, its variable and its default."""
    description = Text(parameter.help or "")
    least, most = parameter.min, parameter.max
    if least is not None and most is not None:
        bounds = f"{_number(least)} to {_number(most)}"
    else:
        more = "" if isinstance(least, Above) else " or more"
        bounds = f"{_number(least)}{more}" if least is not None else ""
        bounds = f"{_number(most)} or less" if most is not None else bounds
    extra = [bounds, f"env: {parameter.envvar}" if parameter.envvar else ""]
    if isinstance(parameter, TyperOption) and len("|".join(_choices(parameter))) > MOST_CHOICES:
        extra.append(f"one of: {', '.join(_choices(parameter))}")
    default = _default(parameter, ctx)
    extra += [f"default: {default}" if default else "", "required" if parameter.required else ""]
    facts = "; ".join(filter(None, extra))
    return description.append(f" [{facts}]", "dim") if facts else description


def _number(value: float) -> str:
    if isinstance(value, Above):
        return f"above {value:g}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _default(parameter: TyperArgument | TyperOption, ctx: Any) -> str:
    """The default as it is typed; the configured one before the built-in one."""
    configured = ctx.lookup_default(parameter.name)
    if configured is not None:
        return f"{_spelled(configured)}, configured"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    default = parameter.default
    if not parameter.show_default or default in (None, False):
        return ""
    return _spelled(default)


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _examples(epilog: str) -> Iterator[Text]:
    for number, paragraph in enumerate(filter(None, map(str.strip, epilog.split("\n\n")))):
        if number == 0:
            yield Text()
        yield Text(f"  {paragraph}") if number else Text(paragraph, "bold")


def _wrapped(console: Console, text: Text, width: int | None = None) -> Iterator[Text]:
    for line in text.wrap(console, width or console.width):
        line.rstrip()
        yield line
