"""The consoles: what width, colour and letters each environment gets."""

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.progress import Progress, TextColumn

from attnviz.console import (
    ColorMode,
    Consoles,
    Environment,
    Graphics,
    display_of,
    graphics_of,
    make_consoles,
)
from attnviz.errors import UsageError


class Stream(io.TextIOWrapper):
    """A stand-in for stdout: bytes in memory, an encoding, and a word on being a terminal."""

    def __init__(self, *, terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return self.terminal

    def written(self) -> bytes:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


def consoles(
    variables: dict[str, str] | None = None,
    *,
    stdout: Stream | None = None,
    columns: int | None = 120,
    width: int | None = None,
    color: ColorMode = "auto",
) -> Consoles:
    environment = Environment(stdout or Stream(), Stream(), variables or {}, columns)
    return make_consoles(environment, width=width, color=color)


@pytest.mark.parametrize(
    ("terminal", "columns", "variables", "option", "width"),
    [
        (True, 120, {}, None, 120),  # the terminal's own
        (True, 120, {"COLUMNS": "60"}, None, 60),  # COLUMNS wins over the terminal
        (True, 120, {"COLUMNS": "60"}, 50, 50),  # --width wins over both
        (True, 30, {}, None, 40),  # nothing is laid out for less than 40
        (True, 120, {"COLUMNS": "7"}, None, 40),
        (True, 120, {"COLUMNS": "wide"}, None, 120),  # not a number: as if it were not there
        (True, 120, {"COLUMNS": "0"}, None, 120),
        (True, None, {}, None, 80),
        (False, 200, {}, None, 80),  # a pipe doesn't depend on the window it was started in
        (False, None, {"COLUMNS": "99"}, None, 99),
    ],
)
def test_width_comes_from_the_option_then_columns_then_the_terminal(
    terminal: bool, columns: int | None, variables: dict[str, str], option: int | None, width: int
) -> None:
    made = consoles(variables, stdout=Stream(terminal=terminal), columns=columns, width=option)
    assert display_of(made.out).width == made.out.width == width


def test_a_width_under_40_is_refused() -> None:
    with pytest.raises(UsageError, match=r"width=39 .*give 40 or more"):
        consoles(width=39)
    assert display_of(consoles(width=40).out).width == 40


TRUE = {"COLORTERM": "truecolor"}


@pytest.mark.parametrize(
    ("terminal", "variables", "color", "system"),
    [
        (True, {}, "auto", "standard"),
        (True, {"TERM": "xterm-256color"}, "auto", "256"),
        (True, {"TERM": "xterm-256color", "COLORTERM": "24bit"}, "auto", "truecolor"),
        (True, {"TERM": "dumb", **TRUE}, "auto", None),
        (False, TRUE, "auto", None),
        (False, {"FORCE_COLOR": "1", **TRUE}, "auto", "truecolor"),
        (False, {"FORCE_COLOR": "3"}, "auto", "truecolor"),
        (False, {"FORCE_COLOR": "", **TRUE}, "auto", None),  # empty means that it is not set
        (False, {"FORCE_COLOR": "0", **TRUE}, "auto", None),  # as Node reads it
        (True, {"FORCE_COLOR": "0", **TRUE}, "auto", "truecolor"),  # not forced, and not forbidden
        (False, {"FORCE_COLOR": "true", **TRUE}, "auto", "truecolor"),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", None),  # no wins over force
        (False, {"FORCE_COLOR": "1"}, "never", None),
        (False, TRUE, "always", "truecolor"),
        (False, {"TERM": "dumb"}, "always", "standard"),
        (True, {"NO_COLOR": "1", **TRUE}, "always", "truecolor"),  # the option wins over it
    ],
)
def test_the_number_of_colours_comes_from_the_environment(
    terminal: bool, variables: dict[str, str], color: ColorMode, system: str | None
) -> None:
    made = consoles(variables, stdout=Stream(terminal=terminal), color=color)
    assert made.out.color_system == system
    assert display_of(made.out).color == (system is not None)
    assert display_of(made.out).sixteen == (system == "standard")


@pytest.mark.parametrize(
    ("variables", "color"), [({"NO_COLOR": "1", **TRUE}, "auto"), (TRUE, "never")]
)
def test_no_color_means_that_a_terminal_gets_no_escape_sequence(
    variables: dict[str, str], color: ColorMode
) -> None:
    stream = Stream()
    made = consoles(variables, stdout=stream, color=color)
    made.out.print("word", style="red on blue")
    made.out.print("word", style="bold underline link https://a.b")
    with Progress(TextColumn("{task.completed}"), console=made.out, transient=True) as bar:
        bar.advance(bar.add_task("a"))
    assert not display_of(made.out).color
    assert b"\x1b" not in stream.written()


def test_a_pipe_gets_no_escape_codes() -> None:
    stream = Stream(terminal=False)
    consoles(TRUE, stdout=stream).out.print("word", style="bold red underline")
    assert stream.written() == b"word\n"


def test_markup_emoji_codes_and_numbers_are_printed_as_they_are() -> None:
    stream = Stream()
    consoles(TRUE, stdout=stream).out.print("[red]a[/] :smile: 12 'x'")
    assert stream.written() == b"[red]a[/] :smile: 12 'x'\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_a_stream_that_cannot_write_every_letter_is_never_a_crash(encoding: str) -> None:
    stream = Stream(encoding=encoding)
    made = consoles(stdout=stream)
    made.out.print("楚")
    assert not display_of(made.out).unicode
    assert stream.written() == b"\\u695a\n"


def test_without_letters_beyond_ascii_a_line_is_as_long_as_it_was_laid_out() -> None:
    stream = Stream(encoding="ascii")
    consoles(stdout=stream).out.print("“4 × 2” – it’s")
    assert stream.written() == b'"4 x 2" - it\'s\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_a_stream_that_can_write_every_letter_gets_them(encoding: str) -> None:
    assert display_of(consoles(stdout=Stream(encoding=encoding)).out).unicode


def test_a_closed_stream_is_no_terminal() -> None:
    stream = Stream()
    stream.close()
    assert not display_of(consoles(TRUE, stdout=stream).out).color


@pytest.mark.parametrize("gone", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("how", ["None", "closed"])
def test_a_process_whose_streams_are_closed_writes_nowhere(
    monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...], how: str
) -> None:
    streams = {"stdout": Stream(terminal=False), "stderr": Stream(terminal=False)}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    for name in gone:
        if how == "None":
            monkeypatch.setattr(sys, name, None)
        else:
            streams[name].close()
    environment = Environment.of_process()
    assert environment.stdout_closed == ("stdout" in gone)
    made = make_consoles(environment)
    made.out.print("result")
    made.err.print("error")
    for name, said in (("stdout", b"result\n"), ("stderr", b"error\n")):
        if name not in gone:
            assert streams[name].written() == said
        else:
            getattr(environment, name).close()


SAY_WHERE = """
from attnviz.console import Environment, make_consoles
environment = Environment.of_process()
consoles = make_consoles(environment)
consoles.err.print("an error")
consoles.out.print(f"closed: {environment.stdout_closed}")
environment.stdout.flush()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize(
    ("closing", "out", "err"),
    [
        ("", "closed: False\n", "an error\n"),
        (">&-", "", "an error\n"),
        ("2>&-", "closed: False\n", ""),  # and no error on stdout
        (">&- 2>&-", "", ""),
    ],
)
def test_streams_that_a_shell_closed_are_no_crash(closing: str, out: str, err: str) -> None:
    command = f'exec "$0" -c "$1" {closing}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, SAY_WHERE], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)


KITTY, XTERM = {"TERM": "xterm-kitty"}, {"TERM": "xterm-256color"}
INHERITED = {**XTERM, "KITTY_WINDOW_ID": "1"}


@pytest.mark.parametrize(
    ("variables", "graphics"),
    [
        ({}, None),
        (XTERM, None),
        (KITTY, "kitty"),
        (INHERITED, "kitty"),  # a kitty whose TERM was set to a common one
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({**XTERM, "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({**XTERM, "TERM_PROGRAM": "WezTerm"}, "sixel"),
        ({**XTERM, "KONSOLE_VERSION": "220400"}, "kitty"),
        ({**XTERM, "KONSOLE_VERSION": "211203"}, None),
        ({**XTERM, "KONSOLE_VERSION": "new"}, None),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "foot-extra"}, "sixel"),
        ({"TERM": "mlterm-256color"}, "sixel"),
        ({"TERM": "yaft-256color"}, "sixel"),
        ({"TERM": "xterm-sixel"}, "sixel"),
        ({"TERM": "contour"}, "sixel"),
        ({"TERM": "xterm", "TERM_PROGRAM": "mintty"}, "sixel"),
        # started from a kitty, whose variable they inherit
        ({**INHERITED, "TERM": "foot"}, "sixel"),
        ({**INHERITED, "TERM_PROGRAM": "vscode"}, None),
        ({**INHERITED, "XTERM_VERSION": "XTerm(390)"}, None),
        ({**INHERITED, "VTE_VERSION": "7600"}, None),
        # a terminal within a terminal
        ({**KITTY, "TMUX": "/run/tmux,1,0"}, None),
        ({**KITTY, "STY": "1.pts-0"}, None),
        ({**KITTY, "TERM": "screen-256color"}, None),
        ({**INHERITED, "TERM": "tmux-256color"}, None),
        ({**KITTY, "NVIM": "/run/nvim.0"}, None),
    ],
)
def test_graphics_are_those_that_the_variables_of_a_terminal_name(
    variables: dict[str, str], graphics: Graphics | None
) -> None:
    assert graphics_of(Environment(Stream(), Stream(), variables)) == graphics
    assert graphics_of(Environment(Stream(terminal=False), Stream(), variables)) is None


def test_a_display_without_colour_has_no_graphics() -> None:
    for color, graphics in (("auto", "kitty"), ("never", None)):
        made = consoles(KITTY, color=color)  # type: ignore[arg-type]
        environment = Environment(Stream(), Stream(), KITTY, cell=9)
        display = display_of(made.out, environment=environment)
        assert (display.graphics, display.cell) == (graphics, 9)
        assert display_of(made.out) == replace(display, graphics=None, cell=10)
