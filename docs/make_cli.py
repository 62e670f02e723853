"""Write docs/cli.md from the commands' own help, and the exit codes into docs/shell.md.

`--check` says whether they have drifted.
"""

import os
import re
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
from attnviz.errors import ExitStatus  # noqa: E402

TARGET, SHELL = (Path(__file__).with_name(name) for name in ("cli.md", "shell.md"))
CODES = re.compile(r"(?<=<!-- codes -->\n).*?(?=<!-- end of codes -->)", re.DOTALL)
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
    rows = (f"| {int(each)} | {each.meaning} |\n" for each in ExitStatus)
    table = f"| code | meaning |\n| --- | --- |\n{''.join(rows)}"
    shell = CODES.sub(lambda _: table, SHELL.read_text(encoding="utf-8"))
    return max(write_or_compare(TARGET, text), write_or_compare(SHELL, shell))


if __name__ == "__main__":
    sys.exit(main())
