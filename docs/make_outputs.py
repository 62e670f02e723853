"""Fill the console blocks of documents with what their commands really print.

A block is fenced as `console`; each of its commands begins with `$ ` and runs in the
root of the repository, 80 columns wide, without colour. Run it after a change that
meant to change an output, and look at the difference: `python docs/make_outputs.py`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / name
        for name in ("builtin-model.md", "lessons.md", "translator.md", "models.md", "tour.md")
    ),
]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)


def commands_of(block: str) -> list[str]:
    """The commands of a block, without their prompt."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, folder: Path) -> str:
    """What a command prints on a terminal, in a copy of the repository's sample texts."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.stdout


def filled(block: str, folder: Path) -> str:
    """The block with the real output under each command, and an empty line between them."""
    parts = []
    for command in commands_of(block):
        lines = [line.rstrip() for line in run(command, folder).rstrip("\n").splitlines()]
        parts.append("\n".join([f"$ {command}", *lines]))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Rewrite the documents."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / "sample_texts", folder / "sample_texts")
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            new = BLOCK.sub(lambda found: filled(found[0], folder), text)
            document.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
