"""A folder of a scan that was damaged is mended, or refused; it never tells what is not so."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.commands.scan.executors import HowRun, LocalWorkers, workers_of
from attnviz.commands.scan.plan import ScanPlan, make_plan
from attnviz.commands.scan.run import locked, run_scan
from attnviz.corpus import folder
from attnviz.corpus.folder import MANIFEST, Request, Store, keep_manifest
from attnviz.corpus.result import read_atlas, read_heads
from attnviz.errors import AttnvizError, ExitStatus, InputError, OutputError, UsageError
from attnviz.models.catalog import Source
from tests.commands.scan.test_run import TEXTS, Watched
from tests.commands.scan.test_same import contents
from tests.conftest import Run

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of lines, which makes four shards."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("".join(f"{text} {i}\n" for i in range(4) for text in TEXTS))
    return path


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished scan."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run_scan(planned(out, corpus), HowRun(1), Watched())
    assert len(list((out / "shards").iterdir())) == 4
    return out


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "out"))


def planned(out: Path, corpus: Path, **more: object) -> ScanPlan:
    request = Request((str(corpus),), split="line", shard=210, **more)  # type: ignore[arg-type]
    return make_plan(Store.at(str(out)), request, Source("builtin"))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace('"builtin"', '"gpt2"'))


DAMAGE: tuple[Damage, ...] = (os.unlink, cut, garble)


# ---- files of the result ----


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("table", ["heads", "histograms", "tokens", "examples"])
def test_a_damaged_table_is_not_shown(table: str, damage: Damage, out: Path) -> None:
    damage(out / f"{table}.parquet")
    with pytest.raises(InputError, match=rf"{table}.parquet. is missing, damaged.*into it again"):
        list(read_heads(read_atlas(out)))


def test_damaged_files_of_a_result_are_made_again_to_the_same_bytes(
    whole: Path, out: Path, corpus: Path
) -> None:
    os.unlink(out / "heads.parquet")
    os.unlink(out / "skipped.jsonl")
    garble(out / "tokens.parquet")
    watched = Watched()
    run_scan(planned(out, corpus), HowRun(1), watched)
    assert watched.notes == [
        "damaged or lost, and made again: heads.parquet, skipped.jsonl, tokens.parquet"
    ]
    assert watched.phases == [("examples", 0, 1)]  # the tokens alone are counted again
    assert contents(out) == contents(whole)


def test_a_table_of_another_scan_is_not_shown(out: Path, corpus: Path, tmp_path: Path) -> None:
    run_scan(planned(tmp_path / "other", corpus, length=8), HowRun(1), Watched())
    shutil.copy(tmp_path / "other" / "tokens.parquet", out / "tokens.parquet")
    with pytest.raises(InputError, match="or of another scan"):
        list(read_heads(read_atlas(out)))


# ---- shards ----


def test_shards_that_are_not_theirs_are_counted_again(whole: Path, out: Path, corpus: Path) -> None:
    (out / "heads.parquet").unlink()
    shards = sorted((out / "shards").iterdir())
    shutil.copy(shards[1], shards[2])
    cut(shards[0])
    garble(shards[3])
    assert [shard.number for shard in planned(out, corpus).counting()] == [0, 2, 3]
    with pytest.raises(InputError, match=r"3 of 4 shards .* not counted yet, or damaged"):
        run_scan(planned(out, corpus), HowRun(1, merge=True), Watched())
    watched = Watched()
    run_scan(planned(out, corpus), HowRun(1), watched)
    assert "3 shards damaged or of another scan (the first: shards/000000.npz)" in watched.notes
    assert contents(out) == contents(whole)


def test_parts_of_a_table_that_are_not_theirs_are_made_again(out: Path, corpus: Path) -> None:
    plan = planned(out, corpus)
    first = plan.again(plan.total(), {"tokens.parquet"})[0]
    shutil.copy(out / "tokens.parquet", out / "left")
    plan.store.write(first.name, (out / "left").read_bytes())
    assert first in plan.again(plan.total(), {"tokens.parquet"})


# ---- the manifest ----


@pytest.mark.parametrize("damage", [*DAMAGE, edit])
def test_a_lost_manifest_comes_back_where_the_shards_are_of_this_scan(
    damage: Damage, whole: Path, out: Path, corpus: Path
) -> None:
    damage(out / MANIFEST)
    with pytest.raises(InputError, match=r"holds no scan|manifest in .* is damaged"):
        read_atlas(out)
    keep_manifest(Store(str(out)), planned(out, corpus).manifest)
    left = contents(out)
    assert left.keys() == contents(whole).keys()
    assert len(planned(out, corpus).counting()) == 0


@pytest.mark.parametrize("lost", [("shards",), (MANIFEST,), ("shards", MANIFEST)])
def test_what_is_left_of_a_scan_gets_no_other_name(
    lost: tuple[str, ...], out: Path, corpus: Path
) -> None:
    for name in lost:
        shutil.rmtree(out / name) if name == "shards" else (out / name).unlink()
    before = contents(out)
    for other in (planned(out, corpus, seed=3), planned(out, corpus, length=99)):
        with pytest.raises(UsageError, match=r"another scan|lost its manifest"):
            run_scan(other, HowRun(1), Watched())
    assert contents(out) == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("no", "is damaged"),
        ("[]", "is damaged"),
        ("null", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ('{"schema": 4}', "is damaged"),
        ('{"schema": "attnviz-scan/6", "result": 5}', "is damaged"),
        ('{"schema": "attnviz-scan/5"}', "of another version (attnviz-scan/5, not attnviz-scan/6)"),
        (None, "it has more than"),
    ],
)
def test_an_odd_manifest_is_told_in_a_sentence(
    content: str | None, says: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is None:
        monkeypatch.setattr(folder, "LARGEST", 1 << 20)
        (tmp_path / MANIFEST).write_bytes(b" " * (1 << 20) + b"{")
    else:
        (tmp_path / MANIFEST).write_text(content)
    for command in (("atlas",), ("scan", "--merge")):
        ended = run(*command, str(tmp_path))
        assert ended.status is ExitStatus.INPUT
        assert says in ended.err


def test_a_scan_of_another_version_is_refused_with_the_command_that_makes_it_anew(
    run: Run, out: Path, corpus: Path
) -> None:
    asked = json.loads((out / MANIFEST).read_text()) | {"schema": "attnviz-scan/5"}
    (out / MANIFEST).write_text(json.dumps(asked | {"seed": 3, "heads": {"heads": "L1H2"}}))
    command = f"--split line --seed 3 --head L1H2 --output {out}-anew"
    for typed in (("atlas",), ("scan", "--merge")):
        ended = run(*typed, str(out))
        assert ended.status is ExitStatus.INPUT
        assert f"make it anew: attnviz scan {corpus} --model builtin {command}" in ended.err
        assert ended.err.count("\n") == 1


@pytest.mark.parametrize("name", ["length", "paths", "heads", "device", "result"])
def test_a_value_of_the_manifest_that_nobody_wrote_is_told(name: str, run: Run, out: Path) -> None:
    asked = json.loads((out / MANIFEST).read_text())
    for value in (None, 5, "x", [], {}, 1e308, {"files": 3}):
        (out / MANIFEST).write_text(json.dumps(asked | {name: value}))
        assert run("scan", "--merge", str(out)).status is ExitStatus.INPUT


# ---- the folder ----


@pytest.mark.parametrize("name", [".lock", MANIFEST, "skipped.jsonl"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "nowhere"])
def test_what_stands_in_the_place_of_a_file_is_told_and_not_waited_for(
    name: str, kind: str, out: Path, corpus: Path
) -> None:
    path = out / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    if kind == "nowhere" and name != ".lock":  # as if there were none
        return
    with pytest.raises((InputError, OutputError)) as told:
        run_scan(planned(out, corpus), HowRun(1), Watched())
    assert repr(str(path)) in str(told.value)


def test_a_lock_that_is_a_link_leaves_what_it_leads_to(out: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (out / ".lock").unlink()
    (out / ".lock").symlink_to(tmp_path / "mine")
    with (
        pytest.raises(OutputError, match=r"\.lock' is not a regular file"),
        locked(Store(str(out))),
    ):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_folder_that_is_a_file_or_has_no_name_is_told(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    for source in (str(corpus), "-"):
        ended = run("scan", source, "-o", str(tmp_path / "file"), stdin=b"a text\n")
        assert ended.status is ExitStatus.OUTPUT
        assert "is not a folder" in ended.err
    for given in (("scan", str(corpus), "-o", ""), ("scan", "--merge", ""), ("atlas", "")):
        ended = run(*given)
        assert ended.status is ExitStatus.USAGE
        assert "has no name" in ended.err


def test_a_folder_on_a_disk_that_is_read_only_is_told(
    run: Run, out: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refused(path: object, flags: int, *more: int, **named: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(out)):
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refused)
    for given in ((str(corpus), "-o", str(out)), ("--merge", str(out))):
        ended = run("scan", *given)
        assert ended.status is ExitStatus.OUTPUT
        assert "read-only" in ended.err


# ---- workers ----


@pytest.mark.usefixtures("spawned_workers")
def test_ctrl_c_reaches_no_worker_from_its_first_moment(out: Path, corpus: Path) -> None:
    with workers_of(planned(out, corpus).job, HowRun(2)) as workers:
        assert isinstance(workers, LocalWorkers)
        for _ in range(2):
            workers._start()
        for process in workers._pool.values():
            status = Path(f"/proc/{process.pid}/status").read_text()
            (blocked,) = re.findall(r"SigBlk:\s*(\w+)", status)
            assert int(blocked, 16) >> (signal.SIGINT - 1) & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# ---- a corpus that changes under way ----


class Changing(Watched):
    """Does something to the corpus when the first task is done."""

    def __init__(self, change: Callable[[], object]) -> None:
        super().__init__()
        self._change = change

    def did(self, done: object) -> None:
        if not self.done:
            self._change()
        super().did(done)  # type: ignore[arg-type]


def replace_alike(path: Path) -> None:
    """By a file of the same size and time."""
    state, data = path.stat(), path.read_bytes()
    path.rename(path.with_name("old"))
    path.write_bytes(data[::-1])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (cut, "was changed from"),
        (garble, "was changed during"),
        (os.unlink, "was removed"),
        (replace_alike, "was replaced"),
    ],
)
def test_a_corpus_that_changes_during_a_scan_ends_it(
    change: Damage, says: str, corpus: Path, tmp_path: Path
) -> None:
    mine = Path(shutil.copy(corpus, tmp_path / "texts.txt"))
    plan = planned(tmp_path / "out", mine)
    with pytest.raises(InputError, match=says):
        run_scan(plan, HowRun(1), Changing(lambda: change(mine)))
    assert not (tmp_path / "out" / "heads.parquet").exists()
    if change is not replace_alike:  # nor does it go on with what was counted of the old one
        with pytest.raises(AttnvizError, match=r"holds another scan|there is no file"):
            run_scan(planned(tmp_path / "out", mine), HowRun(1), Watched())


def test_nothing_of_another_program_is_replaced_or_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a fluffy blue creature")
    for name in ("manifest.json", "links/mine.txt", "examples/mine.txt", "sampled/mine.txt"):
        folder = tmp_path / name.replace("/", "-")
        theirs = folder / name
        theirs.parent.mkdir(parents=True)
        theirs.write_text('{"name": "theirs"}')
        ended = run("scan", str(tmp_path / "corpus.txt"), "-o", str(folder))
        assert ended.status is ExitStatus.USAGE
        assert "which attnviz scan did not write" in ended.err
        assert theirs.read_text() == '{"name": "theirs"}'
