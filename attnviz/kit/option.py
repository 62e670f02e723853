"""An option is declared once: flag, Python argument, help, completion and checks are made of it.

An option is a type with its declaration beside it, `Annotated[int, panel_option(…)]`. A function
of Python has it as the type of a parameter: `feature` checks every call, `command_of` makes the
command line. What only a command line has (the text, the output, colours) stands in groups:
frozen dataclasses whose fields are options.
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from math import inf
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import typer
from typer.models import OptionInfo

from attnviz.errors import IdleOption, UsageError, argument, option
from attnviz.kit.help import show_whole
from attnviz.kit.session import Session, session_of
from attnviz.records.capture import asking

P = ParamSpec("P")
R = TypeVar("R")
HELP_ALL = typer.Option(
    "--help-all", help="Show every option, and exit.", callback=show_whole, is_eager=True
)


# A function of Python, and what goes with what in its calls.


@dataclass(frozen=True)
class Cli:
    """What the command line parses, and its default, where those of Python are others.

    An ellipsis stands for Python's default.
    """

    type: Any = None
    default: Any = ...


@dataclass(frozen=True)
class Arguments:
    """The values of all parameters of a call, and the names of those that the caller chose.

    For a call of the command line, what only it has is among them.
    """

    values: Mapping[str, Any]
    chosen: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def refuse(self, names: str, wrong: str, hint: str = "leave it out") -> None:
        """See that the caller chose none of these, as it would do nothing.

        Raises:
            IdleOption: naming the first that was chosen.
        """
        for name in names.split():
            if name in self.chosen:
                raise IdleOption(f"{option(name)} {wrong}", hint)

    def any_of(self, names: str) -> bool:
        """Whether the caller chose any of these."""
        return not self.chosen.isdisjoint(names.split())


Rule: TypeAlias = Callable[[Arguments], None]
"""Raises an `IdleOption` where an option means nothing beside the others."""


def only(
    names: str, when: Callable[[Arguments], object], wrong: str, hint: str = "leave it out"
) -> Rule:
    """These options have a meaning only where `when` holds; elsewhere they are refused."""

    def check(arguments: Arguments) -> None:
        if not when(arguments):
            arguments.refuse(names, wrong, hint)

    return check


def feature(*rules: Rule) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check each call by the types of its options and by rules; record what was asked for.

    The docstring gets a line for each option, after the `Args` that it has.
    """

    def featured(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        parameters = signature.parameters
        defaults = {name: each.default for name, each in _spread(function).items()}

        @functools.wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            bound = signature.bind(*args, **named).arguments
            for name in bound:
                if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
                    check_value(name, bound[name], parameters[name].annotation)
            values = {**bound, **bound.get("options", {})}
            values.pop("options", None)
            chosen = {name for name in values if _is_chosen(values[name], defaults.get(name))}
            arguments = Arguments({**defaults, **values}, frozenset(chosen))
            for rule in rules:
                rule(arguments)
            with asking(values, arguments.values.get("seed")):
                return function(*args, **named)

        plain = [each.replace(annotation=_plain(each.annotation)) for each in parameters.values()]
        call.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
        call.__doc__ = _documented(function)
        call._rules = rules  # type: ignore[attr-defined]
        return call

    return featured


def _is_chosen(value: object, default: object) -> bool:
    """Whether a caller chose a value; a default that says "nothing" is none when spelled out."""
    if isinstance(value, tuple | list):
        return bool(value) or default != ()
    return not (isinstance(value, bool | NoneType) and value is default)


def check_value(name: str, value: object, annotation: Any) -> None:
    """Check a value by the type of its option, as typer does for the command line.

    Raises:
        UsageError: it is none that the option takes.
    """
    base, *beside = _parts(annotation)
    info = next((each for each in beside if isinstance(each, OptionInfo)), None)
    kinds = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    if value is None and NoneType in kinds:
        return
    known = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if known is not None:
        check_one_of(name, value, known)
    elif info and int in kinds and (info.min, info.max) != (None, None):
        check_count(name, value, info.min, info.max)
    elif info and float in kinds and (info.min, info.max) != (None, None):
        check_number(name, value, info.min, info.max)
    elif {*kinds} <= {str, NoneType}:
        check_word(name, value)


def _parts(annotation: Any) -> tuple[Any, ...]:
    """A type, and what is declared beside it."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _plain(annotation: Any) -> Any:
    """A type as `help` shows it."""
    return _parts(annotation)[0]


def _spread(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function, and those of the `TypedDict` that it takes as `**options`."""
    spread = dict[str, inspect.Parameter]()
    for each in inspect.signature(inspect.unwrap(function)).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            for name, annotation in get_args(each.annotation)[0].__annotations__.items():
                default = False if _plain(annotation) is bool else None
                spread[name] = each.replace(
                    name=name,
                    kind=inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=annotation,
                )
        else:
            spread[each.name] = each
    return spread


def _options(function: Callable[..., Any]) -> dict[str, tuple[inspect.Parameter, OptionInfo]]:
    """The parameters of a function that are options, with their declarations."""
    return {
        name: (each, info)
        for name, each in _spread(function).items()
        for info in _parts(each.annotation)
        if isinstance(info, OptionInfo)
    }


def _documented(function: Callable[..., Any]) -> str | None:
    """The docstring, with a line for each option."""
    if function.__doc__ is None:  # python -OO
        return None
    text = inspect.cleandoc(function.__doc__)
    before, ending, after = text, "", ""
    for heading in ("\n\nRaises:", "\n\nReturns:"):
        head, found, rest = before.partition(heading)
        if found:
            before, ending, after = head, found, f"{rest}{ending}{after}"
    options = {name: info for name, (_, info) in _options(function).items()}
    flags = {flag: name for name, info in options.items() for flag in flags_of(info)}
    lines = (
        textwrap.fill(f"{name}: {_in_python(info.help or '', flags)}", 94, subsequent_indent="    ")
        for name, info in options.items()
    )
    return f"{before}\n{textwrap.indent(chr(10).join(lines), '    ')}{ending}{after}"


def flags_of(info: OptionInfo) -> list[str]:
    """How an option is typed; typer keeps the first flag as its default."""
    spelled = (str(info.default), *(info.param_decls or ()))
    return [flag for each in spelled for flag in each.split("/")]


def _in_python(help: str, flags: Mapping[str, str]) -> str:
    """The help of an option, with the flags in it as the parameters of Python."""
    text = help.replace(" Repeatable.", "").replace("for show --", "for show's --")
    return re.sub(
        r"--[a-z]+(?:-[a-z]+)*",
        lambda flag: flags.get(flag[0], flag[0].strip("-").replace("-", "_")),
        text,
    )


# What typer checks for the command line, checked for Python.


def check_one_of(name: str, value: object, choices: Any) -> None:
    """Check a value that is one of several words, the literals of a type."""
    if not isinstance(value, str) or value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise UsageError(f"{option(name, repr(value))} is not known", f"give one of {known}")


def check_count(name: str, value: Any, least: float | None = 1, most: float | None = None) -> None:
    """Check a whole number."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and (-inf if least is None else least) <= value <= (inf if most is None else most):
        return
    limits = f"{least} or more" if most is None else f"{least} to {most}"
    raise UsageError(f"{option(name, repr(value))} is not a valid number", f"give {limits}")


def check_number(name: str, value: object, least: float | None, most: float | None) -> None:
    """Check a number."""
    low, high = -inf if least is None else least, inf if most is None else most
    if not isinstance(value, Real) or not low <= float(value) <= high:
        limits = f"{low:g} or more" if most is None else f"{low:g} to {high:g}"
        raise UsageError(f"{option(name, repr(value))} is out of range", f"give {limits}")


def check_word(name: str, value: object) -> None:
    """Check a text that an option takes; None, for none, passes."""
    if not isinstance(value, str | None):
        raise UsageError(f"{option(name)} is of type {type(value).__name__}", "give a str")


# The command line of a function, and of groups.


@dataclass(frozen=True)
class Call(Generic[R]):
    """A function of Python, with the options that the user of the command line chose for it."""

    function: Callable[..., R]
    options: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of an option: the chosen one, or Python's default."""
        default = _spread(self.function)[name].default
        return self.options.get(name, default)

    def __call__(self, *args: Any, **more: Any) -> R:
        """Call it with these options and more; they are checked, and recorded, already."""
        result: R = inspect.unwrap(self.function)(*args, **{**self.options, **more})
        return result


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a typer command of a function of a session, groups and single options.

    The session gets the consoles that the group with `no_color` asks for, and knows which
    parameters the user gave. A configured default that does nothing for what was asked is left
    out; commands check their options before they read or run anything.
    """
    own = list(inspect.signature(function).parameters.values())[1:]
    return _command(function, own, lambda session, packed, _: function(session, **packed))


def command_of(
    function: Callable[..., R], parameters: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function of a session, a `Call`, and what only the command line has.

    `parameters`: the options of the command in their order: names of options of the Python
    `function`, of groups and of single options of the decorated one.
    """
    options = _options(function)
    defaults = {name: each.default for name, each in _spread(function).items()}

    def made(run: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(run).parameters
        listed = [
            own[name] if name in own else _typed(*options[name]) for name in parameters.split()
        ]
        missing = {*own} - {each.name for each in listed}
        assert len(missing) == 2, missing  # the session and the call

        def call(session: Session, packed: dict[str, Any], values: dict[str, Any]) -> None:
            chosen = {name: values[name] for name in values if session.chosen(name)}
            named = {name: value for name, value in values.items() if name not in options}
            told = (name for name in chosen if _is_chosen(chosen[name], defaults.get(name)))
            arguments = Arguments({**defaults, **named, **chosen}, frozenset(told))
            for rule in function._rules:  # type: ignore[attr-defined]
                rule(arguments)
            picked = {name: value for name, value in chosen.items() if name in options}
            run(
                session,
                Call(function, picked),
                **{name: packed[name] for name in packed if name in own},
            )

        return _command(run, listed, call)

    return made


def _typed(parameter: inspect.Parameter, info: OptionInfo) -> inspect.Parameter:
    """An option of a Python function as typer takes it."""
    base, *beside = _parts(parameter.annotation)
    cli = next((each for each in beside if isinstance(each, Cli)), Cli())
    default = parameter.default if cli.default is ... else cli.default
    default = None if default in ((), inspect.Parameter.empty) else default
    return parameter.replace(annotation=Annotated[cli.type or base, info], default=default)


def _command(
    function: Callable[..., None],
    parameters: list[inspect.Parameter],
    run: Callable[[Session, dict[str, Any], dict[str, Any]], None],
) -> Callable[..., None]:
    """The typer command of these parameters; `run` gets them with their groups packed, and all."""
    groups: dict[str, type[Any]] = {
        p.name: p.annotation
        for p in parameters
        if isinstance(p.annotation, type) and is_dataclass(p.annotation)
    }

    def begun(session: Session, context: typer.Context, values: dict[str, Any]) -> None:
        packed = {
            name: group(**{each.name: values[each.name] for each in fields(group)})
            for name, group in groups.items()
        }
        screens = (vars(each) for each in packed.values() if hasattr(each, "no_color"))
        session.begin(context, **next(screens, {}))
        single = {each.name: values[each.name] for each in parameters if each.name not in groups}
        run(session, {**packed, **single}, values)

    @functools.wraps(function)
    def typed(context: typer.Context, **values: Any) -> None:
        session = session_of(context)
        values.pop("help_all")
        while True:
            try:
                return begun(session, context, dict(values))
            except IdleOption as error:
                names = (name if name in defaults else argument(name) for name in error.names)
                idle = next(filter(session.configured, names), None)
                if idle is None:
                    raise
                session.leave_out(idle)  # this default was meant for other calls
                values[idle] = defaults[idle]

    spread = [_parameter("context", typer.Context, inspect.Parameter.empty)]
    for each in parameters:
        if each.name in groups:
            spread += [
                _parameter(one.name, Annotated[_plain(one.type), info_of(one)], one.default)
                for one in fields(groups[each.name])
            ]
        else:
            spread.append(_parameter(each.name, each.annotation, each.default))
    spread.append(_parameter("help_all", Annotated[bool, HELP_ALL], False))
    defaults = {each.name: each.default for each in spread}
    typed.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in spread}
    return typed


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    of, *info = _parts(annotation)
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
    return declared(default, panel_option(panel, *flags, help=help, **more))


def declared(default: Any, info: Any) -> Any:
    """A field of a group, whose option is declared elsewhere."""
    return field(default=default, metadata={"typer": info})


def info_of(one: Field[Any]) -> Any:
    """What a field of a group declares: beside its type, or beside its default."""
    return one.metadata["typer"] if one.metadata else _parts(one.type)[-1]
