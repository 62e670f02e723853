"""The session of a command: streams, consoles, configuration, notes and errors.

The user's own defaults of options come from their file, and never from the current folder. It is
TOML. A key at its top is an option that several commands share, a table has the options of the
command of its name, and an option is named as it is typed, without its dashes:

    model = "gpt2"

    [show]
    view = "heatmap"
    drop-sink = true
"""

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import RenderableType
from rich.text import Text
from typer.core import TyperOption

from attnviz.console import ColorMode, Consoles, Display, Environment, display_of, make_consoles
from attnviz.draw.titles import model_notes
from attnviz.errors import (
    ExitStatus,
    UsageError,
    argument,
    nearest,
    option,
    readable,
    shortened,
    spelled,
)
from attnviz.inputs.text import Stdin
from attnviz.kit.write import as_stdout_error
from attnviz.records.tokens import ELSEWHERE, begin

if TYPE_CHECKING:
    from rich.progress import Progress

    from attnviz.models.catalog import Source
    from attnviz.models.loaded import LoadedModel

# The file of a user's own defaults.

VARIABLE = "ATTNVIZ_CONFIG"
"""The variable that names another file; /dev/null, or an empty value, means none."""
LARGEST = 1 << 16
NOT_HERE = "file", "output", "no-color", "help", "help-all"
"""Options that the user's file cannot set: they belong to one call, or have another name."""


@dataclass(frozen=True)
class Configuration:
    """The settings of a user's file; `path` is None if no file is read."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self, name: str, options: Iterable[TyperOption]) -> dict[str, Any]:
        """The defaults of a command's parameters that the file sets, in typer's form."""
        known = {key_of(each): each for each in options}
        own = self.values.get(name, {})
        for key in own:
            self._check_here(key)
            if key not in known:
                hint = nearest(key, known) or f"attnviz {name} --help-all lists its options"
                raise self._wrong(f"{key!r} in [{name}] is not an option of attnviz {name}", hint)
        settings = self.set_for(name, known)
        return {known[key].name: self._value(key, settings[key], known[key]) for key in settings}

    def set_for(self, name: str, keys: Iterable[str]) -> dict[str, Any]:
        """The file's settings of these options of a command."""
        both = {**self.values, **self.values.get(name, {})}
        return {key: both[key] for key in keys if key in both and key not in NOT_HERE}

    def check(self, commands: Iterable[str], shared: Iterable[str]) -> None:
        """Check that each key is a shared option, and each table a command."""
        for key, value in self.values.items():
            names = [*commands] if isinstance(value, dict) else [*shared]
            if key in names:
                continue
            self._check_here(key)
            what = "a command" if isinstance(value, dict) else "an option that commands share"
            hint = nearest(key, names) or (
                f"commands are {', '.join(names)}"
                if isinstance(value, dict)
                else "set the option of one command in its table, as in [show]"
            )
            raise self._wrong(f"{key!r} is not {what}", hint)

    def _value(self, key: str, value: Any, option: TyperOption) -> Any:
        """A value in typer's form of a default: as it would be typed, or whether a flag is set."""
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
            raise self._wrong(f"{key!r} cannot have a default", "give it where you need it")

    def _wrong(self, wrong: str, hint: str) -> UsageError:
        return UsageError(f"{str(self.path)!r}: {wrong}", hint)


def config_path(variables: Mapping[str, str]) -> Path | None:
    """The path of a user's file by these environment variables; it need not exist."""
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
    """Read the user's file; without one, nothing is set."""
    path = config_path(variables)
    if path is None:
        return Configuration()
    without = f"mend it, or set {VARIABLE}={os.devnull} to do without"
    try:
        if not path.is_file():
            if path.exists() or VARIABLE in variables:
                what = "is not a file" if path.exists() else "does not exist"
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
    """A value, roughly as in the file."""
    return repr(value) if isinstance(value, str | int | float | list | dict) else str(value)


def bare(flag: str) -> str:
    """A flag without its dashes."""
    return flag.lstrip("-")


# The session.

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds after which a user is told what they wait for."""


@dataclass
class Session:
    """One run of the program.

    `debug` and `quiet` are set by their options; `status` is the exit status of a program without
    errors. `configuration` holds the settings of the user's file; `misconfigured`, the fault in
    it, is raised when a command begins, so that help and completion work in spite of it.
    """

    environment: Environment
    stdin: Stdin
    debug: bool = False
    quiet: bool = False
    status: ExitStatus = ExitStatus.OK
    configuration: Configuration = field(default_factory=Configuration)
    misconfigured: UsageError | None = None
    consoles: Consoles = field(init=False)

    context: typer.Context | None = None
    typed: str = ""
    """The command line, quoted for a shell."""
    _left_out: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.consoles = make_consoles(self.environment)

    def begin(self, context: typer.Context) -> None:
        """Take over the options of a command."""
        self.context = context
        if self.misconfigured is not None:
            raise self.misconfigured
        color: ColorMode = context.params.get("color", "auto")
        if context.params.get("no_color"):
            if color != "never" and self.given("color"):
                raise UsageError(
                    f"{option('no_color')} and {option('color', color)} disagree",
                    "give one of them",
                )
            color = "never"
        # named as they are typed: --max-new-tokens is max_new_tokens, as in Python
        chosen = {
            as_flag(name).removeprefix("--").replace("-", "_"): value
            for name, value in context.params.items()
            if self.chosen(name) and name not in ELSEWHERE
        }
        begin(chosen, context.params.get("seed"))
        width = context.params.get("width")
        self.consoles = make_consoles(self.environment, width=width, color=color)

    def given(self, *options: str | type[Any]) -> tuple[str, ...]:
        """The parameters that the user typed, among these names and the fields of these groups.

        Configured values do not count: they are ignored if they have no effect.
        """
        names = [
            name
            for each in options
            for name in ([each] if isinstance(each, str) else [f.name for f in fields(each)])
        ]
        return tuple(name for name in names if self._source(name) == "COMMANDLINE")

    @property
    def root(self) -> Any:
        """The context of the program, whose command is the list of commands."""
        assert self.context is not None
        return self.context.find_root()

    def value(self, name: str) -> Any:
        """The value of a parameter; None if the command has none of this name."""
        return self.context.params.get(name) if self.context else None

    def configured(self, name: str) -> bool:
        """Whether a parameter has its value from the user's file."""
        return self._source(name) == "DEFAULT_MAP" and name not in self._left_out

    def chosen(self, name: str) -> bool:
        """Whether the user set a parameter: now, or in their file."""
        return bool(self.given(name)) or self.configured(name)

    def leave_out(self, name: str) -> None:
        """Continue as if a parameter were not configured, as it has no effect here."""
        self._left_out.add(name)

    def where_set(self, name: str | None) -> str:
        """The origin of a parameter's value, for the end of an error's sentence."""
        if name is None or self.context is None or not self.configured(name):
            return ""
        return f" ({as_flag(name)} is set in {self.configuration.path}.)"

    def _source(self, name: str) -> str:
        assert self.context is not None
        sources = map(self.context.get_parameter_source, (name, argument(name)))
        return next((source.name for source in sources if source), "")

    def refuse(self, *options: str | type[Any], wrong: str, hint: str = "leave it out") -> None:
        """Refuse these parameters, and those of these groups, as they would do nothing."""
        for name in self.given(*options):
            raise UsageError(f"{option(name)} {wrong}", hint)

    @property
    def display(self) -> Display:
        """The display that stdout offers to a renderer."""
        return display_of(self.consoles.out, as_flag, self.environment)

    def show(self, parts: Iterable[RenderableType]) -> None:
        """Print to stdout, as each part comes."""
        for part in parts:
            with as_stdout_error():
                self.consoles.out.print(part)
                self.environment.stdout.flush()

    def load(self, source: "Source") -> "LoadedModel":
        """Load the model, with a line on stderr about layers without attention."""
        from attnviz.kit.prepare import load_model
        from attnviz.models.catalog import dequantised

        if takes := dequantised(source):
            self.note(takes)
        with self.waiting(f"loading {source.name}"):
            model = load_model(source)
        for note in model_notes(model.identity):
            self.note(note)
        return model

    def note(self, message: str) -> None:
        """Write a line on stderr about something that a user may want to know."""
        if not self.quiet:
            self._say(f"note: {spelled(message, as_flag)}")

    def logged(self, message: str) -> None:
        """Write a line on stderr about the progress of a long run, above the bar in a terminal."""
        if not self.quiet:
            self._say(message)

    def wrote(self, path: Path) -> None:
        """Write a line that names a file or a folder, for a person; scripts read the exit code."""
        kept = path.is_file() or path.is_dir()  # a device keeps nothing
        if kept and not self.quiet and self.environment.stderr.isatty():
            self._say(f"wrote {path}")

    @contextmanager
    def bar(
        self, text: str, *, ends: bool = True, stays: bool = False, times: bool = True
    ) -> Iterator["Progress"]:
        """Show a progress bar on stderr, if that is a terminal; `text` has the fields of its tasks.

        `ends`: the total is known. `stays`: the bar remains at the end, also if stderr is not a
        terminal. `times`: the elapsed and the remaining time follow the bar.
        """
        from rich import progress as rich  # slow to import

        shown = stays or self.environment.stderr.isatty()
        with rich.Progress(
            *([rich.BarColumn()] if ends else []),
            rich.TextColumn(text),
            *([rich.TimeElapsedColumn()] if times else []),
            *([rich.TimeRemainingColumn()] if times and ends else []),
            console=self.consoles.err,
            transient=not stays,
            disable=self.quiet or not shown,
        ) as bar:
            yield bar

    @contextmanager
    def waiting(self, doing: str) -> Iterator[None]:
        """Say in a terminal, on stderr, what takes more than a second; then wipe it away."""
        status = self.consoles.err.status(Text(readable(doing)))
        late = Timer(PATIENCE, status.start)
        if not self.quiet and self.environment.stderr.isatty():
            late.start()
        try:
            yield
        finally:
            late.cancel()
            if late.ident is not None:
                late.join()
            status.stop()

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[], None]]:
        """Yield a function to call for each finished item.

        The count is on stderr, unless results arrive on the same terminal meanwhile.
        """
        if self.environment.stdout.isatty():
            yield lambda: None
            return
        with self.bar("{task.completed} " + what + "s", ends=False) as bar:
            task = bar.add_task("", total=None)
            yield lambda: bar.advance(task)

    def progress(self, items: Iterable[T], what: str) -> Iterator[T]:
        """Yield the items, and count those that are done."""
        with self.counting(what) as count:
            for item in items:
                yield item
                count()

    @contextmanager
    def running(self, doing: str) -> Iterator[None]:
        """Show the number of finished runs of a text on stderr."""
        from attnviz.kit.intervene import watched  # most commands run a text once

        with self.bar("{task.description}, {task.completed}/{task.total} runs") as bar:
            task = bar.add_task(doing, total=None, visible=False)

            def tell(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, visible=True)

            with watched(tell):
                yield

    def complain(self, message: str) -> None:
        """Write a line on stderr about an error."""
        self._say(f"attnviz: {message}")

    def _say(self, message: str) -> None:
        with suppress(OSError, ValueError):  # a full or closed stderr must not stop the command
            # as it was typed, not as Python has it
            message = re.sub(r"(?<!\s)\\\\", r"\\", message)
            self.consoles.err.print(Text(readable(shortened(message))), soft_wrap=True)
            self.environment.stderr.flush()


def process_session() -> Session:
    """The session of this process."""
    closed = sys.stdin is None or sys.stdin.closed  # `<&-`
    stdin = Stdin(None, False) if closed else Stdin(sys.stdin.buffer, sys.stdin.isatty())
    return Session(Environment.of_process(), stdin)


def session_of(context: typer.Context) -> Session:
    """The session that `cli.run` put into the context."""
    session = context.obj
    assert isinstance(session, Session)
    return session


# The spelling of a parameter on the command line.

FLAGS = {"output": "-o", "format": "-f", "heads": "--head", "layers": "--layer"}
"""The flags of parameters; those of a command are added as it is declared."""


def as_flag(name: str, value: str | None = None) -> str:
    """A parameter as it is typed: `--drop-sink`, `--no-chars`, `--top 5`, `-o FILE.png`."""
    name = argument(name)
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    return flag if value in (None, "True") else f"{flag} {value}"
