"""A result: a record, and its forms of output."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnviz.console import Display, plain_text
from attnviz.draw.titles import model_notes, text_notes
from attnviz.errors import AttnvizError, IdleOption, UsageError, as_argument, option, spelled
from attnviz.inputs.captures import CAPTURE_META, Entry, archive_chunks, npy_bytes
from attnviz.kit.write import ROWS, choose_format, encoded, record_chunks, write_bytes
from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.rows import ColumnArray, Fields, Row, made_to_dict, shortest, to_json
from attnviz.records.tokens import CallOptions, current_call

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


# A calculation with every array in full: one JSON object, or an .npz file.


Numbers: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


def calculation_json(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[str]:
    """Write the facts as fields, then `arrays`: nested lists by name, −∞ as null."""
    yield "{\n"
    for name, value in facts.items():
        yield f"{to_json(name)}: {to_json(value)},\n"
    yield '"arrays": {'
    for number, (name, array) in enumerate(arrays.items()):
        yield f"{',' if number else ''}\n{to_json(name)}: {json.dumps(_nested(array))}"
    yield "\n}\n}\n"


def _nested(array: Numbers) -> object:
    """The array as nested lists, with the shortest decimals that mean the same number."""
    if array.ndim > 1:
        return [_nested(row) for row in array]
    return [float(str(x)) if np.isfinite(x) else None for x in array]


def calculation_npz(facts: Mapping[str, object], arrays: Mapping[str, Numbers]) -> Iterator[bytes]:
    """Write the facts as JSON in the entry `meta`, then every array."""
    meta: Entry = np.array(json.dumps(facts, allow_nan=False))
    yield from archive_chunks([(CAPTURE_META, meta), *arrays.items()])


T = TypeVar("T")
Maker: TypeAlias = str | Callable[..., Any]
"""A function, or its name as "module:function", which is imported when it is needed."""


@dataclass(frozen=True)
class Form(Generic[T]):
    """The forms of output of a command's result.

    Attributes:
        command: the command that finds it.
        fields: the fields of its rows; None without rows.
        each: makes the items of rows from the record, the most rows (None: all), and the number
            of the input line (None: a mean over all).
        about: the subject of a record, in a few words.
        terminal: makes the renderables of (record, display).
        view: makes the view of (record, unicode=…), where terminal and picture read one.
        picture: draws (record, **look), if there is a picture that is not of a view.
        page: makes the page of (record), if there is one.
        whole: the fields of the JSON object of a record that is more than its rows.
        archive: the facts and the arrays of (record), if it has a matrix; without rows, they are
            its JSON object, too.
        top: how many parts the terminal names by default (0: it has more than one default); then
            `terminal` takes their number, too.
        named: `picture` takes their number, too, and names that many.
        mean: makes one record of those of several texts, if they have a mean.
        about_mean: makes notes on it, if `mean` takes the numbers of the texts, too.
        mean_form: the form of that mean, if it is another.
        vector: the vector (d) of (record), if it has one.
    """

    command: str
    fields: Fields[Any] | None
    each: Callable[[T, int | None, int | None], Iterable[Any]]
    about: Callable[[T], str]
    terminal: Maker | None = None
    view: Maker | None = None
    picture: Maker | None = None
    page: Maker | None = None
    whole: Fields[T] | None = None
    archive: Maker | None = None
    top: int | None = None
    named: bool = False
    mean: Callable[..., Any] | None = None
    mean_form: "Form[Any] | None" = None
    about_mean: Maker = ""
    vector: Maker | None = None

    def part(self, name: str, refusal: str) -> Any:
        """An attribute's value: the fields, or the function that makes a form of output."""
        maker: Maker | Fields[Any] | None = getattr(self, name)
        if maker is None:
            hint = "use its rows" if self.fields else "write json or npz"
            hint = "use a picture" if name == "page" and (self.picture or self.view) else hint
            raise UsageError(f"this result of {self.command} {refusal}", hint)
        if isinstance(maker, str):
            module, _, name = maker.partition(":")
            return getattr(import_module(module), name)
        return maker


@dataclass(frozen=True, eq=False, repr=False)
class Result(Generic[T]):
    """The result of a command, from `attnviz.heads` and similar functions.

    >>> found = attnviz.ablate("a fluffy blue creature", heads="L1H2")
    >>> found
    <Result of ablate: builtin, 5 tokens with BOS>
    >>> sorted(found.to_columns())[:3], found.rows[0]["replacement"]
    (['after', 'answer', 'answer_begins'], 'zero')
    >>> found.save("ablation.csv")

    Attributes:
        record: the frozen record of the findings, from which everything else is made.
        captures: its runs, without patterns if it needs none.
        models: those of a result without a text.
        asked: the options that were given.

    `_top`: the number of parts to write, or None for all, as rows. `_line`: the number of the input
    line, or None for a mean over all. `_before`: the results whose rows precede its own. `_made`:
    its making, if that was read with it. `_noted`: notes on a mean.
    """

    _form: Form[T]
    record: T
    captures: Sequence[Capture] = ()
    models: Sequence[ModelIdentity] = ()
    asked: CallOptions = field(default_factory=current_call)
    _top: int | None = None
    _line: int | None = 1
    _before: "Sequence[Result[Any]]" = ()
    _made: Row | None = None
    _noted: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The name of its command."""
        return self._form.command

    @property
    def about(self) -> str:
        """The subject, in a few words."""
        return self._form.about(self.record)

    @property
    def made(self) -> Row:
        """The making of the result: models, texts, versions, seed and options, as in JSON."""
        return self._made or made_to_dict(self.captures, self.models, self.asked)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the texts, if one was cut, or is unlike those of the training."""
        of_models = (note for model in self.models for note in model_notes(model))
        return tuple(dict.fromkeys([*of_models, *notes_of(self.captures, self._noted)]))

    @property
    def rows(self) -> list[Row]:
        """The rows that the command writes; `attnviz schema` describes them."""
        rows: list[Row] = shortest(self._rows())
        return rows

    @property
    def _fields(self) -> Fields[Any]:
        fields: Fields[Any] = self._form.part("fields", "writes no rows")
        return fields

    @property
    def _archive(self) -> tuple[Row, Mapping[str, Numbers]]:
        archive: tuple[Row, Mapping[str, Numbers]]
        archive = self._form.part("archive", "writes no npz")(self.record)
        return archive

    def _rows(self) -> list[Row]:
        before = [row for each in self._before for row in each._rows()]
        records = self._form.each(self.record, self._top, self._line)
        return [*before, *map(self._fields.row, records)]

    def to_columns(self) -> dict[str, ColumnArray]:
        """The rows by column, for `pandas.DataFrame` and `polars.DataFrame`.

        Returns:
            arrays (n_rows,) by name, in the types that `attnviz schema` gives them; a missing
            number is NaN, a missing text is empty.
        """
        return self._fields.columns(self.rows)

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
        form = self._form
        if form.view and not form.picture:
            from attnviz.draw.picture.panes import draw_view

            return draw_view(form.part("view", "")(self.record), **look)
        if form.named:
            look["top"] = self._top or form.top
        drawn: Drawn = form.part("picture", "draws no picture")(self.record, **look)
        return drawn

    def shown(self, display: Display) -> "Iterable[RenderableType]":
        """What the terminal shows."""
        form = self._form
        top = () if form.top is None else (self._top or form.top,)
        if form.view:
            from attnviz.draw.terminal.grid import show_view

            view_of = form.part("view", "")
            return show_view(view_of(self.record, *top, unicode=display.unicode), display)
        terminal: Callable[..., Iterable[RenderableType]] = form.part("terminal", "shows nothing")
        return terminal(self.record, display, *top)

    def pieces(
        self, format: str, display: Display | None = None, **look: Any
    ) -> "Iterable[RenderableType | str | bytes]":
        """The result in a format, piece by piece; txt as renderables."""
        if format == "npz" or (format == "json" and self._form.fields is None):
            facts, arrays = self._archive
            write = calculation_npz if format == "npz" else calculation_json
            return write({**facts, "made": self.made}, arrays)
        if format == "npy":
            return [npy_bytes(self._form.part("vector", "writes no vector")(self.record))]
        if format == "html":
            page: Iterable[str] = self._form.part("page", "makes no page")(self.record)
            return page
        if format == "txt":
            return self.shown(display or Display())
        if format == "json" and self._form.whole is not None:
            return [to_json({**self._form.whole.row(self.record), "made": self.made}) + "\n"]
        if format in ("json", *ROWS):
            return record_chunks(self._rows(), format, self.command, made=self.made)
        from attnviz.draw.picture.canvas import figure_bytes

        return [figure_bytes(self.figure(**look), format)]

    def save(self, path: str | Path, **look: Any) -> None:
        """Write it to a file: rows, a picture, or the text that the terminal shows.

        Args:
            path: its suffix decides: json, jsonl, csv, tsv, txt, png, svg or pdf; npz, if there is
                a matrix; html, if there is a page.
            look: for a picture, as for `figure`.

        Raises:
            UsageError: another suffix, or a result without a picture.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False)
        if look and not form.picture:
            raise UsageError(f"{next(iter(look))} is for pictures")
        pieces = [str(self)] if form.name == "txt" else self.pieces(form.name, **look)
        write_bytes(Path(path), encoded(pieces))

    def after(self, texts: "Sequence[Result[Any]]") -> "Result[T]":
        """The result with the rows and the runs of these texts before its own."""
        captures = [captured for each in (*texts, self) for captured in each.captures]
        return replace(self, _before=texts, captures=captures)

    def __repr__(self) -> str:
        return f"<Result of {self.command}: {self.about}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        return plain_text(self.shown(Display()), Display().width)


def of_texts(text: str | Sequence[str], each: Iterable[Result[Any]]) -> Result[Any]:
    """The result of one text; for several their mean, after the results of each."""
    results = [replace(own, _line=line) for line, own in enumerate(each, start=1)]
    return results[0] if isinstance(text, str) else mean_result(results)


def mean_result(results: Sequence[Result[Any]]) -> Result[Any]:
    """The mean over several texts, after the rows of each."""
    form, top = results[0]._form, results[0]._top
    assert form.mean is not None
    lines = [[each._line for each in results]] if form.about_mean else []
    record = form.mean([each.record for each in results], *lines)
    noted = form.part("about_mean", "")(record) if lines else ()
    return Result(form.mean_form or form, record, _top=top, _line=None, _noted=noted).after(results)


def refuse_picture(*_: object, **look: object) -> NoReturn:
    """Refuse to draw the one effect of several parts together."""
    raise IdleOption(
        f"{option('together')} gives one number, not a picture", "leave one of them out"
    )


def notes_of(captures: Iterable[Capture], more: Sequence[str] = ()) -> tuple[str, ...]:
    """The notes on the texts of captures, and more, each once, as Python spells them."""
    notes = (note for captured in captures for note in text_notes(captured))
    return tuple(dict.fromkeys(spelled(note, as_argument) for note in (*notes, *more)))


class Calculation(Result[T]):
    """A calculation, step by step; made by `attnviz.explain`.

    >>> attnviz.explain("a fluffy blue creature", head="L3H2", query="creature")
    <Calculation of L3H2 at creature, builtin, 30 arrays>
    """

    @property
    def facts(self) -> Row:
        """The facts about the arrays, as in JSON."""
        return self._archive[0]

    @property
    def arrays(self) -> Mapping[str, Numbers]:
        """Every intermediate array by name, in the order of the calculation; see `record`."""
        return self._archive[1]

    def _repr_html_(self) -> str:
        """The page for a notebook, in a sandboxed frame; else the steps."""
        from attnviz.draw.page import in_frame

        if self._form.page is not None:
            with suppress(AttnvizError):  # it is too large for a page
                return in_frame("".join(self.pieces("html")))  # type: ignore[arg-type]
        return super()._repr_html_()

    def __repr__(self) -> str:
        return f"<Calculation of {self.about}, {len(self.arrays)} arrays>"
