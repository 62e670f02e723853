"""The wheel and the source archive hold all that the program needs, and the wheel runs anywhere."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from attnviz.cli import COMMANDS
from attnviz.inputs.given import samples
from tests.programs import needs

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000


def built(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(source_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source archive alone."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(source_archive, unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return built("wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_of_the_checkout_in_at_most_20_mb(wheel: Path) -> None:
    assert wheel.stat().st_size <= 20 * MEGABYTE
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    inside = {name for name in held if not name.split("/")[0].endswith((".dist-info", ".data"))}
    files = (path for path in (ROOT / "attnviz").rglob("*") if path.is_file())
    package = {p.relative_to(ROOT).as_posix(): p for p in files if p.suffix != ".pyc"}
    assert {name for name in inside if not name.startswith("attnviz/samples/")} == set(package)
    assert all(held[name] == path.read_bytes() for name, path in package.items())


def test_the_source_archive_holds_what_the_wheel_is_built_of_in_at_most_30_mb(
    source_archive: Path,
) -> None:
    assert source_archive.stat().st_size <= 30 * MEGABYTE
    with tarfile.open(source_archive) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    outside = {".ci", "benchmarks", "making", "tests"}
    assert [name for name in names if name.split("/")[0] in outside] == ["making/words/NOTICE"]


def test_the_wheel_holds_nothing_of_how_the_models_were_made_but_the_licences(wheel: Path) -> None:
    lists = {path.read_bytes() for path in (ROOT / "making" / "words").glob("*.txt")}
    assert len(lists) > 10
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (licence,) = (name for name in names if "making" in name.split("/"))
        assert licence.endswith(".dist-info/licenses/making/words/NOTICE")
        assert not any(archive.read(name) in lists for name in names)


def test_the_wheel_holds_every_sample_of_the_checkout(wheel: Path) -> None:
    folder = "attnviz/samples/"
    with zipfile.ZipFile(wheel) as archive:
        held = {n.removeprefix(folder): archive.read(n) for n in archive.namelist() if folder in n}
    del held["README.md"]
    assert held == {path.name: path.read_bytes() for path in samples().values()}


def test_the_wheel_has_the_manual_page_where_man_looks_for_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if ".data/" in each)
        assert archive.read(name) == (ROOT / "docs" / "attnviz.1").read_bytes()
    assert name.endswith(".data/data/share/man/man1/attnviz.1")


@needs("groff")
def test_the_manual_page_is_set_without_a_warning_and_has_every_command() -> None:
    asked = ["groff", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=200n", ROOT / "docs" / "attnviz.1"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    for name in COMMANDS:
        assert f"attnviz {name} [OPTIONS]" in ended.stdout
    assert "attnviz show - -f jsonl | jq -c 'select(.weight > 0.3)'" in ended.stdout


def test_the_wheel_runs_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    """Unpacked alone, and away from the checkout, it shows the attention of a sample."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        "import attnviz, attnviz.cli, sys; "
        f"assert attnviz.__file__.startswith({str(tmp_path)!r}), attnviz.__file__; "
        "sys.argv = ['attnviz', 'show', '--file', 'sample:creature']; attnviz.cli.run()"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "ATTNVIZ_MODEL": "builtin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "creature → " in ended.stdout
