"""The consoles: what width, colour and letters each environment gets."""

import io

import pytest

from attnviz.console import Consoles, Environment, make_consoles
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
    no_color: bool = False,
) -> Consoles:
    environment = Environment(stdout or Stream(), Stream(), variables or {}, columns)
    return make_consoles(environment, width=width, no_color=no_color)


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
    assert made.display.width == made.out.width == width


def test_a_width_under_40_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--width 39 .*give 40 or more"):
        consoles(width=39)
    assert consoles(width=40).display.width == 40


TRUE = {"COLORTERM": "truecolor"}


@pytest.mark.parametrize(
    ("terminal", "variables", "no_color", "system"),
    [
        (True, {}, False, "standard"),
        (True, {"TERM": "xterm-256color"}, False, "256"),
        (True, {"TERM": "xterm-256color", "COLORTERM": "24bit"}, False, "truecolor"),
        (True, {"TERM": "dumb", **TRUE}, False, None),
        (False, TRUE, False, None),
        (False, {"FORCE_COLOR": "1", **TRUE}, False, "truecolor"),
        (False, {"FORCE_COLOR": "3"}, False, "truecolor"),
        (False, {"FORCE_COLOR": "", **TRUE}, False, None),  # empty means that it is not set
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, None),  # no wins over force
        (False, {"FORCE_COLOR": "1"}, True, None),
    ],
)
def test_the_number_of_colours_comes_from_the_environment(
    terminal: bool, variables: dict[str, str], no_color: bool, system: str | None
) -> None:
    made = consoles(variables, stdout=Stream(terminal=terminal), no_color=no_color)
    assert made.out.color_system == system
    assert made.display.color == (system is not None)
    assert made.display.sixteen == (system == "standard")


@pytest.mark.parametrize(
    ("variables", "no_color"), [({"NO_COLOR": "1", **TRUE}, False), (TRUE, True)]
)
def test_no_color_means_that_a_terminal_gets_no_colour(
    variables: dict[str, str], no_color: bool
) -> None:
    stream = Stream()
    made = consoles(variables, stdout=stream, no_color=no_color)
    made.out.print("word", style="red on blue")
    assert not made.display.color
    assert b"31" not in stream.written()


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
    assert not made.display.unicode
    assert stream.written() == b"\\u695a\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_a_stream_that_can_write_every_letter_gets_them(encoding: str) -> None:
    assert consoles(stdout=Stream(encoding=encoding)).display.unicode


def test_a_closed_stream_is_no_terminal() -> None:
    stream = Stream()
    stream.close()
    assert not consoles(TRUE, stdout=stream).display.color
