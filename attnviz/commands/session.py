"""What a command is given besides its options: streams, consoles, and where errors go."""

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from attnviz.commands.flags import as_flag
from attnviz.console import Consoles, Environment, make_consoles
from attnviz.data.tokens import readable
from attnviz.errors import ExitStatus, spelled
from attnviz.inputs.text import Stdin
from attnviz.writers.stream import as_output_error


@dataclass
class Session:
    """One run of the program.

    `debug` and `quiet` are set by their options; `status` is what the program ends
    with where it comes to its end.
    """

    environment: Environment
    stdin: Stdin
    debug: bool = False
    quiet: bool = False
    status: ExitStatus = ExitStatus.OK
    consoles: Consoles = field(init=False)

    def __post_init__(self) -> None:
        self.consoles = make_consoles(self.environment)

    def show(self, parts: Iterable[RenderableType]) -> None:
        """Print to stdout, as each part comes.

        Raises:
            OutputError: stdout cannot take it.
            BrokenPipeError: its reader has gone; no error to a user.
        """
        for part in parts:
            with as_output_error():
                self.consoles.out.print(part)
                self.environment.stdout.flush()

    def note(self, message: str) -> None:
        """One line on stderr about something that a user may want to know."""
        if not self.quiet:
            self.consoles.err.print(
                Text(f"note: {readable(spelled(message, as_flag))}"), soft_wrap=True
            )

    def complain(self, message: str) -> None:
        """One line on stderr about something that went wrong."""
        self.consoles.err.print(Text(f"attnviz: {readable(message)}"), soft_wrap=True)


def plain_text(parts: Iterable[RenderableType], width: int) -> str:
    """What a terminal without colours would show, for a file."""
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as shown:
        for part in parts:
            console.print(part)
    return shown.get()


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
