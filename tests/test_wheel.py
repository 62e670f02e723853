"""The wheel holds everything that the program needs, and runs from anywhere."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from attnviz.inputs.samples import samples

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_holds_the_model_and_its_weights_are_at_most_20_mb(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    folder = "attnviz/builtin/gpt/"
    for name in ("config.json", "model.safetensors", "tokenizer.json", "card.json"):
        assert sizes[folder + name] > 0
    assert sizes[folder + "model.safetensors"] <= 20 * MEGABYTE
    assert "attnviz/py.typed" in sizes
    roots = {name.split("/")[0] for name in sizes}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"attnviz"}


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
