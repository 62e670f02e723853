"""A corpus: whatever its shards, every document is read once, and nothing ends the reading."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnviz.corpus import documents as corpus_module
from attnviz.corpus.documents import documents_of, units_of
from attnviz.corpus.places import CorpusFile, CorpusText, FilePart, Skipped, Split
from attnviz.corpus.shards import check_field, check_unchanged, corpus_files, shards_of, spool
from attnviz.errors import AttnvizError, InputError, OutputError, UsageError
from attnviz.inputs.text import Stdin
from tests.conftest import slow

SPLITS: tuple[Split, ...] = ("file", "paragraph", "line")
Read = list[CorpusText | Skipped]


def read(
    paths: Sequence[Path | str], split: Split = "file", field: str = "text", most: int = 1 << 18
) -> Read:
    """The documents of all shards of a corpus, in order."""
    shards = list(shards_of(corpus_files([str(path) for path in paths]), split, most))
    assert [shard.number for shard in shards] == list(range(len(shards)))
    pieces = [piece for shard in shards for piece in shard.pieces]
    return [each for piece in pieces for each in documents_of(piece, split, field)]


def texts(found: Read) -> list[str]:
    return [each.text for each in found if isinstance(each, CorpusText)]


def skipped(found: Read) -> list[tuple[int, str]]:
    return [(each.start, each.why) for each in found if isinstance(each, Skipped)]


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# ---- every document once, whatever the shards ----


def plainly(data: bytes, split: Split) -> list[tuple[int, str | None]]:
    """Where each document begins, and its text; None: it cannot be read."""
    if split == "file":
        units = [(0, data)]
    else:
        lines, at = [], 0
        for line in data.split(b"\n"):
            lines.append((at, line))
            at += len(line) + 1
        units, open_ = [], False
        for at, line in lines:
            if split == "line":
                units.append((at, line))
            elif line in (b"", b"\r") and at + len(line) < len(data):
                open_ = False
            elif open_:
                units[-1] = (units[-1][0], units[-1][1] + b"\n" + line)
            else:
                units.append((at, line))
                open_ = True
    made: list[tuple[int, str | None]] = []
    for at, unit in units:
        try:
            text = unit.decode().removeprefix("\ufeff")
        except UnicodeDecodeError:
            made.append((at, None))
            continue
        if text.strip():
            made.append((at, text.strip("\r\n")))
    return made


def summed_up(found: Read) -> list[tuple[int, str | None]]:
    return [(d.start, d.text if isinstance(d, CorpusText) else None) for d in found]


BYTES = st.lists(
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b" ", b"a", b"bc", "é".encode(), b"\xff"]),
    max_size=30,
).map(b"".join)


@pytest.mark.parametrize("split", SPLITS)
@given(data=BYTES, most=st.integers(1, 40), part=st.sampled_from([2, 3, 1 << 20]))
@example(data=b"a\n\r\nbc", most=4, part=1 << 20)  # the longest end of a paragraph before a shard
@example(data=b"a\n\r\nbc", most=3, part=1 << 20)  # a shard that begins within it
def test_the_documents_of_all_shards_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, split: Split, data: bytes, most: int, part: int
) -> None:
    path = written(tmp_path_factory.mktemp("corpus") / "a.txt", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "PART", part)  # lines in parts, as very long ones are
        assert summed_up(read([path], split, most=most)) == plainly(data, split)


@pytest.mark.parametrize("split", SPLITS)
@given(data=BYTES, suffix=st.sampled_from([".gz", ".zst"]), most=st.integers(1, 40))
def test_a_compressed_file_holds_the_same_documents(
    tmp_path_factory: pytest.TempPathFactory, split: Split, data: bytes, suffix: str, most: int
) -> None:
    path = tmp_path_factory.mktemp("corpus") / f"a.txt{suffix}"
    written(path, gzip.compress(data) if suffix == ".gz" else zstd(data))
    assert summed_up(read([path], split, most=most)) == plainly(data, split)


@given(
    values=st.lists(st.none() | st.text(max_size=5), max_size=30),
    rows=st.integers(1, 9),
    most=st.integers(1, 400),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
)
def test_the_documents_of_row_groups_are_the_rows_of_the_table(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[str | None],
    rows: int,
    most: int,
    kind: pa.DataType,
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "a.parquet"
    table = pa.table({"n": list(range(len(values))), "body": pa.array(values, pa.string())})
    table = table.set_column(1, "body", table["body"].cast(kind))
    pq.write_table(table, path, row_group_size=rows)
    expected = [(i, value) for i, value in enumerate(values) if value is None or value.strip()]
    assert summed_up(read([path], field="body", most=most)) == expected


def test_documents_are_files_paragraphs_or_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"one\ntwo\r\n\r\nthree\n\n\n")
    assert texts(read([path], "file")) == ["one\ntwo\r\n\r\nthree"]
    assert texts(read([path], "paragraph")) == ["one\ntwo", "three"]
    assert texts(read([path], "line")) == ["one", "two", "three"]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def test_a_large_table_is_cut_between_its_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = [os.urandom(50).hex() for _ in range(100)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=10)
    (file,) = corpus_files([str(path)])
    assert len(list(shards_of([file], "file", 2_000))) > 3
    assert texts(read([path], most=2_000)) == values


def test_small_files_share_a_shard(tmp_path: Path) -> None:
    for i in range(9):
        (tmp_path / f"{i}.txt").write_text("0123456789")
    shards = list(shards_of(corpus_files([str(tmp_path)]), "file", 30))
    assert [len(shard.pieces) for shard in shards] == [3, 3, 3]


def test_objects_hold_their_text_under_a_field(tmp_path: Path) -> None:
    lines = '{"body": "x"}\nno json\n{"other": 1}\n\n{"body": "\\ud800"}\n[1]\n{"body": "y"}'
    for path in (
        written(tmp_path / "a.jsonl", lines.encode()),
        written(tmp_path / "b.ndjson.gz", gzip.compress(lines.encode())),
        written(tmp_path / "c.JSONL.zst", zstd(b"\xef\xbb\xbf" + lines.encode())),
    ):
        found = read([path], field="body")
        assert texts(found) == ["x", "y"]
        assert [why.split(" (")[0] for _, why in skipped(found)] == [
            "no JSON",
            "no text under 'body'",
            "the text holds half a character",
            "no text under 'body'",
        ]


# ---- a corpus that changes under way ----


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def replace_alike(path: Path) -> None:
    """By a file of the same size and time."""
    state, data = path.stat(), path.read_bytes()
    path.rename(path.with_suffix(".old"))
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def fill_with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.txt.gz", "a.jsonl.zst", "a.parquet"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: os.truncate(path, 20), "was changed from 40 to 20 bytes"),
        (append, "was changed from 40 to 44 bytes"),
        (lambda path: path.write_bytes(b"!" * 40), "was changed during the scan"),
        (os.unlink, "was removed"),
        (replace_alike, "was replaced"),
        (fill_with_pipe, "was changed from 40 to 0 bytes"),
    ],
)
def test_a_file_that_changes_after_it_was_listed_is_told(
    name: str, change: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    path = written(tmp_path / name, b"?" * 40)
    os.utime(path, ns=(0, 1))
    found = corpus_files([str(path)])
    check_unchanged(found, here=True)
    change(path)
    with pytest.raises(InputError, match=says):
        check_unchanged(found, here=True)


def test_a_copy_of_a_corpus_on_another_machine_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"text")
    found = corpus_files([str(path)])
    replace_alike(path)
    check_unchanged(found, here=False)


# ---- memory that has a bound ----


def test_a_text_of_a_table_or_an_object_that_is_too_long_is_skipped_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "LONGEST", 100)
    values = ["one", "x" * 101, None, "y" * 100, "ü" * 51, "three"]
    pq.write_table(pa.table({"text": values}), tmp_path / "a.parquet")
    coded = pa.array(values).dictionary_encode()
    pq.write_table(pa.table({"text": coded}), tmp_path / "b.parquet")
    lines = "".join(json.dumps({"text": value}) + "\n" for value in values)
    written(tmp_path / "c.jsonl", lines.encode())
    for name in ("a.parquet", "b.parquet", "c.jsonl"):
        found = read([tmp_path / name])
        assert texts(found) == ["one", "y" * 100, "three"]
        assert [why for _, why in skipped(found)] == [
            "more than 0 MB in one text",
            "no text under 'text'",
            "more than 0 MB in one text",
        ]


def test_long_rows_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    batches = pq.ParquetFile.iter_batches

    def noted(self: pq.ParquetFile, size: int, **named: object) -> object:
        asked.append(size)
        return batches(self, size, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    monkeypatch.setattr(corpus_module, "LONGEST", 1000)
    for length in (10, 300):
        pq.write_table(
            pa.table({"text": [os.urandom(length).hex() for _ in range(4)]}), tmp_path / "a.parquet"
        )
        assert len(texts(read([tmp_path / "a.parquet"]))) == 4
    assert asked == [corpus_module.ROWS, 1]


@pytest.mark.parametrize("split", ["paragraph", "line"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_text_that_is_too_long_is_skipped_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: Split, suffix: str
) -> None:
    monkeypatch.setattr(corpus_module, "LONGEST", 100)
    monkeypatch.setattr(corpus_module, "PART", 16)
    data = b"one\n\n" + b"x" * 1000 + b"\n\nthree\n"
    path = tmp_path / f"a.txt{suffix}"
    written(path, gzip.compress(data) if suffix else data)
    for most in (7, 64, 5000):
        found = read([path], split, most=most)
        assert texts(found) == ["one", "three"]
        assert skipped(found) == [(5, "more than 0 MB in one text")]


LIMITED = """
import resource
import sys
sys.path.insert(0, {root!r})
import pyarrow.parquet
from attnviz.corpus.places import Skipped
from attnviz.corpus.documents import documents_of
from attnviz.corpus.shards import corpus_files, shards_of
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for shard in shards_of(corpus_files([sys.argv[1]]), sys.argv[2], 1 << 28):
    for piece in shard.pieces:
        for each in documents_of(piece, sys.argv[2], "text"):
            assert isinstance(each, Skipped) and "more than 16 MB" in each.why, each
            print(each.start)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) >> 10)
"""


@pytest.mark.parametrize("split", [slow("file"), "line", slow("paragraph")])
@pytest.mark.parametrize("suffix", [slow(""), ".gz"])
def test_a_file_of_one_endless_line_takes_little_memory(
    tmp_path: Path, split: Split, suffix: str
) -> None:
    path = tmp_path / f"a.txt{suffix}"
    with gzip.open(path, "wb", 1) if suffix else path.open("wb") as file:
        for _ in range(500):
            file.write(b"x" * (1 << 20))  # 500 MB
    script = LIMITED.format(root=str(Path(__file__).parents[3]))
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path), split], capture_output=True, text=True, check=True
    )
    starts, megabytes = ended.stdout.split()
    assert (starts, int(megabytes) < 200) == ("0", True)


@pytest.mark.parametrize("paragraphs", [True, False])
def test_the_rest_of_an_endless_line_is_left_to_nobody(
    monkeypatch: pytest.MonkeyPatch, paragraphs: bool
) -> None:
    monkeypatch.setattr(corpus_module, "PART", 16)
    stream = io.BytesIO(b"x" * 100_000)
    units = list(units_of(stream, "a.txt", 0, 50, paragraphs=paragraphs, most=100))
    ((at, why),) = units
    assert (at, str(why).partition(";")[0]) == (0, "more than 0 MB in one text")
    assert stream.tell() < 200


def test_shards_within_one_endless_line_read_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.write(b"x" * 5000)
        file.truncate(1 << 40)  # sparse: a terabyte could not be read here
    for split in ("line", "paragraph"):
        assert (
            list(documents_of(FilePart(str(path), 1 << 39, (1 << 39) + 999), split, "text")) == []
        )


def test_a_folder_of_many_files_is_listed_without_opening_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(50):
        (tmp_path / f"{i}.jsonl").write_text("{}")
        (tmp_path / f"{i}.parquet").write_text("no table")

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("builtins.open", never)
    found = corpus_files([str(tmp_path)])
    assert len(found) == sum(len(shard.pieces) for shard in shards_of(found, "line")) == 100


# ---- what cannot be read ----


def test_what_was_read_before_the_damage_stays(tmp_path: Path) -> None:
    lines = b"".join(b"%06d %s\n" % (i, os.urandom(20).hex().encode()) for i in range(20_000))
    for path, data in (
        (tmp_path / "a.txt.gz", gzip.compress(lines)),
        (tmp_path / "b.txt.zst", zstd(lines)),
    ):
        for cut in (len(data) // 2, len(data) - 5, 30):
            written(path, data[:cut])
            found = read([path], "line")
            assert texts(found) == lines.decode().splitlines()[: len(found) - 1]
            assert isinstance(found[-1], Skipped)
            assert found[-1].start == 48 * (len(found) - 1)
            assert "cannot be read" in found[-1].why
            assert (cut == 30) == (len(found) < 1000)
    data = gzip.compress(lines)  # its blocks have checksums
    path = written(tmp_path / "a.txt.gz", data[:20_000] + b"?" * 50 + data[20_050:])
    found = read([path], "line")
    assert len(texts(found)) > 100
    assert len(skipped(found)) == 1


def test_a_file_that_fails_during_the_scan_is_one_skipped(tmp_path: Path) -> None:
    for name in ("a.txt", "a.jsonl", "a.txt.gz", "a.txt.zst", "a.parquet"):
        path = str(written(tmp_path / name, b"?" * 40))
        if name.endswith((".gz", ".zst", ".parquet")):
            assert len(skipped(read([path]))) == 1
        os.unlink(path)
        (gone,) = documents_of(FilePart(path, 0, 40), "line", "text")
        assert isinstance(gone, Skipped)
        assert gone.why == f"there is no file {path!r}"


def test_a_damaged_row_group_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = [os.urandom(20).hex() for _ in range(300)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=100, use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 30] = b"\xff" * 30
    written(path, bytes(data))
    found = read([path])
    assert texts(found) == values[:100] + values[200:]
    assert [start for start, _ in skipped(found)] == [100]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1, 2]), "the column 'text' holds int64, and no text"),
        (pa.array([["a"], ["b"]]), "the column 'text' holds list<"),
        (None, "no column 'text'"),
    ],
)
def test_a_column_without_text_is_told_once(
    tmp_path: Path, column: pa.Array | None, why: str
) -> None:
    columns = {"other": pa.array([1, 2])} | ({} if column is None else {"text": column})
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    ((start, said),) = skipped(read([tmp_path / "a.parquet"]))
    assert start == 0
    assert said.startswith(why)


def test_bytes_of_a_column_are_text_where_they_are_utf_8(tmp_path: Path) -> None:
    column = pa.array([b"one", b"\xff", "zwölf".encode()])
    pq.write_table(pa.table({"a.b": column}), tmp_path / "a.parquet")
    found = read([tmp_path / "a.parquet"], field="a.b")
    assert texts(found) == ["one", "zwölf"]
    assert skipped(found) == [(1, "not UTF-8 (invalid start byte)")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("two\nlines".encode("utf-16"), "UTF-16, and not UTF-8"),  # with its mark
        ("two\nlines".encode("utf-16-le"), "no text: it has zero bytes"),
        (b"\x7fELF\0\0\n\n\0\n", "no text: it has zero bytes"),
    ],
)
@pytest.mark.parametrize("split", SPLITS)
def test_a_file_that_holds_no_text_is_skipped_as_one(
    tmp_path: Path, data: bytes, why: str, split: Split
) -> None:
    for name, content in (("a.txt", data), ("a.jsonl", data), ("a.txt.gz", gzip.compress(data))):
        assert read([written(tmp_path / name, content)], split, most=3) == [
            Skipped(str(tmp_path / name), 0, why)
        ]


def test_strange_files_hold_what_they_hold(tmp_path: Path) -> None:
    assert read([written(tmp_path / "empty.txt", b"")]) == []
    for name in ("empty.txt.gz", "empty.jsonl.gz"):
        assert read([written(tmp_path / name, gzip.compress(b""))]) == []
    assert texts(read([written(tmp_path / "bom.txt", b"\xef\xbb\xbfa\r\nb\r\n")], "line")) == [
        *("a", "b")
    ]
    zero = written(tmp_path / "zero.txt", b"a\n" * 4000 + b"b\0\nc\n")
    found = read([zero], "line")
    assert (texts(found)[-1], skipped(found)) == ("c", [(8000, "no text: it has zero bytes")])
    several = written(tmp_path / "several.gz", gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert texts(read([several], "line")) == ["a", "b"]
    several = written(tmp_path / "several.zst", zstd(b"a\n") + zstd(b"b\n"))
    assert texts(read([several], "line")) == ["a", "b"]


# ---- which files ----


def test_a_folder_gives_its_texts_by_name_and_each_file_once(tmp_path: Path) -> None:
    for name in ("b.txt", "a.MD", "c/d.jsonl.gz", "c/e.parquet", "f.txt.zst", "g\nh.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    for name in (".hidden.txt", "picture.png", "table.parquet.gz", "other.gz"):
        (tmp_path / name).write_text("x")
    (tmp_path / "c" / "again").symlink_to(tmp_path)
    (tmp_path / "itself.txt").symlink_to("itself.txt")
    (tmp_path / "link.txt").symlink_to("b.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    names = ["a.MD", "b.txt", "c/d.jsonl.gz", "c/e.parquet", "f.txt.zst", "g\nh.txt"]
    found = corpus_files([str(tmp_path), str(tmp_path / "b.txt"), f"file://{tmp_path}/c"])
    assert [os.path.relpath(file.path, tmp_path) for file in found] == names
    assert all(file.size == 1 for file in found)


def test_a_pattern_gives_the_files_that_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.log", "c/a.txt", "c/d/a.txt", "c/d/e.txt", "x[1].txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "c" / "loop").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)

    def matched(pattern: str) -> list[str]:
        found = [file.path for file in corpus_files([pattern])]
        absolute = [file.path for file in corpus_files([str(tmp_path / pattern)])]
        assert absolute == [str(tmp_path / name) for name in found]
        return found

    assert matched("*.log") == ["b.log"]
    assert matched("?.txt") == ["a.txt"]
    assert matched("**/a.txt") == ["a.txt", "c/a.txt", "c/d/a.txt"]
    assert matched("c/**") == [
        *("c/a.txt", "c/d/a.txt", "c/d/e.txt"),
        *("c/loop/a.txt", "c/loop/b.log", "c/loop/x[1].txt"),  # and no further
    ]
    assert matched("**/d/*.txt") == ["c/d/a.txt", "c/d/e.txt"]
    assert matched("x[1].txt") == ["x[1].txt"]  # a name that looks like a pattern
    with pytest.raises(InputError, match="no file matches"):
        corpus_files(["*.nothing"])


def test_the_folder_of_the_result_is_no_part_of_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = "out"
    Path(out).mkdir()
    Path(out, "skipped.jsonl").write_text("{}")
    Path("a.txt").write_text("a")
    for corpus in (".", "**/*", "*", str(tmp_path)):
        (found,) = corpus_files([corpus], out)
        assert os.path.basename(found.path) == "a.txt"
    with pytest.raises(InputError, match="no file matches"):
        corpus_files(["*/*.jsonl"], out)
    Path(out, "mine.jsonl").write_text("{}")
    assert [file.path for file in corpus_files(["out/mine.jsonl"], out)] == ["out/mine.jsonl"]
    Path("hard.jsonl").hardlink_to(Path(out, "skipped.jsonl"))  # which the scan writes
    for own in ("out/skipped.jsonl", "hard.jsonl"):
        with pytest.raises(UsageError, match=f"'{own}' is a file of the result"):
            corpus_files([own], out)
    with pytest.raises(UsageError, match="'out' is the folder of the result"):
        corpus_files(["out"], f"file://{tmp_path}/out")


def test_a_folder_without_permission_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "closed").mkdir()
    listed = os.listdir

    def forbidden(path: str) -> list[str]:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")  # root could read it
        return listed(path)

    monkeypatch.setattr(os, "listdir", forbidden)
    with pytest.raises(InputError, match=r"no permission to read '.*closed'"):
        corpus_files([str(tmp_path)])


@pytest.mark.parametrize("special", ["/dev/zero", "pipe"])
def test_a_device_or_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, special: str) -> None:
    path = tmp_path / special  # /dev/zero is absolute, and stays
    if special == "pipe":
        os.mkfifo(path)
    with pytest.raises(InputError, match="is not a regular file; give - to read what comes"):
        corpus_files([str(path)])
    ((_, why),) = skipped(list(documents_of(FilePart(str(path), 0, 9), "line", "text")))
    assert "not a regular file" in why


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.txt", "there is no file"),
        ("", "there is no file"),
        ("folder", "there is no text in"),
        ("a\0b", "cannot be read"),
    ],
)
def test_a_corpus_without_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(InputError, match=says):
        corpus_files([path])


def test_a_name_that_is_not_utf_8_is_escaped_where_it_is_told(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(path, "wb") as file:
        file.write(b"text\n\xff\n")
    found = read([tmp_path], "line")
    assert [each.path for each in found] == [f"{tmp_path}/caf\\xe9.txt"] * 2


def test_the_mark_of_a_file_changes_with_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"one")
    (before,) = corpus_files([str(path)])
    written(path, b"two")
    os.utime(path, ns=(0, 7))
    (after,) = corpus_files([str(path)])
    assert before.size == after.size
    assert (before.mark, after.mark) == (str(before.mark), "7")


def test_a_field_is_for_objects_and_columns() -> None:
    def file(path: str) -> CorpusFile:
        return CorpusFile(path, 1, "")

    check_field([file("a.txt"), file("s3://b/a.jsonl.gz")], "body")
    check_field([file("a.parquet")], "body")
    check_field([file("a.txt")], None)
    with pytest.raises(InputError, match="is for JSON lines and Parquet"):
        check_field([file("a.txt"), file("b.gz")], "body")


# ---- standard input ----


def given_in(data: bytes) -> Stdin:
    return Stdin(io.BytesIO(data), is_terminal=False)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'\n  \n{"text": "a"}\n', "stdin.jsonl"),
        (b"[1]\n", "stdin.txt"),
        (b'{"text": \n', "stdin.txt"),
        (b"", "stdin.txt"),
    ],
)
def test_standard_input_becomes_a_file_whose_name_says_what_it_holds(
    tmp_path: Path, data: bytes, name: str
) -> None:
    path = spool(given_in(data), tmp_path / "stdin")
    assert (path, path.read_bytes()) == (tmp_path / name, data)
    assert os.listdir(tmp_path) == [name]


def test_the_same_standard_input_leaves_the_file_as_it_is_and_another_is_refused(
    tmp_path: Path,
) -> None:
    path = spool(given_in(b"text"), tmp_path / "stdin")
    os.utime(path, ns=(0, 7))
    spool(given_in(b"text"), tmp_path / "stdin")
    assert corpus_files([str(path)])[0].mark == "7"
    for other in (b"more text", b"tex\n", b'{"a": 1}'):
        with pytest.raises(UsageError, match="what another scan read from standard input"):
            spool(given_in(other), tmp_path / "stdin")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"text", ["stdin.txt"])


def test_standard_input_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="standard input is a terminal"):
        spool(Stdin(io.BytesIO(), is_terminal=True), tmp_path / "stdin")
    with pytest.raises(InputError, match="standard input is closed"):
        spool(Stdin(None, is_terminal=False), tmp_path / "stdin")
    with pytest.raises(OutputError, match="does not exist"):
        spool(given_in(b"x"), tmp_path / "missing" / "stdin")


# ---- elsewhere ----

CONTENT = b"one\ntwo\n\nthree\n" * 20


def filled(system: fsspec.AbstractFileSystem, folder: str) -> None:
    """Files of each kind in a folder of a file system."""
    table = io.BytesIO()
    pq.write_table(pa.table({"text": ["four", "five"]}), table)
    for name, data in (
        ("a.txt", CONTENT),
        ("b/c.jsonl.gz", gzip.compress(b'{"text": "six"}\n')),
        ("b/d.parquet", table.getvalue()),
        ("b/e.md.zst", zstd(b"seven")),
        ("b/.f.txt", b"hidden"),
        ("g.png", b"\x89PNG"),
    ):
        system.pipe(f"{folder}/{name}", data)


def check_distant(url: str) -> None:
    """What was put into a folder is found and read, in any shards."""
    found = corpus_files([url, f"{url}/a.txt"])
    names = [file.path.removeprefix(f"{url}/") for file in found]
    assert names == ["a.txt", "b/c.jsonl.gz", "b/d.parquet", "b/e.md.zst"]
    assert (found[0].size, bool(found[0].mark)) == (len(CONTENT), True)
    assert [f.path for f in corpus_files([f"{url}/**/*.jsonl.gz"])] == [f"{url}/b/c.jsonl.gz"]
    for most in (7, 100, 1 << 18):
        whole = [*(["one", "two", "three"] * 20), "six", "four", "five", "seven"]
        assert texts(read([url], "line", most=most)) == whole
        paragraphs = ["one\ntwo", *["three\none\ntwo"] * 19, "three"]
        assert texts(read([f"{url}/a.txt"], "paragraph", most=most)) == paragraphs
    assert [f.path for f in corpus_files([url], f"{url}/b")] == [f"{url}/a.txt"]
    with pytest.raises(UsageError, match="is the folder of the result"):
        corpus_files([url], f"{url}/")
    for missing in (f"{url}/missing.txt", f"{url}/missing/*.txt"):
        with pytest.raises(InputError, match=r"there is nothing at|no file matches"):
            corpus_files([missing])
    check_changes_are_seen(url)


def check_changes_are_seen(url: str) -> None:
    """A file of a corpus behind a URL is changed, in size or not, and removed."""
    system = fsspec.core.url_to_fs(url)[0]
    found = corpus_files([url])
    check_unchanged(found, here=True)
    system.pipe(f"{url}/a.txt", CONTENT + b"more")
    with pytest.raises(InputError, match=f"a.txt' was changed from {len(CONTENT)} to"):
        check_unchanged(found, here=True)
    system.pipe(f"{url}/a.txt", CONTENT.replace(b"one", b"ONE"))
    with pytest.raises(InputError, match=r"a.txt' was changed during the scan"):
        check_unchanged(found, here=True)
    system.rm(f"{url}/b/d.parquet")
    with pytest.raises(InputError, match=r"d.parquet' was removed during the scan"):
        check_unchanged(found[1:], here=True)
    system.pipe(f"{url}/a.txt", CONTENT)


def test_a_corpus_can_lie_in_any_file_system_of_fsspec() -> None:
    system = fsspec.filesystem("memory")
    filled(system, "/corpus")
    try:
        check_distant("memory:///corpus")
        system.pipe("/corpus/gone.txt", b"x")
        piece = FilePart("memory://corpus/gone.txt", 0, 1)
        system.rm("/corpus/gone.txt")
        ((_, why),) = skipped(list(documents_of(piece, "line", "text")))
        assert "there is nothing at" in why
    finally:
        system.rm("/corpus", recursive=True)


@pytest.mark.slow
def test_a_corpus_can_lie_in_a_bucket(
    s3: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.mkdir("bucket")
    filled(s3, "bucket/corpus")
    check_distant("s3://bucket/corpus")
    (before,) = corpus_files(["s3://bucket/corpus/a.txt"])
    s3.pipe("bucket/corpus/a.txt", CONTENT.replace(b"one", b"ONE"))
    (after,) = corpus_files(["s3://bucket/corpus/a.txt"])
    assert (before.size, before.mark != after.mark) == (after.size, True)
    with pytest.raises(InputError, match="there is nothing at 's3://nowhere/corpus'"):
        corpus_files(["s3://nowhere/corpus"])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(InputError, match="cannot be read: Unable to locate credentials"):
        corpus_files(["s3://bucket/corpus"])


@pytest.mark.parametrize(
    ("url", "kind", "says"),
    [
        (
            "gs://bucket/a.txt",
            UsageError,
            "Please install gcsfs .*; install it: .*pip install gcsfs",
        ),
        ("az://bucket/a.txt", UsageError, "Install adlfs .*; install it: .*pip install adlfs"),
        ("nothing://a.txt", InputError, "nothing here reads nothing://"),
        ("simplecache::memory://a.txt", InputError, "is a URL in another"),
    ],
)
def test_a_file_system_that_is_not_there_is_told(
    url: str, kind: type[AttnvizError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        corpus_files([url])
