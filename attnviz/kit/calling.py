"""The functions of Python, called by data through their declarations; no command is known by name.

    arguments (JSON) ─► checked by the schema ─► models and content in place ─► the function

A function checks the values of its options itself. Here types are checked, so that no JSON is
wrong for it in another way, and no argument names a file that may not be read.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, cleandoc
from math import isfinite
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin

from attnviz.errors import (
    AttnvizError,
    IdleOption,
    UsageError,
    nearest,
    option,
    readable,
    series,
    shortened,
)
from attnviz.inputs.given import within
from attnviz.kit import options as g
from attnviz.kit.described import TYPES, Above
from attnviz.kit.option import info_of, kinds_of, parameters_of
from attnviz.kit.values import AnyModel, Loaded

Schema: TypeAlias = dict[str, Any]
IMAGES, SOUND = kinds_of(g.Images), kinds_of(g.Sound)
"""The types of arguments that are the content of files."""
QUOTED = {"AnyModel": kinds_of(AnyModel), "str": (str,), "Sequence[str]": (Sequence[str],)}
"""What a quoted type holds that can be data."""


@dataclass(frozen=True)
class Offered:
    """A function that can be called with a model in memory, by arguments that are data.

    `name`: the command's, and the function's. `summary`: the first line of its docstring.
    """

    name: str
    function: Callable[..., Any]
    summary: str

    def schema(self, *, files: bool) -> Schema:
        """The JSON Schema (2020-12) of its arguments, an object.

        `files`: arguments may name files; else those that only do so are left out.
        """
        parameters = parameters_of(self.function)
        forms = {name: self._form(each, files) for name, each in parameters.items()}
        given = {name: form for name, form in forms.items() if form}
        required = [name for name in given if parameters[name].default is Parameter.empty]
        return {
            "type": "object",
            "properties": given,
            "required": required,
            "additionalProperties": False,
        }

    def _form(self, parameter: Parameter, files: bool) -> Schema:
        """The schema of a parameter, and what is known of it; empty if it cannot be data."""
        info, kinds = info_of(parameter.annotation), _kinds(parameter.annotation)
        form = {} if info and info.hidden else _form_of(kinds, files)
        if not form:
            return {}
        if parameter.kind is Parameter.VAR_POSITIONAL:
            form = {"type": "array", "items": form, "minItems": 1}
        if info and form.get("type") in ("integer", "number"):
            low = "exclusiveMinimum" if isinstance(info.min, Above) else "minimum"
            form |= {key: n for key, n in ((low, info.min), ("maximum", info.max)) if n is not None}
        if parameter.default not in (Parameter.empty, None, ()) and Loaded not in kinds:
            form["default"] = parameter.default
        docs = cleandoc(self.function.__doc__ or "")
        found = re.search(rf"^    {parameter.name}: (.*(\n {{8}}.*)*)", docs, re.M)
        about = " ".join(found[1].split()) if found else ""
        if Loaded in kinds:
            about = "The name of a loaded model."
        elif kinds in (IMAGES, SOUND):
            about += " Base64 of a file's content" + (", or its path." if files else ".")
        return {**form, "description": about}

    def invoke(
        self, arguments: Mapping[str, object], models: Mapping[str, Loaded], below: Path | None
    ) -> Any:
        """Call the function, and return its result.

        Args:
            arguments: its arguments, as JSON has them; null leaves one out.
            models: those in memory, by name; the first one is the default.
            below: the folder whose files arguments may name; None: no file may be named.

        Raises:
            AttnvizError: an argument cannot be used; the message says what to do instead.
        """
        parameters, values = parameters_of(self.function), dict[str, Any]()
        texts: Sequence[str] = ()
        for name, value in self._checked(arguments, files=below is not None).items():
            kinds = _kinds(parameters[name].annotation)
            if parameters[name].kind is Parameter.VAR_POSITIONAL:
                texts = value
            elif Loaded in kinds:
                values[name] = _loaded(name, value, models)
            elif kinds in (IMAGES, SOUND) and isinstance(value, list):
                values[name] = [content_of(name, each, below) for each in value]
            else:
                values[name] = content_of(name, value, below) if kinds in (IMAGES, SOUND) else value
        with within(below):
            try:
                own = {} if "model" in values else {"model": models[next(iter(models))]}
                return self.function(*texts, **own, **values)
            except IdleOption as error:
                if "model" in values or error.names[:1] != ("model",):
                    raise
                return self.function(*texts, **values)  # a calculation without a model

    def _with_text(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments; "text" is the first one of any function."""
        first, *others = parameters_of(self.function).values()
        if "text" not in arguments or "text" in (first.name, *(each.name for each in others)):
            return arguments
        text, several = arguments["text"], first.kind is Parameter.VAR_POSITIONAL
        text = [text] if several and isinstance(text, str) else text
        return {first.name: text, **{k: v for k, v in arguments.items() if k != "text"}}

    def _checked(self, arguments: object, *, files: bool) -> dict[str, Any]:
        """The arguments that are given, each of a type that the function takes."""
        if not isinstance(arguments, Mapping):
            raise UsageError("the arguments are not an object", "give them by name")
        check_data({**arguments})
        arguments = self._with_text(arguments)
        schema, every = self.schema(files=files), self.schema(files=True)["properties"]
        known, required = schema["properties"], schema["required"]
        given = {k: each for k, each in arguments.items() if each is not None or k in required}
        for name, value in given.items():
            if name not in every:
                hint = nearest(name, known) or f"it takes {', '.join(known)}"
                raise UsageError(f"{self.name} has no argument {name!r}", hint)
            if name in known and _fits(value, known[name]):
                continue
            if _fits(value, every[name]):
                raise UsageError(f"{option(name)} is a file, and none is read here")
            wrong = f"{option(name)} is {_word({'type': JSON_TYPES[type(value)]})}"
            raise UsageError(wrong, f"give {_word(every[name])}")
        for name in required:
            if name not in given:
                raise UsageError(f"{option(name)} is missing", f"give {_word(known[name])}")
        return given


def offered(commands: Iterable[str]) -> dict[str, Offered]:
    """Those of these commands whose function can be called with a model in memory.

    One that needs a file or a folder is not among them. Each command is imported.
    """
    found = ((name, _function_of(name)) for name in commands)
    return {
        name: Offered(name, function, (function.__doc__ or "").partition("\n")[0])
        for name, function in found
        if function is not None
    }


def _function_of(command: str) -> Callable[..., Any] | None:
    name = f"attnviz.commands.{command}"
    if not command.isidentifier() or find_spec(name) is None:  # of another package
        return None
    module = import_module(name)
    if hasattr(module, "__path__"):  # a folder
        module = import_module(f"{name}.command")
    function: Callable[..., Any] | None = getattr(module, command, None)
    parameters = {} if function is None else parameters_of(function)
    if "model" not in parameters or Loaded not in _kinds(parameters["model"].annotation):
        return None
    needed = (each for each in parameters.values() if each.default is Parameter.empty)
    return None if any(PathLike[str] in _kinds(each.annotation) for each in needed) else function


def json_of(result: Any) -> str:
    """The JSON object of a result, as its command writes it with `-f json`."""
    with within(None):  # all of it has been read
        return "".join(map(str, result.pieces("json")))


def sentence_of(error: Exception) -> str:
    """An error of a call in one sentence, as the terminal says it."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use a shorter text or a smaller model."
    bug = f"this is a bug ({type(error).__name__}: {error}); please report it."
    return readable(shortened(str(error) if isinstance(error, AttnvizError) else bug))


# From types to schemas.


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a type; of a quoted one, those that can be data."""
    if not isinstance(annotation, str):
        return kinds_of(annotation)
    return tuple(kind for each in annotation.split(" | ") for kind in QUOTED.get(each, ()))


def _form_of(kinds: tuple[Any, ...], files: bool = False) -> Schema:
    """The schema of a type; empty if it cannot be data. Null is what leaves an argument out."""
    if Loaded in kinds:
        return {"type": "string"}
    if kinds in (IMAGES, SOUND):
        one = {"type": "string"} | ({} if files else {"contentEncoding": "base64"})
        return {"anyOf": [one, {"type": "array", "items": one}]} if kinds == IMAGES else one
    path = PathLike[str] in kinds and not files
    own = [form for kind in kinds for form in _forms(kind) if not (path and kind is str)]
    return {"anyOf": own} if len(own) > 1 else own[0] if own else {}


def _forms(kind: Any) -> Iterator[Schema]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (str, bool, int, float):
        yield {"type": TYPES.get(kind, "string")}
    elif origin is Literal:
        yield {"type": "string", "enum": [*inner]}
    elif origin in (Sequence, Iterable):
        yield {"type": "array", "items": _form_of(kinds_of(inner[0]))}
    elif origin is Mapping:
        yield {"type": "object", "additionalProperties": _form_of(kinds_of(inner[1])) or True}


# Values that a function can take.

JSON_TYPES = dict(
    zip(
        (NoneType, bool, int, float, str, list, dict),
        "null boolean integer number string array object".split(),
        strict=True,
    )
)
DEEPEST = 64
LARGEST = 1 << 53
"""The largest whole number that every reader of JSON keeps."""
HALF = re.compile("[\ud800-\udfff]")


def check_data(value: object) -> None:
    """Check that there is nothing in this that JSON lacks, or that is too deep or too large."""
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError("the arguments are nested too deeply", f"nest {DEEPEST} lists at most")
        if isinstance(each, dict | list):
            inner = each if isinstance(each, list) else [*each, *each.values()]
            waiting += [(one, depth + 1) for one in inner]
        elif type(each) not in JSON_TYPES:
            raise UsageError(f"a value of type {type(each).__name__} is not JSON", "give JSON")
        elif isinstance(each, str) and HALF.search(each):
            raise UsageError("a text has half of a surrogate pair", "give whole characters")
        elif isinstance(each, float) and not isfinite(each):
            raise UsageError(f"{each} is not a number of JSON", "give a finite one")
        elif isinstance(each, int) and abs(each) > LARGEST:
            raise UsageError("a whole number is too large", f"give one up to {LARGEST}")


def _fits(value: object, form: Schema) -> bool:
    """Whether a value has the type of a schema; the function checks words and limits."""
    if "anyOf" in form:
        return any(_fits(value, each) for each in form["anyOf"])
    own, wanted = JSON_TYPES[type(value)], form["type"]
    if own != wanted:
        return (own, wanted) == ("integer", "number")
    if isinstance(value, list):
        enough = len(value) >= form.get("minItems", 0)
        return enough and all(_fits(each, form["items"]) for each in value)
    if isinstance(value, dict) and isinstance(inner := form["additionalProperties"], dict):
        return all(_fits(each, inner) for each in value.values())
    return True


def _word(form: Schema) -> str:
    """The type that a schema takes, in words."""
    if "anyOf" in form:
        return series([*dict.fromkeys(map(_word, form["anyOf"]))], "or")
    if "enum" in form:
        return f"one of {', '.join(form['enum'])}"
    word = f"{'an' if form['type'][0] in 'aio' else 'a'} {form['type']}"
    return f"{word}, each {_word(form['items'])}" if "items" in form else word


def content_of(name: str, text: str, below: Path | None) -> str | bytes:
    """The bytes that a text of base64 spells; else the path that it is."""
    start, mark, data = text.partition(";base64,")  # of an address that holds its data
    spelled = data if mark and start.startswith("data:") else text
    with suppress(ValueError):
        return b64decode("".join(spelled.split()), validate=True)
    if below is None:
        raise UsageError(f"{option(name)} is not base64", "give the content of the file in base64")
    return text


def _loaded(name: str, value: str, models: Mapping[str, Loaded]) -> Loaded:
    if value not in models:
        hint = nearest(value, models) or f"give {series([*models], 'or')}"
        raise UsageError(f"{option(name, repr(value))} is not a loaded model", hint)
    return models[value]
