"""How a group of options becomes the options of a command.

A group is a frozen dataclass whose fields are options. `command` spreads the groups in a
function's signature into single parameters, which typer reads, and packs what typer parsed
into groups again. A group knows its fields, so nothing else lists its options.
"""

import inspect
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.models import OptionInfo

from attnviz.errors import IdleOption
from attnviz.kit.help import show_whole
from attnviz.kit.session import Session, session_of

HELP_ALL = typer.Option(
    "--help-all",
    help="Show every option, and exit.",
    callback=show_whole,
    is_eager=True,
)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a typer command of a function of a session, groups and single options.

    The session gets the consoles that the group with `no_color` asks for, and knows which
    parameters the user gave. A configured default that does nothing for what was asked is left
    out; commands check their options before they read or run anything.
    """
    _, *parameters = inspect.signature(function).parameters.values()
    groups: dict[str, type[Any]] = {
        p.name: p.annotation
        for p in parameters
        if isinstance(p.annotation, type) and is_dataclass(p.annotation)
    }

    def call(session: Session, context: typer.Context, values: dict[str, Any]) -> None:
        packed = {
            name: group(**{each.name: values.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        screens = (vars(each) for each in packed.values() if hasattr(each, "no_color"))
        session.begin(context, **next(screens, {}))
        function(session, **packed, **values)

    @wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        session = session_of(context)
        values.pop("help_all")
        while True:
            try:
                return call(session, context, dict(values))
            except IdleOption as error:
                idle = next(filter(session.configured, error.names), None)
                if idle is None:
                    raise
                session.leave_out(idle)  # this default was meant for other calls
                values[idle] = defaults[idle]

    spread = [_parameter("context", typer.Context, inspect.Parameter.empty)]
    for each in parameters:
        if each.name in groups:
            spread += [
                _parameter(one.name, Annotated[one.type, one.metadata["typer"]], one.default)
                for one in fields(groups[each.name])
            ]
        else:
            spread.append(_parameter(each.name, each.annotation, each.default))
    spread.append(_parameter("help_all", Annotated[bool, HELP_ALL], False))
    defaults = {each.name: each.default for each in spread}
    run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in spread}
    return run


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    of, *info = get_args(annotation) or (annotation,)
    if of in (Path, Path | None) and info and isinstance(info[0], OptionInfo):
        info[0].parser = _path
    kind = inspect.Parameter.KEYWORD_ONLY  # which may come in any order, with defaults or not
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _path(given: str | Path) -> Path:
    """A path as it was typed. Only `-` is a stream; `./-`, which `Path` shortens, is a file."""
    path = Path(given)
    return path.absolute() if str(path) == "-" != given else path


def panel_option(panel: str, *flags: str, help: str, **more: Any) -> Any:
    """An option in a panel of the help, for the `Annotated` of a single parameter."""
    return typer.Option(*flags, help=help, rich_help_panel=panel, **more)


def option_field(panel: str, default: Any, *flags: str, help: str, **more: Any) -> Any:
    """A field of a group: an option in a panel of the help."""
    made = panel_option(panel, *flags, help=help, **more)
    return field(default=default, metadata={"typer": made, "flags": flags})


# The headings of help, and what declares an option under each.


TEXT, MODEL, HEADS, TOKENS = "The text", "The model", "Which heads", "Which tokens"
LOOK, OUTPUT = "How it is shown", "Where it goes"
of_text, of_model, of_heads, of_tokens, of_look, of_output = (
    partial(option_field, panel) for panel in (TEXT, MODEL, HEADS, TOKENS, LOOK, OUTPUT)
)
