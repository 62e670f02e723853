"""What a request must be to be answered: its user's own, for this server, and not too large.

A page of somebody else may make the browser send requests here, under a name that leads to this
computer (DNS rebinding), or from a form. Host, Origin and the token each refuse these.
"""

import asyncio
import hmac
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnviz.kit.calling import check_data

LARGEST = 16 << 20
"""The most bytes of a request's body."""
PATIENCE = 20.0
"""The most seconds that a body may take."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Refused(Exception):
    """A request that is not answered: its status, and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True)
class Guard:
    """Lets through to an app only what may come there.

    `token`: what a request has in its address, in a cookie, or as `Authorization: Bearer`.
    `hosts`: the names of this computer; an address of it by numbers cannot be rebound, and is one.
    """

    app: ASGIApp
    token: str
    hosts: Collection[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there is nothing but HTTP here

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        answer: ASGIApp = self.app
        try:
            answer = self._entrance(Request(scope)) or self.app
        except Refused as error:
            answer = PlainTextResponse(error.why + "\n", error.status)
        await answer(scope, receive, marked)

    def _entrance(self, request: Request) -> Response | None:
        """Refuse, or redirect a first visit to the page without its token in the address."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._is_here(host):
            raise Refused(421, "This server has another name; open the address that it printed.")
        if origin is not None and origin != f"{request.url.scheme}://{host}":
            raise Refused(403, "Another page asks for this; open the address that was printed.")
        typed = request.query_params.get("token", "")
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_ours(typed) and request.method == "GET" and request.url.path == "/":
            entered = RedirectResponse(str(request.url.remove_query_params("token").replace(
                scheme="", netloc="")) or "/", 303)  # fmt: skip
            entered.set_cookie(
                self._cookie(request), self.token, httponly=True, samesite="strict", path="/"
            )
            return entered
        kept = request.cookies.get(self._cookie(request), "")
        if not any(map(self._is_ours, (typed, bearer, kept))):
            raise Refused(401, "The token is missing or wrong; open the address that was printed.")
        return None

    def _cookie(self, request: Request) -> str:
        """Its name; cookies of all ports of a computer are kept together."""
        return f"attnviz-{request.url.port or 80}"

    def _is_ours(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def _is_here(self, host: str) -> bool:
        with suppress(ValueError):
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.hosts or ip_address(name) is not None
        return False


async def body_of(request: Request) -> Mapping[str, Any]:
    """The JSON object in the body of a request.

    Raises:
        Refused: it is something else, too large or too slow.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "Send JSON, with content-type: application/json.")
    told, body = request.headers.get("content-length", "0"), bytearray()
    size = int(told[:12]) if told.isdigit() else LARGEST + 1
    try:
        async with asyncio.timeout(PATIENCE):
            stream = request.stream()
            while size <= LARGEST and (chunk := await anext(stream, b"")):
                body += chunk
                size = len(body)
    except (TimeoutError, ClientDisconnect):
        raise Refused(408, "The request took too long.") from None
    if size > LARGEST:
        raise Refused(413, f"The request has more than {LARGEST >> 20} MB.")
    try:
        content = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Refused(400, "The request is not JSON in UTF-8.") from None
    if not isinstance(content, dict):
        raise Refused(400, "The request is not a JSON object.")
    check_data(content)
    return content
