"""How to install what an extra needs, in the way in which attnviz itself was installed.

Each way adds packages by another command: pipx and uv keep a program in an environment of its
own, into which pip would install behind their backs, or which has no pip.
"""

import importlib.metadata
import importlib.util
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnviz.errors import UsageError

NAME = "attnviz"
PIPX, UV = "pipx_metadata.json", "uv-receipt.toml"
"""What pipx and uv leave in the environments that they make for a program."""


def missing(what: str, extra: str) -> UsageError:
    """The error where an extra is not installed; its hint is the command that installs it.

    Args:
        what: what needs which package: "a Ray cluster needs ray".
        extra: the extra that brings the package.
    """
    command = command_to_install(requirements_of(extra) or [f"{NAME}[{extra}]"])
    return UsageError(f"{what}, which is not installed", f"install it: {command}")


def requirements_of(extra: str) -> list[str]:
    """The packages of an extra, with their versions; none where nobody says which they are."""
    from packaging.requirements import Requirement  # takes a moment

    found: dict[str, None] = {}
    for line in _required():
        each = Requirement(line)
        if each.marker is None or not each.marker.evaluate({"extra": extra}):
            continue
        if each.marker.evaluate({"extra": ""}):
            continue  # always there
        if each.name == NAME:
            found.update(
                dict.fromkeys(one for more in each.extras for one in requirements_of(more))
            )
        else:
            extras = f"[{','.join(sorted(each.extras))}]" if each.extras else ""
            found[f"{each.name}{extras}{each.specifier}"] = None
    return list(found)


def _required() -> list[str]:
    """What attnviz requires: as its sources say, where it runs from them, else its metadata."""
    project = Path(__file__).parents[1] / "pyproject.toml"
    with suppress(OSError, ValueError):
        named = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        if named.get("name") == NAME:  # its metadata may be of an older state
            extras = named["optional-dependencies"]
            return [f'{line}; extra == "{extra}"' for extra in extras for line in extras[extra]]
    try:
        return importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def command_to_install(
    requirements: Sequence[str], prefix: Path = Path(sys.prefix), python: str = sys.executable
) -> str:
    """The command that installs packages beside attnviz.

    Args:
        requirements: as pip takes them: `textual<9,>=8`.
        prefix: the environment in which attnviz runs.
        python: the interpreter of that environment.
    """
    if (prefix / PIPX).is_file():
        words = ["pipx", "inject", prefix.name, *requirements]
    elif (prefix / UV).is_file():
        words = ["uv", "tool", "install", *_as_before(prefix / UV, requirements)]
    elif importlib.util.find_spec("pip") is not None:
        words = [python, "-m", "pip", "install", *requirements]
    else:
        words = ["uv", "pip", "install", "--python", python, *requirements]
    return " ".join(map(_quoted, words))


def _as_before(receipt: Path, requirements: Sequence[str]) -> list[str]:
    """Words after `uv tool install`, which makes the environment anew: with what it had, too."""
    program, beside = [NAME], list(requirements)
    for each in _receipt(receipt):
        if each.get("name") != NAME:
            beside.append(_requirement(each))
        elif "editable" in each:
            program = ["--editable", str(each["editable"])]
        else:
            program = [_requirement(each)]
    return [word for one in dict.fromkeys(beside) for word in ("--with", one)] + program


def _requirement(entry: Mapping[str, Any]) -> str:
    """A requirement as it was given: by name and version, or from where."""
    extras = f"[{','.join(entry['extras'])}]" if entry.get("extras") else ""
    source = entry.get("path") or entry.get("directory") or entry.get("url")
    if entry.get("git"):
        source = f"git+{entry['git']}"
    if source:
        return (
            f"{entry.get('name')}{extras} @ {source}" if extras or "git" in entry else str(source)
        )
    return f"{entry.get('name')}{extras}{entry.get('specifier', '')}"


def _quoted(word: str) -> str:
    """A word for any shell: double quotes, where they do, are quotes on Windows as well."""
    quoted = shlex.quote(word)
    return quoted if quoted == word or set(word) & set('"$`!\\') else f'"{word}"'


def _receipt(path: Path) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["tool"]["requirements"]
        return [each for each in found if isinstance(each, dict)]
    except (OSError, ValueError, LookupError, TypeError):  # of another version of uv
        return []
