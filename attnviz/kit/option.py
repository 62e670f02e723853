"""An option is declared once: flag, Python argument, help, completion and checks are made of it.

An option is a type with its declaration, `Annotated[int, panel_option(…)]`. A Python function has
it as the type of a parameter: `feature` checks every call, `command_of` makes the command line.
Options of the command line only (the text, the output, colours) are in groups: frozen dataclasses
whose fields are options.
"""

import functools
import inspect
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from math import inf
from numbers import Integral, Real
from os import PathLike, fspath
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

from attnviz.errors import IdleOption, UsageError, argument, nearest, option
from attnviz.inputs.given import MEDIA
from attnviz.kit.completion import FILES, TEXTS
from attnviz.kit.described import Above, Exclusion
from attnviz.kit.help import show_whole
from attnviz.kit.session import FLAGS, Session, session_of
from attnviz.models.catalog import Source, tokenizer_of
from attnviz.models.placement import BUILTIN
from attnviz.records.tokens import recording_call

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


# A Python function, and the options that its calls may combine.


@dataclass(frozen=True)
class Cli:
    """The type and the default on the command line, if they differ from those in Python.

    An ellipsis means Python's default.
    """

    type: Any = None
    default: Any = ...


@dataclass(frozen=True)
class Arguments:
    """The values of all parameters of a call, and the names of those that the caller chose.

    Those of a call from the command line include its own options.
    """

    values: Mapping[str, Any]
    chosen: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def refuse(self, names: str, wrong: str, hint: str = "leave it out") -> None:
        """Check that the caller chose none of these, as it would do nothing."""
        for name in names.split():
            if name in self.chosen:
                raise IdleOption(f"{option(name)} {wrong}", hint)

    def any_of(self, names: str) -> bool:
        """Whether the caller chose any of these."""
        return not self.chosen.isdisjoint(names.split())


Rule: TypeAlias = Callable[[Arguments], None]
"""A function that raises an `IdleOption` if an option has no effect with the others."""


@dataclass(frozen=True)
class only:
    """A rule: these options have an effect only if `when` holds; else they are refused."""

    names: str
    when: Callable[[Arguments], object]
    wrong: str
    hint: str = "leave it out"

    def __call__(self, arguments: Arguments) -> None:
        if not self.when(arguments):
            arguments.refuse(self.names, self.wrong, self.hint)

    @property
    def exclusion(self) -> Exclusion:
        """The rule, as the help states it."""
        return Exclusion([*map(option, self.names.split())], self.wrong, self.hint)


def needs(
    names: str, other: str, value: object = None, *, add: str | None = None, hint: str = ""
) -> only:
    """A rule: these options need another one, or this value of it.

    `add`: the placeholder of its value in the hint, if there is no other `hint`.
    """
    wrong = f"is for {option(other, value)}"
    hint = hint or f"add {option(other, value if add is None else add)}"
    if value is None:
        return only(names, lambda call: call[other], wrong, hint)
    return only(names, lambda call: call[other] == value, wrong, hint)


def without(names: str, other: str, wrong: str, hint: str = "leave it out") -> only:
    """A rule: these options exclude another one."""
    return only(names, lambda call: not call[other], wrong, hint)


def feature(*rules: Rule) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check each call by the types of its options and by rules, and record its options.

    The docstring gets a line for each option, after its own `Args`, and `Raises`.
    """

    def featured(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        parameters = signature.parameters
        defaults = {name: each.default for name, each in parameters_of(function).items()}

        @functools.wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            for name in named.keys() - defaults:
                wrong = f"{function.__name__}() has no option {name!r}"
                raise TypeError("; ".join(filter(None, [wrong, nearest(name, defaults)])))
            bound = signature.bind(*args, **named)
            for name, value in bound.arguments.items():
                if name in TEXTS_OF_PYTHON:
                    value = bound.arguments[name] = _with_ids(value, bound.arguments)
                _check_argument(parameters[name], value)
            values = {**bound.arguments, **bound.arguments.get("options", {})}
            values.pop("options", None)
            chosen = {name for name in values if _is_chosen(values[name], defaults.get(name))}
            arguments = Arguments({**defaults, **values}, frozenset(chosen))
            for rule in rules:
                rule(arguments)
            with recording_call(values, arguments.values.get("seed")):
                return function(*bound.args, **bound.kwargs)

        plain = [each.replace(annotation=_plain(each.annotation)) for each in parameters.values()]
        call.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
        call.__doc__ = _documented(function)
        call._rules = rules  # type: ignore[attr-defined]
        return call

    return featured


def finished_by(
    finish: Callable[[R, Mapping[str, Any]], S],
) -> Callable[[Callable[P, R]], Callable[P, S]]:
    """Add `finish` to calls from Python; the command line, which runs in parts, calls without it.

    `finish` takes the value of the function, and the arguments by name.
    """

    def finished(function: Callable[P, R]) -> Callable[P, S]:
        @functools.wraps(function)
        def whole(*args: P.args, **named: P.kwargs) -> S:
            return finish(function(*args, **named), named)

        last = inspect.signature(finish).return_annotation
        signature = inspect.signature(function).replace(return_annotation=last)
        whole.__signature__ = signature  # type: ignore[attr-defined]
        return whole

    return finished


def _is_chosen(value: object, default: object) -> bool:
    """Whether a caller chose a value; an explicit default that means "nothing" does not count."""
    if isinstance(value, tuple | list):
        return bool(value) or default != ()
    return not (isinstance(value, bool | NoneType) and value is default)


def _check_argument(parameter: inspect.Parameter, value: Any) -> None:
    """Check a value by its type; a single text has its own hints."""
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        check_value(parameter.name, value, parameter.annotation)
    elif parameter.annotation is str or (parameter.annotation == str | None and value is not None):
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for text in value if several else [value]:
            check_text(text)


def check_value(name: str, value: object, annotation: Any) -> None:
    """Check a value by the type of its option, in Python and on the command line."""
    kinds, info = kinds_of(annotation), info_of(annotation)
    words = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
    if value is None and NoneType in kinds:
        return
    if words:
        if not isinstance(value, str) or value not in words:
            known = ", ".join(map(repr, words))
            near = nearest(value, words) if isinstance(value, str) else ""
            raise UsageError(
                f"{option(name, repr(value))} is not known", near or f"give one of {known}"
            )
    elif info and str not in kinds and not {int, float}.isdisjoint(kinds):
        check_number(name, value, info.min, info.max, whole=int in kinds)
    elif {*kinds} <= {str, NoneType} and not isinstance(value, str):
        raise UsageError(f"{option(name)} is of type {type(value).__name__}", "give a str")


LARGEST = 1e15
"""The largest fraction of an option without its own limit."""


def check_number(
    name: str, value: Any, least: float | None, most: float | None = None, *, whole: bool = False
) -> None:
    """Check that a number, perhaps a whole one, is between limits, or equal to one."""
    low = -inf if least is None else least
    high = most if most is not None else inf if whole else LARGEST
    form, wrong = "d" if whole else "g", "is out of range"
    limits = "one" if least is None else f"{least:{form}} or more"
    limits = limits if most is None else f"{low:{form}} to {most:{form}}"
    if isinstance(least, Above):
        limits = f"more than {low:{form}}" + (
            "" if most is None else f", and at most {most:{form}}"
        )
    number = isinstance(value, Real) and value == value and not (whole and isinstance(value, bool))
    if number and most is None and value > high:
        wrong, limits = "is too large", "a smaller one"
    elif not number or (whole and not isinstance(value, int)):
        wrong = "is not a whole number" if whole else "is not a number"
    elif low <= value <= high and not (isinstance(least, Above) and value == low):
        return
    raise UsageError(f"{option(name, repr(value))} {wrong}", f"give {limits}")


TEXTS_OF_PYTHON = frozenset("text texts given prompt source mean_from resample_from".split())
"""Parameters that take texts, or token ids in place of each."""


def _with_ids(value: Any, given: Mapping[str, Any]) -> Any:
    """A text or several; each list of token ids becomes the text that they spell."""
    if hasattr(value, "tolist"):  # of numpy or torch; a batch of one text is that text
        value = value.tolist()
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        value = [value] if isinstance(value, int) else value
    if not isinstance(value, list | tuple):
        return value
    if not value or not all(isinstance(n, Integral) and not isinstance(n, bool) for n in value):
        return type(value)(_with_ids(each, given) for each in value)
    value = [*map(int, value)]
    for name in {"docs", *(each.option for each in MEDIA.values())}.intersection(given):
        raise UsageError(f"{option(name)} has no effect on token ids")
    model = given.get("model", BUILTIN)
    if isinstance(model, str | PathLike):
        return tokenizer_of(Source(fspath(model), quiet=True)).text_of_ids(value)
    return model._loaded.tokenizer.text_of_ids(value) if hasattr(model, "_loaded") else value


def check_text(text: object) -> None:
    """Check that a value is a text."""
    if not isinstance(text, str):
        what = "None" if text is None else f"a value of type {type(text).__name__}"
        raise UsageError(f"{what} is not a text", _instead_of_text(text))


def _instead_of_text(value: object) -> str:
    """A hint for a call without a text."""
    if isinstance(value, PathLike):
        return "give the content of the file: path.read_text()"
    if isinstance(value, bytes):
        return "give a str: data.decode()"
    if hasattr(value, "record"):
        return "give its text"
    if isinstance(value, Mapping):
        return "give a str; attnviz.generate takes a chat"
    if is_torch_module(value) or hasattr(value, "heads_per_layer"):
        return "give the text first, and the model after it"
    return "give the texts one by one" if is_several(value) else "give a str"


def is_torch_module(value: object) -> bool:
    """Whether a value is a torch module, such as a transformers model that was not loaded by
    `load_model`; torch is not imported for the check."""
    return any(kind.__module__.startswith("torch.nn.") for kind in type(value).__mro__)


def is_several(value: object) -> bool:
    """Whether a value is a collection, and not a text, bytes or a file."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | PathLike | Mapping)


def _parts(annotation: Any) -> tuple[Any, ...]:
    """A type, and the declarations in its `Annotated`."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _plain(annotation: Any) -> Any:
    """A type as `help` shows it."""
    return _parts(annotation)[0]


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a type."""
    base = _plain(annotation)
    return get_args(base) if get_origin(base) in (Union, UnionType) else (base,)


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function, and those of the `TypedDict` that it takes as `**options`."""
    found = dict[str, inspect.Parameter]()
    for each in inspect.signature(inspect.unwrap(function)).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            for name, annotation in get_args(each.annotation)[0].__annotations__.items():
                default = False if _plain(annotation) is bool else None
                found[name] = each.replace(
                    name=name,
                    kind=inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=annotation,
                )
        else:
            found[each.name] = each
    return found


def info_of(annotation: Any) -> OptionInfo | None:
    """The option that a type declares, if any."""
    return next((each for each in _parts(annotation) if isinstance(each, OptionInfo)), None)


def _options(function: Callable[..., Any]) -> dict[str, tuple[inspect.Parameter, OptionInfo]]:
    """The parameters of a function that are options, with their declarations."""
    infos = (
        (name, each, info_of(each.annotation)) for name, each in parameters_of(function).items()
    )
    return {name: (each, info) for name, each, info in infos if info}


RAISES = """

Raises:
    AttnvizError: an argument cannot be used; the message says what to do instead.
"""


def _documented(function: Callable[..., Any]) -> str | None:
    """The docstring, with a line for each option, and a `Raises` section."""
    if function.__doc__ is None:  # python -OO
        return None
    before, *after = re.split(
        r"(\n\n(?:Returns|Raises):)", inspect.cleandoc(function.__doc__), maxsplit=1
    )
    options = {name: info for name, (_, info) in _options(function).items()}
    flags = {flag: name for name, info in options.items() for flag in flags_of(info)}
    lines = (
        textwrap.fill(f"{name}: {_in_python(info.help or '', flags)}", 94, subsequent_indent="    ")
        for name, info in options.items()
        if not info.hidden
    )
    whole = f"{before}\n{textwrap.indent(chr(10).join(lines), '    ')}{''.join(after)}"
    return whole if "\n\nRaises:" in whole else whole + RAISES


def flags_of(info: OptionInfo) -> list[str]:
    """The flags of an option; typer keeps the first flag as its default."""
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


# The command line of a function, and of groups.


def positional(metavar: str, help: str, **more: Any) -> Any:
    """A parameter that is typed without a flag, for its `Annotated`."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


def panel_option(panel: str, *flags: str, help: str, **more: Any) -> Any:
    """An option in a panel of the help, for the `Annotated` of a parameter or a field."""
    if more.get("metavar") == "FILE" and panel != OUTPUT:
        more["autocompletion"] = FILES.get(flags[0], TEXTS)
    return typer.Option(*flags, help=help, rich_help_panel=panel, **more)


OUTPUT = "Where it goes"


def _set(name: str) -> Callable[[typer.Context, bool], bool]:
    """A callback that sets a flag of the session, even if a later option is wrong."""

    def tell(context: typer.Context, value: bool) -> bool:
        if isinstance(context.obj, Session):
            setattr(context.obj, name, value)
        if name == "debug" and value:  # what is not worth a note
            logging.basicConfig(format="%(message)s")
            logging.getLogger("attnviz").setLevel(logging.DEBUG)
        return value

    return tell


QUIET = panel_option(
    OUTPUT,
    "--quiet",
    "-q",
    help="Print no notes and no progress on stderr.",
    callback=_set("quiet"),
)
DEBUG = panel_option(
    OUTPUT, "--debug", help="Show the traceback of an error.", callback=_set("debug"), is_eager=True
)
HELP_ALL = typer.Option(
    "--help-all", help="Show every option, and exit.", callback=show_whole, is_eager=True
)


@dataclass(frozen=True)
class Everywhere:
    """The options that every command has, after its own; the session reads them."""

    quiet: Annotated[bool, QUIET] = False
    debug: Annotated[bool, DEBUG] = False
    help_all: Annotated[bool, HELP_ALL] = False


@dataclass(frozen=True)
class Call(Generic[R]):
    """A Python function, with the options that the user of the command line chose for it."""

    function: Callable[..., R]
    options: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of an option: the chosen one, or Python's default."""
        default = parameters_of(self.function)[name].default
        return self.options.get(name, default)

    def __call__(self, *args: Any, **more: Any) -> R:
        """Call it with these options and more, which are already checked and recorded."""
        result: R = inspect.unwrap(self.function)(*args, **{**self.options, **more})
        return result


def command_of(
    function: Callable[..., R] | None = None, parameters: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a typer command of a function of a session, a `Call`, and options of the shell only.

    Without a Python function there is no `Call`. The session gets the consoles that were asked
    for, and the parameters that the user gave. A configured default without effect on a call is
    left out; commands check their options before they read or run anything.

    Args:
        function: the Python function.
        parameters: options of `function`, and groups and single options of the decorated one, in
            the order of the command line; the omitted ones of the latter come last.
    """
    options = _options(function) if function else {}
    defaults = (
        {name: each.default for name, each in parameters_of(function).items()} if function else {}
    )

    def made(run: Callable[..., None]) -> Callable[..., None]:
        own = {
            name: each
            for name, each in inspect.signature(run).parameters.items()
            if each.kind is inspect.Parameter.KEYWORD_ONLY
        }
        names = dict.fromkeys([*parameters.split(), *own])
        listed = [own[name] if name in own else _typed(*options[name]) for name in names]

        def begun(session: Session, values: dict[str, Any]) -> None:
            packed = {name: _packed(name, each.annotation, values) for name, each in own.items()}
            if function is None:
                return run(session, **packed)
            chosen = {name: values[name] for name in values if session.chosen(name)}
            named = {name: value for name, value in values.items() if name not in options}
            names = (name for name in chosen if _is_chosen(chosen[name], defaults.get(name)))
            arguments = Arguments({**defaults, **named, **chosen}, frozenset(names))
            for rule in function._rules:  # type: ignore[attr-defined]
                rule(arguments)
            picked = {name: value for name, value in chosen.items() if name in options}
            return run(session, Call(function, picked), **packed)

        typed = _typer_command(run, _for_typer(listed), begun)
        rules = function._rules if function else ()  # type: ignore[attr-defined]
        told = [each.exclusion for each in rules if isinstance(each, only)]
        typed.exclusions = told  # type: ignore[attr-defined]
        return typed

    return made


command = command_of()
"""The decorator of commands without a Python function."""


def _typer_command(
    function: Callable[..., None],
    parameters: list[inspect.Parameter],
    run: Callable[[Session, dict[str, Any]], None],
) -> Callable[..., None]:
    """The command of these parameters, which drops a configured default without effect."""
    defaults = {each.name: each.default for each in parameters}

    @functools.wraps(function)
    def typed(typer_context: typer.Context, **values: Any) -> None:
        session = session_of(typer_context)
        while True:
            try:
                session.begin(typer_context)
                return run(session, dict(values))
            except IdleOption as error:
                names = (name if name in defaults else argument(name) for name in error.names)
                idle = next(filter(session.configured, names), None)
                if idle is None:
                    raise
                session.leave_out(idle)  # this default is for other calls
                values[idle] = defaults[idle]

    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed


def _typed(parameter: inspect.Parameter, info: OptionInfo) -> inspect.Parameter:
    """An option of a Python function in typer's form."""
    base, *beside = _parts(parameter.annotation)
    cli = next((each for each in beside if isinstance(each, Cli)), Cli())
    default = parameter.default if cli.default is ... else cli.default
    default = None if default == () else default  # without one, typer demands the option
    return parameter.replace(annotation=Annotated[cli.type or base, info], default=default)


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def _packed(name: str, annotation: Any, values: Mapping[str, Any]) -> Any:
    """The value of an option, or a group with those of its options."""
    if not _is_group(annotation):
        return values[name]
    return annotation(**{each.name: values[each.name] for each in fields(annotation)})


def _for_typer(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters of a command, among them those of the groups, in their places."""
    keyword = inspect.Parameter.KEYWORD_ONLY  # any order, with defaults or not
    context = inspect.Parameter("typer_context", keyword, annotation=typer.Context)
    everywhere = inspect.Parameter("everywhere", keyword, annotation=Everywhere)
    spread = list[inspect.Parameter]()
    for each in (context, *parameters, everywhere):
        if _is_group(each.annotation):
            spread += [
                inspect.Parameter(one.name, keyword, annotation=one.type, default=one.default)
                for one in fields(each.annotation)
            ]
        else:
            spread.append(each.replace(kind=keyword))
    for name, annotation in ((each.name, each.annotation) for each in spread):
        info = info_of(annotation)
        if info is not None:
            FLAGS.setdefault(name, next((f for f in flags_of(info) if f.startswith("--")), ""))
            is_path = any(Path in (kind, *get_args(kind)) for kind in kinds_of(annotation))
            info.parser = _path if is_path else functools.partial(_read, name, annotation)
    return spread


def _path(typed: str | Path) -> Path:
    """A path as it was typed. Only `-` is a stream; `./-`, which `Path` shortens, is a file."""
    path = Path(typed)
    return path.absolute() if str(path) == "-" != typed else path


def _read(name: str, annotation: Any, typed: Any) -> Any:
    """Convert the typed value of an option to Python's type, and check it."""
    value = typed
    for kind in {int, float}.intersection(kinds_of(annotation)):
        with suppress(ValueError):
            value = float(typed)
            value = int(value) if kind is int and value.is_integer() else value
            value = kind(typed)
    check_value(name, value, annotation)
    return value
