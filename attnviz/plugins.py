"""What other packages add: commands, metrics, and loaders of models.

A package names each in its metadata, as an entry point of `attnviz.commands`, `attnviz.metrics` or
`attnviz.models`. The names are read when a list is needed; code is imported when it is used.
"""

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from logging import getLogger
from typing import TYPE_CHECKING, Any, TypeVar

from attnviz.errors import AttnvizError, UsageError, readable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("attnviz.commands", "attnviz.metrics", "attnviz.models")
T = TypeVar("T")


class PluginError(UsageError):
    """A plugin does not work."""


@dataclass(frozen=True)
class Plugin:
    """An entry point, and the name, the version and the summary of its package."""

    group: str
    name: str
    package: str
    version: str
    summary: str
    point: "EntryPoint"

    @property
    def named(self) -> str:
        """Its name in a sentence."""
        return f"the plugin {self.package} ({self.name})"

    def failed(self, why: str, error: type[AttnvizError] = PluginError) -> AttnvizError:
        """The error about it; `why`: a clause without its subject."""
        return error(f"{self.named} {why}", f"update {self.package}, or uninstall it")

    @contextmanager
    def working(self, fails: str, kind: type[AttnvizError] = PluginError) -> Iterator[None]:
        """Turn whatever its code raises into an error that names it; attnviz's own errors stay."""
        try:
            yield
        except AttnvizError:
            raise
        except (Exception, SystemExit) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
            raise self.failed(f"{fails}: {told}", kind) from error

    def load(self, kind: type[AttnvizError] = PluginError) -> Any:
        """Import what it names; `kind`: the error where that fails."""
        with self.working("cannot be imported", kind):
            return self.point.load()


@cache
def plugins() -> tuple[Plugin, ...]:
    """Every plugin, by the names of packages; of one that is there twice, the first on the path."""
    packages: dict[str, list[Plugin]] = {}
    for folder in _folders():
        from importlib.metadata import Distribution  # takes a moment, and most have no plugin

        with suppress(Exception):  # the metadata of others may be damaged in any way
            package = Distribution.at(folder)
            told = package.metadata.json
            keys = ("name", "version", "summary")
            name, version, about = (readable(str(told.get(key, ""))) for key in keys)
            points = [(g, each) for g in GROUPS for each in package.entry_points.select(group=g)]
            own = [Plugin(g[8:], readable(p.name), name, version, about, p) for g, p in points]
            packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), own)
    return tuple(each for name in sorted(packages) for each in packages[name])


def _folders() -> Iterator[str]:
    """The folders of metadata that name a plugin; `entry_points()` takes ten times as long."""
    for place in dict.fromkeys(each or os.curdir for each in sys.path):
        with suppress(OSError):
            for each in sorted(os.listdir(place)):
                if each.endswith((".dist-info", ".egg-info")):
                    folder = os.path.join(place, each)
                    with suppress(OSError), open(f"{folder}/entry_points.txt", "rb") as file:
                        if b"[attnviz." in file.read():
                            yield folder


FAULTS: dict[Plugin, str] = {}
"""The plugins that are left out, each with the reason."""


def leave_out(plugin: Plugin, error: AttnvizError) -> None:
    """Do without a plugin, and name it once: the command line makes a note of it."""
    from multiprocessing import parent_process

    why = error.wrong.removeprefix(f"{plugin.named} ")
    if plugin not in FAULTS and parent_process() is None:  # which named it already
        getLogger("attnviz.plugins").warning("%s; attnviz works without it", error.wrong)
    FAULTS.setdefault(plugin, why)


def found(group: str, taken: Container[str] = ()) -> Mapping[str, Plugin]:
    """The plugins of a group by their names, of which attnviz has `taken` itself."""
    known: dict[str, Plugin] = {}
    for each in plugins():
        if each.group == group:
            first = "attnviz" if each.name in taken else known.setdefault(each.name, each).package
            if known.get(each.name) is not each:
                leave_out(each, each.failed(f"is left out, as {first} has one of this name"))
    return known


def working(some: Iterable[Plugin], make: Callable[[Plugin], T]) -> Iterator[tuple[Plugin, T]]:
    """The plugins that work, each with what is made of it; others are left out."""
    for each in some:
        try:
            made = make(each)
        except PluginError as error:
            leave_out(each, error)
        else:
            yield each, made
