"""The command of docs/example, in its place, is a command like any other."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "docs" / "example"
PROGRAM = f"""
import attnviz.commands
from attnviz import cli
from attnviz.kit.session import process_session

attnviz.commands.__path__.append({str(EXAMPLE)!r})
cli.COMMANDS = {{**cli.COMMANDS, "sinks": "Measure how much attention goes to the first token."}}
"""
TEXT = "a fluffy blue creature"


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, check=True
    ).stdout


def test_it_writes_rows_and_the_schema_describes_them() -> None:
    arguments = ["sinks", TEXT, "--above", "0.9", "-f", "json"]
    written = json.loads(run(f"cli.main({arguments!r}, process_session())"))
    assert [row["head"] for row in written["rows"]] == [3]
    assert written["made"]["options"]["above"] == 0.9
    schema = json.loads(run("cli.main(['schema', 'sinks'], process_session())"))
    assert "SinkRow" in json.dumps(schema)


def test_python_checks_the_option_as_the_command_line_does() -> None:
    in_python = f"""
from attnviz.commands.sinks import sinks
try:
    sinks({TEXT!r}, above=2)
except attnviz.AttnvizError as error:
    print(error)
"""
    assert "above=2 is out of range" in run(in_python)
    assert "--above" in run("cli.main(['sinks', '--help'], process_session())")
