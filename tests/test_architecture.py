"""docs/architecture.md is true: the files that it names exist, and weights take the way it says."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import typer

from attnviz.cli import COMMANDS, command
from attnviz.commands.show.outputs import OUTPUTS
from attnviz.kit import options
from attnviz.kit.formats import VIEWS
from attnviz.kit.session import as_flag
from attnviz.records.exhibit import Filters, Look
from attnviz.records.transforms import Transforms

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`((?:attnviz|making|tests|docs)/[\w./-]+)`", TEXT)
    written_by_the_reader = {name for name in named if "NAME" in name}
    missing = [n for n in named if n not in written_by_the_reader and not (ROOT / n).exists()]
    assert len(named) > 30
    assert missing == []


def test_every_room_is_named() -> None:
    rooms = {path.name for path in (ROOT / "attnviz").iterdir() if (path / "__init__.py").exists()}
    assert {room for room in rooms if f"`{room}/`" not in TEXT} == set()


def test_every_program_of_making_that_a_document_names_is_there() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "making").glob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in documents)
    named = set(re.findall(r"python -m (making\.\w+)", text))
    assert len(named) > 5
    assert [name for name in named if not hasattr(importlib.import_module(name), "main")] == []


def test_what_an_output_refuses_is_an_option_that_there_is() -> None:
    known = {*vars(Transforms()), *vars(Filters()), *vars(Look())}
    assert {name for output in OUTPUTS for name in output.refuses} <= known
    assert {*VIEWS} == {output.view for output in OUTPUTS if output.view}


def test_every_option_is_spelled_as_it_is_declared() -> None:
    """A message names a parameter, and the reader types the flag."""
    modules = [
        sys.modules[run.__module__]
        for run in (inspect.unwrap(command(name).callback) for name in COMMANDS)
    ]
    modules.append(options)
    for name, group in (item for module in modules for item in vars(module).items()):
        if not isinstance(group, type) or not hasattr(group, "__dataclass_fields__"):
            continue
        for field in group.__dataclass_fields__.values():
            info = field.metadata.get("typer")
            if isinstance(info, typer.models.OptionInfo):  # the first flag is kept as its default
                declared = (info.default, *(info.param_decls or ()))
                flags = {flag for each in declared for flag in each.split("/")}
                assert as_flag(field.name) in flags, (name, field.name)
