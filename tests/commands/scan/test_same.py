"""A scan gives the same bytes, whoever counts, whatever happens on the way."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import rows_in

TEXTS = (
    "a fluffy blue creature roamed the verdant forest",
    "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was",
    "Bark is very cute and he is a dog",
    "the red fox saw the red fox near the red fox",
)

SCRIPT = """
import sys
from attnviz.models.catalog import Source
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import make_plan
from attnviz.corpus.folder import Request
from attnviz.commands.scan.run import Watcher, run_scan
from attnviz.corpus.folder import Store

class Told(Watcher):
    def did(self, done): after(done)

def after(done): pass

def main(texts, out, workers, ray=None, part=(1, 1)):
    request = Request((texts,), split="line", shard=400)
    plan = make_plan(Store.at(out), request, Source("builtin"))
    run_scan(plan, HowRun(workers, ray, part), Told())
"""
PLAIN = (
    SCRIPT
    + """
if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""
)
ON_RAY = (
    SCRIPT
    + """
import json, ray
from ray.cluster_utils import Cluster

seen = 0
if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    dying = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    cluster.wait_for_nodes()

    def after(done):
        global seen
        seen += 1
        if seen == 2:
            cluster.remove_node(dying, allow_graceful=False)

    main(sys.argv[1], sys.argv[2], 2, cluster.address)
    print(json.dumps({"nodes": len(cluster.list_all_nodes()), "after": seen - 2}))
    ray.shutdown()
    cluster.shutdown()
"""
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of some shards."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("".join(f"{text} {i}\n" for i in range(12) for text in TEXTS))
    return path


Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def start(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Started:
    """Starts a script that scans into a folder with so many workers."""
    folder = tmp_path_factory.mktemp("scripts")

    def started(out: Path, workers: int = 1, script: str = PLAIN) -> "subprocess.Popen[str]":
        path = folder / "script.py"
        path.write_text(script)
        command = [sys.executable, str(path), str(texts), str(out), str(workers)]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return started


@pytest.fixture(scope="module")
def whole(start: Started, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a scan by one worker that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    finish(start(out))
    assert len(list((out / "shards").iterdir())) > 4
    return contents(out)


def finish(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a result; of shards, too."""
    files = [f for f in sorted(folder.rglob("*")) if f.is_file() and not f.name.startswith(".lock")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


@pytest.mark.slow  # the other tests run two workers, which end in the files of one
def test_the_number_of_workers_changes_no_byte(
    start: Started, whole: dict[str, bytes], tmp_path: Path
) -> None:
    finish(start(tmp_path / "out", 3))
    assert contents(tmp_path / "out") == whole


def killed(start: Started, out: Path, times: int, draw: random.Random) -> list[int]:
    """Kill a scan so often at random moments; how many of its shards were counted each time."""
    finished = []
    for _ in range(times):
        process = start(out, 2)
        time.sleep(1.5 + 2.5 * draw.random())
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        finished.append(len(list(out.glob("shards/*"))))
    return finished


@pytest.mark.slow  # shards that are lost are counted anew in test_links.py
def test_a_scan_that_was_killed_goes_on_to_the_same_bytes(
    start: Started, whole: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    finished = killed(start, out, 1, random.Random(0))
    assert finished == sorted(finished)
    finish(start(out, 2))
    assert contents(out) == whole


@pytest.mark.slow
def test_a_scan_that_was_killed_twenty_times_goes_on_to_the_same_bytes(
    start: Started, whole: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed(start, out, 20, random.Random(1))
    finish(start(out, 2))
    assert contents(out) == whole


def test_workers_end_with_their_parent(start: Started, tmp_path: Path) -> None:
    process = start(tmp_path / "out", 2)
    children: list[int] = []
    for _ in range(200):
        time.sleep(0.05)
        children = [child.pid for child in psutil.Process(process.pid).children()]
        if len(children) >= 2:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    for _ in range(100):
        time.sleep(0.05)
        if not any(map(psutil.pid_exists, children)):
            return
    pytest.fail("a worker outlived its parent")


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node_gives_the_same_bytes(
    start: Started, whole: dict[str, bytes], tmp_path: Path
) -> None:
    said = finish(start(tmp_path / "out", 2, ON_RAY))
    (told,) = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    assert told["nodes"] == 1  # of two
    assert told["after"] > 2  # tasks were done without it
    assert contents(tmp_path / "out") == whole


def test_parts_are_merged_to_the_same_result(run: Run, texts: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    # by the command, whose shards are larger
    given = ("--split", "line", "-o", out)
    assert run("scan", str(texts), *given, "--shard", "1/2").status is ExitStatus.OK
    for part in ("2/2", "1/2"):
        ended = run("scan", str(texts), "--split", "line", "--shard", part, "-o", out)
        assert ended.status is ExitStatus.OK
        assert "attnviz scan --merge" in ended.err
    assert run("atlas", out).status is ExitStatus.INPUT
    assert run("scan", "--merge", out).status is ExitStatus.OK
    rows = rows_in(run("atlas", out, "-f", "jsonl").out)
    alone = str(tmp_path / "alone")
    assert run("scan", str(texts), "--split", "line", "-o", alone).status is ExitStatus.OK
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert rows[0]["documents"] == 12 * len(TEXTS)
