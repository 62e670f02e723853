"""A scan: exact integers of every shard, the same whoever counts them, and never lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnviz
from attnviz.data.head import Head
from attnviz.data.scan import (
    DISTANCES,
    Document,
    Moments,
    Piece,
    Record,
    Skipped,
    record_of,
    record_to_dict,
)
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.inputs.corpus import corpus_files, documents_of, shards_of
from attnviz.models.catalog import Source
from attnviz.scan.count import Counter
from attnviz.scan.local import run_local
from attnviz.scan.plan import Plan, Request, locked, make_plan, merged
from attnviz.scan.result import write_result
from attnviz.scan.tables import read_atlas
from tests.conftest import Run

TEXTS = (
    "a fluffy blue creature roamed the verdant forest",
    "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was",
    "Bark is very cute and he is a dog",
    "the red fox saw the red fox near the red fox",
)


def corpus(folder: Path, copies: int = 1) -> Path:
    """A folder of text files, one document each."""
    folder.mkdir()
    for i in range(copies):
        for j, text in enumerate(TEXTS):
            (folder / f"{i:03}-{j}.txt").write_text(text + f" {i}\n")
    return folder


def planned(tmp_path: Path, name: str, texts: Path, **more: object) -> Plan:
    request = Request((texts,), **more)  # type: ignore[arg-type]
    return make_plan(tmp_path / name, request, Source("builtin"))


def scanned(plan: Plan, workers: int = 1) -> Path:
    run_local(plan, workers, lambda _: None)
    write_result(plan.folder, merged(plan.records()))
    return plan.folder


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a result; of shards, too."""
    files = [f for f in sorted(folder.rglob("*")) if f.is_file() and f.name != ".lock"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


# ---- right ----


def test_scores_are_those_of_heads_averaged_by_hand(run: Run, tmp_path: Path) -> None:
    folder = scanned(planned(tmp_path, "out", corpus(tmp_path / "texts")))
    by_text = []
    for text in TEXTS:
        out = run("heads", f"{text} 0", "-f", "jsonl").out
        by_text.append({row["head"]: row for row in map(json.loads, out.splitlines())})
    for row in read_atlas(folder).rows:
        assert row["documents"] == len(TEXTS)
        for name in ("entropy", "normalised", "distance", "previous", "first", "self", "induction"):
            values = [t[row["head"]][name] for t in by_text if t[row["head"]][name] is not None]
            assert row[f"{name}_documents"] == len(values)
            assert row[name] == pytest.approx(fmean(values), abs=1e-6)
            if len(values) > 1:
                error = stdev(values) / sqrt(len(values))
                assert row[f"{name}_error"] == pytest.approx(error, abs=1e-6)


def test_histograms_and_variance_are_those_of_the_whole_matrices(tmp_path: Path) -> None:
    model = attnviz.load_model()
    counter = Counter(model._loaded, [Head(1, 2), Head(3, 2)], 512)
    for text in TEXTS:
        counter.add(Document("x", 0, text))
    for head, counts in counter.record.heads.items():
        layer, number = int(head[1]), int(head[3])
        shares, variances, largest = [], [], np.zeros(20, int)
        for text in TEXTS:
            weights = model.capture(text).pattern(layer, number).astype(float)
            n = len(weights)
            apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
            bins = np.digitize(apart, DISTANCES)
            shares.append(np.bincount(bins.ravel(), weights.ravel(), len(DISTANCES) + 1) / n)
            mean = (weights * apart).sum() / n
            variances.append((weights * apart**2).sum() / n - mean**2)
            largest[min(19, int(weights[1:, 1:].max() * 20))] += 1
        found = np.array(counts.distances) / 2**32
        np.testing.assert_allclose(found, np.sum(shares, axis=0), atol=1e-6)
        variance = counts.metrics["distance_variance"].estimate().mean
        assert variance == pytest.approx(fmean(variances), abs=1e-3)
        assert counts.largest == largest.tolist()


def test_a_long_document_is_cut_into_windows_that_each_begin_as_the_model_was_trained() -> None:
    model = attnviz.load_model()._loaded
    counter = Counter(model, [Head(0, 0)], 16)
    counter.add(Document("x", 0, "the cat sat on the mat . " * 20))
    inner = len(model.tokenizer.encode("the cat sat on the mat . " * 20, bos=False, special=False))
    windows = -(-inner // 15)  # BOS stands in each
    assert (counter.record.documents, counter.record.windows) == (1, windows)
    assert counter.record.tokens == inner + windows


# ---- the same, whoever counts ----


@given(st.lists(st.lists(st.floats(-100, 100), max_size=5), min_size=1, max_size=6), st.randoms())
def test_moments_merge_to_the_same_bits_in_any_order(
    shards: list[list[float]], order: random.Random
) -> None:
    def counted(values: list[float]) -> Moments:
        made = Moments()
        for value in values:
            made.add(value)
        return made

    whole = counted([value for values in shards for value in values])
    order.shuffle(shards)
    together = Moments()
    for values in shards:
        together.merge(counted(values))
    assert together == whole


def test_a_record_is_the_same_after_json() -> None:
    counter = Counter(attnviz.load_model()._loaded, [Head(0, 0), Head(4, 3)], 64)
    counter.add(Document("x", 0, TEXTS[0]))
    counter.add(Skipped("y", 7, "because"))
    written = json.dumps(record_to_dict(counter.record))
    assert record_of(json.loads(written)) == counter.record


def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    texts = corpus(tmp_path / "texts", copies=3)
    plans = [planned(tmp_path, f"out{n}", texts, shard=120) for n in (1, 2, 4)]
    assert len(plans[0].shards) > 4
    one, two, four = (contents(scanned(p, n)) for p, n in zip(plans, (1, 2, 4), strict=True))
    assert one == two == four


KILLED = """
import sys
from pathlib import Path
from attnviz.models.catalog import Source
from attnviz.scan.local import run_local
from attnviz.scan.plan import Request, make_plan
if __name__ == "__main__":
    texts, out = map(Path, sys.argv[1:])
    run_local(make_plan(out, Request((texts,), shard=60), Source("builtin")), 2, lambda _: None)
"""


def test_a_scan_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    texts = corpus(tmp_path / "texts", copies=4)
    whole = contents(scanned(planned(tmp_path, "whole", texts, shard=60)))
    script, out, draw = tmp_path / "scan.py", tmp_path / "out", random.Random(0)
    script.write_text(KILLED)
    finished = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, str(script), str(texts), str(out)])
        time.sleep(2.5 + draw.random())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        finished.append(len(list((out / "shards").glob("*.json"))) if out.exists() else 0)
    assert finished == sorted(finished)
    plan = planned(tmp_path, "out", texts, shard=60)
    assert contents(scanned(plan, 2)) == whole


# ---- the corpus ----


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12), max_size=12
    ),
    st.integers(1, 40),
)
def test_every_line_belongs_to_one_shard(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], most: int
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_bytes("\n".join(lines).encode())
    whole = list(documents_of(Piece(str(path), 0, path.stat().st_size), "line", "text"))
    shards = list(shards_of([path], "line", most))
    parts = [d for s in shards for p in s.pieces for d in documents_of(p, "line", "text")]
    assert parts == whole
    assert [s.number for s in shards] == list(range(len(shards)))


def test_documents_are_files_paragraphs_lines_or_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\r\n\r\nthree\n\n\n")
    size = path.stat().st_size

    def texts(split: str) -> list[str]:
        found = documents_of(Piece(str(path), 0, size), split, "text")  # type: ignore[arg-type]
        return [each.text for each in found if isinstance(each, Document)]

    assert texts("file") == ["one\ntwo\r\n\r\nthree"]
    assert texts("paragraph") == ["one\ntwo", "three"]
    assert texts("line") == ["one", "two", "three"]
    objects = tmp_path / "b.jsonl"
    objects.write_text('{"body": "x"}\nno json\n{"other": 1}\n\n{"body": "y"}\n')
    read = list(documents_of(Piece(str(objects), 0, 99), "file", "body"))
    assert [d.text for d in read if isinstance(d, Document)] == ["x", "y"]
    skipped = [d for d in read if isinstance(d, Skipped)]
    assert [(d.start, d.why.split(" (")[0]) for d in skipped] == [
        (14, "no JSON"),
        (22, "no text under 'body'"),
    ]


def test_what_is_no_text_is_told_and_skipped(run: Run, tmp_path: Path) -> None:
    texts = corpus(tmp_path / "texts")
    (texts / "bad.txt").write_bytes(b"\xff\xfe\xff")
    ended = run("scan", str(texts), "-o", str(tmp_path / "out"), "--max-bad", "50")
    assert ended.status is ExitStatus.OK
    assert "1 document could not be read" in ended.err
    (line,) = (tmp_path / "out" / "skipped.jsonl").read_text().splitlines()
    assert json.loads(line)["why"].startswith("not UTF-8")
    strict = run("scan", str(texts), "-o", str(tmp_path / "out"))
    assert strict.status is ExitStatus.INPUT
    assert "more than 1%" in strict.err


def test_a_corpus_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no text"):
        corpus_files([tmp_path])
    with pytest.raises(InputError):
        corpus_files([tmp_path / "missing.txt"])


# ---- the folder ----


def test_another_scan_into_the_same_folder_is_refused_with_the_difference(tmp_path: Path) -> None:
    texts = corpus(tmp_path / "texts")
    planned(tmp_path, "out", texts)
    with pytest.raises(UsageError, match="its length differs"):
        planned(tmp_path, "out", texts, length=64)
    (texts / "new.txt").write_text("one more")
    with pytest.raises(UsageError, match="its corpus differs"):
        planned(tmp_path, "out", texts)


def test_two_scans_do_not_write_into_one_folder(tmp_path: Path) -> None:
    plan = planned(tmp_path, "out", corpus(tmp_path / "texts"))
    with locked(plan.folder), pytest.raises(UsageError, match="another scan"), locked(plan.folder):
        pass


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    plan = planned(tmp_path, "out", corpus(tmp_path / "texts"))
    for content in ("", "[]", '{"heads": {}}', '{"heads": 3}'):
        plan.place(0).write_text(content)
        with pytest.raises(InputError, match="is damaged"):
            list(plan.records())


# ---- the atlas ----


def test_the_atlas_sorts_and_draws(run: Run, tmp_path: Path) -> None:
    texts, out = corpus(tmp_path / "texts"), tmp_path / "out"
    assert run("scan", str(texts), "-o", str(out), "--layer", "3-4").status is ExitStatus.OK
    shown = run("atlas", str(out), "--sort", "induction", "--top", "2").out
    assert "builtin, scan of 4 documents" in shown
    heads = [line.split()[0] for line in shown.splitlines() if line.startswith("L")]
    rows = [json.loads(row) for row in run("atlas", str(out), "-f", "jsonl").out.splitlines()]
    best = sorted(rows, key=lambda row: -row["induction"])
    assert heads == [row["head"] for row in best[:2]]
    assert [row["head"] for row in rows] == [f"L{i}H{j}" for i in (3, 4) for j in range(4)]
    picture = tmp_path / "a.png"
    assert run("atlas", str(out), "-o", str(picture)).status is ExitStatus.OK
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_is_no_scan_is_told(run: Run, tmp_path: Path) -> None:
    ended = run("atlas", str(tmp_path))
    assert ended.status is ExitStatus.INPUT
    assert "holds no scan" in ended.err
    planned(tmp_path, "out", corpus(tmp_path / "texts"))
    assert "holds no finished scan" in run("atlas", str(tmp_path / "out")).err


def test_without_pyarrow_the_install_command_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    ended = run("scan", str(corpus(tmp_path / "texts")), "-o", str(tmp_path / "out"))
    assert ended.status is ExitStatus.USAGE
    assert "pip install 'attnviz[scan]'" in ended.err


def test_an_empty_record_is_merged_as_nothing() -> None:
    assert merged([Record(), Record()]) == Record()
