"""Write attnviz/schemas/*.json and docs/rows.md from the declarations of rows and objects.

`--check` says whether they have drifted.
"""

import json
import sys
import types
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from attnviz.commands import models, params
from attnviz.commands.ablate import rows as ablate_rows
from attnviz.commands.atlas import rows as atlas_rows
from attnviz.commands.compare import rows as compare_rows
from attnviz.commands.explain import run as explain_run
from attnviz.commands.generate import shown as generate_shown
from attnviz.commands.heads import rows as heads_rows
from attnviz.commands.patch import rows as patch_rows
from attnviz.commands.predict import rows as predict_rows
from attnviz.commands.show import rows as show_rows
from attnviz.commands.why import rows as why_rows
from attnviz.records import rows as records_rows
from attnviz.records.rows import SCHEMA

FOLDER = Path(__file__).parents[1] / "attnviz" / "schemas"
ROWS = Path(__file__).with_name("rows.md")
HEADER = """# The rows of every command

Made by `python docs/make_schemas.py` from the declarations in `attnviz/renderers/rows/`. These are
the lines of `jsonl` and the columns of `csv` and `tsv`; [formats.md](formats.md) says more.
"""
DIALECT = "https://json-schema.org/draft/2020-12/schema"
WRITTEN: dict[str, tuple[list[Any], list[Any]]] = {
    "show": ([show_rows.LinkRow, show_rows.ScoreRow], [show_rows.ShowObject]),
    "explain": (
        [],
        [explain_run.TraceObject, explain_run.EmbeddingsObject, explain_run.WorkedObject],
    ),
    "why": ([why_rows.PairRow, why_rows.ReaderRow], [why_rows.WhyObject, why_rows.WriteObject]),
    "heads": (
        [heads_rows.HeadRow, heads_rows.RetrievalRow, heads_rows.CircuitRow, heads_rows.LabelRow],
        [],
    ),
    "atlas": (
        [
            atlas_rows.AtlasRow,
            atlas_rows.HeadPartRow,
            atlas_rows.ScatterRow,
            atlas_rows.DevelopmentRow,
        ],
        [atlas_rows.HeadAtlasObject],
    ),
    "predict": ([predict_rows.CandidateRow, predict_rows.AnswerRow, predict_rows.LogitPartRow], []),
    "generate": ([generate_shown.ShareRow], []),
    "ablate": ([ablate_rows.EffectRow, ablate_rows.TogetherRow], []),
    "patch": ([patch_rows.PatchRow], []),
    "compare": ([compare_rows.DifferenceRow, compare_rows.SightRow, compare_rows.MatchRow], []),
    "tokens": ([records_rows.TokenObject], []),
    "models": ([models.ModelRow, models.CardRow], []),
    "params": ([params.MatrixRow, params.CountRow], []),
}
"""For each command the rows that it writes, and the JSON objects that are no lists of them."""
OPEN = {"ScatterRow"}
"""Rows with names that depend on what was asked."""
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type; what it refers to is added to the definitions."""
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if kind is Any:
        return {}
    if is_typeddict(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # it may refer to itself
            definitions[kind.__name__] = object_of(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**schema_of(arguments[0], definitions), "description": arguments[1]}
    if origin is NotRequired:
        return schema_of(arguments[0], definitions)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(each, definitions) for each in arguments]}
    raise TypeError(f"{kind} has no schema")


def object_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a TypedDict."""
    hints = get_type_hints(kind, include_extras=True)
    named = {name: schema_of(hint, definitions) for name, hint in hints.items()}
    required = [name for name in hints if name in kind.__required_keys__]
    made = {"type": "object", "description": said(kind), "properties": named, "required": required}
    return made if kind.__name__ in OPEN else {**made, "additionalProperties": False}


def said(kind: Any) -> str:
    """The docstring on one line."""
    return " ".join((kind.__doc__ or "").split())


def schema_for(command: str) -> dict[str, Any]:
    """The JSON Schema of all that a command writes as JSON; `$defs/row` is that of a row."""
    rows, wholes = WRITTEN[command]
    definitions: dict[str, Any] = {}
    known = [schema_of(row, definitions) for row in rows]
    choices = [schema_of(whole, definitions) for whole in wholes]
    if known:
        definitions["row"] = known[0] if len(known) == 1 else {"anyOf": known}
    if known and command != "show":
        definitions["rows"] = {
            "type": "object",
            "description": f"attnviz {command} -f json, where it writes rows.",
            "properties": {
                "schema": {"const": SCHEMA},
                "command": {"const": command},
                "made": schema_of(records_rows.MadeObject, definitions),
                "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            },
            "required": ["schema", "command", "made", "rows"],
            "additionalProperties": False,
        }
        choices.append({"$ref": "#/$defs/rows"})
    described = f"What attnviz {command} -f json writes."
    if known:
        described += " A line of jsonl is a $defs/row; csv and tsv have its columns, in order."
    return {
        "$schema": DIALECT,
        "$id": f"urn:{SCHEMA.replace('/', ':')}:{command}",
        "title": f"attnviz {command}",
        "description": described,
        **(choices[0] if len(choices) == 1 else {"anyOf": choices}),
        "$defs": dict(sorted(definitions.items())),
    }


def documented() -> str:
    """docs/rows.md: the rows of every command as tables."""
    parts = [HEADER]
    for command, (rows, _) in WRITTEN.items():
        if not rows:
            continue
        parts.append(f"## `attnviz {command}`\n")
        for row in rows:
            made = schema_for(command)["$defs"][row.__name__]
            parts.append(f"{made['description']}\n")
            parts += ["| column | type | |\n| --- | --- | --- |"]
            parts += [
                f"| `{name}` | {told(kind)} | {kind.get('description', '')} |"
                for name, kind in made["properties"].items()
            ]
            parts.append("")
    return "\n".join(parts)


def told(kind: dict[str, Any]) -> str:
    """A type in a few words."""
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(told(each) for each in kind["anyOf"]))
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {told(kind['items'])}"
    return str(kind.get("type", "object"))


def main() -> int:
    """Write or compare; the exit code."""
    texts = {
        FOLDER / f"{command}.json": json.dumps(schema_for(command), indent=1, ensure_ascii=False)
        + "\n"
        for command in WRITTEN
    }
    texts[ROWS] = documented()
    found = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    found |= {ROWS: ROWS.read_text(encoding="utf-8")} if ROWS.exists() else {}
    if "--check" in sys.argv:
        if found != texts:
            print("a schema has drifted: run python docs/make_schemas.py", file=sys.stderr)
            return 1
        return 0
    FOLDER.mkdir(exist_ok=True)
    for path in set(found) - set(texts):
        path.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
