"""The result of a scan, read from its tables, or from its records while it is not finished."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.corpus.folder import AGAIN, Store, is_locked, is_whole, made_of, read_manifest
from attnviz.corpus.record import Record, bin_rows, record_of_bytes, score_rows, total_of
from attnviz.corpus.tables import (
    ATLAS_ROW,
    OF_A_HEAD,
    Atlas,
    HeadAtlas,
    MeanOver,
    StoredRow,
    batches_of,
    damaged,
    head_of,
    head_of_parts,
    read_table,
    row_of_means,
)
from attnviz.draw.titles import amount, percent
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.result import Form, Result
from attnviz.kit.write import choose_format
from attnviz.records.heads import Head, head_named, listed
from attnviz.records.rows import model_of_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def read_atlas(folder: str | Path, mean: MeanOver = "documents", *, partial: bool = False) -> Atlas:
    """Read the result of a scan; `folder`: a path, or a URL for fsspec; `mean`: which is shown.

    `partial`: the part counted so far, where the scan is not finished.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: there is none, or it is damaged.
    """
    folder = str(folder)
    if partial and "result" not in (so_far := read_manifest(Store(folder))):
        return atlas_so_far(Store(folder), so_far, mean)
    manifest = _checked(folder, "heads")
    rows = [row_of_means(row, mean) for row in read_table(folder, "heads")]
    if not rows:
        raise InputError(f"{folder!r} holds no heads", "scan again")
    try:
        (model,) = map(model_of_dict, manifest["result"]["made"]["models"])
    except (LookupError, TypeError, ValueError):
        raise InputError(f"the manifest in {folder!r} is damaged", AGAIN) from None
    made = manifest["result"]["made"]
    return Atlas(str(manifest.get("model", "")), rows, manifest, model, folder, made)


def read_head(atlas: Atlas, row: StoredRow) -> HeadAtlas:
    """Read all that was found of one head; `row`: its row of the atlas."""
    if atlas.total is not None:
        return next(each for each in read_heads(atlas) if each.head == head_of(row))
    _checked(atlas.folder, *OF_A_HEAD)
    return head_of_parts(
        atlas, row, (read_table(atlas.folder, table, head_of(row)) for table in OF_A_HEAD)
    )


def read_heads(atlas: Atlas) -> Iterator[HeadAtlas]:
    """Read all that was found of each head, one after the other; the tables are read once.

    The rows of the atlas are in the order of the table.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: the result is damaged.
    """
    if atlas.total is not None:
        bins = groupby(bin_rows(atlas.total), key=head_of)
        for row, (_, own) in zip(sorted(atlas.rows, key=head_of), bins, strict=True):
            yield head_of_parts(atlas, row, ([*own], [], []))  # tokens and examples come last
        return
    _checked(atlas.folder, *OF_A_HEAD)
    tables = (_by_head(atlas.folder, table, atlas.heads) for table in OF_A_HEAD)
    for row, *parts in zip(atlas.rows, *tables, strict=True):
        yield head_of_parts(atlas, row, parts)


def _by_head(folder: str, table: str, heads: Iterable[Head]) -> Iterator[list[StoredRow]]:
    """The rows of each head in turn, from a table that is sorted by head and may lack some."""
    groups = groupby(batches_of(folder, table), key=head_of)
    group = next(groups, None)
    for head in heads:
        if group is None or group[0] != head:
            yield []
            continue
        yield list(group[1])
        group = next(groups, None)
    if group is not None:
        raise InputError(f"the tables of {folder!r} are of other heads", "scan again")


def _checked(folder: str, *tables: str) -> Mapping[str, Any]:
    """The manifest of a finished scan, whose tables are as it wrote them."""
    store = Store(folder)
    manifest = read_manifest(store)
    if "result" not in manifest:
        raise InputError(f"{store.where!r} holds no finished scan", _what_to_do(store))
    for table in tables:
        name = f"{table}.parquet"
        if not is_whole(store, manifest, name):
            raise damaged(store, name)
    return manifest


def _what_to_do(store: Store) -> str:
    """The advice on an unfinished scan: it runs, was stopped, or met too many bad files."""
    so_far = f"or see what is counted with {option('partial', True)}"
    if is_locked(store):
        return f"wait for the scan that runs there, {so_far}"
    bad = (store.state("skipped.jsonl") or {"bytes": 0})["bytes"]
    more = f"a larger {option('max_bad')} if it ended for the documents that skipped.jsonl lists"
    return f"{AGAIN}, with {more}, {so_far}" if bad else f"{AGAIN}, {so_far}"


def atlas_so_far(store: Store, manifest: Mapping[str, Any], mean: MeanOver) -> Atlas:
    """The atlas of the shards that are counted of a scan that is not finished.

    Nothing is written and nothing is locked, as the scan may run: a record is there in full or not
    at all. One that is damaged or of another scan is not counted.

    Raises:
        InputError: no shard is counted, or the manifest is damaged.
    """
    counted = 0

    def records() -> Iterator[Record]:
        nonlocal counted
        named = (re.fullmatch(r"shards/(\d{6,})\.npz", name) for name in store.names("shards"))
        files = {int(name[1]): name[0] for name in named if name}
        for shard, name in sorted(files.items()):
            with suppress(ValueError):
                record = record_of_bytes(store.read(name) or b"", shard)
                if record.origin.scan == manifest["scan"]:
                    counted += 1
                    yield record

    total = total_of(records(), store.where)
    if total is None:
        wait = "a scan runs there: wait until it has counted one"
        hint = wait if is_locked(store) else AGAIN
        raise InputError(f"no shard of {store.where!r} is counted yet", hint)
    try:
        made, shards, model = made_of(manifest, total.origin), manifest["shards"], manifest["model"]
        share = "all counted" if counted == shards else percent(counted, shards)
        said = f"{counted:,} of {shards:,} shards, {share}"
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise InputError(f"the manifest in {store.where!r} is damaged", AGAIN) from None
    rows = [{**row_of_means(row, mean), "partial": said} for row in score_rows(total)]
    made = {**made, "options": {**made["options"], "partial": said}}
    return Atlas(str(model), rows, manifest, total.origin.model, store.where, made, total)


ALL_HEADS = Form[Atlas](
    "atlas",
    ATLAS_ROW,
    lambda atlas, top, line: atlas.rows[:top],
    lambda atlas: atlas.model,
    terminal="attnviz.commands.atlas.terminal:render_atlas",
    picture="attnviz.commands.atlas.picture:draw_atlas",
    top=sys.maxsize,
)


def one_head(atlas: Atlas, name: str) -> Mapping[str, Any]:
    """The row of the head that a user names, as in `L1H2` or `1.2`.

    Raises:
        UsageError: it names no single head, or one that was not scanned.
    """
    head, scanned = head_named(name), atlas.heads
    if head is None:
        raise UsageError(
            f"{option('head', repr(name))} names no single head",
            f"name one as in {option('head', scanned[0])}",
        )
    if head not in scanned:
        raise UsageError(f"the scan has no head {head}", f"it has {listed(scanned)}")
    return atlas.rows[scanned.index(head)]


def size_of(size: tuple[int, int]) -> str:
    """`4 documents, 60 tokens`."""
    documents, tokens = size
    return f"{amount(documents, 'document')}, {amount(tokens, 'token')}"


def partial_notes(partial: str) -> list[str]:
    """The notes for a reader of a part of a scan; none for a whole one."""
    if not partial:
        return []
    missing = "tokens and example windows are missing until it is"
    return [f"the scan is not finished: {partial}; {missing}"]


class ScanAtlas(Result[Atlas]):
    """The result of a scan; made by `attnviz.scan` and `attnviz.atlas`.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> found = attnviz.scan("words.txt", output="scanned", workers=1, heads="L1H2,L4H0")
    >>> found.head("L4H0").row["documents"]
    1
    """

    @property
    def folder(self) -> str:
        """The folder of the scan, as it was named."""
        return self.record.folder

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.record.model

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest: the options, the files and the versions."""
        return self.record.manifest

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """A row for each head: `layer`, `head`, and each score with its error and its documents."""
        return list(self.record.rows)

    def to_columns(self) -> dict[str, Any]:
        """The rows as lists by column, as pandas.DataFrame and polars.DataFrame take them."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def figure(self, plot: str | None = None, **look: Any) -> "Figure":
        """The scores of all heads as a picture: a grid each, or two against each other.

        Args:
            plot: two scores, `"previous,induction"`.
            look: `cmap` and `dpi`; with `plot` also `top`, how many heads are named at most.

        Raises:
            UsageError: these are not two scores, or no such colour map.
        """
        return super().figure(**look, **({} if plot is None else {"plot": plot}))

    def head(self, name: str) -> HeadAtlas:
        """All that was found of one head: `row`, `histograms`, `tokens` and `examples`.

        Args:
            name: as in `"L1H2"` or `"1.2"`.

        Raises:
            UsageError: the scan has no such head.
            InputError: the result is damaged.
        """
        return read_head(self.record, one_head(self.record, name))

    def save(self, path: str | Path, **look: Any) -> None:
        """Write it to a file: rows, a picture, a page, or the text that the terminal shows.

        Args:
            path: its suffix decides; a page that is too large for one file gets a folder beside it.
            look: for a picture, as for `figure`.

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        if look or choose_format(Path(path), None, False).name != "html":
            super().save(path, **look)
            return
        page = import_module("attnviz.commands.atlas.page")  # as the form names its makers
        page.write_page(self.record, read_heads(self.record), Path(path))

    @property
    def partial(self) -> str:
        """`312 of 1,204 shards, 26%`, where the scan is not finished; else empty."""
        return self.record.partial

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the scan: that it is not finished, or that layers have no attention."""
        return *partial_notes(self.partial), *super().notes

    def __repr__(self) -> str:
        heads, size = amount(len(self.record.rows), "head"), size_of(self.record.size)
        only = f", {self.partial}" if self.partial else ""
        return f"<ScanAtlas of {self.model}: {heads}, {size}{only}>"


def read_scan(folder: str, mean: MeanOver = "documents", *, partial: bool = False) -> ScanAtlas:
    """Read the result of a scan, as Python has it; as `read_atlas`."""
    whole = read_atlas(folder, mean, partial=partial)
    models = [] if whole.identity is None else [whole.identity]
    return ScanAtlas(ALL_HEADS, whole, models=models, _made=whole.made)
