"""All heads of a scan, read one after the other, are those that are read alone."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import attnviz
from attnviz.corpus import tables
from attnviz.corpus.result import read_atlas, read_head, read_heads
from attnviz.errors import InputError
from attnviz.records.heads import Head
from tests.commands.atlas.atlases import HEADS, examples, made_scan, sealed, write_table


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_heads_in_order_are_the_same_as_heads_alone(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", dict.fromkeys(tables.TABLES, at_once))
    folder = made_scan(tmp_path / "scan")
    atlas = read_atlas(folder)
    together = list(read_heads(atlas))
    assert [head.head for head in together] == list(HEADS)
    for row, head in zip(atlas.rows, together, strict=True):
        alone = read_head(atlas, row)
        assert head.histograms == alone.histograms
        assert head.tokens == alone.tokens
        assert head.sampled == alone.sampled == 5
        for one, other in zip(head.examples, alone.examples, strict=True):
            for name, value in asdict(one).items():
                np.testing.assert_array_equal(value, getattr(other, name))


def test_a_head_without_windows_has_none_and_the_next_has_its_own(tmp_path: Path) -> None:
    folder = made_scan(tmp_path / "scan")
    some = [row for head in (Head(2, 0), Head(3, 1)) for row in examples(head)]
    write_table(folder, "examples", some)
    sealed(folder)
    found = read_heads(read_atlas(folder))
    assert {str(head.head): len(head.examples) for head in found if head.examples} == {
        "L2H0": 3,
        "L3H1": 3,
    }


def test_tables_of_other_heads_are_refused(tmp_path: Path) -> None:
    folder = made_scan(tmp_path / "scan")
    write_table(
        folder, "examples", [row for head in (Head(3, 1), Head(2, 0)) for row in examples(head)]
    )
    sealed(folder)
    with pytest.raises(InputError, match="of other heads"):
        list(read_heads(read_atlas(folder)))
    (folder / "tokens.parquet").write_bytes(b"nothing")
    with pytest.raises(
        InputError, match=r"tokens.parquet. is missing, damaged.*scan the same corpus"
    ):
        list(read_heads(read_atlas(folder)))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("tokens", "mass", None),
        ("histograms", "value", None),
        ("examples", "largest", None),
        ("examples", "tokens", ["a", None]),
        ("examples", "weights", [float("nan")]),
        ("examples", "keys", [99]),
        ("heads", "documents", None),
    ],
)
def test_a_table_with_values_that_no_scan_writes_is_told(
    table: str, column: str, value: object, tmp_path: Path
) -> None:
    folder = made_scan(tmp_path / "scan")
    rows = pq.read_table(folder / f"{table}.parquet").to_pylist()
    write_table(folder, table, [row | {column: value} for row in rows])
    sealed(folder)
    with pytest.raises(InputError):
        attnviz.atlas(folder).head("L2H0")
    with pytest.raises(InputError):
        attnviz.atlas(folder).save(tmp_path / "atlas.html")
