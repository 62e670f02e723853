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
from functools import cache, partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar

from attnviz.errors import UsageError, nearest, needing, option
from attnviz.kit import options as g
from attnviz.kit.calling import Offered, json_of, offered, sentence_of
from attnviz.kit.intervene import GaveWay, watched
from attnviz.kit.option import command
from attnviz.kit.session import Session
from attnviz.kit.values import Loaded, model_of
from attnviz.models.placement import BUILTIN

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult

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
    model: g.SeveralModels = None,
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
    if root is not None and not root.is_dir():
        raise UsageError(f"{option('root', repr(str(root)))} is not a folder", "give a folder")
    if session.stdin.stream is None:
        raise UsageError("standard input, from which messages come, is closed", "leave <&- out")
    if session.stdin.is_terminal:
        session.note("an agent starts this program; docs/agents.md says how to add it")
    found = offered(session.root.command.list_commands(session.root))
    load = cache(lambda name: model_of(session, g.WhichModel(name), run))
    drawn = [name for name in found if _draws(session, name)]
    tools = Tools(found, drawn, LazyModels(load, model or [BUILTIN]), root or Path())
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


PICTURE = {
    "type": "boolean",
    "default": False,
    "description": "Also return the picture that the command draws.",
}
LONGEST = 100_000
"""The most characters of JSON that an agent is given to read."""


@dataclass(frozen=True)
class Tools:
    """The functions that are offered, those that draw, and the models and files that they use."""

    offered: Mapping[str, Offered]
    drawn: Collection[str]
    models: Mapping[str, Loaded]
    root: Path
    _one: Lock = field(default_factory=Lock)

    async def listed(self, _context: Any, _params: Any) -> "ListToolsResult":
        """Answer a request for the list of tools."""
        from mcp.types import ListToolsResult, Tool, ToolAnnotations

        reads, tools = ToolAnnotations(read_only_hint=True, open_world_hint=False), []
        for name, each in self.offered.items():
            schema = each.schema(files=True)
            schema["properties"] |= {"picture": PICTURE} if name in self.drawn else {}
            about = each.summary
            tools += [Tool(name=name, description=about, input_schema=schema, annotations=reads)]
        return ListToolsResult(tools=tools)

    async def called(self, context: Any, params: "CallToolRequestParams") -> "CallToolResult":
        """Answer a call; its run ends with it, finished or cancelled."""
        loop, gone = asyncio.get_running_loop(), Event()

        def tell(done: int, total: int) -> None:
            if gone.is_set():
                raise GaveWay
            if total:
                telling = context.session.report_progress(done, total)
                asyncio.run_coroutine_threadsafe(telling, loop).result()

        try:
            return await _in_thread(partial(self._result, params, tell))
        finally:
            gone.set()

    def _result(
        self, params: "CallToolRequestParams", tell: Callable[[int, int], None]
    ) -> "CallToolResult":
        """The result of a call, or the sentence that says what is wrong."""
        from mcp.types import CallToolResult, TextContent

        while not self._one.acquire(timeout=0.1):  # a model runs one text at a time
            tell(0, 0)
        try:
            with watched(tell):
                content = self._content(params.name, {**(params.arguments or {})})
            return CallToolResult(content=content)
        except GaveWay:
            raise
        except Exception as error:
            return CallToolResult(content=[TextContent(text=sentence_of(error))], is_error=True)
        finally:
            self._one.release()

    def _content(self, name: str, arguments: dict[str, Any]) -> "list[ContentBlock]":
        """The headline, the JSON, notes, and perhaps the picture."""
        from mcp.types import ImageContent, TextContent

        if name not in self.offered:
            hint = nearest(name, self.offered) or f"give one of {', '.join(self.offered)}"
            raise UsageError(f"there is no tool {name!r}", hint)
        picture = name in self.drawn and arguments.pop("picture", False)
        if not isinstance(picture, bool):
            raise UsageError(f"{option('picture')} is not a boolean", "give true or false")
        result = self.offered[name].invoke(arguments, self.models, self.root)
        data, shown = json_of(result), str(result).strip()
        texts = [shown.partition("\n\n")[0], data]
        if len(data) > LONGEST:
            instead = f"The JSON of {len(data):,} characters is left out; ask for less of it."
            texts = [shown[:LONGEST], instead]
        texts += [f"note: {note}" for note in result.notes]
        content: list[ContentBlock] = [TextContent(text=text) for text in texts]
        if picture:
            drawn = b64encode(b"".join(result.pieces("png"))).decode()
            content.append(ImageContent(data=drawn, mime_type="image/png"))
        return content


ABOUT = (
    "Which token attends to which in a transformer, and whether it matters, computed on this "
    "computer. Models: {}. Layers, heads and tokens are counted from 0; L3H2 is head 2 of layer 3. "
    "A weight is not importance: ablate and patch measure that. An error says what to give instead."
)


def server_of(tools: Tools) -> "Server":
    """The server of these tools.

    Raises:
        UsageError: the package mcp is missing.
    """
    from importlib.metadata import version

    with needing("tools for agents need mcp", "mcp", "mcp"):
        from mcp.server.lowlevel import Server
    return Server(
        "attnviz",
        version=version("attnviz"),
        instructions=ABOUT.format(", ".join(tools.models)),
        on_list_tools=tools.listed,
        on_call_tool=tools.called,
    )


async def _serve(server: "Server", stream: BinaryIO) -> None:
    """Serve the one agent that writes to this stream, until it closes it."""
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

    def settle(end: Callable[[Any], None], value: object) -> None:
        if not future.done():
            end(value)

    def work() -> None:
        end: Callable[[Any], None] = future.set_result
        try:
            value: object = function()
        except BaseException as error:
            end, value = future.set_exception, error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, end, value)

    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    return await future
