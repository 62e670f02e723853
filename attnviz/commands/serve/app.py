"""The server: the page, the runs that it asks for, and every command as JSON."""

import asyncio
import json
import struct
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass, field
from socket import socket
from threading import Event
from typing import Any, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from attnviz.commands.serve.asked import Asked, asked_of, head_in
from attnviz.commands.serve.guard import PATIENCE, Guard, Refused, content_of
from attnviz.commands.serve.page import page_of
from attnviz.commands.serve.runs import Runs, Sent
from attnviz.commands.serve.turns import Served, Turn, sentence_of
from attnviz.errors import AttnvizError, ExitStatus, UsageError
from attnviz.inputs.given import within
from attnviz.kit.calling import Offered, json_of, offered
from attnviz.kit.intervene import watched
from attnviz.kit.values import Loaded
from attnviz.kit.write import encoded

Parts: TypeAlias = Iterator[Sent]
FORMATS = {
    "application/json": "json",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/html": "html",
    "image/png": "png",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "application/x-npz": "npz",
}
"""What a command's result can be, by the `Accept` of a request."""
EVENTS = "text/event-stream"
OPEN_REQUESTS = 64
"""The most connections and requests at once; more are refused with status 503."""
LONGEST_HEAD = 1 << 15
"""The most bytes of a request's head."""
LOOK = 0.2
"""Seconds between two looks whether somebody waits for a result."""


def packed(part: Sent) -> bytes:
    """A part as the page reads it: its length, the facts' length, the facts, and the arrays.

    Each array begins at a multiple of 4 bytes after the facts, as its name, type and size say.
    """
    arrays, forms = [], []
    for name, array in part.arrays.items():
        content = array.tobytes()
        arrays.append(content + bytes(-len(content) % 4))
        forms.append([name, array.dtype.kind + str(array.dtype.itemsize), array.size])
    facts = json.dumps({**part.facts, "arrays": forms}, ensure_ascii=True).encode()
    facts += b" " * (-len(facts) % 4)
    whole = b"".join([struct.pack("<I", len(facts)), facts, *arrays])
    return struct.pack("<I", len(whole)) + whole


def told(done: int, of: int) -> bytes:
    return packed(Sent({"part": "progress", "done": done, "of": of}))


@dataclass(eq=False)
class Server:
    """What the routes share.

    `served`: the models by name; `commands`: what `/v1` offers; `described`: what `GET /v1` says;
    `ending`: set when every run is to give way.
    """

    served: Mapping[str, Served]
    commands: Mapping[str, Offered]
    described: Callable[[], Any]
    ending: Event = field(default_factory=Event)

    def app(self, token: str, hosts: Collection[str]) -> ASGIApp:
        """The whole application."""
        run, head, without = (self._of(each) for each in (_run, _head, _without))
        got = {"/": self._page, "/v1": self._describe}
        posted = {"/run": run, "/head": head, "/without": without, "/v1/{command}": self._call}
        routes = [Route(path, answering(each)) for path, each in got.items()]
        routes += [Route(path, answering(each), methods=["POST"]) for path, each in posted.items()]
        return Guard(Starlette(routes=routes), token, hosts)

    async def _page(self, request: Request) -> Response:
        """The page of a model; the first one where none is named."""
        name, served = self._model(request.query_params.get("model"))
        page, allowed = page_of(served.model, name, [n for n in self.served if n != name])
        return HTMLResponse(page, headers={"content-security-policy": allowed})

    def _model(self, name: object) -> tuple[str, Served]:
        name = next(iter(self.served)) if name is None else name
        if not isinstance(name, str) or name not in self.served:
            raise UsageError("this model is not loaded", f"name one of {', '.join(self.served)}")
        return name, self.served[name]

    def _of(
        self, parts_of: Callable[[Served, Asked, Mapping[str, Any], Turn[bytes]], Parts]
    ) -> Callable[[Request], Any]:
        """A route that answers what a page asks with parts of a run."""

        async def route(request: Request) -> Response:
            content = await content_of(request)
            _, served = self._model(content.get("model"))
            asked, view = asked_of(content), content.get("view", "")
            if not isinstance(view, str) or len(view) > 40:
                raise UsageError("“view” is not a short text", "leave it out")

            def work(turn: Turn[bytes]) -> Iterator[bytes]:
                with within(None), watched(turn):
                    yield from map(packed, parts_of(served, asked, content, turn))

            turn = Turn[bytes](served, view, self.ending, told)
            return StreamingResponse(_frames(turn.parts(work)), media_type="application/x-attnviz")

        return route

    async def _describe(self, request: Request) -> Response:
        described = self.described()
        kept = [each for each in described["commands"] if each["name"] in self.commands]
        arguments = {name: each.schema(files=False) for name, each in self.commands.items()}
        told = {**described, "commands": kept, "models": [*self.served], "arguments": arguments}
        return JSONResponse(told)

    async def _call(self, request: Request) -> Response:
        """A command's result, in the form that the request accepts."""
        content, name = await content_of(request), request.path_params["command"]
        if name not in self.commands:
            raise Refused(404, f"There is no such command; give one of {', '.join(self.commands)}.")
        own, served = self._model(content.get("model"))
        models = {own: served.model, **{each: self.served[each].model for each in self.served}}
        wanted = [each.partition(";")[0].strip() for each in request.headers.get("accept", "").split(",")]
        form = next((FORMATS[each] for each in wanted if each in FORMATS), "json")

        def work(turn: Turn[bytes]) -> Iterator[bytes]:
            def read(token: str) -> None:
                turn()
                if turn.progress:
                    turn.yielded(_event("token", json.dumps({"text": token})))

            with watched(turn, read):
                yield written(self.commands[name].call(content, models, None), form)

        if EVENTS in wanted:
            turn = Turn[bytes](served, "", self.ending, _progress)
            return StreamingResponse(_events(turn.parts(work)), media_type=EVENTS)
        whole = await _whole(request, Turn[bytes](served, "", self.ending).parts(work))
        if whole is None:
            raise Refused(503, "The server ends.")
        return Response(whole, media_type={form: kind for kind, form in FORMATS.items()}[form])


def _run(served: Served, asked: Asked, content: Mapping[str, Any], turn: Turn[bytes]) -> Parts:
    return served.runs.parts(asked, head_in(content.get("head")), turn)


def _head(served: Served, asked: Asked, content: Mapping[str, Any], turn: Turn[bytes]) -> Parts:
    head = head_in(content.get("head"))
    return iter(()) if head is None else served.runs.head(asked, head, turn)


def _without(served: Served, asked: Asked, content: Mapping[str, Any], turn: Turn[bytes]) -> Parts:
    removed = content.get("removed")
    found = [head_in(each) for each in removed] if isinstance(removed, list) else []
    return served.runs.without(asked, [each for each in found if each is not None], turn)


async def _frames(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts; an error is the last of them."""
    try:
        async for part in parts:
            yield part
    except Exception as error:
        yield packed(Sent({"part": "wrong", "wrong": sentence_of(error)}))


def _event(kind: str, content: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in content.splitlines())
    return f"event: {kind}\n{lines}\n".encode()


def _progress(done: int, of: int) -> bytes:
    return _event("progress", json.dumps({"done": done, "of": of}))


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What a command tells, then its result or its error, as server-sent events."""
    try:
        async for part in parts:
            yield part if part.startswith(b"event: ") else _event("result", part.decode())
    except Exception as error:
        yield _event("error", json.dumps({"error": sentence_of(error)}))


async def _whole(request: Request, parts: AsyncGenerator[bytes]) -> bytes | None:
    """The one part, or None from work that gave way, as it does when nobody waits any more."""
    waiting = asyncio.ensure_future(anext(parts, None))
    try:
        while not waiting.done():
            await asyncio.wait([waiting], timeout=LOOK)
            if await request.is_disconnected():
                return None
        return waiting.result()
    finally:
        waiting.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await waiting
        await parts.aclose()


def written(result: Any, form: str) -> bytes:
    """A result in a format, as its command writes it."""
    if form == "json":
        return json_of(result).encode()
    if form == "txt":
        return f"{result}\n".encode(errors="replace")
    return b"".join(encoded(result.pieces(form)))


def answering(route: Callable[[Request], Awaitable[Response]]) -> Any:
    """A route whose errors are answers, each with its sentence."""

    async def answered(request: Request) -> Response:
        try:
            return await route(request)
        except Refused as error:
            return PlainTextResponse(error.why + "\n", error.status)
        except Exception as error:
            code = error.status if isinstance(error, AttnvizError) else ExitStatus.BUG
            status = 500 if code == ExitStatus.BUG else 400
            return JSONResponse({"error": sentence_of(error), "exit_code": int(code)}, status)

    return answered


def server_of(
    models: Mapping[str, Loaded], commands: Iterable[str], described: Callable[[], Any]
) -> Server:
    """The server of loaded models.

    `commands`: all that there are; `described`: gives what `--help -f json` prints.
    """
    served = {name: Served(model, Runs(model)) for name, model in models.items()}
    return Server(served, offered(commands), described)


async def listen(server: Server, at: socket, app: ASGIApp, ready: Callable[[], None]) -> None:
    """Answer requests until a signal ends it; `ready` is called once they are answered."""

    class Ending(uvicorn.Server):
        """Ends all runs with the first signal, and does not raise it again."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            server.ending.set()
            self.should_exit = self.force_exit = True

    config = uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=OPEN_REQUESTS,
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    running = Ending(config)
    serving = asyncio.ensure_future(running.serve([at]))
    while not (running.started or serving.done()):
        await asyncio.sleep(0.01)
    if running.started:
        ready()
    await serving


class Patient(H11Protocol):
    """Closes a connection that has not sent a whole request's head in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None:
            self.transport.close()
