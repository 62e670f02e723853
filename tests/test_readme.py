"""The documents' commands do what the documents show."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.cli import main
from attnviz.commands.session import Session
from attnviz.console import Environment
from attnviz.inputs.text import Stdin

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from make_outputs import BLOCK, DOCUMENTS, commands_of, run  # noqa: E402


def _blocks() -> list[tuple[str, list[str]]]:
    """Every command of the documents, and the lines that they show under it."""
    found = []
    for document in DOCUMENTS:
        for block in BLOCK.findall(document.read_text(encoding="utf-8")):
            lines = block.splitlines()
            starts = [lines.index(f"$ {command}") for command in commands_of(block)]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                shown = "\n".join(lines[start + 1 : end]).rstrip().splitlines()
                found.append((lines[start][2:], shown))
    return found


def _shown() -> list[tuple[str, str]]:
    """Every command of the documents, and the first line that they show under it."""
    return [(command, lines[0] if lines else "") for command, lines in _blocks()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "sample_texts", folder / "sample_texts")
    return folder


@pytest.fixture
def printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Runs a command of the documents: in this process, or in a shell where it needs one."""
    monkeypatch.chdir(folder)

    def printed(command: str) -> str:
        program, *arguments = shlex.split(command.removesuffix(" | head -1"))
        if {"|", ">"} & set(arguments):
            return run(command, folder)
        assert program == "attnviz"
        written = io.BytesIO()
        stream = io.TextIOWrapper(written, "utf-8", write_through=True)
        environment = Environment(stream, stream, {"COLUMNS": "80", "NO_COLOR": "1"})
        main(arguments, Session(environment, Stdin(io.BytesIO(), is_terminal=False)))
        return written.getvalue().decode()

    return printed


# Their numbers hang on no trained weight: they are whole ones, counted, or of seeded matrices.
WITHOUT_WEIGHTS = [
    block for block in _blocks() if re.search(r"--example|^attnviz params", block[0])
]


@pytest.mark.parametrize(("command", "lines"), WITHOUT_WEIGHTS, ids=[c for c, _ in WITHOUT_WEIGHTS])
def test_an_output_that_hangs_on_no_weights_is_what_the_documents_show(
    printed: Callable[[str], str], command: str, lines: list[str]
) -> None:
    assert printed(command).rstrip().splitlines() == lines


@pytest.mark.parametrize(("command", "first"), _shown(), ids=[c for c, _ in _shown()])
def test_a_command_of_the_documents_begins_with_the_line_that_they_show(
    printed: Callable[[str], str], command: str, first: str
) -> None:
    """The first line: it names the head, and holds no weight that another machine may round."""
    if "jq" in command and shutil.which("jq") is None:
        command, first = re.split(r"\s*\| jq", command)[0], '{"'
        assert printed(command).startswith(first)
        return
    lines = printed(command).splitlines()
    assert (lines[0].rstrip() if lines else "") == first


def test_a_command_prints_the_same_in_a_process_of_its_own(
    printed: Callable[[str], str], folder: Path
) -> None:
    """`docs/make_outputs.py` starts one for each command; the other tests spare that time."""
    command = 'attnviz show "a fluffy blue creature roamed the verdant forest"'
    assert run(command, folder) == printed(command)


def test_the_readmes_set_up_is_two_lines_that_end_as_they_should() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^python3 -m venv .*$", readme, flags=re.MULTILINE)
    assert first.endswith('attnviz show "a fluffy blue creature"')
    assert second.endswith("pytest")
    assert all("-c constraints.txt" in line for line in (first, second))


def test_ci_takes_the_test_command_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (line,) = [line for line in script.splitlines() if line.startswith("test_command=")]
    ended = subprocess.run(
        ["bash", "-c", f'{line}; printf %s "$test_command"'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout in readme
    assert ended.stdout.endswith("pytest")
