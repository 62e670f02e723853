"""Write the manual page of what `--help -f json` tells, or (`--check`) say that it has drifted."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drift import write_or_compare
from typer.testing import CliRunner

from attnviz.cli import app

TARGET = Path(__file__).with_name("attnviz.1")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}

WITHOUT_UNICODE = {"·": ".", "ᵀ": "^T", "√": "sqrt ", "−": "-"}
"""Letters for a terminal that has ASCII alone."""


def roff(text: str) -> str:
    """A text in which nothing is taken for a request or an escape; beyond ASCII by its code."""
    escaped = (ESCAPES.get(c, c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)
    return re.sub(r"^\.", r"\\&.", "".join(escaped), flags=re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    for each in text.split("\n\n"):
        yield f".PP\n{roff(each)}"


def parameter(each: dict[str, Any]) -> str:
    """An argument or an option: how it is typed, what it does, its default."""
    names = sorted(each.get("flags", []), key=lambda flag: flag.startswith("--"))
    typed = ", ".join(rf"\fB{roff(flag)}\fR" for flag in names + each.get("off", []))
    choices = each.get("choices", [])
    typed_choices = "|".join(choices) if len("|".join(choices)) <= 40 else ""
    shown = each.get("metavar") or typed_choices or each["name"].upper()
    if each["type"] != "boolean":
        typed = f"{typed} \\fI{roff(shown)}\\fR".strip()
    default = each.get("default_meaning", each.get("default"))
    facts = {
        "one of": "" if shown == typed_choices else ", ".join(choices),
        "above" if each.get("exclusive_minimum") else "at least": each.get("minimum"),
        "at most": each.get("maximum"),
        "environment": each.get("environment"),
        "default": default,
    }
    told = "; ".join(f"{name}: {fact}" for name, fact in facts.items() if fact not in (None, ""))
    return f".TP\n{typed}\n{roff(each['help'] + (f' [{told}]' if told else ''))}"


def command(each: dict[str, Any]) -> Iterator[str]:
    """The section of a command."""
    yield f".SS {roff(each['usage'])}"
    yield from paragraphs(each["help"])
    yield from map(parameter, each["arguments"] + each["options"])
    yield ".PP\nExamples:\n.nf\n.RS 2"
    yield from map(roff, each["examples"])
    yield ".RE\n.fi"


def main() -> int:
    """Write or compare; the exit code."""
    asked = CliRunner().invoke(app, ["--help", "-f", "json"], prog_name="attnviz")
    told = json.loads(asked.stdout)
    version = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    lines = [
        r".\" Made by python docs/make_man.py from the declarations of options.",
        f'.TH ATTNVIZ 1 "" "attnviz {version}" "User Commands"',
        *(f".fchar \\[u{ord(letter):04X}] {ascii}" for letter, ascii in WITHOUT_UNICODE.items()),
        f".SH NAME\nattnviz \\- {roff('see which tokens attend to which')}",
        ".SH SYNOPSIS\n\\fBattnviz\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        *paragraphs(told["help"]),
        ".SH OPTIONS",
        *map(parameter, told["options"]),
        ".SH COMMANDS",
        *(line for each in told["commands"] for line in command(each)),
        ".SH EXIT STATUS",
        *(f".TP\n{each['code']}\n{roff(each['meaning'])}" for each in told["exit_codes"]),
    ]
    return write_or_compare(TARGET, "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
