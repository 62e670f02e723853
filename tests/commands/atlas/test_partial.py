"""A scan that is not finished, as far as it came."""

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import attnviz
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import make_plan
from attnviz.commands.scan.run import Watcher, locked, run_scan
from attnviz.corpus.folder import Request, Store, digest_of
from attnviz.corpus.record import record_of_bytes, record_to_bytes
from attnviz.errors import ExitStatus, InputError
from attnviz.models.catalog import Source
from tests.browsing import Open
from tests.commands.atlas.atlases import without_result
from tests.conftest import Run

pytestmark = pytest.mark.slow  # three scans in each worker; test_run.py has the whole ones

TEXTS = (
    "a fluffy blue creature roamed the verdant forest",
    "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was",
    "Bark is very cute and he is a dog",
    "the red fox saw the red fox near the red fox",
    "the old river",
)
COUNTED = 0, 3
SAID = "2 of 5 shards, 40%"
LATER = "tokens and example windows are missing until it is"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of five shards; `begun`, in which two are counted; `whole`; `small`, of the two."""
    place = tmp_path_factory.mktemp("partial")
    for folder, chosen in (("texts", range(5)), ("some", COUNTED)):
        (place / folder).mkdir()
        for number in chosen:
            (place / folder / f"{number}.txt").write_text(TEXTS[number])
    scanned(place / "texts", place / "begun", (1, 3))
    scanned(place / "texts", place / "whole", (1, 1))
    scanned(place / "some", place / "small", (1, 1))
    return place


def scanned(corpus: Path, out: Path, part: tuple[int, int]) -> None:
    request = Request((str(corpus),), shard=1)  # a shard for each file
    run_scan(make_plan(Store.at(str(out)), request, Source("builtin")), HowRun(1, None, part),
             Watcher())  # fmt: skip


def values(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "partial"}


def test_what_is_counted_is_the_scan_of_these_documents_alone(place: Path) -> None:
    so_far = attnviz.atlas(place / "begun", partial=True)
    alone = attnviz.atlas(place / "small")
    assert list(map(values, so_far.rows)) == alone.rows
    assert {row["partial"] for row in so_far.rows} == {SAID}
    head, expected = so_far.head("L3H1"), alone.head("L3H1")
    assert values(head.row) == expected.row
    assert head.histograms == expected.histograms
    assert not head.tokens
    assert not head.examples
    assert repr(so_far).endswith(f"2 documents, 21 tokens, {SAID}>")
    assert so_far.partial == SAID
    assert so_far.notes == (f"the scan is not finished: {SAID}; {LATER}",)
    assert "result" not in so_far.manifest
    over_tokens = attnviz.atlas(place / "begun", mean="tokens", partial=True)
    expected_means = attnviz.atlas(place / "small", mean="tokens").rows
    assert list(map(values, over_tokens.rows)) == expected_means


def test_nothing_is_written_or_locked_while_the_scan_runs(
    place: Path, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "running"
    shutil.copytree(place / "begun", folder)
    record = (folder / "shards" / "000000.npz").read_bytes()
    another = (place / "small" / "shards" / "000001.npz").read_bytes()
    (folder / "shards" / "000001.npz").write_bytes(another)  # of another scan
    (folder / "shards" / "000004.npz").write_bytes(record[:-9])  # half of one
    (folder / "shards" / "000002.npz").write_bytes(record)  # the copy of another one
    (folder / "shards" / ".000004.npz.1234.tmp").write_bytes(record)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with locked(Store(str(folder))):
        ended = run("atlas", str(folder), "--partial")
    assert ended.status is ExitStatus.OK, ended.err
    assert f"(partial: {SAID})" in ended.out.replace("\n", " ")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_every_form_says_that_it_is_a_part(place: Path, run: Run, tmp_path: Path) -> None:
    begun = ("atlas", str(place / "begun"), "--partial")
    note = f"note: the scan is not finished: {SAID}; {LATER}\n"
    for more in ((), ("--head", "L1H2"), ("--plot", "previous,induction")):
        shown = run(*begun, *more)
        assert shown.err == note
        assert f"(partial: {SAID})" in shown.out.replace("\n", " ")
        whole = json.loads(run(*begun, *more, "-f", "json").out)
        assert whole["made"]["options"]["partial"] == SAID
        rows = list(csv.DictReader(io.StringIO(run(*begun, *more, "-f", "csv").out)))
        assert {row["partial"] for row in rows} == {SAID}
    assert LATER in run(*begun, "--head", "L1H2", "--width", "200").out
    assert json.loads(run(*begun, "--head", "L1H2", "-f", "json").out)["partial"] == SAID
    assert run(*begun, "-o", str(tmp_path / "a.html")).err == note
    page = (tmp_path / "a.html").read_text()
    assert f"over 2 documents (partial: {SAID})</title>" in page
    assert run(*begun, "-o", str(tmp_path / "a.svg")).err == note


def test_what_is_written_is_as_the_schema_says(place: Path, run: Run) -> None:
    schema = Draft202012Validator(json.loads(run("schema", "atlas").out))
    for name in ("begun", "whole"):
        for more in ((), ("--head", "L1H2"), ("--plot", "previous,induction")):
            ended = run("atlas", str(place / name), "--partial", *more, "-f", "json")
            schema.validate(json.loads(ended.out))


def test_a_finished_scan_is_shown_as_the_whole_that_it_is(place: Path, run: Run) -> None:
    for more in ((), ("--head", "L1H2"), ("-f", "json"), ("-f", "csv"), ("-f", "html")):
        given = ("atlas", str(place / "whole"), *more)
        plain, partial = run(*given), run(*given, "--partial")
        assert partial.raw == plain.raw
        assert partial.err == plain.err
    assert not attnviz.atlas(place / "whole", partial=True).partial


def test_all_shards_without_the_second_pass_are_still_a_part(
    place: Path, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "counted"
    scanned(place / "texts", folder, (1, 2))
    scanned(place / "texts", folder, (2, 2))
    so_far = attnviz.atlas(folder, partial=True)
    assert so_far.partial == "5 of 5 shards, all counted"
    expected = attnviz.atlas(place / "whole")
    assert list(map(values, so_far.rows)) == expected.rows


def test_without_partial_the_message_names_it(place: Path, run: Run) -> None:
    refused = run("atlas", str(place / "begun"))
    assert refused.status is ExitStatus.INPUT
    assert "or see what is counted with --partial." in refused.err
    with pytest.raises(InputError, match="partial=True"):
        attnviz.atlas(place / "begun")
    with locked(Store(str(place / "begun"))):
        running = run("atlas", str(place / "begun"))
    assert "holds no finished scan; wait for the scan that runs there, or see" in running.err


def test_a_folder_in_which_nothing_is_counted_is_told(
    place: Path, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "none"
    shutil.copytree(place / "begun", folder)
    shutil.rmtree(folder / "shards")
    for _ in range(2):
        ended = run("atlas", str(folder), "--partial")
        assert ended.status is ExitStatus.INPUT
        assert f"no shard of '{folder}' is counted yet; scan" in ended.err
        (folder / "shards").mkdir(exist_ok=True)
        (folder / "shards" / "000000.npz").write_bytes(b"PK")
    with locked(Store(str(folder)), (2, 3)):
        ended = run("atlas", str(folder), "--partial")
    assert "is counted yet; a scan runs there: wait until it has counted one." in ended.err
    assert run("atlas", str(tmp_path), "--partial").status is ExitStatus.INPUT


@pytest.mark.parametrize("wrong", [{"shards": 0}, {"shards": "5"}, {"heads": None}])
def test_a_manifest_that_no_scan_wrote_is_told(
    wrong: dict[str, Any], place: Path, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "wrong"
    shutil.copytree(place / "begun", folder)
    asked = without_result(folder) | wrong
    scan = digest_of(asked)
    (folder / "manifest.json").write_text(json.dumps({**asked, "scan": scan}))
    for path in (folder / "shards").iterdir():
        record = record_of_bytes(path.read_bytes())
        moved = replace(record, origin=replace(record.origin, scan=scan))
        path.write_bytes(record_to_bytes(moved, (), int(path.stem)))
    ended = run("atlas", str(folder), "--partial")
    assert ended.status is ExitStatus.INPUT
    assert "the manifest in" in ended.err


@pytest.mark.parametrize("more", [("--export", "headvis", "-o", "TREE"), ("FOLDER",)])
def test_what_needs_whole_scans_refuses_a_part(
    more: tuple[str, ...], place: Path, run: Run, tmp_path: Path
) -> None:
    places = {"FOLDER": str(place / "begun"), "TREE": str(tmp_path / "tree")}
    ended = run("atlas", places["FOLDER"], *(places.get(word, word) for word in more), "--partial")
    assert ended.status is ExitStatus.USAGE
    assert "--partial" in ended.err
    assert not (tmp_path / "tree").exists()


def test_the_page_of_a_part_says_what_comes_later(
    place: Path, opened: Open, tmp_path: Path
) -> None:
    attnviz.atlas(place / "begun", partial=True).save(tmp_path / "a.html")
    shown = opened(tmp_path / "a.html")
    shown.wait_for_selector("body[data-ready]")
    assert SAID in shown.locator("#title").inner_text()
    assert SAID in shown.locator("#about").inner_text()
    later = f"The scan is not finished: {SAID}; {LATER}."
    assert shown.locator("#sampled").inner_text() == later
    assert shown.locator("#examples-hint").inner_text() == later
    shown.locator("#find").fill("fox")
    assert shown.locator("#found-hint").inner_text() == later
    assert shown.locator("#histograms svg").count() == 3
