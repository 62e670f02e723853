"""What a document is made of goes into it, or (`--check`) is compared with it."""

import sys
from pathlib import Path


def write_or_compare(document: Path, text: str) -> int:
    """Write the text of a document; with `--check`, the exit code is 1 where it has drifted."""
    if "--check" not in sys.argv:
        document.write_text(text, encoding="utf-8")
    elif document.read_text(encoding="utf-8") != text:
        maker = f"python docs/{Path(sys.argv[0]).name}"
        print(f"docs/{document.name} has drifted: run {maker}", file=sys.stderr)
        return 1
    return 0
