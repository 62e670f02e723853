"""Write docs/rows.md from the fields of every command's rows; `--check` says whether it drifted."""

import sys
from pathlib import Path
from typing import Any

from drift import write_or_compare

from attnviz.cli import COMMANDS
from attnviz.commands.schema import outputs

ROWS = Path(__file__).with_name("rows.md")
HEADER = """# The rows of every command

Made by `python docs/make_schemas.py` from the fields that each command declares in its `rows.py`.
These are the lines of `jsonl` and the columns of `csv` and `tsv`; [formats.md](formats.md) says
more.
"""


def documented() -> str:
    """The rows of every command as tables."""
    parts = [HEADER]
    for command in COMMANDS:
        if command not in outputs() or not outputs()[command].rows:
            continue
        parts.append(f"## `attnviz {command}`\n")
        definitions = outputs()[command].schema(command)["$defs"]
        for fields in outputs()[command].rows:
            row = definitions[fields.name]
            parts += [f"{row['description']}\n", "| column | type | |\n| --- | --- | --- |"]
            parts += [
                f"| `{name}` | {in_words(kind)} | {kind.get('description', '')} |"
                for name, kind in row["properties"].items()
            ]
            parts.append("")
    return "\n".join(parts)


def in_words(kind: dict[str, Any]) -> str:
    """A type in a few words."""
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(in_words(each) for each in kind["anyOf"]))
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {in_words(kind['items'])}"
    return str(kind.get("type", "object"))


def main() -> int:
    """Write or compare; the exit code."""
    return write_or_compare(ROWS, documented())


if __name__ == "__main__":
    sys.exit(main())
