"""The same from Python, and the queries that the documents show."""

import re
from pathlib import Path

import duckdb
import pandas
import pytest

import attnviz
from attnviz.errors import InputError, UsageError
from attnviz.scanning.tables import read_atlas

DOCUMENT = Path(__file__).parents[2] / "docs" / "scan.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a scan called scanned."""
    place = tmp_path_factory.mktemp("python")
    texts = place / "texts.jsonl"
    texts.write_text('{"body": "a fluffy blue creature"}\n{"body": "the creature was blue"}\n')
    attnviz.scan(texts, output=place / "scanned", field="body", layers="1-3", workers=1)
    return place


def test_a_scan_from_python_is_that_of_the_command(folder: Path) -> None:
    found = attnviz.atlas(folder / "scanned")
    assert repr(found) == "<ScanAtlas of builtin: 12 heads, 2 documents, 10 tokens>"
    assert found.rows == read_atlas(folder / "scanned").rows
    assert found.manifest["key"] == "body"
    head = found.head("L1H2")
    assert str(head.head) == "L1H2"
    assert len(head.examples) == 2
    with pytest.raises(UsageError, match="L4H0"):
        found.head("L4H0")
    with pytest.raises(InputError, match="holds no scan"):
        attnviz.atlas(folder)


def test_columns_make_a_table(folder: Path) -> None:
    found = attnviz.atlas(folder / "scanned")
    table = pandas.DataFrame(found.to_columns())
    assert list(table["head"]) == [row["head"] for row in found.rows]
    assert table["first"].between(0, 1).all()


def test_the_queries_of_the_document_work_as_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = DOCUMENT.read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    before, _, last = python.strip().rpartition("\n\n")
    names: dict[str, object] = {}
    exec(before, names)
    best = eval(last, names)
    assert isinstance(best, pandas.DataFrame)
    assert list(best.columns) == ["layer", "head", "induction"]
    (sql,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    rows = duckdb.sql(sql).fetchall()
    assert rows
    assert all(0 <= layer < 5 and 0 <= head < 4 for layer, head, _, _ in rows)
