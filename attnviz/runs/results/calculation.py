"""A calculation: a record, all of its arrays, and how it is written out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from attnviz.console import Display, plain_text
from attnviz.errors import UsageError
from attnviz.records.call import Asked, asked
from attnviz.records.capture import Capture
from attnviz.records.rows import made_to_dict
from attnviz.runs.results.result import notes_of
from attnviz.writers.atomic import encoded, write_bytes
from attnviz.writers.explain import Numbers, calculation_json, calculation_npz
from attnviz.writers.formats import Piece, choose_format

if TYPE_CHECKING:
    from rich.console import RenderableType

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
