"""One row of METRICS makes a metric of every command; the command of docs/example is one."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = """Metric(
    "second", "2nd", "weight on the second token",
    mark=lambda rows: rows.keys == 1,
    role="second token", least=0.01, rank=-1, telling=True,
),"""
SUM = """"second": FastSum(
    lambda layer: layer.by_position[..., 1], lambda before, causal: len(before) - causal
),"""
PROGRAM = """
import ast, json, sys
from importlib.util import find_spec, module_from_spec

def with_row(name, table, row):
    "Import a module as it would be with one more row at the end of its table."
    assert name not in sys.modules
    spec = find_spec(name)
    lines = spec.loader.get_source(name).splitlines()
    tables = (node for node in ast.parse("\\n".join(lines)).body if isinstance(node, ast.AnnAssign))
    (last,) = (node.value.end_lineno for node in tables if ast.unparse(node.target) == table)
    lines.insert(last - 1, row)
    sys.modules[name] = module = module_from_spec(spec)
    exec(compile("\\n".join(lines), spec.origin, "exec"), vars(module))

with_row("attnviz.records.metrics", "METRICS", sys.argv[1])
with_row("attnviz.models.reducing", "FAST_SUMS", sys.argv[2])

import attnviz
from attnviz.cli import main
from attnviz.kit.session import process_session

attnviz.scan("words.txt", output="scanned", model=attnviz.load_model(), heads="L1H2,L4H0")
for arguments in json.load(sys.stdin):
    assert main(arguments, process_session()) == 0, arguments
"""
HEADS = ["heads", "--file", "words.txt", "--layer", "4"]
COMMANDS = [
    [*HEADS, "--sort", "second", "-f", "json", "-o", "heads.json"],
    [*HEADS, "--role", "second token", "-o", "heads.txt"],
    ["schema", "heads", "-o", "schema.json"],
    ["atlas", "scanned", "-f", "csv", "-o", "atlas.csv"],
    ["atlas", "scanned", "--sort", "second", "-o", "atlas.txt"],
    ["atlas", "scanned", "--head", "L1H2", "-o", "head.txt"],
    ["atlas", "scanned", "-o", "atlas.html"],
    ["atlas", "scanned", "--export", "headvis", "-o", "tree"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second")
    (folder / "words.txt").write_text("the cat sat on the mat and the cat ran\n")
    command = [sys.executable, "-c", PROGRAM, ROW, SUM]
    variables = {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}  # room for a metric more
    ended = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        input=json.dumps(COMMANDS),
        text=True,
        stderr=subprocess.PIPE,
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def test_heads_measure_it_sort_by_it_and_have_its_role(folder: Path) -> None:
    rows = json.loads((folder / "heads.json").read_text())["rows"]
    names = list(rows[0])
    assert names[names.index("second") + 1] == "second_error"
    values = [row["second"] for row in rows]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < values[0] < 1
    row = json.loads((folder / "schema.json").read_text())["$defs"]["HeadRow"]
    assert row["properties"]["second"]["description"] == "Mean weight on the second token."
    table = (folder / "heads.txt").read_text()
    assert "  2nd\n" in table
    assert "second token: 2nd ≥ 0.01" in table


def test_a_scan_counts_it_and_the_atlas_shows_it(folder: Path) -> None:
    with (folder / "atlas.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["second_documents"] for row in rows} == {"1"}
    assert all(0 < float(row["second"]) < 1 for row in rows)
    assert "  2nd\n" in (folder / "atlas.txt").read_text()
    assert "\nsecond " in (folder / "head.txt").read_text()
    assert '"says":"weight on the second token"' in (folder / "atlas.html").read_text()
    (tree,) = folder.glob("tree/*/headvis/*/scatter_data.json")
    assert json.loads(tree.read_text())[0]["second_over_tokens"] > 0


EXAMPLE = Path(__file__).parents[1] / "docs" / "example"
SINKS = f"""
import attnviz.commands
from attnviz import cli
from attnviz.kit.session import process_session

attnviz.commands.__path__.append({str(EXAMPLE)!r})
cli.COMMANDS = {{**cli.COMMANDS, "sinks": "Measure how much attention goes to the first token."}}
"""
TEXT = "a fluffy blue creature"


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SINKS + program], capture_output=True, text=True, check=True
    ).stdout


def test_it_writes_rows_and_the_schema_describes_them() -> None:
    arguments = ["sinks", TEXT, "--above", "0.8", "-f", "json"]
    written = json.loads(run(f"cli.main({arguments!r}, process_session())"))
    assert 0 < len(written["rows"]) < 20  # some heads, and not all
    assert written["made"]["options"]["above"] == 0.8
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


def test_an_option_without_a_default_has_to_be_given() -> None:
    program = """
import inspect
from typing import Annotated
from attnviz.kit import options as g
from attnviz.kit.option import command_of, feature

@feature()
def rank(text: str, *, token: Annotated[str, g.look_option("--token", help="A word.")]) -> None:
    '''Rank.'''

@command_of(rank, "text token")
def command_line(session, call, *, text: g.TextIn) -> None:
    '''Rank.'''

print(inspect.signature(command_line).parameters["token"].default is inspect.Parameter.empty)
"""
    assert run(program) == "True\n"
