"""`attnviz mcp`: the commands as tools of an agent, by the Model Context Protocol.

    message ─► arguments ─► a thread, one run at a time ─► text, JSON, picture

The event loop only reads and writes messages. Threads are daemons, so that neither a run nor a
line that never comes keeps a program alive that was told to end.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar

from attnviz.errors import AttnvizError, UsageError, missing, nearest, option, readable, shortened
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.calling import Offered, json_of, offered
from attnviz.kit.option import command
from attnviz.kit.session import Session
from attnviz.kit.values import Loaded, model_of
from attnviz.models.placement import BUILTIN

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ContentBlock

T = TypeVar("T")
EXAMPLES = """
attnviz mcp
attnviz mcp --model gpt2 --model builtin --root ~/texts
claude mcp add attnviz -- attnviz mcp
"""
SHORT_HELP = "model root quiet"


@command
def mcp(
    session: Session,
    *,
    model: Annotated[
        list[str] | None,
        g.model_option(
            "--model",
            "-m",
            metavar="NAME",
            autocompletion=completion.models,
            help="A model that tools may run, the first by default. Repeatable.",
            show_default=BUILTIN,
        ),
    ] = None,
    run: g.ModelRun,
    root: Annotated[
        Path | None,
        g.text_option(
            "--root",
            metavar="FOLDER",
            help="Read only files in this folder.",
            show_default="the current one",
        ),
    ] = None,
) -> None:
    """Offer the commands as tools to an agent, by the Model Context Protocol.

    An agent starts this program and talks to it on standard input and output; docs/agents.md says
    how to add it. It needs the extra mcp; without it, it says how to install that.
    """
    folder = Path.cwd() if root is None else root
    if not folder.is_dir():
        raise UsageError(f"{option('root', repr(str(folder)))} is not a folder", "give a folder")
    if session.stdin.stream is None:
        raise UsageError("an agent's messages come on standard input, which is closed", "open it")
    if session.stdin.is_terminal:
        session.note("an agent starts this program; docs/agents.md says how to add it")
    names = session.root.command.list_commands(session.root)
    found = offered(names)

    def load(name: str) -> Loaded:
        return model_of(session, g.WhichModel(name), run)

    drawn = [name for name in found if _draws(session, name)]
    tools = Tools(found, drawn, LazyModels(cache(load), model or [BUILTIN]), folder)
    asyncio.run(_serve(server_of(tools), session.stdin.stream))


def _draws(session: Session, name: str) -> bool:
    """Whether a command draws pictures."""
    _, typed, _ = session.root.command.resolve_command(session.root, [name])
    formats = next(each for each in typed.params if each.name == "format")
    return "png" in [each.value for each in formats.shell_complete(session.root, "")]


@dataclass(frozen=True)
class LazyModels(Mapping[str, Loaded]):
    """Models by name, each loaded when it is first used."""

    load: Callable[[str], Loaded]
    names: Sequence[str]

    def __getitem__(self, name: str) -> Loaded:
        if name not in self.names:
            raise KeyError(name)
        return self.load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


# A call, in a thread.


class GaveUp(Exception):
    """A run stopped, because nobody waits for its result any more."""


PICTURE = {
    "type": "boolean",
    "default": False,
    "description": "Also return the picture that the command draws.",
}
LONGEST = 100_000
"""The most characters of JSON, which an agent has to read."""


@dataclass(frozen=True)
class Tools:
    """The functions that are offered, those that draw, and what they may use."""

    offered: Mapping[str, Offered]
    drawn: Collection[str]
    models: Mapping[str, Loaded]
    root: Path
    _one: Lock = field(default_factory=Lock)

    def schema(self, name: str) -> dict[str, Any]:
        """The schema of a tool's arguments."""
        schema = self.offered[name].schema(files=True)
        schema["properties"] |= {"picture": PICTURE} if name in self.drawn else {}
        return schema

    def answer(
        self, name: str, arguments: dict[str, Any], tell: Callable[[int, int], None]
    ) -> "CallToolResult":
        """The result of a call, or the sentence that says what was wrong.

        `tell`: given the finished runs and all of them; it raises GaveUp to stop.
        """
        from mcp.types import CallToolResult, TextContent

        from attnviz.kit.intervene import watched

        while not self._one.acquire(timeout=0.1):  # models allow one run at a time
            tell(0, 0)
        try:
            with watched(tell):
                return CallToolResult(content=self._content(name, arguments))
        except GaveUp:
            raise
        except AttnvizError as error:
            wrong = str(error)
        except MemoryError:
            wrong = "there is not enough memory for this; give a shorter text."
        except Exception as error:
            wrong = f"this is a bug ({type(error).__name__}: {error}); please report it."
        finally:
            self._one.release()
        told = TextContent(text=readable(shortened(wrong)))
        return CallToolResult(content=[told], is_error=True)

    def _content(self, name: str, arguments: dict[str, Any]) -> "list[ContentBlock]":
        """The headline with its notes, the JSON, and perhaps the picture."""
        from mcp.types import ImageContent, TextContent

        if name not in self.offered:
            hint = nearest(name, self.offered) or f"give one of {', '.join(self.offered)}"
            raise UsageError(f"there is no tool {name!r}", hint)
        picture = name in self.drawn and arguments.pop("picture", False)
        if not isinstance(picture, bool):
            raise UsageError(f"{option('picture')} is not true or false", "give one of them")
        result = self.offered[name].call(arguments, self.models, self.root)
        data, told = json_of(result), str(result).strip()
        if len(data) > LONGEST:
            size = f"The JSON has {len(data):,} characters, and is left out: ask for less of it."
            blocks: list[ContentBlock] = [TextContent(text=f"{told}\n\n{size}")]
        else:
            blocks = [TextContent(text=told.partition("\n\n")[0]), TextContent(text=data)]
        blocks += [TextContent(text=f"note: {note}") for note in result.notes]
        if picture:
            drawn = b64encode(b"".join(result.pieces("png"))).decode()
            blocks.append(ImageContent(data=drawn, mime_type="image/png"))
        return blocks


# The protocol.

ABOUT = """\
Which token attends to which in a transformer, what that does, and what its heads are: computed on
this computer. Models: {models}. Layers, heads and tokens are counted from 0; L3H2 is head 2 of
layer 3. A weight is not importance: ablate and patch measure that. An error says what to give
instead."""


def server_of(tools: Tools) -> "Server":
    """The server of these tools.

    Raises:
        UsageError: the package mcp is missing.
    """
    from importlib.metadata import version

    try:
        from mcp import types
        from mcp.server.lowlevel import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise missing("tools for agents need mcp", "mcp") from None

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=each.summary,
                    input_schema=tools.schema(name),
                    annotations=reads,
                )
                for name, each in tools.offered.items()
            ]
        )

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        loop, gone = asyncio.get_running_loop(), Event()

        def tell(done: int, total: int) -> None:
            if gone.is_set():
                raise GaveUp
            if total:
                telling = context.session.report_progress(done, total)
                asyncio.run_coroutine_threadsafe(telling, loop).result()

        arguments = dict(params.arguments or {})
        try:
            return await _in_thread(lambda: tools.answer(params.name, arguments, tell))
        finally:
            gone.set()  # it was cancelled, or there is nothing to stop any more

    about = ABOUT.format(models=", ".join(tools.models))
    own = version("attnviz")
    return Server(
        "attnviz", version=own, instructions=about, on_list_tools=listed, on_call_tool=called
    )


async def _serve(server: "Server", stream: BinaryIO) -> None:
    from mcp.server.stdio import stdio_server

    async def lines() -> AsyncIterator[str]:
        while line := await _in_thread(stream.readline):
            yield line.decode("utf-8", "replace")

    messages: Any = lines()
    async with stdio_server(stdin=messages) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _in_thread(function: Callable[[], T]) -> T:
    """What a function returns, from a thread that may outlive the wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            how(value)

    def work() -> None:
        how: tuple[Callable[[Any], None], Any]
        try:
            how = future.set_result, function()
        except BaseException as error:
            how = future.set_exception, error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, how[0], how[1])

    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    return await future
