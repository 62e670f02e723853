"""What a scan would take, told before it runs."""

import gzip
import json
import os
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnviz
from attnviz.commands.scan import estimate
from attnviz.commands.scan.estimate import Spread, survey
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import ScanPlan, make_plan
from attnviz.commands.scan.run import Watcher, run_scan
from attnviz.corpus import documents as corpus_module
from attnviz.corpus.folder import Request, Store
from attnviz.corpus.places import CorpusText, FilePart, Skipped
from attnviz.errors import ExitStatus, InputError
from attnviz.models.catalog import Source
from tests.conftest import Run
from tests.corpus.test_documents import written

SENTENCES = (
    "the fluffy blue creature roamed the verdant forest and it slept under the old tree .",
    "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was never found .",
    "an 8-bit register (0x7f) overflows: 127 + 1 = -128, e.g. in C; see §4.2!",
)


def texts(sizes: Sequence[int], seed: int = 0) -> list[str]:
    """Documents of so many sentences, in an order that no position tells."""
    draw = random.Random(seed)
    made = [" ".join(draw.choices(SENTENCES, k=size)) for size in sizes]
    draw.shuffle(made)
    return made


def in_lines(path: Path, documents: Sequence[str]) -> Path:
    return written(path, "".join(json.dumps({"text": d}) + "\n" for d in documents).encode())


def plan_of(corpus: Path, out: Path, **more: object) -> ScanPlan:
    request = Request((str(corpus),), **more)  # type: ignore[arg-type]
    return make_plan(Store.at(str(out)), request, Source("builtin"))


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Documents of one sentence to sixty, and a field beside the text."""
    return in_lines(tmp_path / "mixed.jsonl", texts([1] * 60 + [5] * 20 + [60] * 2))


def test_documents_windows_and_tokens_are_near_those_of_the_scan(
    mixed: Path, tmp_path: Path
) -> None:
    about = attnviz.estimate_scan(mixed, output=tmp_path / "out", workers=1, length=64)
    assert not (tmp_path / "out").exists()
    (row, *_) = attnviz.scan(mixed, output=tmp_path / "out", workers=1, length=64).rows
    assert about.documents == row["documents"] == 82
    assert about.length == 64
    assert about.windows == pytest.approx(row["windows"], rel=0.03)
    assert about.tokens == pytest.approx(row["tokens"], rel=0.01)
    assert about.workers == 1
    assert about.seconds > 0
    assert about.memory > 1 << 26
    assert about.disk > 0


def test_a_corpus_that_is_too_long_to_be_read_is_seen_at_even_distances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long documents first: whoever looks at the beginning alone takes all for long."""
    documents = [*texts([40] * 100), *texts([2] * 2000)]
    whole = sum(len(d.encode()) for d in documents)
    monkeypatch.setattr(estimate, "READ", whole // 8)
    plan = plan_of(in_lines(tmp_path / "a.jsonl", documents), tmp_path / "out", shard=4000)
    found = survey(plan, plan.shards)
    assert found.share < 0.2
    assert len(found.lengths) / found.share == pytest.approx(2100, rel=0.1)
    assert sum(found.lengths) / found.share == pytest.approx(whole, rel=0.1)


def test_pieces_lie_at_even_distances_and_stay_few() -> None:
    taken, length = Spread(100), 100
    for document in [*texts([30] * 30), "short", *texts([3] * 300)]:
        taken.add(document)
        assert sum(map(len, taken.pieces)) <= estimate.WINDOWS * length
    assert len(taken.lengths) == 331
    assert len(taken.pieces) >= estimate.WINDOWS // 2
    spread = Spread(1000)
    numbered = [f"{i:04}" * 16 for i in range(5000)]  # of 64 bytes each
    for document in numbered:
        spread.add(document)
    places = [numbered.index(piece) for piece in spread.pieces]
    apart = {b - a for a, b in pairwise(places)}
    assert len(apart) == 1
    assert places[0] == 0
    assert places[-1] > 5000 - 2 * apart.pop()


def test_the_longest_texts_of_a_corpus_are_known_before_it_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    written(folder / "a.jsonl", b'{"text": "abc"}\n{"text": "abcdefgh"}\nno\n')
    written(folder / "b.txt.gz", gzip.compress(b"x" * 500))
    pq.write_table(pa.table({"text": ["y" * 70]}), folder / "c.parquet")
    written(folder / "d.txt", b"z" * 90)
    os.truncate(written(folder / "e.txt", b""), 1 << 40)  # sparse, and skipped
    plan = plan_of(folder, tmp_path / "out")
    found = survey(plan, plan.shards)
    assert list(found.longest) == [500, 90, 70, 8, 3]
    assert found.share == 1


def test_files_of_one_text_are_read_only_where_a_piece_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = tmp_path / "texts", list[str]()
    folder.mkdir()
    for i, text in enumerate(texts([2] * 900 + [50] * 100)):
        written(folder / f"{i:03}.txt", text.encode())

    def documents_of(piece: FilePart, *more: Any) -> Iterator[CorpusText | Skipped]:
        asked.append(piece.path)
        return corpus_module.documents_of(piece, *more)

    monkeypatch.setattr(estimate, "documents_of", documents_of)
    plan = plan_of(folder, tmp_path / "out", length=8)
    found = survey(plan, plan.shards)
    assert sorted(found.lengths) == sorted(path.stat().st_size for path in folder.iterdir())
    assert estimate.WINDOWS // 2 <= len(found.pieces) <= len(asked) < 600
    assert len(set(asked)) == len(asked)


def test_only_some_shards_behind_a_url_are_read(tmp_path: Path) -> None:
    system, name = fsspec.filesystem("memory"), f"/{tmp_path.name}"
    for i, text in enumerate(texts([2] * 400)):
        line = json.dumps({"text": text}).encode()
        system.pipe(f"{name}/{i:03}.jsonl.gz", gzip.compress(line))  # which is never cut
    request = Request((f"memory:/{name}",), shard=1)
    plan = make_plan(Store.at(str(tmp_path / "out")), request, Source("builtin"))
    assert len(plan.shards) == 400
    found = survey(plan, plan.shards)
    assert estimate.AWAY <= len(found.lengths) <= 2 * estimate.AWAY
    assert len(found.lengths) / found.share == pytest.approx(400, rel=0.05)
    system.rm(name, recursive=True)


# ---- the command ----


def test_a_dry_run_says_what_a_scan_takes_and_writes_nothing(
    mixed: Path, run: Run, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    ended = run(
        "scan", str(mixed), "-o", str(tmp_path / "a" / "out"), "--dry-run", "--workers", "1"
    )
    assert ended.status is ExitStatus.OK, ended.err
    assert sorted(tmp_path.rglob("*")) == before
    said = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert said["documents"] == "about 82"
    assert said["time"].endswith("with 1 worker")
    assert {*said} == {"documents", "windows", "tokens", "time", "memory", "disk"}
    assert ended.err == ""


@pytest.mark.slow
def test_a_dry_run_into_a_scan_that_was_begun_tells_what_is_left(
    mixed: Path, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    plan = plan_of(mixed, out)  # a shard of its own size: the command cuts it likewise
    assert len(plan.shards) == 1
    run_scan(plan, HowRun(1), Watcher())
    given = ("scan", str(mixed), "-o", str(out), "--dry-run", "--workers", "1")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    ended = run(*given)
    assert ended.out == "nothing is left to count of 1 shard\n"
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    other = run(*given, "--length", "99")
    assert other.status is ExitStatus.USAGE
    assert "length was 512, is 99" in other.err
    (out / "shards" / "000000.npz").unlink()
    (out / "heads.parquet").unlink()
    assert "documents  about 82" in run(*given).out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("TEXTS", "-o", "OUT", "--shard", "1/2"), "--shard does nothing for --dry-run"),
        (("--merge", "OUT"), "--merge does nothing for --dry-run"),
        (("-", "-o", "OUT"), "standard input"),
        (("TEXTS",), "-o is missing"),
    ],
)
def test_what_a_dry_run_cannot_be_is_refused(
    given: tuple[str, ...], said: str, mixed: Path, run: Run, tmp_path: Path
) -> None:
    places = {"TEXTS": str(mixed), "OUT": str(tmp_path / "out")}
    ended = run("scan", *(places.get(word, word) for word in given), "--dry-run")
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err
    assert not (tmp_path / "out").exists()


def test_a_corpus_without_any_readable_document_has_no_estimate(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.txt", b"\xff\xfa\xff")
    with pytest.raises(InputError, match="no document could be read"):
        attnviz.estimate_scan(bad, output=tmp_path / "out", workers=1)


def test_a_model_in_memory_is_estimated_in_this_process(
    mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiprocessing.get_context", None)  # no process is started
    model = attnviz.load_model()
    about = attnviz.estimate_scan(mixed, output=tmp_path / "out", model=model)
    assert about.documents == 82


def test_windows_become_rarer_among_the_examples_the_more_there_are() -> None:
    """How many of n windows in any order are among the best 48 so far, counted by drawing."""
    draw, kept, runs, n = random.Random(5), 0, 30, 2000
    for _ in range(runs):
        best: list[float] = []
        for _ in range(n):
            value = draw.random()
            if len(best) < 48 or value > best[0]:
                kept += 1
                best = sorted([*best, value])[-48:]
    assert estimate.share_kept(n, 48) == pytest.approx(kept / runs / n, rel=0.03)
    assert estimate.share_kept(40, 48) == 1
    assert estimate.share_kept(40, 0) == 0


@pytest.mark.slow
def test_the_disk_holds_the_links_that_are_kept_beside_the_result(
    mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, sizes = attnviz.load_model(), dict[str, int]()
    write = Store.write

    def noted(store: Store, name: str, data: Any) -> None:
        if isinstance(data, bytes):
            sizes[name] = len(data)
        write(store, name, data)

    about = attnviz.estimate_scan(mixed, output=tmp_path / "out", model=model)
    monkeypatch.setattr(Store, "write", noted)
    attnviz.scan(mixed, output=tmp_path / "out", model=model)
    links = sum(size for name, size in sizes.items() if name.startswith("links/"))
    assert 0 < 0.5 * links <= about.disk
