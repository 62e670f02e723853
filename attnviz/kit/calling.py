"""The functions of Python, called by data through their declarations; no command is known by name.

    arguments (JSON) ─► checked by the schema ─► models and content in place ─► the function

A function checks the values of its options itself. Here types are checked, so that no JSON is
wrong for it in another way, and no argument names a file that may not be read.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Mapping as MappingType
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, cleandoc
from math import isfinite
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin

from attnviz.errors import IdleOption, UsageError, nearest, option, series
from attnviz.inputs.given import within
from attnviz.kit import options as g
from attnviz.kit.described import TYPES, Above
from attnviz.kit.option import info_of, kinds_of, parameters_of
from attnviz.kit.values import AnyModel, Loaded

Schema: TypeAlias = dict[str, Any]
IMAGES, SOUND = kinds_of(g.Images), kinds_of(g.Sound)
"""The types of parameters that take the content of files."""
QUOTED = {"AnyModel": kinds_of(AnyModel), "str": (str,), "Sequence[str]": (Sequence[str],)}
"""What a quoted type holds that can be data."""
TEXT: Schema = {"type": "string"}
CONTENT: Schema = {**TEXT, "contentEncoding": "base64"}


# What can be called.


@dataclass(frozen=True)
class Offered:
    """A function that can be called with a model in memory, by arguments that are data.

    Attributes:
        name: the command's, and the function's.
        summary: the first line of its docstring.
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
        """The schema of a parameter, with what is known of it; empty if it cannot be given."""
        info, kinds = info_of(parameter.annotation), _kinds(parameter.annotation)
        form = {} if info and info.hidden else _form_of(kinds, files)
        if not form:
            return {}
        if parameter.kind is Parameter.VAR_POSITIONAL:
            form = {"type": "array", "items": form, "minItems": 1}
        if info and form.get("type") in ("integer", "number"):
            low = "exclusiveMinimum" if isinstance(info.min, Above) else "minimum"
            form |= {key: n for key, n in ((low, info.min), ("maximum", info.max)) if n is not None}
        if parameter.default not in (Parameter.empty, None, ()):
            form["default"] = parameter.default
        about = re.search(rf"^    {parameter.name}: (.*(\n {{8}}.*)*)", self._docs, re.M)
        told = [" ".join(about[1].split())] if about else []
        if Loaded in kinds:
            form.pop("default", None)
            told = ["The name of a loaded model."]
        if kinds in (IMAGES, SOUND):
            told.append("Base64 of a file's content" + (", or its path." if files else "."))
        return {**form, "description": " ".join(told)}

    @property
    def _docs(self) -> str:
        return cleandoc(self.function.__doc__ or "")

    def call(
        self, arguments: Mapping[str, object], models: Mapping[str, Loaded], below: Path | None
    ) -> Any:
        """Call the function, and return its result.

        Args:
            arguments: its arguments, as JSON has them.
            models: those in memory, by name; the first one is the default.
            below: the folder whose files arguments may name; None: no file may be named.

        Raises:
            AttnvizError: an argument cannot be used; the message says what to do instead.
        """
        parameters, values = parameters_of(self.function), dict[str, Any]()
        for name, value in self._checked(arguments, files=below is not None).items():
            kinds = _kinds(parameters[name].annotation)
            values[name] = value
            if Loaded in kinds:
                values[name] = _loaded(name, value, models)
            elif kinds in (IMAGES, SOUND):
                one = not isinstance(value, list)
                several = [_content(name, each, below) for each in ([value] if one else value)]
                values[name] = several[0] if one else several
        spread = [n for n, each in parameters.items() if each.kind is Parameter.VAR_POSITIONAL]
        texts = [text for name in spread for text in values.pop(name)]
        with within(below):
            try:
                return self.function(*texts, **{"model": models[next(iter(models))], **values})
            except IdleOption as error:
                if "model" in values or error.names[:1] != ("model",):
                    raise
                return self.function(*texts, **values)  # a calculation without a model

    def _checked(self, arguments: object, *, files: bool) -> dict[str, Any]:
        """The arguments, each of a type that the function takes, without those that are null."""
        if not isinstance(arguments, MappingType):
            raise UsageError("the arguments are not an object", "give them by name")
        _check_data(arguments)
        schema, every = self.schema(files=files), self.schema(files=True)["properties"]
        known, given = schema["properties"], dict[str, Any]()
        for name, value in arguments.items():
            if name not in known and name in every:
                raise _no_file(name)
            if name not in known:
                hint = nearest(name[:80], known) or f"it takes {', '.join(known)}"
                raise UsageError(f"{self.name} has no argument {name[:80]!r}", hint)
            if value is None and name not in schema["required"]:
                continue  # as if it were left out
            if not _fits(value, known[name]):
                if _fits(value, every[name]):
                    raise _no_file(name)
                wrong = f"{option(name)} is {_word({'type': JSON_TYPES[type(value)]})}"
                raise UsageError(wrong, f"give {_word(known[name])}")
            given[name] = value
        for name in schema["required"]:
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
    module = import_module(f"attnviz.commands.{command}")
    if hasattr(module, "__path__"):  # a folder
        module = import_module(f"attnviz.commands.{command}.command")
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


# From types to schemas.


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a type; of a quoted one, those that can be data."""
    if not isinstance(annotation, str):
        return kinds_of(annotation)
    return tuple(kind for each in annotation.split(" | ") for kind in QUOTED.get(each, ()))


def _form_of(kinds: tuple[Any, ...], files: bool) -> Schema:
    """The schema of a type; empty if it cannot be data. Null is what leaves an argument out."""
    if Loaded in kinds:
        return dict(TEXT)
    if kinds in (IMAGES, SOUND):
        one = TEXT if files else CONTENT
        return {"anyOf": [one, {"type": "array", "items": one}]} if kinds == IMAGES else dict(one)
    names_file = PathLike[str] in kinds and not files
    own = [form for kind in kinds for form in _forms(kind) if not (names_file and kind is str)]
    return {"anyOf": own} if len(own) > 1 else own[0] if own else {}


def _forms(kind: Any) -> Iterator[Schema]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is str or TYPES.get(kind) in ("boolean", "integer", "number"):
        yield {"type": TYPES.get(kind, "string")}
    elif origin is Literal:
        yield {**TEXT, "enum": [*inner]}
    elif origin in (Sequence, Iterable):
        items = _form_of(kinds_of(inner[0]), False)
        yield {"type": "array", "items": items}
    elif origin is MappingType:
        values = _form_of(kinds_of(inner[1]), False)
        yield {"type": "object", "additionalProperties": values or True}


# Values that a function can take.

WORDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}
JSON_TYPES = dict(zip((NoneType, bool, int, float, str, list, dict), WORDS, strict=True))
DEEPEST = 64
LARGEST = 1 << 53
"""The largest whole number that every reader of JSON keeps."""
LONGEST_WORD = 1000
"""The most characters of a value that is one of a few words."""
HALF = re.compile("[\ud800-\udfff]")


def _check_data(value: object) -> None:
    """Check that there is nothing in this that JSON lacks, or that is too deep or too large."""
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError("the arguments are nested too deeply", f"nest {DEEPEST} lists at most")
        if isinstance(each, MappingType | list):
            waiting += [(one, depth + 1) for one in each]
        if isinstance(each, MappingType):
            waiting += [(one, depth + 1) for one in each.values()]
        elif isinstance(each, str) and HALF.search(each):
            raise UsageError("a text has half of a surrogate pair", "give whole characters")
        elif isinstance(each, float) and not isfinite(each):
            raise UsageError(f"{each} is not a number of JSON", "give a finite one")
        elif isinstance(each, int) and abs(each) > LARGEST:
            raise UsageError("a whole number is too large", f"give one up to {LARGEST}")
        elif type(each) not in JSON_TYPES:
            raise UsageError(f"a value of type {type(each).__name__} is not JSON", "give JSON")


def _fits(value: object, form: Schema) -> bool:
    """Whether a value has the type of a schema; the function checks words and limits."""
    if "anyOf" in form:
        return any(_fits(value, each) for each in form["anyOf"])
    own, type_ = JSON_TYPES[type(value)], form["type"]
    if type_ == "number" and own == "integer":
        return True
    if isinstance(value, list) and type_ == own:
        return len(value) >= form.get("minItems", 0) and all(
            _fits(each, form["items"]) for each in value
        )
    if isinstance(value, dict) and type_ == own:
        inner = form["additionalProperties"]
        return inner is True or all(_fits(each, inner) for each in value.values())
    short = "enum" not in form or (isinstance(value, str) and len(value) < LONGEST_WORD)
    return own == type_ and short


def _word(form: Schema) -> str:
    """What a schema takes, in words."""
    if "anyOf" in form:
        return series([*dict.fromkeys(map(_word, form["anyOf"]))], "or")
    if form.get("enum"):
        return f"one of {', '.join(form['enum'])}"
    word = WORDS[form["type"]]
    return f"{word}, each {_word(form['items'])}" if "items" in form else word


def _no_file(name: str) -> UsageError:
    return UsageError(f"{option(name)} names a file, and no file is read here", "leave it out")


def _content(name: str, text: str, below: Path | None) -> str | bytes:
    """The bytes that a text of base64 spells; else the path that it is."""
    head, mark, data = text.partition(";base64,")  # of an address with data in it
    with suppress(ValueError):
        return b64decode(
            "".join((data if mark and head[:5] == "data:" else text).split()), None, True
        )
    if below is None:
        raise UsageError(f"{option(name)} is not base64", "give the content of the file in base64")
    return text


def _loaded(name: str, value: str, models: Mapping[str, Loaded]) -> Loaded:
    if value not in models:
        hint = nearest(value[:80], models) or f"give {series([*models], 'or')}"
        raise UsageError(f"{option(name, repr(value[:80]))} is not a loaded model", hint)
    return models[value]
