"""Fields, each declared once: rows, columns, JSON and JSON Schema are made of them.

The way back, from JSON to values of their types, is at the end.
"""

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import isnan
from operator import attrgetter, itemgetter
from types import FunctionType, GenericAlias, MappingProxyType, NoneType, UnionType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, MadeBy, ModelIdentity
from attnviz.records.heads import LONGEST_NAME, Head, NamedHead
from attnviz.records.places import HeardSound, ImageView, Patch, SeenImage
from attnviz.records.tokens import CallOptions, Token
from attnviz.records.transforms import transform_to_dict

LEAST_FLOAT32 = float(np.finfo(np.float32).smallest_subnormal)
MOST_FLOAT32 = float(np.finfo(np.float32).max)
SCHEMA = "attnviz/3"
"""The version of everything that commands write as JSON; `attnviz schema` describes it."""
ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
PLAIN_TYPES = frozenset((str, int, bool, NoneType))


def to_json(value: object) -> str:
    """Write a value as JSON on one line that is safe on a terminal.

    Letters are unchanged; unprintable characters (control and format characters, lone
    surrogates, unusual spaces) are written as `\\uXXXX`. Numbers are as in `shortest`.
    """
    written = ENCODE(shortest(value))
    if written.isprintable():
        return written
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)


def shortest(value: Any) -> Any:
    """A value for JSON, in which a float32 has no more digits than needed.

    0.1 in float32 would else be 0.10000000149011612. Other numbers are unchanged.
    """
    if type(value) in PLAIN_TYPES:  # most values of most rows
        return value
    if isinstance(value, float):
        if value.is_integer() or not LEAST_FLOAT32 <= abs(value) <= MOST_FLOAT32:
            return value
        single = np.float32(value)
        return float(str(single)) if float(single) == value else value
    if isinstance(value, Mapping):
        return {n: v if type(v) in PLAIN_TYPES else shortest(v) for n, v in value.items()}
    if isinstance(value, list | tuple):
        return [shortest(each) for each in value]
    return value


def made_to_dict(
    captures: Iterable[Capture],
    models: Sequence[ModelIdentity] = (),
    call: CallOptions | None = None,
) -> dict[str, Any]:
    """The fields about the making of a result, by the arguments of `how_made`."""
    return MADE.row(how_made(captures, models, call))


def how_made(
    captures: Iterable[Capture],
    models: Sequence[ModelIdentity] = (),
    call: CallOptions | None = None,
) -> "HowMade":
    """The making of a result: runs or models, and options; None for those of the captures."""
    runs = list(captures)
    every = list(dict.fromkeys([*(run.model for run in runs), *models]))
    versions = runs[0].versions if runs and runs[0].versions else versions_now()
    return HowMade(runs, every, versions, call or (runs[0].asked if runs else CallOptions()))


@cache
def versions_now() -> Mapping[str, str]:
    """The installed versions of this program and of its libraries."""
    import importlib.metadata  # slow to import, and not needed for saved captures

    versions = {"python": platform.python_version()}
    for name in ("attnviz", "numpy", "torch", "transformers"):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return MappingProxyType(versions)


# A field, declared once: rows, columns, JSON and JSON Schema are made of it.

RecordT = TypeVar("RecordT")
Row: TypeAlias = Mapping[str, object]
ColumnArray: TypeAlias = NDArray[Any]
ABSENT: Final = object()
"""The value of an optional field that is left out."""
KEPT: Final = object()
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def at(path: str, otherwise: object = KEPT) -> Callable[[Any], Any]:
    """A function that reads a path of a record, such as `effect.change.mean` or `runs.0.text`.

    Its value is None after a None; `otherwise` replaces a value that is None, 0 or empty.
    """
    steps = [itemgetter(int(s)) if s.isdigit() else attrgetter(s) for s in path.split(".")]

    def value(record: Any) -> Any:
        for step in steps:
            record = None if record is None else step(record)
        return record if otherwise is KEPT else record or otherwise

    return value


@dataclass(frozen=True)
class Field(Generic[RecordT]):
    """One value of a row: its name, type and meaning, and its function of a record.

    `type`: a Python type, such as `int | None`; `Fields`, for an object; `list_of` and `dict_of`
    such types; a tuple, for one of several; a function that returns `Fields` declared later. `of`:
    takes the value from a record, or `ABSENT` if `optional`; None for the attribute of that name.
    """

    name: str
    type: Any
    about: str = ""
    of: Callable[[RecordT], Any] | None = None
    optional: bool = False

    def within(self, part: Callable[[Any], RecordT]) -> "Field[Any]":
        """This field of a record that has the field's record as a part."""
        of = self.of or attrgetter(self.name)
        return replace(self, of=lambda whole: of(part(whole)))

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema of the value; schemas that it refers to are added to the definitions."""
        schema = schema_of(self.type, definitions)
        return {**schema, "description": self.about} if self.about else schema


@dataclass(frozen=True)
class Fields(Generic[RecordT]):
    """The fields of a row or an object, in order; `more`: it has others, named by the data."""

    name: str = ""
    about: str = ""
    all: Sequence[Field[RecordT]] = ()
    more: bool = False

    @cached_property
    def _makers(self) -> list[tuple[str, Callable[[RecordT], Any], Callable[[Any], Any] | None]]:
        return [(f.name, f.of or attrgetter(f.name), _writer(f.type)) for f in self.all]

    def row(self, record: RecordT) -> dict[str, Any]:
        """The values of a record by name, as in JSON."""
        row = {}
        for name, of, write in self._makers:
            value = of(record)
            if value is not ABSENT:
                row[name] = value if write is None or value is None else write(value)
        return row

    def within(self, part: Callable[[Any], RecordT]) -> "list[Field[Any]]":
        """These fields of a record that has the fields' record as a part."""
        return [field.within(part) for field in self.all]

    def columns(self, rows: Sequence[Row]) -> dict[str, ColumnArray]:
        """Arrays (n_rows) by name: of truth values; of numbers, NaN if missing; else of texts."""
        types = {field.name: field.type for field in self.all}
        names = list(rows[0]) if rows else list(types)
        return {name: _column([row[name] for row in rows], types[name]) for name in names}

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema of a row; schemas that it refers to are added to the definitions."""
        schema = {
            "type": "object",
            "description": self.about,
            "properties": {field.name: field.schema(definitions) for field in self.all},
            "required": [field.name for field in self.all if not field.optional],
        }
        return schema if self.more else {**schema, "additionalProperties": False}


@dataclass(frozen=True)
class JsonOutput:
    """The JSON of a command: rows (with `rows_as_json` also for `-f json`), and objects."""

    rows: Sequence[Fields[Any]] = ()
    objects: Sequence[Fields[Any]] = ()
    rows_as_json: bool = True

    def schema(self, command: str) -> dict[str, Any]:
        """The JSON Schema of all of it; `$defs/row` is that of a row."""
        definitions: dict[str, Any] = {}
        rows = [schema_of(row, definitions) for row in self.rows]
        choices = [schema_of(each, definitions) for each in self.objects]
        about = f"The output of attnviz {command} -f json."
        if rows:
            about += " A line of jsonl is a $defs/row; csv and tsv have its columns, in order."
            definitions["row"] = rows[0] if len(rows) == 1 else {"anyOf": rows}
        if rows and self.rows_as_json:
            choices.append({"$ref": "#/$defs/rows"})
            definitions["rows"] = {
                "type": "object",
                "description": f"The rows of attnviz {command} -f json.",
                "properties": {
                    "schema": {"const": SCHEMA},
                    "command": {"const": command},
                    "made": schema_of(MADE, definitions),
                    "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
                },
                "required": ["schema", "command", "made", "rows"],
                "additionalProperties": False,
            }
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:{SCHEMA.replace('/', ':')}:{command}",
            "title": f"attnviz {command}",
            "description": about,
            **(choices[0] if len(choices) == 1 else {"anyOf": choices}),
            "$defs": dict(sorted(definitions.items())),
        }


def list_of(kind: Any) -> Any:
    """The type of a list of these."""
    return GenericAlias(list, (kind,))


def dict_of(kind: Any) -> Any:
    """The type of an object whose names are data, and whose values are these."""
    return GenericAlias(dict, (str, kind))


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type; schemas that it refers to are added to the definitions."""
    kinds, origin, arguments = kinds_of(kind), get_origin(kind), get_args(kind)
    if len(kinds) > 1:
        return {"anyOf": [schema_of(each, definitions) for each in kinds]}
    if isinstance(kind, FunctionType):
        kind = kind()
    if isinstance(kind, Fields):
        if kind.name not in definitions:
            definitions[kind.name] = {}  # it may refer to itself
            definitions[kind.name] = kind.schema(definitions)
        return {"$ref": f"#/$defs/{kind.name}"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    return {} if kind is Any else {"type": JSON_TYPES[kind]}


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    if isinstance(kind, tuple):
        return kind
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _writer(kind: Any) -> Callable[[Any], Any] | None:
    """The function that makes JSON of a value; None if none is needed."""
    kind = kinds_of(kind)[0]
    if isinstance(kind, FunctionType):
        return lambda value: kind().row(value)
    if isinstance(kind, Fields):
        return kind.row
    if get_origin(kind) not in (list, dict):
        return None
    write = _writer(get_args(kind)[-1]) or (lambda value: value)
    if get_origin(kind) is dict:
        return lambda values: {name: write(value) for name, value in values.items()}
    return lambda values: [
        write(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)
    ]


def _column(values: Sequence[object], kind: Any) -> ColumnArray:
    kinds = set(kinds_of(kind))
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds <= {int, float, NoneType}:
        whole = float not in kinds and None not in values
        return np.array(values, dtype=np.int64 if whole else np.float64)
    texts = (joined(value) if isinstance(value, list) else value for value in values)
    column = np.empty(len(values), dtype=object)
    column[:] = ["" if text is None else text for text in texts]
    return column


def joined(values: Sequence[object]) -> str:
    """A list as one cell: numbers and texts joined by spaces, objects as JSON."""
    plain = all(isinstance(each, str | int | float) for each in values)
    return " ".join(map(str, shortest(values))) if plain else to_json(values)


# Fields that several commands write.


LAYER = "The layer, counted from 0."
HEAD = "The head's number in its layer, counted from 0."
EXACT = "The token's own text with its leading space; empty if it has none."
ERROR = "Standard error; null without one."
LINE_ABOUT = "The number of the input line; 1 for a single text."
LINE: Field[Any] = Field("line", int, LINE_ABOUT)
LINE_OR_MEAN: Field[Any] = Field(
    "line", int | None, f"{LINE_ABOUT.rstrip('.')}; null for the mean over all lines."
)


def fields_at(path: str, *fields: Field[Any]) -> tuple[Field[Any], ...]:
    """These fields of a record that has their own record at a path."""
    return tuple(field.within(at(path)) for field in fields)


def keyed(*fields: Field[Any]) -> tuple[Field[Any], ...]:
    """These fields of a mapping, in which absent values need no key."""

    def key(name: str, record: Mapping[str, Any]) -> Any:
        return record.get(name, ABSENT)

    return tuple(f if f.of else replace(f, of=partial(key, f.name)) for f in fields)


def model_name(of: Callable[[Any], str]) -> Field[Any]:
    """The name of the model."""
    return Field("model", str, "The name that the model was loaded by.", of)


def head_fields(of: Callable[[Any], Head], prefix: str = "") -> tuple[Field[Any], Field[Any]]:
    """The layer and the number of a head."""
    return (
        Field(f"{prefix}layer", int, LAYER, lambda record: of(record).layer),
        Field(f"{prefix}head", int, HEAD, lambda record: of(record).head),
    )


def mean_error(of: Callable[[Any], float | None] | None = None) -> Field[Any]:
    """The standard error of a mean over lines."""
    return Field("error", float | None, "The standard error of a mean over lines.", of)


def if_any(
    name: str, type: Any, about: str = "", of: Callable[[Any], Any] | None = None
) -> Field[Any]:
    """A field that is left out where its value is None, 0 or empty."""
    value = of or attrgetter(name)
    return Field(name, type, about, lambda record: value(record) or ABSENT, optional=True)


def measured(value: float | None) -> float | None:
    """A number, or None if nothing could be measured."""
    return None if value is None or isnan(value) else value


def estimate_fields(
    name: str, about: str, of: Callable[[Any], Any] | None = None, type: Any = float | None
) -> tuple[Field[Any], Field[Any]]:
    """The mean of an `Estimate`, and its standard error; null without one."""
    part = of or at(name)
    return (
        Field(name, type, about, lambda record: measured(part(record).mean)),
        Field(f"{name}_error", float | None, ERROR, lambda record: measured(part(record).error)),
    )


MODEL = Fields[ModelIdentity](
    "ModelObject",
    "A model, and how it was run.",
    (
        Field("name", str),
        Field("architecture", str),
        Field("revision", str | None),
        Field("engine", MadeBy, "The code that ran it; none if it was not run."),
        Field("dtype", str),
        Field("parameters", int, "The number of parameters; 0 if not counted."),
        Field("heads_per_layer", list[int]),
        Field(
            "fingerprint",
            str | None,
            "Of samples of the weights; after a - of all of them, if they were verified.",
        ),
        if_any(
            "quantization",
            str,
            "How the weights are quantised in the file that they were read from, as Q4_K_M.",
        ),
    ),
)
VERSIONS: Field[Any] = Field(
    "versions",
    dict[str, str],
    "The libraries that computed it, by name.",
    lambda run: dict(sorted(run.versions.items())),
)


@dataclass(frozen=True)
class HowMade:
    """The making of a result: the runs of models, and the options."""

    runs: Sequence[Capture]
    models: Sequence[ModelIdentity]
    versions: Mapping[str, str]
    asked: CallOptions


_OF_CAPTURE: tuple[Field[Capture], ...] = (
    Field("text", str),
    Field("target", str, "The text that an encoder-decoder wrote, or was given to write."),
    Field("bos", bool, "Whether a beginning token was added."),
)
RUN = Fields[tuple[Capture, int]](
    "RunObject",
    "A run of a model over a text.",
    (
        *(field.within(itemgetter(0)) for field in _OF_CAPTURE),
        if_any(
            "images",
            list[str],
            "The names of its images.",
            lambda run: [image.raw.name for image in run[0].images],
        ),
        Field("model", int, "The number of the model, from 0.", at("1")),
    ),
)
MADE = Fields[HowMade](
    "MadeObject",
    "How a result was made.",
    (
        Field("models", list_of(MODEL)),
        Field(
            "runs",
            list_of(RUN),
            "One for each text.",
            lambda made: [(run, made.models.index(run.model)) for run in made.runs],
        ),
        VERSIONS,
        *fields_at(
            "asked",
            Field("seed", int | None, "The seed, if the command takes one."),
            Field("options", dict[str, Any], "The options that the user gave, as given."),
        ),
    ),
)
PATCH = Fields[Patch](
    "PatchObject",
    "The part of an image that a token stands for.",
    (
        Field("view", int, "The view of the image, from 0."),
        Field("row", int, "The row in the grid of that view, from 0."),
        Field("column", int),
        Field("box", list[float], "x0, y0, x1, y1 in shares of the image."),
    ),
)
VIEW = Fields[ImageView](
    "ImageView",
    "A grid of image tokens.",
    (
        Field("name", str, "overview, or tile for one of several."),
        Field("window", list[float], "x0, y0, x1, y1: its part of the image, in pixels."),
        Field("rows", int),
        Field("columns", int),
    ),
)
IMAGE = Fields[SeenImage](
    "ImageObject",
    "An image that the model read.",
    (
        Field("name", str, "", at("raw.name")),
        Field("width", int, "In pixels.", lambda image: image.raw.size[0]),
        Field("height", int, "", lambda image: image.raw.size[1]),
        Field("changes", list[str], "What was done to read it.", at("raw.changes")),
        Field("views", list_of(VIEW), "Its views; empty if its tokens have no known places."),
    ),
)
SOUND = Fields[HeardSound](
    "SoundObject",
    "A sound that the model read.",
    (
        Field("name", str),
        Field("rate", int, "Samples per second of the file."),
        Field("heard_rate", int, "Samples per second that the model read."),
        Field("seconds", float, "The length of the whole sound."),
        Field("begin", float, "The second at which the model began to read."),
        Field("end", float),
        Field("frame", float, "The seconds from one frame to the next."),
        Field("window", float, "The seconds that the model takes, padded; 0 for any number."),
        Field("changes", list[str], "What was done to read it."),
    ),
)
HEARD: Field[Any] = if_any("sound", SOUND)
IMAGES: Field[Any] = if_any("images", list_of(IMAGE))
TOKEN = Fields[Token](
    "TokenObject",
    "A token of a text.",
    (
        Field("index", int, "Its position."),
        Field("id", int),
        Field("text", str, "The exact slice of the text."),
        Field("exact", str, EXACT),
        Field("label", str, "The token as a person reads it."),
        Field("start", int, "Its first character in the text."),
        Field("end", int, "The character after its last."),
        Field("special", bool, "Whether it is a special token, which has no slice."),
        Field("part", list[int] | None, "[1, 3]: the first of three that share a character."),
        Field(
            "image",
            int,
            "The image that it is a part of, from 1.",
            lambda token: ABSENT if token.image is None else token.image + 1,
            optional=True,
        ),
        if_any("patch", PATCH),
        if_any("segment", str, "The text of a pair, A or B."),
        if_any(
            "time",
            list[float],
            "The seconds of the sound that it stands for: its first and its last.",
        ),
    ),
)


def placed_fields(of: str) -> tuple[Field[Any], ...]:
    """The part of an image that a token, such as the key, stands for; see `placed_of`."""
    return (
        Field("image", int, f"The image of the {of}, from 1.", optional=True),
        Field("row", int, "Its row in the grid of image tokens, from 0.", optional=True),
        Field("column", int, optional=True),
        Field("x0", float, f"The pixels of the image that the {of} stands for.", optional=True),
        Field("y0", float, optional=True),
        Field("x1", float, optional=True),
        Field("y1", float, optional=True),
    )


def placed_of(capture: Capture, token: Token) -> tuple[float | None, ...]:
    """The values of `placed_fields` for a token of a capture, or None for a token of text."""
    if (patch := token.patch) is None:
        return (None,) * 7
    width, height = capture.images[patch.image].raw.size
    x0, y0, x1, y1 = patch.box
    box = (round(n, 2) for n in (x0 * width, y0 * height, x1 * width, y1 * height))
    return patch.image + 1, patch.row, patch.column, *box


PLACED = placed_fields("key")
"""Of a key that is a part of an image; null or empty for others of the same text."""
TIMED: tuple[Field[Any], ...] = (
    Field("start_seconds", float, "The second of a sound at which the key begins.", optional=True),
    Field("end_seconds", float, optional=True),
)
"""Of a key that is a frame of a sound."""


def places_in(capture: Capture) -> tuple[Field[Any], ...]:
    """The fields that say which part of what was given a key is; none for a text alone."""
    return PLACED if capture.images else TIMED if capture.timed else ()


def place_of(capture: Capture, token: Token) -> tuple[float | None, ...]:
    """The values of `places_in` for a key."""
    return placed_of(capture, token) if capture.images else token.time or (None, None)


ADDED: Field[Any] = Field("made", MADE, "", lambda record: ABSENT)
"""The making of an object, which writers add at its end."""
UNKNOWN: Field[Any] = if_any(
    "unknown_words", list[str], "Words that the built-in translator was not trained on."
)
TARGET: Field[Any] = if_any("target", str)
TRANSFORMS: Field[Any] = Field(
    "transforms",
    list[dict[str, Any]],
    "",
    lambda run: [transform_to_dict(transform) for transform in run.transforms],
)


def object_fields(command: str) -> tuple[Field[Any], ...]:
    """The first fields of a JSON object that is not a list of rows."""
    return (
        Field("schema", str, "", lambda record: SCHEMA),
        Field("command", Literal[command], "", lambda record: command),
        ADDED,
    )


RUN_FIELDS: tuple[Field[Any], ...] = (Field("model", MODEL), VERSIONS, Field("text", str))
"""The fields of an object about a run, without tokens."""
NAMED_HEAD = Fields[NamedHead](
    "NamedHeadRow",
    "A head that is known for a behaviour.",
    (
        Field("behaviour", str),
        *head_fields(at("head")),
        Field("title", str, "The behaviour that it is known for, in words."),
    ),
)


# The way back: a value from JSON as the type of its field; what it has wrongly is a ValueError.

JsonObject: TypeAlias = Mapping[str, Any]
MOST_HEADS = 1 << 16  # more than any model has; a forged file could ask for any number
MOST_ENTRIES = 1_000  # heads, figures or texts of a card, effects of a capture
LARGEST_COUNT = 1 << 53
"""The largest number of anything that is counted."""
LARGEST = 1e30
"""The largest score, loss or norm; sums of larger ones would leave float32."""
OLDER: JsonObject = {"target": "", "sinks": False, "options": {}, "exact": ""}
"""The values of fields that older captures do not have."""


def read_as(kind: Any, value: Any, name: str) -> Any:
    """A value from JSON, which has to be of a field's type; objects without undeclared fields."""
    kinds = kinds_of(kind)
    if value is None and NoneType in kinds:
        return None
    kind, origin, arguments = kinds[0], get_origin(kinds[0]), get_args(kinds[0])
    if isinstance(kind, Fields):
        check(isinstance(value, dict), name)
        known = (field for field in kind.all if field.name in value or not field.optional)
        return {
            f.name: read_as(f.type, value.get(f.name, OLDER.get(f.name)), f.name) for f in known
        }
    if origin in (list, tuple):
        check(isinstance(value, list), name)
        return origin(read_as(arguments[0], each, name) for each in value)
    if origin is dict:
        check(isinstance(value, dict), name)
        return {key: read_as(arguments[1], each, key) for key, each in value.items()}
    among = kind is Any or any(_is(value, each) for each in kinds)
    check(value in arguments if origin is Literal else among, name)
    return value


def _is(value: object, kind: type) -> bool:
    if type(value) is str and not value.isascii():
        value.encode("utf-8")  # half a character is a UnicodeEncodeError, which is a ValueError
    # not isinstance: True is no number here
    return type(value) is kind and not (kind is int and abs(cast(int, value)) > LARGEST)


def is_count(number: int) -> bool:
    return 0 <= number <= LARGEST_COUNT


def check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} cannot be right")


def check_lengths(entry: JsonObject) -> None:
    """See that texts that are shown in a line with others have an end."""
    for name, value in entry.items():
        check(not isinstance(value, str) or len(value) <= LONGEST_NAME, name)


def counted(value: Any, name: str) -> Any:
    """A number that is no larger than a count can be, as a float, or None."""
    check(value is None or abs(value) <= LARGEST_COUNT, name)  # no NaN
    return None if value is None else float(value)


def model_of_dict(written: object) -> ModelIdentity:
    """A model's identity, as `MODEL` writes it."""
    entry = read_as(MODEL, written, "model")
    per_layer = tuple(entry["heads_per_layer"])
    check(all(n >= 0 for n in per_layer) and sum(per_layer) <= MOST_HEADS, "heads_per_layer")
    check(is_count(entry["parameters"]), "parameters")
    check_lengths(entry)
    return ModelIdentity(**{**entry, "heads_per_layer": per_layer})
