"""A server of the real program, which the tests of this folder share, and requests to it."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

TOKEN = "aTokenOfTheTests"


@dataclass(frozen=True)
class Here:
    """A running server: where it is, and its process."""

    port: int
    process: "subprocess.Popen[str]"

    def ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
        token: str = TOKEN,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """The status, the headers and the body that a request is answered with."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        try:
            connection.request(method, path, body, {**own, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path: str, content: Any, **headers: str) -> tuple[int, bytes]:
        status, _, body = self.ask("POST", path, content, headers)
        return status, body

    def parts(self, path: str, content: Any) -> list[dict[str, Any]]:
        """The parts of a run: facts, with arrays by name in the place of their forms."""
        status, body = self.post(path, content)
        assert status == 200, body
        return [each for each in unpacked(body) if each["part"] != "progress"]


def unpacked(body: bytes) -> Iterator[dict[str, Any]]:
    """The parts in a body, read as docs/architecture.md describes them."""
    while body:
        size = int.from_bytes(body[:4], "little")
        part, body = body[4 : 4 + size], body[4 + size :]
        end = 4 + int.from_bytes(part[:4], "little")
        facts = json.loads(part[4:end])
        arrays, at = {}, end
        for name, form, length in facts["arrays"]:
            arrays[name] = np.frombuffer(part, f"<{form}", length, at)
            at += -(-arrays[name].nbytes // 4) * 4
        assert at == len(part)
        yield {**facts, "arrays": arrays}


def started(*options: str) -> Here:
    """Start the program, and wait for its address."""
    command = [sys.executable, "-m", "attnviz", "serve", "--token", TOKEN, *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.endswith(f"/?token={TOKEN}")
    return Here(urlsplit(address).port or 0, process)


@pytest.fixture(scope="session")
def here() -> Iterator[Here]:
    server = started("-m", "builtin", "-m", "translator", "-m", "shapes")
    yield server
    server.process.terminate()
    server.process.wait(20)
    assert server.process.stdout is not None
    server.process.stdout.close()
