"""`.ci/sizes.py` measures a package, and fails beyond a limit."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
FILES = {
    "__init__.py": "",
    "errors.py": "",
    "console.py": "def ready():\n    from attnviz import cli\n",
    "cli.py": (
        "from typing import Mapping\nfrom attnviz.console import ready\n"
        'COMMANDS: Mapping[str, str] = {"one": "", "two": ""}\n'
        "def run():\n    import attnviz.commands.one\n    ready()\n"
    ),
    "heads.py": 'METRICS: object = by_name(Metric("previous"), Metric("first"))\n',
    "commands/__init__.py": "",
    "commands/one.py": "import attnviz.commands.two\nclass Same: ...\n",
    "commands/two/__init__.py": "class Same: ...\ndef two(pair):\n    return two(*pair)\n",
    "schema.json": '{"$schema": ""}\n',
    "page.js": "1\n2\n",
}
MEASURED = {
    "lines": 14,
    "files": 8,
    "lines of page scripts": 2,
    "lines of making": 1,
    "lines of schemas": 1,
    "functions over 40 lines": 0,
    "files over 400 lines": 0,
    "circles": 1,
    "circles at the top of files": 0,
    "arrows up": 1,
    "arrows between commands": 1,
    "arrows not listed": 0,
    "files that spell most metrics": 1,
    "modules that tokens loads": 6,
    "files that show to PNG enters": 4,
    "type names of several files": 1,
    "positional splats": 1,
    "files that name images": 0,
    "files that name sounds": 0,
    "files that name implicit": 0,
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A checkout of a small package with one fault of each kind."""
    for name, content in {f"attnviz/{name}": text for name, text in FILES.items()}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "making").mkdir()
    (tmp_path / "making" / "train.py").write_text("import attnviz\n")
    (tmp_path / ".ci").mkdir()
    for name in ("sizes.py", "watch.py"):
        shutil.copy(CI / name, tmp_path / ".ci")
    return tmp_path


def _sizes(package: Path, limits: dict[str, int], *arguments: str) -> tuple[int, str]:
    """The exit code of the script under these limits, and what it prints."""
    rows = "".join(f'"{name}" = {limit}\n' for name, limit in limits.items())
    floors = 'floors = [["errors"], ["console"], ["cli"]]\ncommands = ["one > two"]\n[limits]\n'
    (package / ".ci" / "limits.toml").write_text(floors + rows)
    command = [sys.executable, str(package / ".ci" / "sizes.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


def test_each_measure_is_within_a_limit_that_it_reaches(package: Path) -> None:
    status, printed = _sizes(package, MEASURED)
    table = (line.rsplit(maxsplit=2) for line in printed.splitlines()[1 : len(MEASURED) + 1])
    assert {name: int(now) for name, now, _ in table} == MEASURED
    assert status == 0
    assert "  commands > \n" in printed
    assert "  console > cli\n" in printed


@pytest.mark.parametrize("name", ["lines", "circles", "arrows up", "arrows between commands"])
def test_a_measure_beyond_its_limit_fails_unless_it_is_only_printed(
    package: Path, name: str
) -> None:
    limits = {**MEASURED, name: MEASURED[name] - 1}
    status, printed = _sizes(package, limits)
    assert (status, printed.count("beyond")) == (1, 1)
    assert _sizes(package, limits, "--print") == (0, printed)


def test_every_measure_has_a_limit(package: Path) -> None:
    real = (CI / "limits.toml").read_text(encoding="utf-8")
    (package / ".ci" / "limits.toml").write_text(real)
    assert [line.split('"')[1] for line in real.splitlines() if line.startswith('"')] == [*MEASURED]
