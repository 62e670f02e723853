"""`attnviz scan`: from a corpus to a folder, and what it says on the way."""

import json
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attnviz
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import Done, ScanPlan, Task, make_plan, shard_size
from attnviz.commands.scan.run import Estimated, Watcher, locked, run_scan
from attnviz.corpus.folder import Request, Store, asked_by, keep_manifest
from attnviz.corpus.record import empty_record, merged
from attnviz.corpus.result import read_atlas, read_head
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.models.catalog import Source, load
from tests.conftest import Run

TEXTS = (
    "a fluffy blue creature roamed the verdant forest",
    "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was",
    "Bark is very cute and he is a dog",
    "the red fox saw the red fox near the red fox",
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of text files, one document each."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, text in enumerate(TEXTS):
        (folder / f"{i}.txt").write_text(text + "\n")
    return folder


def planned(out: Path, corpus: Path, **more: object) -> ScanPlan:
    request = Request((str(corpus),), **more)  # type: ignore[arg-type]
    plan = make_plan(Store.at(str(out)), request, Source("builtin"))
    keep_manifest(plan.store, plan.manifest)
    return plan


def scan(run: Run, corpus: Path, out: Path, *more: str) -> str:
    ended = run("scan", str(corpus), "-o", str(out), "--workers", "1", *more)
    assert ended.status is ExitStatus.OK, ended.err
    return ended.err


class Watched(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.estimates: list[Estimated] = []
        self.phases: list[tuple[str, int, int]] = []
        self.done: list[Done] = []
        self.notes: list[str] = []

    def expect(self, estimate: Estimated) -> None:
        self.estimates.append(estimate)

    def note(self, said: str) -> None:
        self.notes.append(said)

    def begin(self, what: str, left: Sequence[Task], of: Sequence[Task]) -> None:
        self.phases.append((what, len(of) - len(left), len(left)))

    def did(self, done: Done) -> None:
        self.done.append(done)


# ---- the result ----


def test_a_scan_leaves_tables_that_say_what_was_counted(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = scan(run, corpus, out)
    assert f"4 documents, 46 tokens in '{out}'; attnviz atlas {out} shows it" in said
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("manifest.json", "shards", ".lock", "skipped.jsonl"),
        *("heads.parquet", "histograms.parquet", "tokens.parquet", "examples.parquet"),
    }
    atlas = read_atlas(out)
    assert list(atlas.heads) == [(i, j) for i in range(5) for j in range(4)]
    for row in atlas.rows:
        assert (row["documents"], row["windows"], row["tokens"]) == (4, 4, 46)
        head = read_head(atlas, row)
        assert head.sampled == 4
        for name in ("distance", "position"):
            assert sum(b.value for b in head.histograms[name]) == pytest.approx(1, abs=1e-5)
        assert sum(b.value for b in head.histograms["largest"]) == 4
        # every window is an example: there are fewer than a head keeps
        assert len(head.examples) == 4
        tops = [e.apart for e in head.examples if e.kind == "top"]
        assert tops == sorted(tops, reverse=True)
        assert {e.path for e in head.examples} == {str(corpus / f"{i}.txt") for i in range(4)}
        assert all(e.tokens[0] == "BOS" for e in head.examples)


def test_a_planted_document_comes_out_as_the_example(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    plain = ["the cat sat on the mat .", "a dog ran home .", "Anna cleaned the floor ."] * 20
    planted = "the zebra met the zebra and the zebra met the zebra ."
    lines = [*plain[:30], planted, *plain[30:]]
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    start = sum(len(json.dumps({"text": line})) + 1 for line in plain[:30])
    out = tmp_path / "out"
    scan(run, path, out)
    # of a head that attends to earlier copies, which the other texts have few of
    atlas = read_atlas(out)
    (named,) = (h.head for h in load(Source()).card.heads if h.behaviour == "induction")
    (row,) = (row for row in atlas.rows if (row["layer"], row["head"]) == (named.layer, named.head))
    head = read_head(atlas, row)
    (found,) = (e for e in head.examples if e.path == str(path) and e.start == start)
    assert found.kind == "top"
    assert found.strongest is not None
    assert "zebra" in "".join(found.tokens[place] for place in found.strongest)


def test_the_heads_that_the_card_names_show_what_they_are_named_for(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "texts.txt"
    nouns = ("creature", "dog", "house", "river", "bird", "garden")
    adjectives = ("blue", "small", "old", "red", "quiet", "green")
    lines = [f"the {a} {n} stood near the {b} {m} ." for a, n in zip(adjectives, nouns, strict=True)
             for b, m in zip(adjectives[::-1], nouns, strict=True)]  # fmt: skip
    path.write_text("\n".join(lines))
    out = tmp_path / "out"
    scan(run, path, out, "--split", "line")
    # the built-in model's card names it for nouns that attend to their adjectives
    named = next(h for h in attnviz.load_model().named_heads if "adjective" in h.behaviour)
    head = attnviz.atlas(out).head(str(named.head))
    pairs = [(str(p.query).strip(), str(p.key).strip()) for p in head.tokens["pair"]]
    found = [k in adjectives for q, k in pairs if q in nouns]
    assert sum(found[:12]) >= 10


# ---- the folder ----


def test_another_scan_into_the_same_folder_is_refused_with_the_difference(
    corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    planned(out, corpus, length=99)  # nothing is counted yet
    run_scan(planned(out, corpus), HowRun(1), Watched())
    with pytest.raises(UsageError, match="length was 512, is 64"):
        planned(out, corpus, length=64)
    with pytest.raises(UsageError, match="field was text, is body, seed was 0, is 3"):
        planned(out, corpus, key="body", seed=3)
    (corpus / "new.txt").write_text("one more")
    with pytest.raises(UsageError, match="another corpus"):
        planned(out, corpus)


def test_the_manifest_tells_what_was_asked(corpus: Path, tmp_path: Path) -> None:
    plan = planned(tmp_path / "out", corpus, length=99, seed=4, documents=3)
    request, source = asked_by(plan.store)
    assert (request, source) == (plan.job.request, plan.job.source)


def test_two_scans_do_not_write_into_one_folder_but_two_parts_do(
    corpus: Path, tmp_path: Path
) -> None:
    store = planned(tmp_path / "out", corpus).store
    with locked(store), pytest.raises(UsageError, match="another scan"), locked(store):
        pass
    with locked(store, (1, 2)), locked(store, (2, 2)):
        with pytest.raises(UsageError, match="another scan"), locked(store):
            pass
        with pytest.raises(UsageError, match="another scan"), locked(store, (2, 2)):
            pass


def test_a_damaged_or_missing_record_is_told(corpus: Path, tmp_path: Path) -> None:
    plan = planned(tmp_path / "out", corpus)
    with pytest.raises(InputError, match="is not counted yet"):
        plan.total()
    for content in (b"", b"[]", b"PK\x03\x04"):
        plan.store.write("shards/000000.npz", content)
        with pytest.raises(InputError, match="is damaged"):
            plan.total()


def test_a_finished_scan_is_not_run_again(corpus: Path, tmp_path: Path) -> None:
    plan, first, second = planned(tmp_path / "out", corpus), Watched(), Watched()
    finished = run_scan(plan, HowRun(1), first)
    plan.store.write("examples/000000.parquet", b"left by a process that was killed")
    again = run_scan(plan, HowRun(1), second)
    assert [name for name, *_ in first.phases] == ["shards", "examples"]
    assert second.phases == []
    assert plan.store.names("examples") == set()
    assert finished
    assert again


def test_what_a_scan_takes_is_told_before_it_starts(corpus: Path, tmp_path: Path) -> None:
    watched = Watched()
    run_scan(planned(tmp_path / "out", corpus, shard=60), HowRun(2), watched)
    (estimate,) = watched.estimates
    assert 23 <= estimate.tokens <= 92  # 46
    assert estimate.seconds > 0
    assert estimate.memory > 1 << 26
    assert watched.phases[:2] == [("trial", 0, 1), ("shards", 0, 2)]


def test_shards_grow_with_the_corpus_and_stay_few() -> None:
    assert shard_size(1000) == shard_size(1 << 30) == 1 << 18
    assert 1 << 15 <= (4 << 40) / shard_size(4 << 40) <= 1 << 16


# ---- what cannot be read ----


def test_what_is_no_text_is_told_and_skipped(run: Run, corpus: Path, tmp_path: Path) -> None:
    (corpus / "bad.txt").write_bytes(b"\xff\xfa\xff")
    said = scan(run, corpus, tmp_path / "out", "--max-bad", "50")
    assert "1 document could not be read" in said
    (line,) = (tmp_path / "out" / "skipped.jsonl").read_text().splitlines()
    assert "UTF-8" in json.loads(line)["why"]


def test_a_scan_with_too_many_bad_documents_ends_and_can_go_on(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    (corpus / "bad.txt").write_bytes(b"\xff\xfa\xff")
    out = str(tmp_path / "out")
    strict = run("scan", str(corpus), "-o", out)
    assert strict.status is ExitStatus.INPUT
    assert "1 of 5 documents could not be read, more than 1% (the first: '" in strict.err
    assert "bad.txt', not UTF-8" in strict.err  # a long path is cut in its middle
    assert "out/skipped.jsonl, and raise --max-bad" in strict.err
    assert json.loads((tmp_path / "out" / "skipped.jsonl").read_text())["path"].endswith("bad.txt")
    refused = run("atlas", out)
    assert refused.status is ExitStatus.INPUT
    assert "with a larger --max-bad if it ended for the documents that skipped" in refused.err
    scan(run, corpus, tmp_path / "out", "--max-bad", "20")
    assert run("atlas", out).status is ExitStatus.OK


def test_a_corpus_without_any_readable_document_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfa\xff")
    ended = run("scan", str(tmp_path / "bad.txt"), "-o", str(tmp_path / "out"), "--max-bad", "100")
    assert ended.status is ExitStatus.INPUT
    assert "no document could be read" in ended.err


def test_a_corpus_without_the_field_names_the_option_for_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "the cat"}\n{"body": "the dog"}\n')
    out = str(tmp_path / "out")
    ended = run("scan", str(tmp_path / "a.jsonl"), "-o", out, "--max-bad", "100")
    assert ended.status is ExitStatus.INPUT
    assert "no text under 'text'); name the field of the text with --field, and ano" in ended.err
    (tmp_path / "a.jsonl").write_text('{"body": "the cat"}\nthe dog\n')  # another field is no help
    assert "--field" not in run("scan", str(tmp_path / "a.jsonl"), "-o", f"{out}-2").err


def test_a_result_tells_the_length_that_the_model_took(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    scan(run, corpus, tmp_path / "out")
    atlas = attnviz.atlas(tmp_path / "out")
    assert atlas.manifest["length"] == 512  # as was asked
    assert atlas.made["options"]["length"] == 256  # the context of the built-in model
    assert "of at most 256 tokens" in run("atlas", str(tmp_path / "out"), "-f", "html").out


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ended = run("scan", str(corpus), "-o", str(tmp_path / "file" / "out"))
    assert ended.status is ExitStatus.OUTPUT


def test_an_encoder_of_a_pair_is_scanned_and_its_other_attentions_are_refused(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    given = ("scan", str(corpus), "-m", "translator", "--workers", "1", "-o", str(tmp_path / "out"))
    refused = run(*given)
    assert refused.status is ExitStatus.USAGE
    assert "--kind encoder" in refused.err
    assert run(*given, "--kind", "encoder").status is ExitStatus.OK
    assert read_atlas(tmp_path / "out").size[0] == len(TEXTS)


# ---- options ----


def test_only_so_many_documents_are_read(run: Run, corpus: Path, tmp_path: Path) -> None:
    assert "3 documents" in scan(run, corpus, tmp_path / "out", "--max-docs", "3")


def test_only_the_heads_that_are_asked_for_are_counted(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    scan(run, corpus, tmp_path / "out", "--head", "L3H1,L1H2")
    atlas = read_atlas(tmp_path / "out")
    assert list(map(str, atlas.heads)) == ["L1H2", "L3H1"]
    assert all(read_head(atlas, row).examples for row in atlas.rows)


def test_standard_input_is_a_corpus(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = "".join(f"{text}\n" for text in TEXTS).encode()
    given = ("scan", "-", "--split", "line", "-o", str(out), "--workers", "1")
    for _ in range(2):  # the same input goes on where the first ended
        assert run(*given, stdin=text).status is ExitStatus.OK
    assert read_atlas(out).size == (4, 46)
    assert run(*given, stdin=b"other").status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("TEXTS", "-o", "OUT", "--shard", "x"), "is not a part"),
        (("TEXTS", "-o", "OUT", "--field", "body"), "--field is for JSON lines"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(
    given: tuple[str, ...], said: str, run: Run, corpus: Path, tmp_path: Path
) -> None:
    places = {"TEXTS": str(corpus), "OUT": str(tmp_path / "out")}
    ended = run("scan", *(places.get(word, word) for word in given))
    assert ended.status in (ExitStatus.USAGE, ExitStatus.INPUT)
    assert said in ended.err
    assert not (tmp_path / "out").exists()


def test_without_pyarrow_the_install_command_is_told(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    ended = run("scan", str(corpus), "-o", str(tmp_path / "out"))
    assert ended.status is ExitStatus.USAGE
    assert 'pip install "fsspec>=2025.3" "pyarrow>=20".' in ended.err


def test_without_ray_the_install_command_is_told(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = run("scan", str(corpus), "-o", str(tmp_path / "out"), "--ray", "local")
    assert ended.status is ExitStatus.USAGE
    assert 'pip install "fsspec>=2025.3" "pyarrow>=20" "ray>=2.40".' in ended.err


# ---- object stores ----


@pytest.fixture
def bucket(s3: fsspec.AbstractFileSystem) -> str:
    name = f"bucket-{secrets.token_hex(4)}"  # the server's state outlives it
    s3.mkdir(name)
    return f"s3://{name}"


@pytest.mark.slow  # a server, and two scans in processes
def test_corpus_and_result_lie_in_a_bucket(
    bucket: str, run: Run, corpus: Path, tmp_path: Path
) -> None:
    fsspec.filesystem("s3").put(str(corpus), f"{bucket}/texts", recursive=True)
    given = ("--workers", "2", "-q")
    ended = run("scan", f"{bucket}/texts", "-o", f"{bucket}/out", *given)
    assert ended.status is ExitStatus.OK, ended.err
    there = run("atlas", f"{bucket}/out", "-f", "json")
    assert there.status is ExitStatus.OK, there.err
    scan(run, corpus, tmp_path / "here")
    here = run("atlas", str(tmp_path / "here"), "-f", "json")
    found = [json.loads(ended.out) for ended in (there, here)]
    assert found[0]["rows"] == found[1]["rows"]
    assert found[0]["made"]["models"] == found[1]["made"]["models"]
    names = {name.rsplit("/", 1)[-1] for name in fsspec.filesystem("s3").ls(f"{bucket}/out")}
    assert {"heads.parquet", "examples.parquet", "shards"} <= names
    assert not {"examples", "sampled"} & names


def test_a_bucket_that_is_not_there_is_told(bucket: str, run: Run, corpus: Path) -> None:
    ended = run("scan", str(corpus), "-o", "s3://nowhere/out")
    assert ended.status is ExitStatus.OUTPUT
    assert "'s3://nowhere/out/manifest.json' cannot be written" in ended.err


def test_an_empty_record_is_merged_as_nothing() -> None:
    empty = empty_record(["L0H0"])
    np.testing.assert_array_equal(merged([empty, empty]).best, empty.best)


def test_counts_by_other_weights_under_one_name_are_never_merged(tmp_path: Path) -> None:
    """Files of the same sizes and times: all that a plan sees of a model by its name."""
    folder, texts = tmp_path / "model", tmp_path / "texts.txt"
    shutil.copytree(files("attnviz") / "builtin" / "gpt", folder)  # type: ignore[arg-type]
    texts.write_text("\n".join(TEXTS))
    request = Request((str(texts),), split="line", shard=64)

    def count(part: tuple[int, int]) -> None:
        plan = make_plan(Store.at(str(tmp_path / "out")), request, Source(str(folder)))
        assert len(plan.shards) > 1
        run_scan(plan, HowRun(1, None, part), Watched())

    count((1, 2))
    weights = folder / "model.safetensors"
    before, tensors = weights.stat(), load_file(weights)
    (name,) = (name for name in tensors if name.endswith("ln_f.bias"))
    save_file({**tensors, name: tensors[name] + 1}, weights, metadata={"format": "pt"})
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert weights.stat().st_size == before.st_size
    count((2, 2))
    with pytest.raises(InputError, match="do not belong together"):
        count((1, 1))
