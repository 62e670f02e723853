"""The server: the page, the runs that it asks for, and commands as JSON."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from socket import socket
from threading import Event
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from attnviz.commands.serve.answers import FORMATS, Answers, told, wrong_part
from attnviz.commands.serve.guard import PATIENCE, Guard, Refused, body_of
from attnviz.commands.serve.jobs import NOBODY, parts_of
from attnviz.errors import AttnvizError, ExitStatus
from attnviz.kit.calling import sentence_of

EVENTS = "text/event-stream"
OPEN_REQUESTS = 64
"""The most connections and requests at once; more are refused with status 503."""
LONGEST_HEAD = 1 << 15
"""The most bytes of a request's head."""
LOOK = 0.2
"""Seconds between two looks whether somebody waits for a result."""


@dataclass(eq=False)
class Server:
    """What the routes share.

    `described`: gives what `--help -f json` prints. `ending`: set when every run is to give way.
    """

    answers: Answers
    described: Callable[[], Any]
    ending: Event = field(default_factory=Event)

    def app(self, token: str, hosts: Collection[str]) -> ASGIApp:
        """The whole application."""
        got = {"/": self._page, "/v1": self._describe}
        posted = dict.fromkeys(("/run", "/rest", "/head", "/without"), self._run)
        posted["/v1/{command}"] = self._call
        routes = [Route(path, answering(each)) for path, each in got.items()]
        routes += [Route(path, answering(each), methods=["POST"]) for path, each in posted.items()]
        return Guard(Starlette(routes=routes), token, hosts)

    async def _page(self, request: Request) -> Response:
        """The page of a model; the first one where none is named."""
        page, allowed = self.answers.page(request.query_params.get("model"))
        return HTMLResponse(page, headers={"content-security-policy": allowed})

    async def _run(self, request: Request) -> Response:
        """The parts of a run, as they come."""
        content, path = await body_of(request), request.url.path.strip("/")
        served, view, work = self.answers.run(path, content)
        frames = _frames(parts_of(served, view, self.ending, work, told))
        return StreamingResponse(frames, media_type="application/x-attnviz")

    async def _describe(self, request: Request) -> Response:
        commands, described = self.answers.commands, self.described()
        kept = [each for each in described["commands"] if each["name"] in commands]
        arguments = {name: each.schema(files=False) for name, each in commands.items()}
        models = [*self.answers.served]
        told = {**described, "commands": kept, "models": models, "arguments": arguments}
        return JSONResponse(told)

    async def _call(self, request: Request) -> Response:
        """A command's result, in the form that the request accepts."""
        content, known = await body_of(request), self.answers
        name, every = request.path_params["command"], ", ".join(known.commands)
        if name not in known.commands:
            raise Refused(404, f"There is no such command; give one of {every}.")
        accepted = request.headers.get("accept", "").split(",")
        wanted = [each.partition(";")[0].strip() for each in accepted]
        kind = next((each for each in wanted if each in FORMATS), "application/json")
        if EVENTS in wanted:
            served, work = known.invoke(name, content, FORMATS[kind], _token)
            events = _events(parts_of(served, NOBODY, self.ending, work, _progress))
            return StreamingResponse(events, media_type=EVENTS)
        served, work = known.invoke(name, content, FORMATS[kind])
        whole = await _whole(request, parts_of(served, NOBODY, self.ending, work))
        if whole is None:
            raise Refused(503, "The server ends.")
        return Response(whole, media_type=kind)


async def _frames(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts; an error is the last of them."""
    try:
        async for part in parts:
            yield part
    except Exception as error:
        yield wrong_part(error)


def _event(kind: str, content: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in content.splitlines())
    return f"event: {kind}\n{lines}\n".encode()


def _token(text: str) -> bytes:
    return _event("token", json.dumps({"text": text}))


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


def answering(route: Callable[[Request], Awaitable[Response]]) -> Any:
    """A route whose errors are answers, each with its sentence."""

    async def answered(request: Request) -> Response:
        try:
            return await route(request)
        except Refused as error:
            return JSONResponse({"error": error.why, "exit_code": 2}, error.status)
        except Exception as error:
            code = error.status if isinstance(error, AttnvizError) else ExitStatus.BUG
            status = 500 if code == ExitStatus.BUG else 400
            return JSONResponse({"error": sentence_of(error), "exit_code": int(code)}, status)

    return answered


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
        log_level="critical",  # of what the end cuts short
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
    """Closes a connection on which no request is answered, now and then."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.loop.call_later(PATIENCE, self._look)
