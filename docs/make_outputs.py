"""Write into the documents what their commands print.

    python docs/make_outputs.py                         README.md and all of docs/
    python docs/make_outputs.py README.md docs/tour.md  these alone

A block fenced as `console` holds commands, each on a line that begins with `$ `. Under each
command this writes its real output: of this repository's code, among its sample texts,
80 columns wide, without colour. Run it after a change that alters an output on purpose, and
read the diff. A command that ends with exit code 1, a bug, stops it before that document is
written. It needs jq, and takes some minutes.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)


def commands_of(block: str) -> list[str]:
    """The commands of a block, without their prompt."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


@functools.cache
def run(command: str, folder: Path) -> tuple[str, ...]:
    """The lines that a command prints on a terminal, run in `folder`, without blanks at the end."""
    return lines_of(_ended(command, folder, subprocess.STDOUT).stdout)


def run_apart(command: str, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of standard output and those of standard error."""
    ended = _ended(command, folder, subprocess.PIPE)
    return lines_of(ended.stdout), lines_of(ended.stderr)


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text without blanks at their ends and at its end."""
    return tuple(line.rstrip() for line in text.rstrip("\n").splitlines())


def _ended(command: str, folder: Path, stderr: int) -> subprocess.CompletedProcess[str]:
    """The command, run to its end.

    Raises:
        RuntimeError: it met a bug.
    """
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": os.environ.get("HOME", "/"),
        "ATTNVIZ_CONFIG": "",
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=False,
    )
    if ended.returncode == 1:
        raise RuntimeError(f"{command}\n{ended.stdout}{ended.stderr or ''}")
    return ended


def filled(block: str, folder: Path) -> str:
    """The block with the real output under each command, and an empty line between them."""
    parts = ["\n".join([f"$ {command}", *run(command, folder)]) for command in commands_of(block)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Rewrite the documents that are named, or all."""
    documents = [Path(name) for name in sys.argv[1:]] or DOCUMENTS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("sample_texts", "docs/images"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "docs/speech_model.py", folder / "docs")
        for document in documents:
            text = document.read_text(encoding="utf-8")
            new = BLOCK.sub(lambda found: filled(found[0], folder), text)
            document.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
