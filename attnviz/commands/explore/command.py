"""`attnviz explore`: a text's attention in a terminal app."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnviz.commands.explore.scene import Opened, Runs
from attnviz.console import Display, display_of
from attnviz.errors import UsageError, needing, option
from attnviz.inputs.given import given_of
from attnviz.kit import options as g
from attnviz.kit.lines import text_or_capture
from attnviz.kit.option import command
from attnviz.kit.session import Session, as_flag
from attnviz.records.capture import Capture
from attnviz.records.rests import with_rests

if TYPE_CHECKING:
    from attnviz.commands.explore.app import ExploreApp

EXAMPLES = """
attnviz explore
attnviz explore "a fluffy blue creature roamed the verdant forest"
attnviz explore --model gpt2 --file sample:mystery
attnviz explore "what is left of the circle?" --image sample:shapes-1 -m shapes
attnviz explore capture.npz
"""
SHORT_HELP = "file image model target kind"


@command
def explore(
    session: Session,
    *,
    text: g.TextIn,
    image: Annotated[
        list[Path] | None,
        g.text_option(
            "--image", metavar="FILE", help="An image to read with the text. Repeatable."
        ),
    ] = None,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    target: g.TargetText = None,
    kind: g.WhichKind = None,
    causal: g.MaskLater = False,
    color: g.Color,
) -> None:
    """Explore a text's attention in a terminal app, with keyboard and mouse.

    Type a text and its patterns follow; ? lists all keys, among them those that save a
    picture or a page. It needs the extra tui; without it, it says how to install that.
    """
    display = _check_terminal(session)
    explore_app = _textual(display, session)
    given: str | Capture = ""
    if text != g.TextIn() or not session.stdin.is_terminal:
        given = text_or_capture(session, text)
    if isinstance(given, Capture):
        opened = _of_capture(given, image)
    else:
        loaded = session.load(g.source_of(session, model, run, kind, causal=causal))
        options = replace(tokens.options(run, target), given=given_of(image))
        opened = Opened(given, Runs(loaded, options))
    if not session.stdin.is_terminal:
        _take_keys_from_the_terminal(session)
    app = explore_app(opened, display, Path.cwd(), as_flag)
    _run(app)
    for note in app.saved:
        session.note(note)
    if app.failure or app.not_saved:
        raise app.failure or app.not_saved  # type: ignore[misc]


def _of_capture(given: Capture, image: list[Path] | None) -> Opened:
    if given.signed:
        wrong = f"this capture holds {given.values}, not weights"
        raise UsageError(wrong, "show it with attnviz show")
    if image:
        raise UsageError("a saved capture is not run again", f"leave {option('image')} out")
    return Opened(capture=with_rests(given))


def _check_terminal(session: Session) -> Display:
    """The terminal's display; the app draws on stderr, so that stdout may be a pipe."""
    console, instead = session.consoles.err, "attnviz show prints to any place"
    if not session.environment.stderr.isatty():
        raise UsageError("explore draws on a terminal, but standard error is not one", instead)
    if session.environment.variables.get("TERM", "dumb").lower() in ("", "dumb", "unknown"):
        raise UsageError("this terminal (TERM) cannot move its cursor", instead)
    display = display_of(console)
    if not display.unicode:
        raise UsageError(
            f"this terminal's encoding ({console.encoding}) has no lines and bars",
            "set LANG=C.UTF-8, or use attnviz show",
        )
    return display


def _textual(display: Display, session: Session) -> type["ExploreApp"]:
    """The app, for a terminal of these colours: Textual reads them from the environment."""
    system = session.consoles.err.color_system
    os.environ["TEXTUAL_COLOR_SYSTEM"] = system or "standard"
    os.environ.pop("NO_COLOR", None)
    if not display.color:
        os.environ["NO_COLOR"] = "1"
    with needing("the terminal app needs textual", "tui", "textual"):
        from attnviz.commands.explore.app import ExploreApp
    return ExploreApp


def _take_keys_from_the_terminal(session: Session) -> None:
    """Standard input was the text: keys come from the terminal itself."""
    if session.stdin.stream is None:
        raise UsageError("explore reads keys from standard input, which is closed", "leave <&- out")
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        raise UsageError("there is no terminal for the keys", "run it in one") from None
    os.dup2(terminal, 0)
    os.close(terminal)


def _run(app: "ExploreApp") -> None:
    """Run the app in the size of the terminal that it draws on, be stdout what it may."""
    stdout = sys.__stdout__
    sys.__stdout__ = sys.__stderr__  # type: ignore[misc]  # where Textual asks for the size
    try:
        app.run()
    finally:
        sys.__stdout__ = stdout  # type: ignore[misc]
