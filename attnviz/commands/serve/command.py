"""`attnviz serve`: models on this computer in a live page, and commands as JSON."""

import asyncio
import re
import secrets
import socket
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Annotated, TypeAlias

from rich.text import Text

from attnviz.errors import UsageError, needing, option
from attnviz.kit import options as g
from attnviz.kit.option import command, feature, panel_option
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, Loaded, loaded, model_of
from attnviz.models.placement import BUILTIN

if TYPE_CHECKING:
    from attnviz.commands.serve.notebook import Live

HERE = "127.0.0.1"
LEAST_TOKEN = 8

SERVER = "The server"
OpenBrowser: TypeAlias = Annotated[
    bool, panel_option(SERVER, "--open", help="Open the page in the browser.")
]
Port: TypeAlias = Annotated[
    int,
    panel_option(SERVER, "--port", metavar="N", min=0, max=65535, help="The port. 0: a free one."),
]
Host: TypeAlias = Annotated[
    str,
    panel_option(
        SERVER,
        "--host",
        metavar="ADDRESS",
        help="The address to listen at. Others may reach any but this computer's own, so that it "
        "needs a --token of yours.",
    ),
]
TokenWord: TypeAlias = Annotated[
    str | None,
    panel_option(
        SERVER,
        "--token",
        metavar="WORD",
        help="The word that every request must have. Without it, a new one is made.",
    ),
]


@feature()
def live(model: AnyModel = BUILTIN) -> "Live":
    """Show a model's live page in a notebook's cell, which the kernel answers.

    >>> attnviz.live("builtin").head  # once its page is shown, the head that is picked there
    ''

    A chosen head and query are its `head` and `query`; `capture` has the patterns of its text. It
    needs the extra notebook.

    Args:
        model: a name as for `load_model`, or a loaded model.
    """
    with needing("a live cell needs anywidget", "notebook", "anywidget", "traitlets"):
        from attnviz.commands.serve.notebook import Live
    return Live(loaded(model))


EXAMPLES = """
attnviz serve --open
attnviz serve -m gpt2 -m distilgpt2 --port 8000
"""
SHORT_HELP = "model open port quiet"


@command
def serve(
    session: Session,
    *,
    model: g.SeveralModels = None,
    revision: g.Revision = None,
    offline: g.Offline = False,
    run: g.ModelRun,
    kind: g.WhichKind = None,
    open: OpenBrowser = False,  # as it is typed
    port: Port = 0,
    host: Host = HERE,
    token: TokenWord = None,
) -> None:
    """Serve models on this computer: a live page, and commands as JSON.

    The page's address, with its token, is printed on standard output; Ctrl-C ends the server.
    POST /v1/COMMAND takes the options of Python as JSON; docs/serve.md has examples.
    """
    _check_host(host, token)
    with needing("the server needs starlette", "serve", "starlette", "uvicorn"):
        from attnviz.commands.serve.answers import answers_of
        from attnviz.commands.serve.app import Server, listen
    listening = _listening(host, port)
    models = dict[str, Loaded]()
    for name in model or [BUILTIN]:
        models[name] = model_of(session, g.WhichModel(name, revision, offline), run, kind)
    root = session.root
    answers = answers_of(models, root.command.list_commands(root))
    answers.page(None)  # so that it is there at once
    server = Server(answers, lambda: root.command.whole(root))
    own = token or secrets.token_urlsafe(16)
    address = f"http://{_shown(host)}:{listening.getsockname()[1]}/?token={own}"
    ready = partial(_announce, session, address, open_it=open)
    app = server.app(own, {host.lower(), "localhost", socket.gethostname().lower()})
    asyncio.run(listen(server, listening, app, ready))


def _announce(session: Session, address: str, *, open_it: bool) -> None:
    session.show([Text(address, no_wrap=True, overflow="ignore")])
    if open_it:
        import webbrowser

        Thread(target=webbrowser.open, args=[address], daemon=True).start()


def _check_host(host: str, token: str | None) -> None:
    if token is not None and not re.fullmatch(rf"[A-Za-z0-9]{{{LEAST_TOKEN},100}}", token):
        wrong = f"{option('token')} is not {LEAST_TOKEN} or more letters and digits"
        raise UsageError(wrong, "give a longer one, or leave it out")
    if host not in (HERE, "localhost") and token is None:
        raise UsageError(
            f"{option('host', host)} may let others on the network in",
            f"give a {option('token')} of your own with it, or leave it out",
        )


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything is loaded."""
    with suppress(OSError, UnicodeError):
        (family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = socket.socket(family)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            found.bind(address)
            return found
        found.close()
        raise UsageError(f"port {port} of {host} is taken or not allowed", "give another --port")
    raise UsageError(f"{option('host', host)} is no address of this computer")


def _shown(host: str) -> str:
    """An address in an URL; of all addresses, that of this computer."""
    host = {"0.0.0.0": HERE, "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host
