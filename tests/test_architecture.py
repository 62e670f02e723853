"""docs/architecture.md is true: the files that it names exist, and weights take the way it says."""

import importlib
import re
from pathlib import Path
from types import ModuleType

from typer.core import TyperOption

from attnviz.cli import COMMANDS, command
from attnviz.commands.show.outputs import OUTPUTS
from attnviz.kit.session import as_flag
from attnviz.kit.write import VIEWS
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
    missing = [name for name in named if not hasattr(program(name), "main")]
    assert missing == []


def program(name: str) -> ModuleType:
    """What `python -m NAME` runs: of a package its `__main__`."""
    module = importlib.import_module(name)
    return importlib.import_module(f"{name}.__main__") if hasattr(module, "__path__") else module


def test_what_an_output_refuses_is_an_option_that_there_is() -> None:
    known = {*vars(Transforms()), *vars(Filters()), *vars(Look())}
    assert {name for output in OUTPUTS for name in output.refuses} <= known
    assert {*VIEWS} == {output.view for output in OUTPUTS if output.view}


def test_every_option_is_spelled_as_it_is_declared() -> None:
    """A message names a parameter, and the reader types the flag."""
    for name in COMMANDS:
        for each in command(name).params:
            if isinstance(each, TyperOption):
                flags = {*each.opts, *each.secondary_opts}
                assert as_flag(each.name) in flags, (name, each.name)
