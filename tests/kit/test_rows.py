"""Links as rows: what each format says of a link, for any text and any weight."""

import csv
import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.show import rows as show_rows
from attnviz.commands.show.outputs import OutputRequest
from attnviz.commands.show.rows import COLUMNS, row_chunks
from attnviz.kit.write import SEPARATORS, cell, record_chunks
from attnviz.records.exhibit import Exhibit, links_of
from attnviz.records.heads import Head
from attnviz.records.rows import to_json
from tests.factories import make_capture, make_exhibit

PIECES = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5)
FLOATS = st.floats(min_value=0, max_value=1, width=32)


def written(exhibit: Exhibit, form: str, line: int = 1, header: bool = True) -> str:
    return "".join(row_chunks(exhibit, OutputRequest(form, line=line, first=header)))


def as_float32(text: str) -> bytes:
    return struct.pack("<f", np.float32(float(text)))


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
def test_rows_say_what_the_links_say(form: str) -> None:
    exhibit = make_exhibit(heads=[Head(1, 1)], queries=[4, 2], top=2)
    text = written(exhibit, form, line=7)
    if form == "jsonl":
        found = [json.loads(row) for row in text.splitlines()]
    else:
        found = list(csv.DictReader(io.StringIO(text), delimiter=SEPARATORS[form]))
    links = links_of(exhibit, exhibit.maps[0])
    assert len(found) == len(links) == 4
    labels = [token.label for token in exhibit.capture.query_tokens]
    for row, query, key, weight in zip(found, links.query, links.key, links.weight, strict=True):
        assert [str(row[name]) for name in COLUMNS] == [
            "7", "1", "1", str(query), labels[query], str(key), labels[key], str(weight)
        ]  # fmt: skip


def test_a_reduced_column_holds_the_name_of_the_reduction() -> None:
    exhibit = make_exhibit(heads=[Head(0, 0), Head(1, 1)], reduced="mean")
    row = json.loads(written(exhibit, "jsonl").splitlines()[0])
    assert (row["layer"], row["head"]) == ("mean", "mean")
    assert written(exhibit, "csv", header=False).startswith("1,mean,mean,0,a,0,a,")


@given(st.lists(FLOATS, min_size=3, max_size=3))
def test_every_weight_comes_back_as_the_same_float32(weights: list[float]) -> None:
    pattern = np.zeros((3, 3), np.float32)
    pattern[2] = weights
    exhibit = make_exhibit(make_capture("a b c", patterns={Head(0, 0): pattern}), queries=[2])
    expected = sorted(struct.pack("<f", w) for w in pattern[2])
    for form, place in (("jsonl", None), ("csv", ","), ("tsv", "\t")):
        lines = written(exhibit, form, header=False).splitlines()
        texts = [
            line.split(place)[7] if place else str(json.loads(line)["weight"]) for line in lines
        ]
        assert sorted(map(as_float32, texts)) == expected


@pytest.mark.parametrize(
    ("weight", "text"),
    [(0.48, "0.48"), (1.0, "1.0"), (0.0, "0.0"), (1e-7, "1e-07"), (1 / 3, "0.33333334")],
)
def test_a_weight_is_the_shortest_text_that_is_exact(weight: float, text: str) -> None:
    capture = make_capture("a", patterns={Head(0, 0): np.full((1, 1), weight, np.float32)})
    assert written(make_exhibit(capture), "csv", header=False) == f"1,0,0,0,a,0,a,{text},a,a\n"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_among_other_values_is_its_shortest_decimal(number: float) -> None:
    (cells,) = list(record_chunks([{"a": number, "b": [number, 1]}], "csv", "x", header=False))
    ((first, more),) = csv.reader([cells])
    assert first == more.lstrip("'").split()[0] == to_json({"a": number})[6:-1]
    assert np.float32(first) == np.float32(number)
    if not number.is_integer():
        assert float(first) == float(str(np.float32(number)))  # 0.0001 for numpy's 1e-04


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_is_no_float32_loses_nothing(number: float) -> None:
    if abs(number) > 3.5e38 or float(np.float32(number)) != number:
        assert float(to_json([number])[1:-1]) == number


@given(PIECES)
def test_any_text_gives_rows_that_can_be_read_and_shown(pieces: list[str]) -> None:
    exhibit = make_exhibit(make_capture(pieces))
    labels = [token.label for token in exhibit.capture.query_tokens]
    pairs = [(q, k) for q in range(len(labels)) for k in range(q + 1)]
    lines = written(exhibit, "jsonl").removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    found = {(row["query"], row["key"]): row for row in map(json.loads, lines)}
    assert sorted(found) == pairs
    assert all(found[pair]["query_token"] == labels[pair[0]] for pair in pairs)
    for form in ("csv", "tsv"):
        text = written(exhibit, form)
        read = csv.DictReader(io.StringIO(text, newline=""), delimiter=SEPARATORS[form])
        cells = list(read)
        assert sorted((int(row["query"]), int(row["key"])) for row in cells) == pairs
        for row in cells:
            label = labels[int(row["key"])]
            assert row["key_token"] == (f"'{label}" if label[0] in "=+-@" else label)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),  # the characters that begin a formula
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("@r3c5", "@r3c5"),  # the name of a part of an image, which calls no function
        ("@2:t1r0c11", "@2:t1r0c11"),
        ("@r3c5(A1)", "'@r3c5(A1)"),
        ("@r3c5\n", '"\'@r3c5\n"'),
        ("\tx", "'\tx"),
        ("\rx", '"\'\rx"'),
        ("a=b", "a=b"),  # and nothing elsewhere in a cell
        ('=a,"b"', '"\'=a,""b"""'),  # quoted outside of the apostrophe
        (",", '","'),
        ('"', '""""'),
        ("x", "x"),
    ],
)
def test_a_cell_is_text_and_never_a_formula(text: str, expected: str) -> None:
    assert cell(text, ",") == expected


def test_rows_come_in_pieces_so_that_a_reader_may_leave_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(show_rows, "CHUNK", 10)
    exhibit = make_exhibit()
    chunks = list(row_chunks(exhibit, OutputRequest("jsonl")))
    assert [chunk.count("\n") for chunk in chunks] == [10, 10, 10, 6]  # 8 tokens: 36 links
    assert all(chunk.endswith("\n") for chunk in chunks)


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
def test_a_row_ends_with_the_exact_texts_of_its_tokens(form: str) -> None:
    """The labels have no space in front; a token of the model may."""
    exhibit = make_exhibit(make_capture("a blue\n cat"), queries=[2], keys=[1])
    text = written(exhibit, form)
    if form == "jsonl":
        row = json.loads(text)
        assert (row["query_exact"], row["key_exact"]) == ("\n cat", " blue")
    else:
        (row,) = csv.DictReader(io.StringIO(text), delimiter=SEPARATORS[form])
        assert (row["query_exact"], row["key_exact"]) == ("\\n cat", " blue")
