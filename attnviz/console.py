"""The stdout and stderr consoles: their width, colours and letters.

Everything they depend on is passed in (streams, environment variables, the size of the
terminal), so that a test asks for a pipe or a 16-colour terminal by saying so.

The settings that decide, strongest first:

- width: the option, `COLUMNS`, the terminal's own, 80. Never under 40, the narrowest width that
  every view supports.
- colour: the option, `NO_COLOR`, `FORCE_COLOR` (`0` and an empty value do not force it),
  whether the stream is a terminal; then `COLORTERM` and `TERM` give the number of colours.
- graphics: if stdout is a terminal with colour, `TERM`, then `TERM_PROGRAM`, then the variables of
  kitty and konsole; none inside tmux, screen and the like, which would not pass the pixels on.
- ground: `COLORFGBG`, which some terminals set (`0;15` is black on white); without it the ground
  counts as dark.
- letters: a stream whose encoding cannot write every character (`LANG=C`, latin-1)
  gets plain ASCII: bars of `=`, `->` for an arrow, `"` for a curved quote, and `\\u695a` for
  a letter.
"""

import io
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO, TypeAlias

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.measure import Measurement

from attnviz.errors import Speller, UsageError, as_argument, harmless, option

NARROWEST, WIDEST = 40, 100_000
DEFAULT_WIDTH = 80
DEFAULT_HEIGHT = 25

PLAIN = str.maketrans("“”‘’×–∖∅", "\"\"''x-\\0")
"""ASCII for the letters of sentences, one cell for one."""

ColorMode: TypeAlias = Literal["auto", "always", "never"]
ColorSystem: TypeAlias = Literal["auto", "standard", "256", "truecolor"]
Graphics: TypeAlias = Literal["kitty", "sixel"]

KITTY = "xterm-kitty", "xterm-ghostty", "ghostty"
SIXEL = "foot", "mlterm", "yaft", "contour", "xterm-sixel", "mintty", "wezterm"
"""Beginnings of `TERM` or `TERM_PROGRAM` of terminals with graphics. WezTerm has kitty's, too, but
there a picture erases those before it."""
INSIDE = ("TMUX", "STY", "ZELLIJ", "NVIM", "VIM_TERMINAL", "INSIDE_EMACS")
"""Variables of programs that show a terminal within a terminal."""
OTHERS = ("TERM_PROGRAM", "XTERM_VERSION", "VTE_VERSION", "ALACRITTY_WINDOW_ID")
"""Variables of terminals without graphics that may have been started from a kitty or a konsole."""


@dataclass(frozen=True)
class Environment:
    """The streams and settings that the consoles depend on.

    `columns` is the width of the terminal that the process is attached to, or None without one;
    `variables` are the environment variables; `cell` is the width of a cell in pixels, or None if
    it is unknown.

    `stdout_closed`: the process was started without a standard output (`>&-`). Output to `stdout`
    is then lost, so that writers of results report an error instead.
    """

    stdout: TextIO
    stderr: TextIO
    variables: Mapping[str, str] = field(default_factory=dict)
    columns: int | None = None
    stdout_closed: bool = False
    cell: int | None = None

    @classmethod
    def of_process(cls) -> "Environment":
        """This process's own streams, variables and terminal.

        A closed stream is replaced by one that discards its input: a console without a
        stream would fall back to stdout, and errors do not belong there.
        """
        return cls(
            stdout=_nowhere() if _is_closed(sys.stdout) else sys.stdout,
            stderr=_nowhere() if _is_closed(sys.stderr) else sys.stderr,
            variables=dict(os.environ),
            columns=_terminal_columns(),
            stdout_closed=_is_closed(sys.stdout),
            cell=_cell_width(),
        )


@dataclass(frozen=True)
class Display:
    """The display of a renderer: cells per line, colours, letters beyond ASCII.

    `sixteen`: only the sixteen colours that every colour terminal has. `fixed`: 256 colours, most
    of them the same everywhere. `light`: the ground is light. `graphics`: the protocol for pixels;
    `cell`: pixels across a cell. `speller` spells the options that a reader may type.
    """

    width: int = DEFAULT_WIDTH
    color: bool = False
    unicode: bool = True
    sixteen: bool = False
    fixed: bool = False
    light: bool = False
    graphics: Graphics | None = None
    cell: int = 10
    speller: Speller = as_argument


@dataclass(frozen=True)
class Consoles:
    """The console of results (`out`), and that of everything else (`err`)."""

    out: Console
    err: Console


def make_consoles(
    environment: Environment, *, width: int | None = None, color: ColorMode = "auto"
) -> Consoles:
    """Make both consoles by the environment and the options for width and colour.

    A stream that cannot encode a character writes its escape instead of failing; for
    that, the stream's error handler is set.

    Raises:
        UsageError: `width` is under 40 or over 100,000.
    """
    if width is not None and width < NARROWEST:
        raise UsageError(f"{option('width', width)} is too narrow", f"give {NARROWEST} or more")
    if width is not None and width > WIDEST:
        raise UsageError(f"{option('width', width)} is too wide", f"give {WIDEST:,} or less")
    cells = width or _width(environment)
    return Consoles(
        out=_console(environment.stdout, environment.variables, cells, color),
        err=_console(environment.stderr, environment.variables, cells, color),
    )


def display_of(
    console: Console, speller: Speller = as_argument, environment: Environment | None = None
) -> Display:
    """The display of a console for a renderer, with the environment's ground and pixels."""
    color = console.color_system is not None and not console.no_color
    variables = environment.variables if environment else {}
    return Display(
        width=console.width,
        color=color,
        unicode=_writes_everything(console.encoding),
        sixteen=console.color_system == "standard",
        fixed=console.color_system == "256",
        light=has_light_ground(variables),
        graphics=graphics_of(environment) if environment and color else None,
        cell=(environment and environment.cell) or Display.cell,
        speller=speller,
    )


def has_light_ground(variables: Mapping[str, str]) -> bool:
    """Whether the terminal reports a light ground: white, or a bright colour except black."""
    ground = variables.get("COLORFGBG", "").rpartition(";")[2].strip()
    return ground in ("7", *map(str, range(9, 16)))


def graphics_of(environment: Environment) -> Graphics | None:
    """The protocol by which the terminal of stdout shows pixels, by its variables.

    Every terminal sets `TERM`; other variables may be inherited from another terminal.
    """
    variables = environment.variables
    term = variables.get("TERM", "").lower()
    inside = term.startswith(("screen", "tmux")) or any(map(variables.get, INSIDE))
    if inside or not _is_terminal(environment.stdout):
        return None
    named = term.startswith((*KITTY, *SIXEL))
    name = term if named else variables.get("TERM_PROGRAM", "").lower()
    if name.startswith((*KITTY, *SIXEL)):
        return "kitty" if name.startswith(KITTY) else "sixel"
    if any(map(variables.get, OTHERS)):
        return None
    konsole = variables.get("KONSOLE_VERSION", "")
    new = konsole.isdecimal() and int(konsole) >= 220_400  # has kitty's graphics
    return "kitty" if new or variables.get("KITTY_WINDOW_ID") else None


def _console(stream: TextIO, variables: Mapping[str, str], width: int, color: ColorMode) -> Console:
    if not _writes_everything(getattr(stream, "encoding", None) or "utf-8"):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    no_color = color == "never" or (color == "auto" and bool(variables.get("NO_COLOR")))
    forced = color == "always" or variables.get("FORCE_COLOR", "") not in ("", "0")
    terminal = (_is_terminal(stream) or forced) and not no_color  # no colour, no bold either
    system = _color_system(variables) or ("standard" if color == "always" else None)
    return harmless_console(
        file=stream,
        width=width,
        height=DEFAULT_HEIGHT,
        color_system=system if terminal else None,
        force_terminal=terminal,
        force_jupyter=False,
        force_interactive=terminal and variables.get("TERM") != "dumb",
        no_color=no_color,
    )


def harmless_console(**settings: Any) -> Console:
    """A console that treats text from outside as data, whatever its content.

    Nothing in it is markup, an emoji code or a number to paint, and control characters are
    escaped.
    """
    console = Console(markup=False, emoji=False, highlight=False, **settings)
    console.push_render_hook(_EveryText())
    return console


class _EveryText(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Harmless(each) for each in renderables]


@dataclass(frozen=True)
class _Harmless:
    """A renderable whose text is made harmless; Rich's own escape codes are not text."""

    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        letters = {} if _writes_everything(console.encoding) else PLAIN
        for segment in console.render(self.inner, options):
            said = segment.text if segment.control else harmless(segment.text.translate(letters))
            yield segment._replace(text=said)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.inner)


def _color_system(variables: Mapping[str, str]) -> ColorSystem | None:
    """The colours that the variables promise; None if escape codes are not understood."""
    term = variables.get("TERM", "").strip().lower()
    if term in ("dumb", "unknown"):
        return None
    if variables.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "truecolor"
    if variables.get("FORCE_COLOR") == "3" or term.endswith("-direct"):
        return "truecolor"
    if variables.get("FORCE_COLOR") == "2" or term.endswith(("256color", "kitty")):
        return "256"
    return "auto" if sys.platform == "win32" else "standard"


def _width(environment: Environment) -> int:
    columns = environment.variables.get("COLUMNS", "").strip()
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if _is_terminal(environment.stdout) and environment.columns:
        return max(NARROWEST, environment.columns)
    return DEFAULT_WIDTH


def _terminal_columns() -> int | None:
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            return os.get_terminal_size(stream.fileno()).columns  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):
            continue
    return None


def _cell_width() -> int | None:
    """Pixels across a cell of stdout's terminal, by a system call, without a query to it."""
    try:
        import fcntl
        import termios

        said = fcntl.ioctl(sys.__stdout__, termios.TIOCGWINSZ, bytes(8))  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return None
    _, columns, width, _ = struct.unpack("HHHH", said)
    return width // max(1, columns) or None


def _is_closed(stream: TextIO | None) -> bool:
    """Whether a standard stream is gone: Python has None if the process was started with `>&-`.

    The type of `sys.stdout` does not say so.
    """
    return stream is None or stream.closed


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a stream that is gone, or a stand-in
        return False


def _writes_everything(encoding: str) -> bool:
    try:
        "▇→…楚\U0001f600".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plain_text(parts: Iterable[RenderableType], width: int) -> str:
    """The output of a terminal without colours, for a file."""
    # in a notebook Rich would also show it there
    console = harmless_console(
        file=io.StringIO(), width=width, color_system=None, force_jupyter=False
    )
    with console.capture() as shown:
        for part in parts:
            console.print(part)
    return shown.get()
