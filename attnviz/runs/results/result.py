"""A result: a record, and the forms in which it goes out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnviz.console import Display, plain_text
from attnviz.data.serial import to_json
from attnviz.errors import UsageError
from attnviz.writers.atomic import encoded, write_bytes
from attnviz.writers.explain import Numbers, calculation_npz
from attnviz.writers.formats import PICTURES, ROWS, choose_format
from attnviz.writers.records import joined, record_chunks

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnviz.renderers.picture.canvas import Drawn

T = TypeVar("T")
Row: TypeAlias = Mapping[str, object]
Column: TypeAlias = NDArray[Any]
WRITTEN = ("txt", "json", "npz", *ROWS, *PICTURES)


@dataclass(frozen=True, eq=False, repr=False)
class Result(Generic[T]):
    """What a command found; made by `attnviz.heads` and its like.

    >>> found = attnviz.ablate("a fluffy blue creature", heads="L1H2")
    >>> found
    <Result of ablate: builtin, 5 tokens with BOS>
    >>> sorted(found.to_columns())[:3], found.rows[0]["replacement"]
    (['after', 'answer', 'answer_exact'], 'zero')
    >>> found.save("ablation.csv")

    Attributes:
        command: the command that finds it.
        record: the frozen record of what was found; everything else is made of it.
        about: what it is of, in a few words.

    `_whole` makes the JSON object of a result that is more than its rows, `_archive` the facts and
    arrays of one that has a matrix.
    """

    command: str
    record: T
    about: str
    _rows: Callable[[], Sequence[Row]]
    _shown: "Callable[[Display], Iterable[RenderableType]]"
    _draw: "Callable[..., Drawn] | None" = None
    _whole: Callable[[], Row] | None = None
    _archive: Callable[[], tuple[Row, Mapping[str, Numbers]]] | None = None

    @property
    def rows(self) -> list[Row]:
        """The rows that the command writes; `attnviz schema` describes them."""
        return list(self._rows())

    def to_columns(self) -> dict[str, Column]:
        """The rows by column, as `pandas.DataFrame` and `polars.DataFrame` take them.

        Returns:
            arrays (n_rows,) by name; a number that is missing is NaN.
        """
        return columns_of(self.rows)

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
            return calculation_npz(*self._archive())
        if format == "txt":
            return self.shown(display or Display())
        if format == "json" and self._whole is not None:
            return [to_json(self._whole()) + "\n"]
        if format in ("json", *ROWS):
            return record_chunks(self._rows(), format, self.command)
        from attnviz.renderers.picture.canvas import figure_bytes

        return [figure_bytes(self.figure(**look), format)]

    def save(self, path: str | Path, **look: Any) -> None:
        """Write it to a file: rows, a picture, or the text that the terminal shows.

        Args:
            path: its suffix decides: json, jsonl, csv, tsv, txt, png, svg or pdf.
            look: for a picture, as for `figure`.

        Raises:
            UsageError: another suffix, or a picture that there is not.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False)
        if form.name == "txt":
            write_bytes(Path(path), [str(self).encode()])
            return
        if form.name not in WRITTEN:
            raise UsageError(f"attnviz {self.command} writes no {form.name}", "choose another file")
        write_bytes(Path(path), encoded(self.pieces(form.name, **look)))

    def __repr__(self) -> str:
        return f"<Result of {self.command}: {self.about}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        return plain_text(self.shown(Display()), Display().width)


def columns_of(rows: Sequence[Row]) -> dict[str, Column]:
    """Rows by column, in their order; a value that a row lacks is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: Sequence[object]) -> Column:
    """Numbers as numbers (NaN where one is missing), truth as truth, lists joined as in csv."""
    values = [joined(value) if isinstance(value, list) else value for value in values]
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known) and len(known) == len(values):
        return np.array(values, dtype=np.bool_)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        whole = len(known) == len(values) and all(isinstance(value, int) for value in known)
        return np.array(values, dtype=np.int64 if whole else np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
