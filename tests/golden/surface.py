"""What users call by its name: Python's functions and types, the options of every command."""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, is_typeddict

import typer

import attnviz
from attnviz.cli import app

SPECIAL = ("__call__", "__contains__", "__enter__", "__getitem__", "__iter__", "__len__")
FORMATS = "json", "jsonl", "csv", "tsv", "html", "svg"
LIBRARY = "builtins", "typing"


@cache
def surfaces() -> dict[str, str]:
    """Each list of names, by the name of its file."""
    statuses: Any = type(attnviz.AttnvizError.status)
    return {
        "python": "\n".join(_python()) + "\n",
        "exit-codes": "".join(f"{int(each)} {each.name}\n" for each in statuses),
        **{name: "\n".join(_options(each)) + "\n" for name, each in _commands().items()},
    }


def formats() -> dict[str, set[str]]:
    """The formats of words and numbers that each command's help promises."""
    return {
        name: {form for each in command.params for form in FORMATS if _names(each, form)}
        for name, command in _commands().items()
    }


def _names(parameter: Any, form: str) -> bool:
    return parameter.name == "format" and bool(re.search(rf"\b{form}\b", parameter.help))


@cache
def _commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    context = group.make_context("attnviz", ["show"], resilient_parsing=True)
    return {name: group.resolve_command(context, [name])[1] for name in group.commands}


def _python() -> Iterator[str]:
    for name in sorted(attnviz.__all__):
        named = getattr(attnviz, name)
        yield f"{name}{_signature(named)}"
        if inspect.isclass(named):
            yield from (f"    {each}" for each in _members(named))


def _members(kind: type) -> Iterator[str]:
    """The fields and methods that are no library's, in the order of the alphabet."""
    own = [each for each in kind.__mro__ if each.__module__ not in LIBRARY]
    fields = {name for each in own for name in inspect.get_annotations(each)}
    for name in sorted(fields.union(*map(vars, own))):
        if not name.startswith("_") or name in SPECIAL or name.startswith("_repr_"):
            member = inspect.getattr_static(kind, name, None)
            method = isinstance(member, classmethod | staticmethod)
            yield f".{name}{_signature(member.__func__ if method else member)}"


def _signature(named: Any) -> str:
    """Names, kinds and defaults of the parameters, without their types."""
    if not (inspect.isfunction(named) or inspect.isclass(named)) or is_typeddict(named):
        return ""
    signature = inspect.signature(named)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    if any(each.name.startswith("_") for each in bare):
        return ""  # users get one, and make none
    shown = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return re.sub(r" at 0x\w+", "", shown)


def _options(command: Any) -> Iterator[str]:
    """A line for each parameter: how it is typed, its type, its default, its panel."""
    for each in command.params:
        kind = each.type_descriptor
        choices = "|".join(map(str, kind.choices or ()))
        facts = {
            "metavar": each.metavar,
            "type": choices or getattr(kind.annotation, "__name__", str(kind.annotation)),
            "default": "required" if each.required else repr(each.default),
            "panel": each.rich_help_panel,
            "variable": each.envvar,
        }
        told = "; ".join(f"{name} {fact}" for name, fact in facts.items() if fact is not None)
        yield f"{', '.join([*each.opts, *each.secondary_opts])}: {told}"
