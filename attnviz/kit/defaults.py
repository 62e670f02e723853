"""Defaults of options from the user's own file, and never from the folder that they work in.

The file is TOML. A key at its top is an option that several commands share, a table has the
options of the command of its name, and an option is named as it is typed, without its dashes:

    model = "gpt2"

    [show]
    view = "heatmap"
    drop-sink = true
"""

import difflib
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from typer.core import TyperOption

from attnviz.errors import UsageError

VARIABLE = "ATTNVIZ_CONFIG"
"""Names another file; /dev/null, or nothing, is none."""
LARGEST = 1 << 16
NOT_HERE = "file", "output", "no-color", "help", "help-all"
"""Options without a default of the user's own: they are about one call, or have another name."""


@dataclass(frozen=True)
class Configuration:
    """The settings of a user's file; `path` is None where no file is read."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self, name: str, options: Iterable[TyperOption]) -> dict[str, Any]:
        """The default of each parameter of a command that the file sets, as typer takes it.

        Raises:
            UsageError: the command has no such option, or it cannot have such a value.
        """
        known = {key_of(each): each for each in options}
        own = self.values.get(name, {})
        for key in own:
            self._check_here(key)
            if key not in known:
                hint = _nearest(key, known) or f"attnviz {name} --help-all lists its options"
                raise self._wrong(f"{key!r} in [{name}] is not an option of attnviz {name}", hint)
        settings = self.set_for(name, known)
        return {known[key].name: self._value(key, settings[key], known[key]) for key in settings}

    def set_for(self, name: str, keys: Iterable[str]) -> dict[str, Any]:
        """The file's settings of these options of a command."""
        both = {**self.values, **self.values.get(name, {})}
        return {key: both[key] for key in keys if key in both and key not in NOT_HERE}

    def check(self, commands: Iterable[str], shared: Iterable[str]) -> None:
        """See that each key is a shared option, and each table a command."""
        for key, value in self.values.items():
            names = [*commands] if isinstance(value, dict) else [*shared]
            if key in names:
                continue
            self._check_here(key)
            what = "a command" if isinstance(value, dict) else "an option that commands share"
            hint = _nearest(key, names) or (
                f"commands are {', '.join(names)}"
                if isinstance(value, dict)
                else "set the option of one command in its table, as in [show]"
            )
            raise self._wrong(f"{key!r} is not {what}", hint)

    def _value(self, key: str, value: Any, option: TyperOption) -> Any:
        """A value as typer takes a default: as it would be typed, or whether a flag is set."""
        if option.is_flag:
            if isinstance(value, bool):
                return value
            raise self._wrong(f"{key!r} cannot be {_shown(value)}", "write true or false")
        if option.multiple and isinstance(value, list):
            return [self._scalar(key, each) for each in value]
        return [self._scalar(key, value)] if option.multiple else self._scalar(key, value)

    def _scalar(self, key: str, value: Any) -> str:
        plain = isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
        if isinstance(value, bool) or not plain:
            raise self._wrong(
                f"{key!r} cannot be {_shown(value)}", "write a text in quotes or a number"
            )
        return str(value)

    def _check_here(self, key: str) -> None:
        if key in NOT_HERE:
            raise self._wrong(f"{key!r} has no default of your own", "give it where you need it")

    def _wrong(self, wrong: str, hint: str) -> UsageError:
        return UsageError(f"{str(self.path)!r}: {wrong}", hint)


def config_path(variables: Mapping[str, str]) -> Path | None:
    """The file of a user with these environment variables, which need not be there.

    Raises:
        UsageError: the variable names a file relative to the folder that the user works in.
    """
    named = variables.get(VARIABLE)
    if named is not None:
        if named in ("", os.devnull):
            return None
        if not os.path.isabs(named):
            raise UsageError(
                f"{VARIABLE} is {named!r}, which is not a full path", "give a full path"
            )
        return Path(named)
    home = variables.get("HOME", "")
    places = [variables.get("XDG_CONFIG_HOME", ""), os.path.join(home, ".config") if home else ""]
    if sys.platform == "win32":
        places = [variables.get("APPDATA", "")]
    folder = next(filter(os.path.isabs, places), None)
    return Path(folder, "attnviz", "config.toml") if folder else None


def read_configuration(variables: Mapping[str, str]) -> Configuration:
    """The user's file; nothing is set where there is none.

    Raises:
        UsageError: it cannot be read, is too large, or is not TOML.
    """
    path = config_path(variables)
    if path is None:
        return Configuration()
    without = f"mend it, or set {VARIABLE}={os.devnull} to do without"
    try:
        if not path.is_file():
            if path.exists() or VARIABLE in variables:
                what = "is not a file" if path.exists() else "is not there"
                raise UsageError(f"{str(path)!r} {what}", without)
            return Configuration(path)
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise UsageError(f"{str(path)!r} has more than {LARGEST >> 10} KB", without)
        return Configuration(path, tomllib.loads(data.decode("utf-8-sig")))  # as Notepad saves
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{str(path)!r} cannot be read: {why}", without) from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError
        why = " ".join(str(error).split()) or "it is nested too deeply"
        raise UsageError(f"{str(path)!r} is not TOML: {why}", without) from error


def key_of(option: TyperOption) -> str:
    """An option's name in the file: as it is typed, without its dashes."""
    return bare(max(option.opts, key=len))


def _shown(value: Any) -> str:
    """A value, roughly as the file has it."""
    return repr(value) if isinstance(value, str | int | float | list | dict) else str(value)


def bare(flag: str) -> str:
    """A flag without its dashes."""
    return flag.lstrip("-")


def _nearest(key: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, [*names], n=1)
    return f"did you mean {close[0]}?" if close else ""
