"""A result: a record, and the forms in which it goes out."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from attnviz.console import Display, plain_text
from attnviz.draw.titles import model_notes, text_notes
from attnviz.errors import UsageError, as_argument, spelled
from attnviz.kit.formats import PICTURES, ROWS, Piece, choose_format, joined, record_chunks
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.call import Asked, asked
from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.rows import CAPTURE_META, made_to_dict, shortest, to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


# A calculation with every array in full: one JSON object, or an .npz file.


Numbers: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


def calculation_json(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[str]:
    """The facts as fields, then `arrays`: nested lists by name, −∞ as null."""
    yield "{\n"
    for name, value in facts.items():
        yield f"{to_json(name)}: {to_json(value)},\n"
    yield '"arrays": {'
    for number, (name, array) in enumerate(arrays.items()):
        yield f"{',' if number else ''}\n{to_json(name)}: {json.dumps(_nested(array))}"
    yield "\n}\n}\n"


def _nested(array: Numbers) -> object:
    """Lists of lists with the shortest decimals that mean the same number."""
    if array.ndim > 1:
        return [_nested(row) for row in array]
    return [float(str(x)) if np.isfinite(x) else None for x in array]


def calculation_npz(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[bytes]:
    """The facts as JSON in the entry `meta`, then every array."""
    from attnviz.inputs.captures import Entry, archive_chunks

    entries: list[tuple[str, Entry]] = [
        (CAPTURE_META, np.array(json.dumps(facts, allow_nan=False)))
    ]
    entries += [(name, array) for name, array in arrays.items()]
    yield from archive_chunks(entries)


T = TypeVar("T")
Row: TypeAlias = Mapping[str, object]
Column: TypeAlias = NDArray[Any]
WRITTEN = ("txt", "json", "npz", "html", *ROWS, *PICTURES)


@dataclass(frozen=True, eq=False, repr=False)
class Result(Generic[T]):
    """What a command found; made by `attnviz.heads` and its like.

    >>> found = attnviz.ablate("a fluffy blue creature", heads="L1H2")
    >>> found
    <Result of ablate: builtin, 5 tokens with BOS>
    >>> sorted(found.to_columns())[:3], found.rows[0]["replacement"]
    (['after', 'answer', 'answer_begins'], 'zero')
    >>> found.save("ablation.csv")

    Attributes:
        command: the command that finds it.
        record: the frozen record of what was found; everything else is made of it.
        about: what it is of, in a few words.
        captures: the runs that it is of, without patterns where it needs none.
        models: those of a result of no text.
        asked: the options that were given.

    `_kinds` declare the rows. `_whole` makes the JSON object of a result that is more than its
    rows, `_archive` the facts and arrays of one that has a matrix, `_page` a web page. `_made`: how
    it was made, where that was read with it.
    """

    command: str
    record: T
    about: str
    _kinds: Sequence[type[Any]]
    _rows: Callable[[], Sequence[Row]]
    _shown: "Callable[[Display], Iterable[RenderableType]]"
    _draw: "Callable[..., Drawn] | None" = None
    _whole: Callable[[], Row] | None = None
    _archive: Callable[[], tuple[Row, Mapping[str, Numbers]]] | None = None
    _page: Callable[[], Iterable[str]] | None = None
    captures: Sequence[Capture] = ()
    models: Sequence[ModelIdentity] = ()
    asked: Asked = field(default_factory=asked)
    _made: Row | None = None

    @property
    def made(self) -> Row:
        """How it was made: models, texts, versions, seed and options, as JSON carries them."""
        return self._made or made_to_dict(self.captures, self.models, self.asked)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the texts: that one was cut, or is none of the model's world."""
        said = (note for model in self.models for note in model_notes(model))
        return tuple(dict.fromkeys([*said, *notes_of(self.captures)]))

    @property
    def rows(self) -> list[Row]:
        """The rows that the command writes; `attnviz schema` describes them."""
        rows: list[Row] = shortest(list(self._rows()))
        return rows

    def to_columns(self) -> dict[str, Column]:
        """The rows by column, as `pandas.DataFrame` and `polars.DataFrame` take them.

        Returns:
            arrays (n_rows,) by name, in the types that `attnviz schema` gives them; a number that
            is missing is NaN, a text that is missing is empty.
        """
        return columns_of(self.rows, self._kinds)

    def figure(self, **look: Any) -> "Figure":
        """The picture that the command draws.

        Args:
            look: `cmap`, the name of a Matplotlib colour map; `dpi`, dots per inch.

        Raises:
            UsageError: there is no picture of it, or no such colour map.
        """
        return self.drawn(**look).figure

    def drawn(self, **look: Any) -> "Drawn":
        """The picture, with what is to be said beside it; as `figure`."""
        if self._draw is None:
            raise UsageError(f"attnviz {self.command} draws no picture of this", "use its rows")
        return self._draw(**look)

    def shown(self, display: Display) -> "Iterable[RenderableType]":
        """What the terminal shows."""
        return self._shown(display)

    def pieces(
        self, format: str, display: Display | None = None, **look: Any
    ) -> "Iterable[RenderableType | str | bytes]":
        """It in a format, piece by piece; txt as renderables.

        Raises:
            UsageError: there is no picture of it, or it is not written so.
        """
        if format == "npz":
            if self._archive is None:
                raise UsageError(f"attnviz {self.command} writes no npz of this", "use its rows")
            facts, arrays = self._archive()
            return calculation_npz({**facts, "made": self.made}, arrays)
        if format == "html":
            if self._page is None:
                raise UsageError(f"attnviz {self.command} makes no page of this", "use a picture")
            return self._page()
        if format == "txt":
            return self.shown(display or Display())
        if format == "json" and self._whole is not None:
            return [to_json({**self._whole(), "made": self.made}) + "\n"]
        if format in ("json", *ROWS):
            return record_chunks(self._rows(), format, self.command, made=self.made)
        from attnviz.draw.picture.canvas import figure_bytes

        return [figure_bytes(self.figure(**look), format)]

    def save(self, path: str | Path, **look: Any) -> None:
        """Write it to a file: rows, a picture, or the text that the terminal shows.

        Args:
            path: its suffix decides: json, jsonl, csv, tsv, txt, png, svg or pdf; npz, where there
                is a matrix; html, where there is a page.
            look: for a picture, as for `figure`.

        Raises:
            UsageError: another suffix, or a picture that there is not.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False)
        if look and not form.picture:
            raise UsageError(f"{next(iter(look))} is for pictures", "leave it out")
        if form.name == "txt":
            write_bytes(Path(path), [str(self).encode()])
            return
        if form.name not in WRITTEN:
            raise UsageError(f"attnviz {self.command} writes no {form.name}", "choose another file")
        write_bytes(Path(path), encoded(self.pieces(form.name, **look)))

    def after(self, texts: "Sequence[Result[Any]]") -> "Result[T]":
        """The same mean, with the rows of each text before its own."""
        captures = [captured for each in texts for captured in each.captures]
        before = [each._rows for each in texts]

        def every() -> list[Row]:
            return [row for made in (*before, self._rows) for row in made()]

        return replace(self, _rows=every, captures=captures)

    def __repr__(self) -> str:
        return f"<Result of {self.command}: {self.about}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        return plain_text(self.shown(Display()), Display().width)


def notes_of(captures: Iterable[Capture]) -> tuple[str, ...]:
    """What is to be said of the texts of captures, each once, as Python spells it."""
    said = (note for captured in captures for note in text_notes(captured))
    return tuple(dict.fromkeys(spelled(note, as_argument) for note in said))


def columns_of(rows: Sequence[Row], kinds: Sequence[type[Any]]) -> dict[str, Column]:
    """Rows by column, each in the type that one of their declarations gives it.

    Args:
        rows: the rows.
        kinds: the `TypedDict`s that declare them; of several, the first that has their names.
    """
    present = set(rows[0]) if rows else None
    kind = next(k for k in kinds if present is None or present <= set(k.__annotations__))
    hints = get_type_hints(kind)
    names = list(rows[0]) if rows else list(hints)
    return {name: _column([row[name] for row in rows], hints[name]) for name in names}


def _column(values: Sequence[object], hint: Any) -> Column:
    """Truth and numbers, NaN where one is missing; else texts, as the cells of csv have them."""
    if get_origin(hint) is NotRequired:
        (hint,) = get_args(hint)
    kinds = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
    known = kinds - {NoneType}
    if known == {bool} and NoneType not in kinds:
        return np.array(values, dtype=np.bool_)
    if known <= {int, float}:
        whole = float not in known and None not in values
        return np.array(values, dtype=np.int64 if whole else np.float64)
    texts = (joined(value) if isinstance(value, list) else value for value in values)
    column = np.empty(len(values), dtype=object)
    column[:] = ["" if text is None else text for text in texts]
    return column


# A calculation: a record, all of its arrays, and how it is written out.


RecordT = TypeVar("RecordT")
CALCULATION_FORMATS = ("txt", "json", "npz")


@dataclass(frozen=True, eq=False, repr=False)
class Calculation(Generic[RecordT]):
    """A calculation, step by step; made by `attnviz.explain`.

    >>> attnviz.explain("a fluffy blue creature", head="L3H2", query="creature")
    <Calculation of L3H2 at creature, builtin, 29 arrays>

    Attributes:
        record: the frozen record of it.
        about: what it is of, in a few words.
        facts: what there is to know beside the arrays, as it is written to JSON.
        arrays: every intermediate array by name, in the order of the calculation; the record says
            what shape each has.
    """

    record: RecordT
    about: str
    facts: Mapping[str, object]
    arrays: Mapping[str, Numbers]
    _shown: "Callable[[Display], Iterable[RenderableType]]"
    captures: Sequence[Capture] = ()
    asked: Asked = field(default_factory=asked)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the text: that it was cut, or is none of the model's world."""
        return notes_of(self.captures)

    def pieces(self, format: str, display: Display | None = None) -> Iterable[Piece]:
        """It in a format: the steps as renderables, or every number as `json` or `npz`."""
        if format == "txt":
            return self._shown(display or Display())
        write = calculation_json if format == "json" else calculation_npz
        made = made_to_dict(self.captures, told=self.asked)
        return write({**self.facts, "made": made}, self.arrays)

    def save(self, path: str | Path) -> None:
        """Write it to a file: the steps (txt), or every number (json, npz).

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False)
        if form.name not in CALCULATION_FORMATS:
            raise UsageError(f"no calculation is written as {form.name}", "name it .json or .npz")
        pieces = [str(self)] if form.name == "txt" else self.pieces(form.name)
        write_bytes(Path(path), encoded(pieces))

    def __repr__(self) -> str:
        return f"<Calculation of {self.about}, {len(self.arrays)} arrays>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        return plain_text(self._shown(Display()), Display().width)
