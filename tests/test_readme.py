"""The documents' commands do what the documents show, and their links lead somewhere."""

import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.image import imread

from attnviz.cli import main
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from tests.programs import needs, starts

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from make_images import CREATURE  # noqa: E402
from make_outputs import BLOCK, DOCUMENTS, commands_of, lines_of, run, run_apart  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 150  # of the README: whatever else there is to say stands in docs/


def _commands() -> list[tuple[str, tuple[str, ...]]]:
    """Every command of the documents, and the lines that they show under it."""
    commands = []
    for document in DOCUMENTS:
        for block in BLOCK.findall(document.read_text(encoding="utf-8")):
            lines = block.splitlines()
            starts = [lines.index(f"$ {command}") for command in commands_of(block)]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                shown = "\n".join(lines[start + 1 : end]).rstrip().splitlines()
                commands.append((lines[start][2:], tuple(shown)))
    return commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    for name in ("sample_texts", "docs/images"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "docs/speech_model.py", folder / "docs")
    every = (ROOT / MANY).read_text().splitlines(keepends=True)
    (folder / MANY).write_text("".join(every[:FEW]))
    return folder


MANY, FEW = "sample_texts/colors.jsonl", 8
"""A file of which some lines do: only the numbers differ, and all 200 would take minutes."""
Printed = Callable[[str], tuple[tuple[str, ...], tuple[str, ...]]]
PIPED = re.compile(
    r"((?P<before>head .*?) \| )?(?P<own>attnviz .*?)( \| (?P<behind>(head|tail|jq) .*))?"
)
"""A command of attnviz, what it reads from, and what reads it."""
SCRIPT = re.compile(r"python (?P<own>(docs/|-m benchmarks)[^&|>]*?)( && (?P<behind>.*))?")
"""A script of the repository, and what is run once it has ended."""
NOTED = ("note: ", "attnviz: ")
"""How the lines of standard error begin, in the documents too."""


def with_shell(command: str) -> str:
    """The command, where there is a shell for it."""
    if not starts("bash"):
        pytest.skip("needs bash")
    return command


def in_shell(command: str, given: bytes = b"") -> bytes:
    """What a command of the shell makes of what it is given."""
    bash = ["bash", "-c", with_shell(command)]
    return subprocess.run(bash, input=given, stdout=subprocess.PIPE, check=True).stdout


def run_script(line: str) -> None:
    """What `python` makes of this line, in this process, which has imported transformers."""
    first, *arguments = line.removeprefix("-m ").split()
    path = first if first.endswith(".py") else f"{first.replace('.', '/')}.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(str(ROOT / path), run_name="__main__")


@pytest.fixture
def printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Runs a command of the documents: in this process, and what stands beside it in a shell."""
    monkeypatch.chdir(folder)

    def printed(command: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if "./whisper" in command and not Path("whisper").is_dir():
            run_script("docs/speech_model.py whisper")
        if script := SCRIPT.fullmatch(command):
            run_script(script["own"])
            return lines_of(in_shell(script["behind"] or "true").decode()), ()
        piped = PIPED.fullmatch(command)
        if not piped or ">" in shlex.split(piped["own"]):
            return run_apart(with_shell(command), folder)
        given = in_shell(piped["before"]) if piped["before"] else b""
        written = io.BytesIO(), io.BytesIO()
        out, err = (io.TextIOWrapper(each, "utf-8", write_through=True) for each in written)
        environment = Environment(out, err, {"COLUMNS": "80", "NO_COLOR": "1"})
        session = Session(environment, Stdin(io.BytesIO(given), is_terminal=False))
        status = main(shlex.split(piped["own"])[1:], session)
        told = lines_of(written[1].getvalue().decode())
        assert status is not ExitStatus.BUG, told
        shown = written[0].getvalue()
        if piped["behind"]:
            shown = in_shell(piped["behind"], shown)
        return lines_of(shown.decode()), told

    return printed


@pytest.mark.parametrize(("command", "shown"), _commands(), ids=[c for c, _ in _commands()])
def test_a_command_prints_what_the_documents_show(
    printed: Printed, command: str, shown: tuple[str, ...]
) -> None:
    """Only the first line is compared where the others hold weights: machines round differently.
    Of standard error every line is, but for its numbers."""
    if "| jq" in command and not starts("jq"):
        json, _ = printed(re.split(r"\s*\| jq", command)[0])
        assert json[0].startswith("{")
        pytest.skip("the rest of this command needs jq")
    exact = re.search(r"--example|^attnviz params", command)  # whole or seeded numbers
    lines, told = printed(command)
    expected, noted = _apart(shown, told)
    assert tuple(map(_without_numbers, told)) == noted
    if MANY in command:
        # shorter numbers fold lines elsewhere
        lines, expected = ([_without_numbers(each[0])[:60]] for each in (lines, expected))
    assert (lines if exact else lines[:1]) == (expected if exact else expected[:1])


def _apart(
    shown: tuple[str, ...], told: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of a document that are of standard output, and those of standard error."""
    unnumbered = set(map(_without_numbers, told))
    noted = [line.startswith(NOTED) or _without_numbers(line) in unnumbered for line in shown]
    pairs = list(zip(shown, noted, strict=True))
    out = tuple(line for line, of_stderr in pairs if not of_stderr)
    return out, tuple(_without_numbers(line) for line, of_stderr in pairs if of_stderr)


def _without_numbers(line: str) -> str:
    return re.sub(r"\d[\d.,]*(e[-+]\d+)?", "0", line)


def test_a_note_that_a_document_lacks_or_has_too_many_is_found() -> None:
    shown = ("note: the first 3 tokens are left out", "L0H0 · tiny")
    assert _apart(shown, ("note: the first 4 tokens are left out",)) == (
        ("L0H0 · tiny",),
        ("note: the first 0 tokens are left out",),
    )
    assert _apart(shown, ())[1] != ()
    assert _apart(shown[1:], ("note: another",))[1] == ()


@needs("bash")
def test_a_command_prints_the_same_in_a_process_of_its_own(printed: Printed, folder: Path) -> None:
    """`docs/make_outputs.py` starts one for each command; the other tests spare that time."""
    command = 'attnviz show "a fluffy blue creature roamed the verdant forest"'
    assert (run(command, folder), ()) == printed(command)


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def _anchors(document: Path) -> set[str]:
    """The headings of a document, as GitHub spells their anchors."""
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    for path, anchor in LINK.findall(text):
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), path
        assert not anchor or anchor in _anchors(target), f"{path}#{anchor}"


def test_the_index_of_the_documents_names_each() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs").as_posix()
        assert name in ("README.md", "site/home.md") or f"({name})" in index


def test_the_readmes_first_picture_is_what_its_command_draws(
    printed: Printed, tmp_path: Path
) -> None:
    """But for the edges of letters: a mean difference of 1 of 255 is nothing that one sees."""
    printed(f"attnviz {shlex.join(CREATURE)} -o {tmp_path / 'drawn.png'}")
    drawn, shown = (imread(path) for path in (tmp_path / "drawn.png", ROOT / "docs/creature.png"))
    assert drawn.shape == shown.shape
    assert abs(drawn - shown).mean() < 1 / 255


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_the_readmes_set_up_is_two_lines_that_end_as_they_should() -> None:
    first, second = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert first.endswith('attnviz show "a fluffy blue creature"')
    assert second.endswith(".venv/bin/pytest -n auto --dist loadfile")
    assert all("-c constraints.txt" in line for line in (first, second))


@needs("bash")
def test_ci_takes_the_test_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (line,) = [line for line in script.splitlines() if line.startswith("test_command=")]
    ended = subprocess.run(
        ["bash", "-c", f'{line}; printf %s "$test_command"'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout in README
    assert ended.stdout.endswith(".venv/bin/pytest -n auto --dist loadfile")
