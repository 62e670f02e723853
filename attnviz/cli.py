"""The list of commands, and the one place where an error becomes an exit code."""

import contextlib
import importlib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import cache
from logging import LogRecord, getLogger
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperOption

from attnviz.draw.glossary import find_term
from attnviz.errors import (
    AttnvizError,
    ExitStatus,
    ModelError,
    OutputError,
    UsageError,
    ended,
    nearest,
    option,
    series,
    spelled,
)
from attnviz.kit.completion import InstallCompletion, ShowCompletion, set_up, with_shell
from attnviz.kit.described import described, options_of
from attnviz.kit.help import (
    AS_JSON,
    HelpedCommand,
    HelpedGroup,
    help_alone,
    print_json,
    split_format,
)
from attnviz.kit.session import Session, as_flag, bare, process_session, read_configuration
from attnviz.kit.write import FORMATS, as_stdout_error

if TYPE_CHECKING:
    from attnviz.plugins import Plugin

NO_MEMORY = (
    "there is not enough memory for this; close other programs, raise the limit (ulimit -v), or "
    "use a smaller model or a shorter text."
)
_REFUSED = re.compile(r"can't allocate memory|cannot allocate memory|failed to map segment", re.I)

COMMANDS: Mapping[str, str] = {
    "show": "Show which tokens attend to which.",
    "explain": "Write out one head's calculation for one query, step by step, in numbers.",
    "why": "Take a head's score apart: what made this query attend to this key.",
    "heads": "Score every head on a text or on the standard probe, and name its role.",
    "scan": "Measure every head over a corpus, and keep examples of what it attends to.",
    "atlas": "Show what a scan found: every head's scores, the means over documents or tokens.",
    "predict": "Show the most likely next tokens, with their probabilities.",
    "generate": "Continue a text, and show which tokens each new token attended to.",
    "report": "Show how well many answers are grounded, and which of them to read first.",
    "ablate": "Ablate heads, MLPs or layers and measure the effect on predictions.",
    "patch": "Replace activations of a run with those from another text (activation patching).",
    "circuit": "Replace everything outside of a circuit: is it faithful, complete and minimal?",
    "align": "Find the seconds of a sound in which each word of its text is spoken.",
    "compare": "Compare what a word attends to in several texts, or two models on one text.",
    "explore": "Explore a text's attention in a terminal app, with keyboard and mouse.",
    "serve": "Serve models on this computer: a live page, and commands as JSON.",
    "mcp": "Offer the commands as tools to an agent, by the Model Context Protocol.",
    "tokens": "Show how a model splits a text: each token's index, id, text and characters.",
    "train": "Train a from-scratch model on your own text, on this computer.",
    "models": "List the available models, or show one model's card: named heads and figures.",
    "params": "Count a model's parameters: per matrix, per head, per layer and in total.",
    "schema": "Print the JSON Schema of what a command writes.",
    "config": "Show your own defaults of options, and the file that sets them.",
    "help": "Show the help of a command, or say what a term such as query or logit means.",
}
"""Each command, a function in a module of its name, and the first line of its help."""
GONE = dict.fromkeys(
    ("attnviz atlas --like", "attnviz atlas --pair", "attnviz atlas --cluster"),
    'docs/scan.md, "Heads that are alike", shows how to do this with pandas',
)
"""Removed options, and their replacements."""


@cache
def plugged_in() -> "Mapping[str, Plugin]":
    """The commands of other packages; attnviz's own are found without their metadata."""
    from attnviz.plugins import found

    return found("commands", COMMANDS)


def _is_command(name: str) -> bool:
    return name in COMMANDS or name in plugged_in()


class Commands(HelpedGroup):
    """The commands, each imported when it is called; listing them imports none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; `help show` is `show --help`, and `version` is `--version`."""
        typed = not ctx.resilient_parsing  # completion also parses an unfinished `help`
        plain, form = split_format(args)
        if typed and plain[:1] == ["help"] and any(map(_is_command, plain[1:2])):
            if find_term(plain[1]) and isinstance(ctx.obj, Session):
                ctx.obj.note(f"attnviz help --term {plain[1]} gives the meaning of the word.")
            args = [*plain[1:2], "--help", *form]
        elif args[:1] == ["version"]:
            args = ["--version", *args[1:]]
        return super().parse_args(ctx, with_shell(help_alone(self, ctx, args)))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; as JSON, that of every command."""
        if not ctx.meta.get(AS_JSON):
            super().format_help(ctx, formatter)
            return
        print_json(ctx, self.whole(ctx))

    def whole(self, ctx: Any) -> dict[str, Any]:
        """The help of every command, as data."""
        contexts = [typer.Context(made, ctx, name) for name, made in self.working()]
        return {
            "help": self.help,
            "options": options_of(self, ctx),
            "exit_codes": [{"code": int(each), "meaning": each.meaning} for each in ExitStatus],
            "commands": [described(each.command, each) for each in contexts],
        }

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands; those of other packages are put into the list when asked."""
        for name, each in plugged_in().items():
            summary = f"{each.summary} ({each.package} {each.version})".lstrip()
            self.commands.setdefault(name, HelpedCommand(name, help=summary))
        return [*super().list_commands(ctx)]

    def working(self) -> Iterator[tuple[str, Any]]:
        """Every command that can be imported."""
        from attnviz.plugins import working

        yield from ((name, command(name)) for name in COMMANDS)
        for each, made in working(plugged_in().values(), lambda plugin: command(plugin.name)):
            yield each.name, made

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and _is_command(args[0]):
            made, session = command(args[0]), ctx.find_root().obj
            known = isinstance(session, Session)
            made.context_settings["default_map"] = _configured(session, made) if known else {}
            return args[0], made, args[1:]
        self.list_commands(ctx)  # which a misspelled name is compared with
        return super().resolve_command(ctx, args)


def _configured(session: Session, made: Any) -> dict[str, Any]:
    """The user's own defaults for a command; an error in them is raised when it begins."""
    try:
        session.configuration = read_configuration(session.environment.variables)
        if not session.configuration.values:
            return {}
        from attnviz.kit.options import shared_keys  # the command has imported it

        session.configuration.check([*COMMANDS, *plugged_in()], shared_keys())
        options = [each for each in made.params if isinstance(each, TyperOption)]
        return session.configuration.defaults(made.name, options)
    except UsageError as error:
        session.misconfigured = error
        return {}


@cache
def command(name: str) -> Any:
    """A whole command of the list; it is made once, as that takes longer than refusing a call.

    Raises:
        PluginError: it is another package's, and does not work.
    """
    if name not in COMMANDS:
        plugin = plugged_in()[name]
        with plugin.working("is not a command"):
            return _made_of(plugin.load(), name)
    module = importlib.import_module(f"attnviz.commands.{name}")
    if hasattr(module, "__path__"):  # a folder
        module = importlib.import_module(f"attnviz.commands.{name}.command")
    return _made_of(module, name)


def _made_of(module: Any, name: str) -> Any:
    """The command of a module, from its function, `EXAMPLES` and `SHORT_HELP`."""
    alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
    epilog = "\n\n".join(["Examples", *module.EXAMPLES.strip().splitlines()])
    alone.command(name, cls=HelpedCommand, epilog=epilog)(
        getattr(module, "command_line", None) or getattr(module, name)
    )
    made: Any = typer.main.get_command(alone)
    made.common = module.SHORT_HELP.split()
    made.exclusions = [*made.callback.exclusions, *getattr(module, "EXCLUSIONS", ())]
    return made


set_up()

app = typer.Typer(
    name="attnviz",
    cls=Commands,
    add_completion=False,
    help="See which tokens attend to which.\n\n"
    "attnviz --help -f json describes every command for a program.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _listed() -> None:
    """The placeholder in the list for a command that is not imported."""


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)


def _print_version(value: bool) -> None:
    if value:
        import importlib.metadata  # takes a moment

        typer.echo(f"attnviz {importlib.metadata.version('attnviz')}")
        raise typer.Exit


@app.callback(epilog='Try first\n\nattnviz show "a fluffy blue creature roamed the verdant forest"')
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    install: InstallCompletion = None,
    show: ShowCompletion = None,
) -> None:
    """See which tokens attend to which, from the command line."""


_program = cache(lambda: typer.main.get_command(app))


def main(arguments: Sequence[str], session: Session) -> ExitStatus:
    """Run the command line; every error ends here, as one sentence on stderr."""
    loggers, kept = [getLogger("attnviz.plugins"), getLogger("attnviz.notes")], list[LogRecord]()
    for logger in loggers:
        logger.addFilter(kept.append)  # type: ignore[arg-type]  # a filter that drops every record
    try:
        return _run(arguments, session)
    finally:  # when it is known whether notes are wanted
        for logger in loggers:
            logger.removeFilter(kept.append)  # type: ignore[arg-type]
        if "_ATTNVIZ_COMPLETE" not in session.environment.variables:
            for message in dict.fromkeys(record.getMessage() for record in kept):
                session.note(message)


def _run(arguments: Sequence[str], session: Session) -> ExitStatus:
    session.typed = shlex.join(["attnviz", *arguments])
    try:
        with as_stdout_error():  # of typer's own output: help and version
            returned = copy_context().run(  # context variables that a command sets end with it
                _program().main,
                list(arguments) or ["--help"],
                prog_name="attnviz",
                standalone_mode=False,
                obj=session,
            )
            session.environment.stdout.flush()
    except AttnvizError as error:
        about = error.about or ("model" if isinstance(error, ModelError) else None)
        told = error.spelled(as_flag) + session.where_set(about)
        return _ended(session, told, error.status)
    except typer.TyperException as error:
        return _ended(session, _usage(session, error), ExitStatus.USAGE)
    except BrokenPipeError:
        return _closed(session)
    except SystemExit as ended:  # typer's own, for a closed pipe (with 1) or a completion
        if isinstance(ended.__context__, BrokenPipeError):
            return _closed(session)
        return ExitStatus(ended.code) if isinstance(ended.code, int) else ExitStatus.OK
    except Exception as error:
        if isinstance(error, MemoryError) or _REFUSED.search(str(error)):
            return _ended(session, NO_MEMORY, ExitStatus.MODEL)
        what = f"{type(error).__name__}: {error}".rstrip(".")
        hint = f"please report it{_at_issues()} with the output of the same command and --debug"
        return _ended(session, f"this is a bug ({what}); {hint}.", ExitStatus.BUG)
    if returned == ExitStatus.INTERRUPTED:  # typer returns what it raised Exit with
        return _ended(session, "interrupted", ExitStatus.INTERRUPTED)
    return ExitStatus(returned) if isinstance(returned, int) else session.status


def _at_issues() -> str:
    """The address for bug reports, if the installed package has one (`[project.urls]`)."""
    from importlib import metadata

    with contextlib.suppress(metadata.PackageNotFoundError):
        for link in metadata.metadata("attnviz").get_all("Project-URL", []):
            name, _, address = link.partition(", ")
            if name == "Issues":
                return f" at {address}"
    return ""


def _closed(session: Session) -> ExitStatus:
    """End after a pipe closed early, which is not an error; a broken limit still counts."""
    return ExitStatus.BELOW if session.status == ExitStatus.BELOW else ExitStatus.OK


def _ended(session: Session, message: str, status: ExitStatus) -> ExitStatus:
    if session.debug:
        with contextlib.suppress(OSError, ValueError):
            session.environment.stderr.write(traceback.format_exc())
    session.complain(message)
    return status


def _usage(session: Session, error: typer.TyperException) -> str:
    """Typer's own usage errors, in the form of all others."""
    context = session.context = getattr(error, "ctx", None) or session.context
    command = context.command_path if context is not None else "attnviz"
    wrong = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    hint, name = f"see {command} --help", str(getattr(error, "option_name", ""))
    every: Any = context.command.params if context else ()
    known = {flag: each for each in every for flag in (*each.opts, *each.secondary_opts)}
    if "unexpected extra argument" in wrong:
        wrong = re.sub(r"Got (.*)\(s\) \((.*)\)", r"\1: \2", wrong)
        source = (
            f"give the source as {option('source', 'TEXT')}, " if command.endswith("patch") else ""
        )
        hint = spelled(f"{source}put the text in quotes, or {hint}", as_flag)
    elif gone := GONE.get(f"{command} {name}"):
        wrong, hint = f"{name} was removed", gone
    elif "No such option" in wrong:
        wrong, hint = f"there is no option {name}", _instead_of(name, known, command) or hint
    elif "requires an argument" in wrong and name in known:
        words = ", ".join(map(str, known[name].type_descriptor.choices or ()))
        hint = f"give one of {words}" if words else f"give {name} {known[name].metavar}"
        wrong = f"{name} has no value"
    elif "No such command" in wrong:
        wrong, _, meant = wrong.partition(". Did you mean ")
        hint = (
            f"did you mean {series(meant.split(', '), 'or')}"
            if meant
            else f'attnviz show "a text" shows a text, or {hint}'
        )
    return f"{wrong[:1].lower()}{wrong[1:]}; {ended(hint)}"


def _instead_of(name: str, known: Mapping[str, Any], command: str) -> str:
    """A hint at the option that an unknown one may mean."""
    word = "text" if name in ("--prompt", "--input") else bare(name)
    if " " in name or not name.startswith("--"):
        return f"put -- before a text that begins with a dash, or see {command} --help"
    if word in FORMATS and "--format" in known:
        return f"give {as_flag('format', word)}"
    if given := known.get(word) or known.get(f"{word}s"):  # an argument, which has no dashes
        return f"{given.metavar} is given without an option: {command} {given.metavar}"
    return nearest(word, map(bare, known)).replace("mean ", "mean --")


def run() -> NoReturn:
    """Run this process's command line, and end the process."""
    session = process_session()
    if session.environment.stdout_closed:
        closed = OutputError("standard output is closed", "send it somewhere")
        sys.exit(_ended(session, str(closed), closed.status))
    status = main(sys.argv[1:], session)
    # Output that cannot be written (`| head -1`, a full disk) would fail again when Python flushes
    # at its exit, with another status.
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed from the start
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)
