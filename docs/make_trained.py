"""Write into docs/trained.md what its commands print on a trained model, and its pictures.

    python docs/make_trained.py FOLDER           FOLDER holds SmolLM2-135M-Instruct
    python docs/make_trained.py FOLDER --check   fails where an output is no longer what it was

A block fenced as `text` holds commands behind `$ `, as `console` blocks of other documents do. The
commit that its outputs are of is written into the document. CI does not run this: it has no such
model. It takes two minutes.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from make_outputs import ROOT, filled

DOCUMENT = ROOT / "docs" / "trained.md"
BLOCK = re.compile(r"(?<=^```text\n)(\$ .*?)(?=^```$)", re.DOTALL | re.MULTILINE)
MADE_BY = re.compile(r"(?<=made by commit `)\w*(?=`)")


def made(text: str, model: Path) -> tuple[str, dict[str, bytes]]:
    """The document with today's outputs, and the pictures that its commands draw."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "smollm2").symlink_to(model.resolve(), target_is_directory=True)
        shutil.copy(ROOT / "docs" / "names.jsonl", folder)
        new = BLOCK.sub(lambda found: filled(found[0], folder), text)
        return new, {path.name: path.read_bytes() for path in folder.glob("*.png")}


def main(arguments: list[str]) -> int:
    """Rewrite the document, or check it; the exit code is 1 where an output has changed."""
    model, *check = arguments
    old = DOCUMENT.read_text(encoding="utf-8")
    new, pictures = made(old, Path(model))
    if check:
        print(f"{DOCUMENT.name}: {'as it was' if new == old else 'an output has changed'}")
        return int(new != old)
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    DOCUMENT.write_text(MADE_BY.sub(commit.strip(), new), encoding="utf-8")
    for name, content in pictures.items():
        (DOCUMENT.parent / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
