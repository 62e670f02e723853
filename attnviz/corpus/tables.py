"""The tables of a scan's result: what they are of, and how they are written as Parquet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from attnviz.corpus.folder import AGAIN, Store
from attnviz.corpus.record import SCORES, FloatArray64, Record
from attnviz.errors import InputError, needing
from attnviz.records.capture import FloatArray, IntArray, ModelIdentity
from attnviz.records.heads import Head, grouped
from attnviz.records.metrics import METRICS
from attnviz.records.rows import ABSENT, ERROR, HEAD, LAYER, Field, Fields, Row, kinds_of

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(SCORES)]
MeanOver: TypeAlias = Literal["documents", "tokens"]
"""The items that the mean of a score is over; tokens are the queries that can show it."""
Histogram: TypeAlias = Literal["distance", "position", "largest"]
"""`distance`, `position`: the mean mass per query on keys so far away, or at this position;
`largest`: the number of windows with their largest weight there."""
TokenSide: TypeAlias = Literal["query", "key", "pair"]


# The result of a scan: a row for each head, and all that was found of one of them.
#
# FOLDER/heads.parquet         Atlas.rows
# FOLDER/histograms.parquet    HeadAtlas.histograms
# FOLDER/tokens.parquet        HeadAtlas.tokens
# FOLDER/examples.parquet      HeadAtlas.examples


@dataclass(frozen=True)
class Bin:
    """A bin of a histogram: from `start` up to, and without, `end`; None if it is open."""

    start: float
    end: float | None
    value: float


@dataclass(frozen=True)
class TokenMass:
    """A query token, a key token or a pair of them, and its mass over the sampled windows.

    What a token attends to itself, and the first token of a window, are left out.
    """

    query: str | None
    key: str | None
    mass: float


@dataclass(frozen=True, eq=False)
class HeadExample:
    """A window of the corpus, with the strongest links of one head in it.

    `kind`: "top" where it is one of those with the largest weight between two tokens, "bin" where
    it was drawn from the windows of its bin; `bin`: the number of the bin of `largest`, its largest
    weight; `apart`: that between two tokens (both without the first row and column); `path`,
    `start`: the document; `window`: its number in that.
    `queries`, `keys`, `weights` (n): the links, by query, at most 8 keys a row, 0.005 and more.
    """

    kind: Literal["top", "bin"]
    bin: int
    largest: float
    apart: float
    path: str
    start: int
    window: int
    tokens: tuple[str, ...]
    queries: IntArray
    keys: IntArray
    weights: FloatArray

    @property
    def strongest(self) -> tuple[int, int] | None:
        """Query and key of the strongest link that has a meaning, or None without a link.

        First row and column are left out, and a token's attention to itself where there is other.
        """
        inner = (self.queries > 0) & (self.keys > 0)
        for chosen in (inner & (self.queries != self.keys), inner):
            links = np.flatnonzero(chosen)
            if len(links):
                best = links[np.argmax(self.weights[links])]
                return int(self.queries[best]), int(self.keys[best])
        return None


@dataclass(frozen=True, eq=False)
class HeadAtlas:
    """All that a scan found of one head; `row` is that of `Atlas.rows`, `model` the model's name.

    `sampled`: over how many windows the tokens were counted; each side's with the most mass first.
    """

    row: Mapping[str, Any]
    histograms: Mapping[Histogram, Sequence[Bin]]
    tokens: Mapping[TokenSide, Sequence[TokenMass]]
    examples: Sequence[HeadExample]
    sampled: int = 0
    model: str = ""

    def __repr__(self) -> str:
        tokens = sum(map(len, self.tokens.values()))
        return (
            f"<HeadAtlas of {self.model} {self.head}: {len(SCORES)} scores, "
            f"{len(self.histograms)} histograms, {tokens:,} tokens, {len(self.examples)} examples>"
        )

    @property
    def head(self) -> Head:
        return head_of(self.row)

    def first(self, most: int | None) -> "HeadAtlas":
        """The head with at most this number of tokens of each side and of examples, or with all."""
        tokens = {side: masses[:most] for side, masses in self.tokens.items()}
        return replace(self, tokens=tokens, examples=self.examples[:most])


@dataclass(frozen=True, eq=False)
class Atlas:
    """The scores of every head, as `heads.parquet` has them; `model` is its name.

    `rows`: beside the columns, `mean_over`: the items that scores are averaged over.
    `manifest`: that of the scan; `identity`: the model as it was loaded; `folder`: where the
    tables are, as it was named; `made`: how the scan was made, as every result of it carries it.
    `total`: the counted part, where the scan is not finished; then the rows have `partial`.
    """

    model: str
    rows: Sequence[Mapping[str, Any]]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    identity: ModelIdentity | None = None
    folder: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    total: Record | None = None

    @property
    def partial(self) -> str:
        """`312 of 1,204 shards, 26%`, where the scan is not finished."""
        return partial_of(self.rows[0])

    @property
    def length(self) -> int | None:
        """The most tokens of a window, as the model took them; None where nobody said it."""
        length = self.made.get("options", {}).get("length")
        return length if isinstance(length, int) else None

    @property
    def mean_over(self) -> MeanOver:
        """The items that the scores are means over."""
        over: MeanOver = self.rows[0]["mean_over"]
        return over

    def sorted_by(self, score: str) -> "Atlas":
        """The heads in the order of a score, the largest first; heads without the score last."""
        order = sorted(self.rows, key=lambda row: (row[score] is None, -(row[score] or 0.0)))
        return replace(self, rows=order)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that were scanned, in the order of the rows."""
        return tuple(map(head_of, self.rows))

    def values(self, column: str) -> FloatArray64:
        """A column of the rows (heads), NaN where nothing could be measured."""
        return np.array([row[column] for row in self.rows], np.float64)

    @property
    def size(self) -> tuple[int, int]:
        """The number of documents and of tokens that were counted."""
        return int(self.rows[0]["documents"]), int(self.rows[0]["tokens"])


def row_of_means(row: Mapping[str, Any], over: MeanOver) -> Mapping[str, Any]:
    """A row of `heads.parquet` whose scores are these means; those over tokens have no errors."""
    if over == "documents":
        return {**row, "mean_over": over}
    means = {name: row[f"{name}_over_tokens"] for name in SCORES}
    return {**row, **means, **{f"{name}_error": None for name in SCORES}, "mean_over": over}


def partial_of(row: Mapping[str, Any]) -> str:
    """The part of the corpus that a row of the atlas is of, or empty for all of it."""
    return str(row.get("partial", ""))


def head_of(row: Mapping[str, Any]) -> Head:
    """The head of a row of any table."""
    return Head(row["layer"], row["head"])


# Their columns.


def _item(name: str, type: Any, about: str = "") -> Field[Row]:
    """A value of a row that has it under the same name."""
    return Field(name, type, about, itemgetter(name))


def _scores() -> Iterator[Field[Row]]:
    mean = "The mean over what `mean_over` names; null where none could be measured."
    for name in SCORES:
        yield _item(name, float | None, mean)
        yield _item(f"{name}_error", float | None, f"{ERROR} Null of a mean over tokens.")
        yield _item(f"{name}_documents", int, "In how many documents it was measured.")


PLACE = (_item("layer", int, LAYER), _item("head", int, HEAD))
OVER = "The items that the scores are averaged over."
COUNTED = tuple(_item(name, int) for name in ("documents", "windows", "tokens"))


def partial_field(row: Callable[[Any], Row]) -> Field[Any]:
    """The field for the part of the corpus that is counted, if the scan is not finished."""
    about = "How many shards of how many are counted, where the scan is not finished."
    return Field("partial", str, about, lambda of: partial_of(row(of)) or ABSENT, optional=True)


ATLAS_ROW = Fields[Row](
    "AtlasRow",
    "The scores of a head over a corpus.",
    (
        *PLACE,
        _item("mean_over", MeanOver, OVER),
        *_scores(),
        *COUNTED,
        partial_field(lambda row: row),
    ),
)


def _as_declared(kind: type[Any], name: str, about: str, **types: Any) -> Fields[Any]:
    """The fields of a dataclass; `types`: those that are others in JSON."""
    declared = [Field[Any](each.name, types.get(each.name, each.type)) for each in fields(kind)]
    return Fields(name, about, declared)


BIN = _as_declared(
    Bin, "BinObject", "A bin of a histogram; it ends before `end`, and is open where that is null."
)
MASS = _as_declared(TokenMass, "MassObject", "A token or a pair, and its mass.")
EXAMPLE = _as_declared(
    HeadExample,
    "ExampleObject",
    "A window with the strongest links of a head.",
    tokens=list[str],
    queries=list[int],
    keys=list[int],
    weights=list[float],
)
TABLES: Mapping[str, Sequence[Field[Any]]] = {
    "heads": (
        *PLACE,
        *_scores(),
        *(
            _item(name + end, kind)
            for name in (*SCORES, "strong_induction")
            for end, kind in (("_over_tokens", float | None), ("_queries", int))
        ),
        _item("largest_over_windows", float | None),
        *COUNTED,
    ),
    "histograms": (*PLACE, _item("histogram", str), *BIN.all),
    "tokens": (*PLACE, _item("side", str), _item("rank", int), *MASS.all, _item("windows", int)),
    "examples": (*PLACE, _item("rank", int | None), *EXAMPLE.all),
}
"""The columns of each table of a scan's result."""
StoredRow: TypeAlias = Mapping[str, Any]
AT_ONCE = {"histograms": 1 << 12, "tokens": 1 << 12, "examples": 16}
"""The number of rows in memory while a table is read head by head; an example is large."""
GROUP = {"heads": 1 << 12, "histograms": 1 << 12, "tokens": 1 << 10, "examples": 1 << 6}
"""Rows of a group, of which a reader of one head reads few."""
SAID = b"attnviz"
"""The entry in which a table says how it was made, as JSON, and a part of one its scan and task."""


def import_parquet() -> None:
    """See that pyarrow is installed.

    Raises:
        UsageError: it is not.
    """
    with needing("the result of a scan needs pyarrow", "scan", "pyarrow"):
        import pyarrow.parquet  # noqa: F401


@cache
def columns(table: str) -> Any:
    """The columns of a table, as pyarrow's schema."""
    import pyarrow as pa

    text = pa.string()
    known = {int: pa.int64(), float: pa.float64(), list[str]: pa.list_(text)}
    known |= {list[int]: pa.list_(pa.int32()), list[float]: pa.list_(pa.float32())}
    kinds = {field.name: kinds_of(field.type)[0] for field in TABLES[table]}
    return pa.schema([(name, known.get(kind, text)) for name, kind in kinds.items()])


def between(first: Head, last: Head) -> Any:
    """The filter for pyarrow: rows of the heads from `first` to `last`."""
    import pyarrow.compute as pc

    layer, head = pc.field("layer"), pc.field("head")
    after = (layer > first.layer) | ((layer == first.layer) & (head >= first.head))
    before = (layer < last.layer) | ((layer == last.layer) & (head <= last.head))
    return after & before


def table_bytes(table: str, rows: Sequence[Mapping[str, object]], said: str = "") -> bytes:
    """A table of the result, or a part of one, as a Parquet file; `said`: see `SAID`."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, schema = pa.BufferOutputStream(), columns(table)
    arrays = [_array([row.get(field.name) for row in rows], field.type) for field in schema]
    content = pa.Table.from_arrays(arrays, schema=schema)
    content = content.replace_schema_metadata({SAID: said} if said else None)
    pq.write_table(content, sink, row_group_size=GROUP[table], compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _array(values: Sequence[Any], kind: Any) -> Any:
    """A column; lists of numbers, of which an example has thousands, from their arrays."""
    import pyarrow as pa

    if not pa.types.is_list(kind) or not all(isinstance(each, np.ndarray) for each in values):
        return pa.array(values, kind)
    number = kind.value_type.to_pandas_dtype()
    flat = np.concatenate([np.empty(0, number), *values]).astype(number, copy=False)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(flat))


def part_of(store: Store, name: str) -> str | None:
    """The scan and task of a part of a table; None where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as opened:
            origin = (pq.read_schema(opened).metadata or {}).get(SAID, b"")
    except (OSError, pa.ArrowException):
        return None
    return bytes(origin).decode(errors="replace")


def damaged(store: Store, name: str) -> InputError:
    return InputError(f"{store.url(name)!r} is missing, damaged, or of another scan", AGAIN)


def batches_of(folder: str, table: str) -> Iterator[StoredRow]:
    """The rows of a table, a few of which are in memory; their lists of numbers as arrays."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(folder), f"{table}.parquet"
    try:
        with store.open(name) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            for group in range(file.num_row_groups):  # what was read stays until its reader ends
                for batch in file.iter_batches(AT_ONCE[table], row_groups=[group]):
                    _check(batch, store.url(name), table)
                    listed = map(_values, batch.columns)
                    for values in zip(*listed, strict=True):
                        yield dict(zip(batch.schema.names, values, strict=True))
    except (OSError, pa.ArrowException):
        raise damaged(store, name) from None


def _values(column: Any) -> Sequence[Any]:
    """The values of a column; lists of numbers as arrays, as a head has 100,000 links."""
    import pyarrow as pa

    if not pa.types.is_list(column.type) or pa.types.is_string(column.type.value_type):
        values: list[Any] = column.to_pylist()
        return values
    return np.split(column.values.to_numpy(), column.offsets.to_numpy()[1:-1])


def read_table(folder: str, table: str, head: Head | None = None) -> list[dict[str, Any]]:
    """Read the rows of a table, or those of one head."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(folder), f"{table}.parquet"
    try:
        chosen = None if head is None else between(head, head)
        with store.open(name) as opened:
            # threads of its own that hold a Python file abort a process that ends
            chosen_rows = pq.read_table(opened, filters=chosen, use_threads=False, pre_buffer=False)
        if table == "heads":
            chosen_rows = _with_metrics(chosen_rows)
        _check(chosen_rows, store.url(name), table)
        rows: list[dict[str, Any]] = chosen_rows.to_pylist()
    except (OSError, pa.ArrowException):
        raise damaged(store, name) from None
    return rows


def _with_metrics(heads: Any) -> Any:
    """The table of heads with the metrics of today's plugins; a scan may have had other ones."""
    import pyarrow as pa

    names = [metric.name for metric, _ in METRICS.added.values()]
    ends = ("", "_error", "_documents", "_over_tokens", "_queries")
    for name in (name + end for name in names for end in ends):
        if name not in heads.column_names:
            kind = columns("heads").field(name).type
            blank = 0 if pa.types.is_integer(kind) else None
            heads = heads.append_column(name, pa.array([blank] * len(heads), kind))
    return heads.select([name for name in columns("heads").names if name in heads.column_names])


OF_A_HEAD = "histograms", "tokens", "examples"


def head_of_parts(atlas: Atlas, row: StoredRow, parts: Iterable[Sequence[StoredRow]]) -> HeadAtlas:
    """A head from its row of each table in the order of `OF_A_HEAD`."""
    bins, masses, examples = parts
    histograms = grouped((each["histogram"], Bin(**_values_of(BIN, each))) for each in bins)
    tokens = grouped((each["side"], TokenMass(**_values_of(MASS, each))) for each in masses)
    sampled = masses[-1]["windows"] if masses else 0
    return HeadAtlas(row, histograms, tokens, list(map(_example, examples)), sampled, atlas.model)


def _values_of(fields: Fields[Any], row: StoredRow) -> dict[str, Any]:
    return {field.name: row[field.name] for field in fields.all}


def _example(row: StoredRow) -> HeadExample:
    queries, keys = (np.array(row[name], np.int64) for name in ("queries", "keys"))
    weights, tokens = np.array(row["weights"], np.float32), tuple(row["tokens"])
    places = np.concatenate([queries, keys])
    inside = ((places >= 0) & (places < len(tokens))).all()
    if not (len(queries) == len(keys) == len(weights) and inside and np.isfinite(weights).all()):
        raise InputError("a table of examples has links to tokens it lacks", "scan again")
    links = {"tokens": tokens, "queries": queries, "keys": keys, "weights": weights}
    return HeadExample(**{**_values_of(EXAMPLE, row), **links})


def _check(batch: Any, path: str, table: str) -> None:
    """See that rows are of this table, and that no value is missing, in lists neither."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.schema.equals(columns(table)):
        raise InputError(f"{path!r} is not a table of {table}", "scan again")
    for each, column in zip(TABLES[table], batch.columns, strict=True):
        flat = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if (column.null_count or flat.null_count) and NoneType not in kinds_of(each.type):
            raise InputError(f"{path!r} has rows without {each.name}", "scan again")
