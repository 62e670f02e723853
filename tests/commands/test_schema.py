"""What the commands write as JSON is what `attnviz schema` declares."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from attnviz.errors import ExitStatus
from tests.commands.atlas.atlases import made_scan
from tests.conftest import Run
from tests.reading import rows_in

ROOT = Path(__file__).parents[2]
REDUCED = "How much a query attends", "What a pattern is of"
"""What may be of a reduction, which has a name in place of the number."""
RED = "a fluffy red creature roamed . the creature was"
TEXT = "a fluffy blue creature roamed . the creature was"
CHINESE = "她喜欢猫"
LABELS = '{"text": "a fluffy blue creature", "links": [["creature", ["fluffy"]]]}'
ROWS = (
    ("show", TEXT),
    ("show", TEXT, "--head", "all", "--scores"),
    ("show", TEXT, "--reduce", "mean:heads"),
    ("show", CHINESE, "--drop-sink", "--words"),
    ("why", TEXT),
    ("why", TEXT, "--head", "L2H1", "--writes"),
    ("heads",),
    ("heads", TEXT, "--words"),
    ("heads", "--retrieval"),
    ("heads", "--circuits", "--top", "3"),
    ("heads", "--labels", "-"),
    ("predict", TEXT, "--each", "--lens"),
    ("predict", TEXT, "--attribute", "--versus", "a"),
    ("generate", "the creature was", "--max-new-tokens", "3"),
    ("generate", "it ran . the creature was", "--target", "a dog", "--rows", "head", "--check"),
    ("ablate", TEXT),
    ("ablate", TEXT, "--head", "L1H1,L2H2", "--together", "--answer", "blue"),
    ("ablate", TEXT, "--mlp", "0", "--whole-layer", "1", "--answer", "blue", "--versus", "red"),
    ("ablate", TEXT, "--cut", "creature#2:blue", "--layer", "2", "--renormalise"),
    ("predict", TEXT, "--answer", "blue", "--versus", "red"),
    ("patch", TEXT, "--from", RED, "--answer", "blue"),
    ("patch", TEXT, "--from", RED, "--answer", "blue", "--part", "mlp", "--query", "blue"),
    ("patch", TEXT, "--from", RED, "--answer", "blue", "--mlp", "1", "--together"),
    ("circuit", TEXT, "--from", RED, "--answer", "blue", "--head", "L4H0,L3H2", "--mlp", "2"),
    ("circuit", TEXT, "--answer", "blue", "--with", "mean", "--find", "2"),
    ("compare", "the cat sat", "the dog sat"),
    ("compare", "the cat sat", "a cat sat there", "--query", "cat"),
    ("compare", TEXT, "--against", "builtin", "--words"),
    ("tokens", CHINESE),
    ("models",),
    ("models", "translator"),
    ("params", "gpt3"),
    ("atlas", "SCAN"),
    ("atlas", "SCAN", "--head", "L3H1"),
    ("atlas", "SCAN", "--plot", "first,induction"),
    ("atlas", "SCAN", "SCAN"),
)
"""Commands that write rows: each kind of row, and each kind of value in it."""
WHOLE = (
    ("show", TEXT),
    ("show", TEXT, "--query", "was", "--top", "2", "--skip", "self", "--reduce", "max"),
    ("show", "the blue bird", "-m", "translator"),
    ("show", "zzyzx 楚留香", "-m", "translator", "--kind", "encoder", "--chars"),
    ("explain", TEXT, "--similarity", "rbf"),
    ("explain", "the blue bird", "-m", "translator", "--kind", "cross"),
    ("explain", TEXT, "-m", "embeddings"),
    ("explain", "--example", "multi-head"),
    ("why", TEXT, "--depth", "2", "--check"),
    ("why", TEXT, "--head", "L2H1", "--writes"),
    ("atlas", "SCAN", "--head", "L3H1"),
    *(row for row in ROWS if row[0] not in ("show", "why")),
)
"""Commands with `-f json`."""


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(made_scan(tmp_path_factory.mktemp("scan") / "step-1"))


SCHEMAS: dict[str, dict[str, Any]] = {}


def schema_of(run: Run, command: str) -> dict[str, Any]:
    """The schema of a command, which is asked for once."""
    if command not in SCHEMAS:
        SCHEMAS[command] = json.loads(run("schema", command).out)
    return SCHEMAS[command]


def row_validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/row"})


def kinds_of_rows(schema: dict[str, Any]) -> list[dict[str, Any]]:
    row = schema["$defs"]["row"]
    names = [each["$ref"].rpartition("/")[2] for each in row.get("anyOf", [row])]
    return [schema["$defs"][name] for name in names]


def written(run: Run, arguments: tuple[str, ...], form: str, scan: str) -> str:
    """What a command writes, in which no number has more digits than its float32 takes."""
    named = [scan if each == "SCAN" else each for each in arguments]
    ended = run(*named, "-f", form, stdin=LABELS.encode() if "--labels" in named else b"")
    assert ended.status is ExitStatus.OK, ended.err
    assert not tails_of_float32(ended.out)
    return ended.out


def tails_of_float32(text: str) -> list[str]:
    """The numbers that are a float32, and are written with more digits than it takes."""
    numbers = re.findall(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?(?![\w.])", text)
    of_float32 = [n for n in numbers if float(np.float32(n)) == float(n)]
    # a sentence may round further, as in 1.00
    return [n for n in of_float32 if len(n) > max(9, len(str(np.float32(n))))]


@pytest.mark.parametrize("arguments", ROWS, ids=" ".join)
def test_every_row_has_the_declared_names_types_and_columns(
    run: Run, arguments: tuple[str, ...], scan: str
) -> None:
    schema = schema_of(run, arguments[0])
    validator = row_validator(schema)
    rows = rows_in(written(run, arguments, "jsonl", scan))
    assert rows
    for row in rows:
        validator.validate(row)
    table = list(csv.reader(io.StringIO(written(run, arguments, "csv", scan))))
    assert table[0] == list(rows[0])
    (declared,) = (
        kind["properties"]
        for kind in kinds_of_rows(schema)
        if Draft202012Validator({"$defs": schema["$defs"], **kind}).is_valid(rows[0])
    )
    known = [name for name in rows[0] if name in declared]
    assert known == [name for name in declared if name in rows[0]]


@pytest.mark.parametrize("arguments", WHOLE, ids=" ".join)
def test_every_json_document_is_as_declared(
    run: Run, arguments: tuple[str, ...], scan: str
) -> None:
    found = json.loads(written(run, arguments, "json", scan))
    Draft202012Validator(schema_of(run, arguments[0])).validate(found)
    assert (found["schema"], found["command"]) == ("attnviz/3", arguments[0])


def test_a_document_of_another_shape_is_not_as_declared(run: Run) -> None:
    found = json.loads(run("heads", "--top", "1", "-f", "json").out)
    validator = Draft202012Validator(schema_of(run, "heads"))
    validator.validate(found)
    for wrong in ({"head": "L0H0"}, {"layer": None}, {"more": 1}):
        changed = {**found, "rows": [{**found["rows"][0], **wrong}]}
        with pytest.raises(ValidationError):
            validator.validate(changed)


def test_a_head_is_two_numbers_in_every_row_that_names_one(run: Run) -> None:
    for command in run("schema").out.split():
        for kind in schema_of(run, command)["$defs"].values():
            named = kind.get("properties", {})
            if "head" in named:
                assert "layer" in named
                kinds = {each["type"] for each in named["head"].get("anyOf", [named["head"]])}
                reduced = {"string"} if kind["description"].startswith(REDUCED) else set()
                assert kinds - {"null"} == {"integer"} | reduced


def test_the_files_are_made_of_the_declarations() -> None:
    made = subprocess.run(
        [sys.executable, "docs/make_schemas.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
