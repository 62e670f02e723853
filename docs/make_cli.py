"""Write docs/cli.md from the commands' own help, or (`--check`) say that it has drifted."""

import os
import sys
from pathlib import Path

# Typer and Rich look at the environment, some of it when they are imported: give them one
# that is the same everywhere.
for _name in set(os.environ) - {"PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "PYTHONPATH"}:
    del os.environ[_name]
os.environ.update(COLUMNS="100", TERM="dumb")

from drift import write_or_compare  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from attnviz.cli import COMMANDS, app  # noqa: E402

TARGET = Path(__file__).with_name("cli.md")
HEADER = """# The command line

Made by `python docs/make_cli.py` from the commands' own help.
"""


def main() -> int:
    """Write or compare; the exit code."""
    parts = [HEADER]
    for command in ("", *COMMANDS):
        asked = [command, "--help-all"] if command else ["--help"]
        shown = CliRunner().invoke(app, asked, prog_name="attnviz")
        lines = [line.rstrip() for line in shown.stdout.strip().splitlines()]
        name = f"attnviz {command}".strip()
        parts.append("\n".join([f"## `{name}`", "", "```text", *lines, "```", ""]))
    text = "\n".join(parts)
    return write_or_compare(TARGET, text)


if __name__ == "__main__":
    sys.exit(main())
