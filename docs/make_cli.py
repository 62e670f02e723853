"""Write docs/cli.md from the commands' own help, or (`--check`) say that it has drifted."""

import sys
from pathlib import Path

from typer.testing import CliRunner

from attnviz.cli import app

TARGET = Path(__file__).with_name("cli.md")
COMMANDS = ["", "show", "tokens", "models"]
HEADER = """# The command line

Made by `python docs/make_cli.py` from the commands' own help.
"""


def main() -> int:
    runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "ATTNVIZ_MODEL": ""})
    parts = [HEADER]
    for command in COMMANDS:
        shown = runner.invoke(app, [*command.split(), "--help"], prog_name="attnviz")
        lines = [line.rstrip() for line in shown.stdout.strip().splitlines()]
        name = f"attnviz {command}".strip()
        parts.append("\n".join([f"## `{name}`", "", "```text", *lines, "```", ""]))
    text = "\n".join(parts)
    if "--check" in sys.argv:
        if TARGET.read_text(encoding="utf-8") != text:
            print("docs/cli.md has drifted: run python docs/make_cli.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
