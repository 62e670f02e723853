"""The list of commands, and the one place where an error becomes an exit code."""

import contextlib
import functools
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer

from attnviz.commands import models, show, tokens
from attnviz.commands.session import Session, process_session
from attnviz.errors import AttnvizError, ExitStatus

ISSUES = "https://github.com/attnviz/attnviz/issues"

app = typer.Typer(
    name="attnviz",
    help="See which tokens attend to which.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _pipe_may_close(command: Callable[..., None]) -> Callable[..., None]:
    """End a command quietly where the reader of its output has gone (`| head -1`).

    Typer would turn that into exit code 1 before `main` sees it.
    """

    @functools.wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except BrokenPipeError:
            raise typer.Exit(ExitStatus.OK) from None

    return wrapped


for _module, _command in ((show, show.show), (tokens, tokens.tokens), (models, models.models)):
    app.command(epilog=_module.EPILOG)(_pipe_may_close(_command))


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"attnviz {importlib.metadata.version('attnviz')}")
        raise typer.Exit


@app.callback(
    epilog='Try first: attnviz show "a fluffy blue creature roamed the verdant forest"',
)
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """See which tokens attend to which, from the command line."""


def main(arguments: Sequence[str], session: Session) -> ExitStatus:
    """Run the command line; every error ends here, as one sentence on stderr."""
    try:
        returned = typer.main.get_command(app).main(
            list(arguments) or ["--help"], prog_name="attnviz", standalone_mode=False, obj=session
        )
        session.environment.stdout.flush()
    except AttnvizError as error:
        return _ended(session, str(error), error.status)
    except typer.TyperException as error:
        return _ended(session, _usage(error), ExitStatus.USAGE)
    except BrokenPipeError:
        return ExitStatus.OK
    except Exception as error:
        what = f"{type(error).__name__}: {error}".rstrip(".")
        hint = f"please report it at {ISSUES} with the output of the same command and --debug"
        return _ended(session, f"this is a bug ({what}); {hint}.", ExitStatus.BUG)
    if returned == ExitStatus.INTERRUPTED:  # typer returns what it raised Exit with
        return _ended(session, "interrupted", ExitStatus.INTERRUPTED)
    return ExitStatus(returned) if isinstance(returned, int) else session.status


def _ended(session: Session, message: str, status: ExitStatus) -> ExitStatus:
    if session.debug:
        session.environment.stderr.write(traceback.format_exc())
    session.complain(message)
    return status


def _usage(error: typer.TyperException) -> str:
    """Typer's own usage errors, in the form of all others."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "attnviz"
    wrong = " ".join(error.format_message().split()).rstrip(".")
    return f"{wrong[:1].lower()}{wrong[1:]}; see {command} --help."


def run() -> NoReturn:
    """The `attnviz` program."""
    status = main(sys.argv[1:], process_session())
    # A reader that has gone (`| head -1`) is met again when Python flushes at its exit.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
