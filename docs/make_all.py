"""Write what documents take from the code, all of it; `--check` says what has drifted.

The outputs of commands (`make_outputs.py`) and the pictures of `explore` take minutes, and are
made alone.
"""

import subprocess
import sys
from pathlib import Path

MAKERS = "make_cli", "make_man", "make_metrics", "make_glossary", "make_schemas", "make_python"


def main(arguments: list[str]) -> int:
    """Run each of them; the exit code is 1 where one fails."""
    folder = Path(__file__).parent
    codes = [
        subprocess.run([sys.executable, folder / f"{maker}.py", *arguments]).returncode
        for maker in MAKERS
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
